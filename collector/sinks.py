"""Samples into parquet: immutable files under `date=YYYY-MM-DD/`, each of them complete or absent.

A file appears under its final name by one rename, so a reader never sees half of it; dot names are skipped by Spark and
by Arrow. Its name is made from its time span and its groups: the same batch written again replaces its file.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog

from collector.sample import OffsetSample
from forecasting.columns import SAMPLES, Kind
from forecasting.units import IntArray

_ARROW_TYPES: dict[Kind, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_EPOCH = date(1970, 1, 1)
_MICROSECONDS_PER_DAY = 86_400_000_000
_INSTANT = "%Y%m%dT%H%M%S.%fZ"

_log = structlog.get_logger(__name__)


def arrow_schema() -> pa.Schema:
    """The Arrow schema of the samples table: `forecasting.columns.SAMPLES`, instants as microseconds in UTC.

    >>> arrow_schema().field("sampled_at").type
    TimestampType(timestamp[us, tz=UTC])
    """
    return pa.schema([pa.field(column.name, _ARROW_TYPES[column.kind], column.nullable) for column in SAMPLES])


def arrow_table(samples: Iterable[OffsetSample]) -> pa.Table:
    """The samples as an Arrow table, in their order.

    Errors: ValueError on an instant without a time zone; read as UTC it could be hours off.
    """
    rows = [astuple(sample) for sample in samples]
    for row in rows:
        if row[_SAMPLED_AT].tzinfo is None:
            message = f"sampled_at {row[_SAMPLED_AT].isoformat()} has no time zone; pass an instant in UTC"
            raise ValueError(message)
    columns = zip(*rows, strict=True) if rows else ([] for _ in SAMPLES)
    schema = arrow_schema()
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_samples(samples: Iterable[OffsetSample], directory: Path) -> tuple[Path, ...]:
    """Append samples to the table in `directory`: one file per UTC date; returns the paths, oldest first.

    Files are disjoint in time as long as batches are. No samples: no file.
    """
    return write_table(arrow_table(samples), directory)


def first_samples(directory: Path, *, cluster: str, groups: frozenset[str]) -> dict[str, datetime]:
    """The first instant of the samples of each of these groups of the cluster; groups without samples are left out.

    Files are read oldest first, and none that begins after the latest of the results: two weeks are 80,640 files.
    """
    found: dict[str, datetime] = {}
    for path in sorted(directory.glob("date=*/*.parquet"), key=_span):
        if groups <= found.keys() and _span(path)[0] > max(found.values(), default=_span(path)[0]):
            break
        for group, first in _extremes(path, "min", cluster=cluster, groups=groups):
            found[group] = min(first, found.get(group, first))
    return found


def last_samples(directory: Path, *, cluster: str, groups: frozenset[str]) -> dict[str, datetime]:
    """The last instant of the samples of each of these groups of the cluster; groups without samples are left out.

    Files are read newest first, and none that ends before the earliest of the results.
    """
    found: dict[str, datetime] = {}
    for path in sorted(directory.glob("date=*/*.parquet"), key=_span_end, reverse=True):
        if groups <= found.keys() and _span_end(path) < min(found.values(), default=_span_end(path)):
            break
        for group, last in _extremes(path, "max", cluster=cluster, groups=groups):
            found[group] = max(last, found.get(group, last))
    return found


def _extremes(
    path: Path, extreme: Literal["min", "max"], *, cluster: str, groups: frozenset[str]
) -> Iterator[tuple[str, datetime]]:
    """The first or last instant of each group with a sample in the file; empty if the file cannot be read."""
    try:
        rows = conformed(pq.read_table(path, partitioning=None)).select(["cluster", "group", "sampled_at"])
    except (pa.ArrowException, OSError, ValueError) as error:
        _log.warning(
            "sample_file_set_aside", file=str(path), error=str(error), next_step="remove it, or write it again"
        )
        return
    ours = rows.filter(pc.equal(rows["cluster"], cluster)).group_by("group").aggregate([("sampled_at", extreme)])
    for row in ours.to_pylist():
        if row["group"] in groups:
            yield row["group"], row[f"sampled_at_{extreme}"]


def _span(path: Path) -> tuple[datetime, datetime]:
    """The first and last instant of a file's samples, from its name; the widest span if its name has none."""
    try:
        begin, end, _ = path.name.split("-")
        return _instant(begin), _instant(end)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _instant(stamp: str) -> datetime:
    return datetime.strptime(stamp, _INSTANT).replace(tzinfo=UTC)


def _span_end(path: Path) -> datetime:
    return _span(path)[1]


def write_table(table: pa.Table, directory: Path) -> tuple[Path, ...]:
    """`write_samples` for rows that are an Arrow table already, without a loop over rows in Python.

    Errors: ValueError on a column that is missing, does not cast, or is null where a sample always has a value.
    """
    rows = conformed(table)
    days = _days_since_epoch(rows)
    return tuple(_write_day(rows.filter(pa.array(days == day)), int(day), directory) for day in np.unique(days))


_SAMPLED_AT = [column.name for column in SAMPLES].index("sampled_at")


def conformed(table: pa.Table) -> pa.Table:
    """The rows in the columns and types of samples, null where a column is newer than the rows.

    Errors: ValueError on a column that is missing, does not cast, or is null where a sample always has a value.
    """
    schema = arrow_schema()
    for column in SAMPLES:
        if column.later and column.name not in table.column_names:
            table = table.append_column(schema.field(column.name), pa.nulls(table.num_rows, _ARROW_TYPES[column.kind]))
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        message = f"a table of samples has no column {missing[0]!r}; it needs {', '.join(schema.names)}"
        raise ValueError(message)
    for field in schema:
        nulls = table[field.name].null_count
        if nulls and not field.nullable:
            message = f"column {field.name!r} is null in {nulls} of {table.num_rows} samples; it never may be"
            raise ValueError(message)
    return table.select(schema.names).cast(schema)


def sync_folder(folder: Path) -> None:
    """Make sure that a power cut leaves the folder's names as they are now."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _days_since_epoch(table: pa.Table) -> IntArray:
    instants: IntArray = table["sampled_at"].cast(pa.int64()).to_numpy()
    return instants // _MICROSECONDS_PER_DAY


def _write_day(table: pa.Table, day: int, directory: Path) -> Path:
    folder = directory / f"date={(_EPOCH + timedelta(days=day)).isoformat()}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(table)
    unfinished = folder / f".{path.name}.{os.getpid()}"
    try:
        with unfinished.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            # Without this a power cut can leave the new name on an empty file.
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def file_name(table: pa.Table) -> str:
    """The file's name, from span and groups: collectors of different groups at the same instants do not share it."""
    span = pc.min_max(table["sampled_at"].cast(pa.int64())).as_py()
    groups = table.select(["cluster", "group"]).group_by(["cluster", "group"]).aggregate([]).to_pylist()
    words = sorted(f"{row['cluster']}\0{row['group']}" for row in groups)
    digest = blake2b("\0\0".join(words).encode(), digest_size=4).hexdigest()
    return f"{_stamp(span['min'])}-{_stamp(span['max'])}-{digest}.parquet"


def _stamp(microseconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).strftime(_INSTANT)
