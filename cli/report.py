# ruff: noqa: PLC0415 - pictures are imported when a report is asked for, so that `--help` answers in 0.2 s
"""The option `--html`: the answer of a command as one file with pictures, written whole or not at all."""

from collections.abc import Sequence
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError
from cli.output import replace_file
from cli.progress import Talk

if TYPE_CHECKING:
    from api.pictures.picture import Picture

HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write the answer with its pictures to FILE too, which loads nothing."),
]


def require_place(path: Path | None) -> None:
    """Make sure, before any work is done, that a file can be written at this path; None: none is to be.

    Errors: InputError with the next step.
    """
    if path is None:
        return
    if path.is_dir():
        message = f"--html {path}: that is a folder; name a file in it, such as {path / 'report.html'}"
        raise InputError(message)
    if not path.parent.is_dir():
        message = f"--html {path}: there is no folder {path.parent}; make it, or name a file in another one"
        raise InputError(message)
    if not access(path.parent, W_OK):
        message = f"--html {path}: the folder {path.parent} cannot be written to; name a file in another one"
        raise InputError(message)


def write_report(
    path: Path,
    title: str,
    pictures: "Sequence[Picture]",
    *,
    sentences: Sequence[str],
    notes: Sequence[str] = (),
    talk: Talk,
) -> None:
    """The report of these pictures at `path`, in place of one that is there.

    Errors: InputError where it cannot be written, and then what was there stays.
    """
    from api.pictures.report import report
    from cli.wiring import version

    footer = f"lagcast {version()}; times are in UTC."
    text = report(title, pictures, sentences=sentences, notes=notes, footer=footer)
    replace_file(path, text, option="--html")
    talk.line(f"report: {path}, {len(text.encode()) / 1e6:.1f} MB, opens without a network")
