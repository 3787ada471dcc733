"""Answers of a command, on stdout: a table for people, JSON or CSV for programs, from the same records.

Whatever a name holds, nothing that a terminal would obey is written; only JSON has the name itself.
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cli.printable import printable, printable_json

Record = Mapping[str, Any]


class OutputFormat(StrEnum):
    """Format of an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column: `key` is its name for programs (unit included), `heading` for people; `show` formats a value."""

    key: str
    heading: str
    show: Callable[[Any], str] = str
    left: bool = False


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


def write_table(table: Table) -> None:
    """Print a table on stdout: coloured by Rich on a terminal, else as plain text that is never cut."""
    if not sys.stdout.isatty():
        sys.stdout.write(plain_text(table))
        return
    from rich.console import Console  # noqa: PLC0415  # only a terminal needs it
    from rich.table import Table as RichTable  # noqa: PLC0415

    drawn = RichTable(box=None, pad_edge=True, header_style="bold")
    for field in table.fields:
        drawn.add_column(field.heading, justify="left" if field.left else "right", overflow="fold")
    for row in table.cells():
        drawn.add_row(*row)
    Console(file=sys.stdout, highlight=False, markup=False).print(drawn)


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


def write_json(document: Any) -> None:  # noqa: ANN401  # whatever JSON can hold
    """One JSON document on stdout, keys in the order given, instants in RFC 3339."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    sys.stdout.write(f"{printable_json(text)}\n")


def write_csv(table: Table) -> None:
    """The records as CSV on stdout: machine keys as header, unknown values empty."""
    sys.stdout.write(csv_text(table))


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


def write_documents(documents: Iterable[Record]) -> None:
    """Print Kubernetes objects on stdout, for `kubectl apply -f -`."""
    import yaml  # noqa: PLC0415  # only who writes objects needs it

    sys.stdout.write(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120))
