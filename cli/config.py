# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast config show`: the settings in force, each with where its value comes from."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.errors import ExitCode
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer

app = typer.Typer(no_args_is_help=True, help="Settings: what is in force, and from where.")


def _in_json(value: Any) -> str:  # noqa: ANN401  # of any setting
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


FIELDS = [
    Field(key="key", heading="Setting", left=True),
    Field(key="value", heading="Value", show=_in_json, left=True),
    Field(key="origin", heading="From", left=True),
]


@app.callback()
def settings() -> None:
    """Settings: what is in force, and from where."""


@app.command()
def show(
    *,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not the default.")] = False,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """Show the settings in force, each with where its value comes from: a file, a variable, or the default."""
    from recommender.configuring.effective import DEFAULT, effective_settings

    found = effective_settings(config, os.environ)
    records = [each._asdict() for each in found if not changed or each.origin != DEFAULT]
    write_answer(Answer.of("Settings in force", Table(fields=FIELDS, records=records)), output, output_file)
    return ExitCode.OK
