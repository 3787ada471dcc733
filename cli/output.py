"""Answers of a command: one format for people, spreadsheets, programs, documents, all from the same figures.

Whatever a name holds, nothing that a terminal, Markdown or a browser would obey is written; only JSON and YAML have the
name itself.
"""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from itertools import groupby
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import typer

from cli.errors import InputError
from cli.printable import printable, printable_json
from cli.terminal import is_drawn_on

Record = Mapping[str, Any]


class OutputFormat(StrEnum):
    """Format of an answer. `wide` is the table with every column, and its lines are as long as they need."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MD = "md"
    HTML = "html"


Output = Annotated[OutputFormat, typer.Option("-o", "--output", help="Format of the answer.")]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Put the answer into this file instead, byte for byte, whole or not at all; it is replaced.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column: `key` is its name for programs (unit included), `heading` for people; `show` formats a value.

    One that is `wide` is left out where a person reads a terminal.
    """

    key: str
    heading: str
    show: Callable[[Any], str] = str
    left: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Records that all have the keys of `fields`; None is unknown and shows as a dash, never as 0."""

    fields: Sequence[Field]
    records: Sequence[Record]

    def cells(self) -> list[list[str]]:
        """Rows of the table, without the headings."""
        return [
            ["-" if record[field.key] is None else printable(field.show(record[field.key])) for field in self.fields]
            for record in self.records
        ]

    def narrow(self) -> "Table":
        """The table without the columns that are `wide`."""
        return replace(self, fields=[field for field in self.fields if not field.wide])


# A table, or lines of text.
Part = Table | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command has found: `document` for JSON and YAML, `records` for CSV, and `shown` for people.

    `shown` are tables and lines of text between them; a line that begins with a hyphen is an item of a list. `remarks`
    are told on stderr beside a table, and are part of a document.
    """

    title: str
    document: Any
    records: Table
    shown: Sequence[Part]
    remarks: Sequence[str] = ()

    @classmethod
    def of(cls, title: str, table: Table) -> "Answer":
        """An answer that is one table."""
        return cls(title=title, document=table.records, records=table, shown=(table,))


def write_answer(answer: Answer, output: OutputFormat, file: Path | None = None) -> None:
    """The answer in this format on stdout, or in `file`, which then has the bytes that a pipe would get.

    On a terminal Rich draws the tables. Errors: InputError if the file cannot be written.
    """
    if file is not None:
        replace_file(file, _rendered(answer, output), option="--output-file")
    elif output is OutputFormat.TABLE and is_drawn_on(sys.stdout):
        _draw(answer.shown)
    else:
        sys.stdout.write(_rendered(answer, output))


def _rendered(answer: Answer, output: OutputFormat) -> str:
    match output:
        case OutputFormat.JSON:
            return json_text(answer.document)
        case OutputFormat.YAML:
            return _yaml_text(answer.document)
        case OutputFormat.CSV:
            return csv_text(answer.records)
        case OutputFormat.MD:
            return _markdown(answer)
        case OutputFormat.HTML:
            return _html(answer)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            is_narrow = output is OutputFormat.TABLE
            return "".join(
                (plain_text(part.narrow() if is_narrow else part) if isinstance(part, Table) else _lines(part))
                for part in answer.shown
            )


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{printable(line)}\n" for line in lines)


def _draw(parts: Sequence[Part]) -> None:
    from rich.console import Console  # noqa: PLC0415  # only a terminal needs it
    from rich.table import Table as RichTable  # noqa: PLC0415

    for part in parts:
        if not isinstance(part, Table):
            sys.stdout.write(_lines(part))
            continue
        narrow = part.narrow()
        drawn = RichTable(box=None, pad_edge=True, header_style="bold")
        for field in narrow.fields:
            drawn.add_column(field.heading, justify="left" if field.left else "right", overflow="fold")
        for row in narrow.cells():
            drawn.add_row(*row)
        Console(file=sys.stdout, highlight=False, markup=False).print(drawn)


def replace_file(file: Path, text: str, *, option: str) -> None:
    """The file with this text, and whatever interrupts it either the new one or what was there before.

    Errors: InputError, which names the option that the file was given by.
    """
    try:
        with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as unfinished:
            written = Path(unfinished.name)
            try:
                unfinished.write(text.encode("utf-8", errors="backslashreplace"))
                unfinished.flush()
                os.fsync(unfinished.fileno())
                written.chmod(0o666 & ~_umask())
                written.replace(file)
            except BaseException:
                with suppress(FileNotFoundError):
                    written.unlink()
                raise
    except OSError as error:
        message = f"{option} {file} cannot be written ({error.strerror}); give a file in a folder that exists"
        raise InputError(message) from error


def _umask() -> int:
    """The bits that files of this process are made without; a temporary file is private whatever they are."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def plain_text(table: Table) -> str:
    """The table as text, one line per record, as wide as necessary.

    >>> fields = [Field(key="policy", heading="Policy", left=True), Field(key="pods", heading="Pods")]
    >>> print(plain_text(Table(fields=fields, records=[{"policy": "keda", "pods": 12}])), end="")
     Policy  Pods
     keda      12
    """
    rows = [[field.heading for field in table.fields], *table.cells()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.fields))]
    lines = (
        "  ".join(
            cell.ljust(width) if field.left else cell.rjust(width)
            for field, width, cell in zip(table.fields, widths, row, strict=True)
        )
        for row in rows
    )
    return "".join(f" {line.rstrip()}\n" for line in lines)


def json_text(document: Any) -> str:  # noqa: ANN401  # whatever JSON can hold
    """One JSON document, keys in the order given, instants in RFC 3339. Errors: ValueError for what JSON lacks."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    return f"{printable_json(text)}\n"


def _yaml_text(document: Any) -> str:  # noqa: ANN401  # whatever JSON can hold
    """The same document as YAML."""
    import yaml  # noqa: PLC0415  # only who asks for YAML needs it

    return yaml.safe_dump(json.loads(json_text(document)), sort_keys=False, allow_unicode=True, width=120)


def csv_text(table: Table) -> str:
    r"""The records as CSV, for programs: the exact values, not the shortened ones of the table.

    >>> csv_text(Table(fields=[Field(key="pods", heading="Pods")], records=[{"pods": None}, {"pods": 3}]))
    'pods\r\n""\r\n3\r\n'
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [field.key for field in table.fields], extrasaction="ignore")
    writer.writeheader()
    writer.writerows({key: _in_csv(record[key]) for key in record} for record in table.records)
    return buffer.getvalue()


def _in_csv(value: object) -> object:
    return printable(value) if isinstance(value, str) else value


def _markdown(answer: Answer) -> str:
    """The answer as GitHub reads it."""
    blocks = [f"# {_in_markdown(answer.title)}"]
    for part in (*answer.shown, tuple(answer.remarks)):
        if not isinstance(part, Table):
            blocks += [
                "\n".join(f"- {_in_markdown(line)}" for line in lines)
                if are_items
                else "\n\n".join(map(_in_markdown, lines))
                for are_items, lines in _paragraphs(part)
            ]
            continue
        rows = [[field.heading for field in part.fields], *part.cells()]
        head, *body = (f"| {' | '.join(map(_in_markdown, row))} |" for row in rows)
        rule = "|".join(" --- " if field.left else " ---: " for field in part.fields)
        blocks.append("\n".join((head, f"|{rule}|", *body)))
    return "\n\n".join(blocks) + "\n"


def _in_markdown(text: str) -> str:
    r"""The text with what Markdown and HTML would obey escaped.

    >>> _in_markdown("a|b <i> *c*")
    'a\\|b \\<i\\> \\*c\\*'
    """
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", printable(text))


# As the page of the service: readable in both themes, nothing loaded, and a wide table scrolls by itself.
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 88rem; margin: 1rem auto; padding: 0 1rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .75rem; border-bottom: 1px solid #8886; white-space: nowrap; }
.figure { text-align: right; }
"""


def _html(answer: Answer) -> str:
    """The answer as a file that is a page by itself."""
    title = escape(printable(answer.title))
    blocks = [f"<h1>{title}</h1>"]
    for part in (*answer.shown, tuple(answer.remarks)):
        if not isinstance(part, Table):
            for are_items, lines in _paragraphs(part):
                tag = "li" if are_items else "p"
                text = "\n".join(f"<{tag}>{escape(printable(line))}</{tag}>" for line in lines)
                blocks.append(f"<ul>\n{text}\n</ul>" if are_items else text)
            continue
        sides = ["" if field.left else ' class="figure"' for field in part.fields]
        head = "".join(
            f'<th scope="col"{side}>{escape(field.heading)}</th>'
            for side, field in zip(sides, part.fields, strict=True)
        )
        rows = "\n".join(
            f"<tr>{''.join(f'<td{side}>{escape(cell)}</td>' for side, cell in zip(sides, row, strict=True))}</tr>"
            for row in part.cells()
        )
        table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
        blocks.append(f'<div tabindex="0" role="region" aria-label="{title}">\n{table}\n</div>')
    body = "\n".join(blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """The lines in a row of items of a list, or of what is none: whether they are items, and their words."""
    stripped = [line.strip() for line in lines]
    for are_items, found in groupby(stripped, key=lambda line: line.startswith("- ")):
        yield are_items, [line.removeprefix("- ") for line in found]


def write_documents(documents: Iterable[Record]) -> None:
    """Print Kubernetes objects on stdout, for `kubectl apply -f -`."""
    import yaml  # noqa: PLC0415  # only who writes objects needs it

    sys.stdout.write(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120))
