"""Parts of commands that run for hours: lists of names as arguments, workers, files replaced in one step, pages."""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any


def names_among(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of names separated by commas, each of which has to be known."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        unknown = [name for name in given if name not in known]
        if unknown:
            message = f"there is no {unknown[0]!r}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return given

    return names


def end_with_parent() -> None:
    """Make this worker end when its parent has ended, because after a killed run it would work for an hour more."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def print_page(parser: argparse.ArgumentParser, file: Path, page_of: Callable[[Any], str], *, of: str) -> None:
    """Print the page of a document of this benchmark; a sentence and exit code 2 where the file is none."""
    try:
        text = page_of(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError) as error:
        parser.error(f"--page {file}: no document of {of} ({error}); make one with --out FILE")
    print(text, end="")


def aged(page: str, document: Mapping[str, object]) -> str:
    r"""A page with what has changed since its figures were measured under its title, where its document notes that.

    >>> aged("# Title\n\nText.", {"changed_since": "Late messages cost more now."})
    '# Title\n\n**Older than the code.** Late messages cost more now.\n\nText.'
    >>> aged("# Title\n\nText.", {})
    '# Title\n\nText.'
    """
    changed = document.get("changed_since")
    return page if changed is None else page.replace("\n\n", f"\n\n**Older than the code.** {changed}\n\n", 1)


def hms(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


def swap_in(text: str, out: Path) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(out.name + ".draft")
    draft.write_text(text)
    draft.replace(out)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table whose first `words` columns are text; the others are figures."""
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
