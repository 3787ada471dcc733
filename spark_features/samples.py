"""The sample files of the job, checked before Spark reads them: Spark reads a missing column as nulls."""

import fcntl
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.columns import DAY_FILE, MADE_OF, SAMPLES, SAMPLES_LOCK, Column, Kind

# Parquet's (physical type, converted type) that Spark reads as each kind. Older Spark versions write instants as INT96.
_STORED: dict[Kind, frozenset[tuple[str, str]]] = {
    "string": frozenset({("BYTE_ARRAY", "UTF8")}),
    "int": frozenset({("INT32", "NONE"), ("INT32", "INT_32"), ("INT32", "INT_16"), ("INT32", "INT_8")}),
    "long": frozenset({("INT64", "NONE"), ("INT64", "INT_64")}),
    "double": frozenset({("DOUBLE", "NONE")}),
    "boolean": frozenset({("BOOLEAN", "NONE")}),
    "timestamp": frozenset({("INT64", "TIMESTAMP_MICROS"), ("INT64", "TIMESTAMP_MILLIS"), ("INT96", "NONE")}),
}


class FeaturesError(ValueError):
    """The features job cannot use its input; one sentence names the fault, the place and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFiles:
    """Parquet files with valid columns, and the total number of their rows; `set_aside` has the others' errors."""

    paths: tuple[Path, ...]
    rows: int
    set_aside: tuple[str, ...] = ()


def find_samples(samples_dir: Path, *, first: date | None, last: date | None) -> SampleFiles:
    """The files below `samples_dir` that may have samples of the days `first` to `last`, or of the day on either side.

    Files in a folder `date=YYYY-MM-DD` are selected by that date; others are always read. Names that start with `_` or
    `.` are unfinished files and are skipped.
    A file with a missing column, a wrong type or a null where none may be, or that cannot be read, is set aside.
    Errors: FeaturesError on no folder, no files, no rows; the first file's where all are set aside.
    """
    require_folder(samples_dir)
    visible = sorted(path for path in samples_dir.rglob("*.parquet") if not _is_hidden(path.relative_to(samples_dir)))
    stored = _without_merged(visible)
    if not stored:
        message = f"{samples_dir} holds no parquet file; let the collector run first, or name the folder it writes to"
        raise FeaturesError(message)
    picked = tuple(path for path in stored if _may_hold(path, first=first, last=last))
    readable, errors, rows = [], [], 0
    for path in picked:
        try:
            rows += checked_rows(path)
            readable.append(path)
        except FeaturesError as error:
            errors.append(error)
    if errors and not readable:
        raise errors[0]
    if rows == 0:
        span = f"from {first or 'the start'} to {last or 'the end'}"
        message = f"the {len(stored)} parquet files in {samples_dir} hold no sample {span}; name other days"
        raise FeaturesError(message)
    return SampleFiles(paths=tuple(readable), rows=rows, set_aside=tuple(str(error) for error in errors))


@contextmanager
def reading(samples_dir: Path) -> Iterator[None]:
    """Lock the folder, if possible, so that no process merges or removes files until the block ends."""
    try:
        lock = (samples_dir / SAMPLES_LOCK).open("a")
    except OSError:  # read-only, as an archive may be: no other process writes there either
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def require_folder(samples_dir: Path) -> None:
    """Check that `samples_dir` is a folder, empty or not. Errors: FeaturesError if it is none."""
    if not samples_dir.is_dir():
        message = f"{samples_dir} is no folder; --samples is the folder that the collector writes parquet files to"
        raise FeaturesError(message)


def _without_merged(paths: Sequence[Path]) -> list[Path]:
    """The files without those that were merged into a day's file, which has their rows."""
    folders = Counter(path.parent for path in paths)
    merged: set[Path] = set()
    for path in paths:
        if path.name.endswith(DAY_FILE) and folders[path.parent] > 1:
            try:
                metadata = pq.read_metadata(path).metadata or {}
            except (pa.ArrowException, OSError):
                continue  # set aside by who reads it
            merged.update(path.parent / name for name in str(metadata.get(MADE_OF.encode(), b""), "utf-8").splitlines())
    return [path for path in paths if path not in merged]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _may_hold(path: Path, *, first: date | None, last: date | None) -> bool:
    folder = re.fullmatch(r"date=(\d{4}-\d{2}-\d{2})", path.parent.name)
    if folder is None:
        return True
    day = date.fromisoformat(folder[1])
    return not (first and day < first - timedelta(days=1)) and not (last and day > last + timedelta(days=1))


def checked_rows(path: Path) -> int:
    """The number of samples in the file; its footer is enough to count them and to check the columns."""
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise FeaturesError(unreadable(path, error)) from error
    positions = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    missing = [column.name for column in SAMPLES if column.name not in positions and not column.later]
    if missing:
        message = f"{path} lacks {', '.join(missing)}; a sample has {', '.join(column.name for column in SAMPLES)}"
        raise FeaturesError(message)
    for column in (column for column in SAMPLES if column.name in positions):
        _check_column(path, footer, column, position=positions[column.name])
    return int(footer.num_rows)


def unreadable(path: Path, error: Exception) -> str:
    """The error message for a file that parquet's reader cannot read."""
    return f"{path} is no readable parquet file ({error}); remove it, or write it again"


def _check_column(path: Path, footer: pq.FileMetaData, column: Column, *, position: int) -> None:
    stored = footer.schema.column(position)
    if (stored.physical_type, stored.converted_type) not in _STORED[column.kind]:
        found = f"{stored.physical_type} {stored.logical_type.type}"
        message = f"{path}: column {column.name} is {found}, and has to be {_wanted(column)}; write it with that type"
        raise FeaturesError(message)
    nulls = 0 if column.nullable else _null_count(footer, position)
    if nulls:
        message = f"{path}: column {column.name} holds {nulls} nulls, and every sample needs it; drop those rows"
        raise FeaturesError(message)


def _wanted(column: Column) -> str:
    words: dict[Kind, str] = {"int": "int32", "long": "int64", "timestamp": "an instant in UTC with microseconds"}
    return words.get(column.kind, column.kind)


def _null_count(footer: pq.FileMetaData, position: int) -> int:
    chunks = (footer.row_group(index).column(position) for index in range(footer.num_row_groups))
    counts: Sequence[int] = [chunk.statistics.null_count for chunk in chunks if chunk.statistics is not None]
    return sum(counts)
