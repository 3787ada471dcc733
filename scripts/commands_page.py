# ruff: noqa: INP001 - a script is run, never imported
"""Writes docs/commands.md from the help of the commands: `python scripts/commands_page.py > docs/commands.md`."""

import sys
from collections.abc import Iterator

import typer
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from cli.main import app as lagcast
from executor.run import app as executor

HEAD = """\
# Commands

Each command with its arguments, options and defaults, as its `--help` has them. Exit codes are the same for all:
[0 to 4, and 130](operations.md#streams-and-exit-codes). Results go to stdout, messages to stderr. This page is made by
`make docs`.

| Command | Does |
|---|---|
"""


def page() -> str:
    """The whole page: a table of all commands, and a section for each."""
    sections = [*_sections(lagcast, "lagcast"), *_sections(executor, "lagcast-executor")]
    rows = (f"| [`{name}`](#{name.replace(' ', '-')}) | {meaning} |\n" for name, meaning, _ in sections)
    return HEAD + "".join(rows) + "".join(f"\n{section}" for _, _, section in sections)


def _sections(app: typer.Typer, name: str) -> Iterator[tuple[str, str, str]]:
    """Name, first sentence and section of each command of an app, in its own order."""
    command = get_command(app)
    context = typer.Context(command, info_name=name)
    commands = [(name, command)]
    while commands:
        name, command = commands.pop(0)
        if isinstance(command, TyperGroup):
            commands = [(f"{name} {word}", each) for word, each in command.commands.items()] + commands
            continue
        text = get_docs_for_click(obj=command, ctx=context, indent=1, name=name)
        # A prompt is for what can be typed as it stands.
        section = text.replace("```console\n$ ", "```text\n").replace("**Usage**:\n\n", "").rstrip() + "\n"
        meaning = " ".join((command.help or "").partition("\n\n")[0].split())
        yield name, meaning, section


if __name__ == "__main__":
    sys.stdout.write(page())
