"""Sample files of finished days: one file per day, removed when a day is older than any request.

A day that grows has a file per minute or per round. A day and an hour after its end, no reader waits for single files
any more: the stream lists only the newest two days, and is late by less than an hour.

    date=2026-05-04/20260504T000014.000000Z-20260504T235959.000000Z-1a2b3c4d.day.parquet

The day's file appears by one rename and names in its footer the files that it was made of; these no longer count from
that moment on, whether they are removed or not. So a kill at any point loses no row and shows none twice.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog

from collector.locks import locked
from collector.sinks import arrow_schema, conformed, file_name, sync_folder
from forecasting.columns import DAY_FILE, MADE_OF, SAMPLES_LOCK

SETTLED_AFTER = timedelta(hours=25)
EVERY_SECONDS = 3600.0
# A row group of a day's file; a day of 20 groups of 24 partitions has 2,764,800 rows.
_ROWS_AT_ONCE = 1_000_000
_FOLDER = "date="

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result: files that became part of a day's file, and days that were removed."""

    merged_files: int = 0
    removed_days: int = 0


def keep_days(samples_dir: Path, *, now: datetime, kept_days: int) -> Kept:
    """Make one file of each day that has been over for `SETTLED_AFTER`, and remove days before the last `kept_days`.

    A day is left for the next time while another process reads the folder or merges it, and, with a log line, if it
    fails. A file that cannot be read stays as it is.
    """
    merged, removed = 0, 0
    for folder in sorted(samples_dir.glob(f"{_FOLDER}*")):
        try:
            kept = _keep(folder, now=now, kept_days=kept_days)
        except (OSError, OverflowError, ValueError, pa.ArrowException) as error:
            _log.warning("day_not_kept", folder=str(folder), error=f"{type(error).__name__}: {error}")
            continue
        merged, removed = merged + kept.merged_files, removed + kept.removed_days
    for folder in sorted(samples_dir.glob(f".{_FOLDER}*")):
        shutil.rmtree(folder)
    return Kept(merged_files=merged, removed_days=removed)


def keep_days_forever(
    samples_dir: Path,
    *,
    kept_days: int,
    clock: Callable[[], datetime],
    wait: Callable[[float], bool],
) -> None:
    """`keep_days` now and once an hour until `wait(seconds)` is true; results and failures are logged."""
    while True:
        try:
            kept = keep_days(samples_dir, now=clock(), kept_days=kept_days)
        except OSError as error:
            _log.warning("keeping_failed", folder=str(samples_dir), error=str(error))
        else:
            if kept != Kept():
                _log.info("samples_kept", merged_files=kept.merged_files, removed_days=kept.removed_days)
        if wait(EVERY_SECONDS):
            return


def _keep(folder: Path, *, now: datetime, kept_days: int) -> Kept:
    """Merge the files of one day, or remove it."""
    day = _day_of(folder)
    with _alone(folder.parent) as is_alone:
        if day is None or not is_alone:
            return Kept()
        if day < (now - timedelta(days=kept_days)).date():
            # Hidden by one rename: readers see the whole day or none of it.
            folder.replace(folder.with_name(f".{folder.name}"))
            return Kept(removed_days=1)
        if datetime.combine(day, time(), tzinfo=UTC) <= now - SETTLED_AFTER - timedelta(days=1):
            return Kept(merged_files=_merge(folder))
    return Kept()


@contextmanager
def _alone(samples_dir: Path) -> Iterator[bool]:
    """True if no other process has the folder's lock; the lock is held until the block or the process ends."""
    try:
        lock = locked(samples_dir / SAMPLES_LOCK)
    except BlockingIOError:
        yield False
        return
    with lock:
        yield True


def _merge(folder: Path) -> int:
    """Merge the day's files into one; returns how many they were, 0 if only one can be read."""
    files = {path.name: path for path in folder.glob("*.parquet") if path.name[0] not in "._"}
    made_of = {name for path in files.values() for name in _made_of(path)}
    for name in made_of & files.keys():
        files.pop(name).unlink()  # a merge that was cut short
    readable = [path for path in sorted(files.values()) if _is_readable(path)]
    if len(readable) < 2:
        return 0
    unfinished = folder / f".day.{os.getpid()}"
    try:
        name = _write(readable, unfinished, made_of=made_of | {path.name for path in readable})
        unfinished.replace(folder / name)
    finally:
        unfinished.unlink(missing_ok=True)
    # Without this a power cut could leave the removals without the new file's name.
    sync_folder(folder)
    for path in readable:
        if path.name != name:
            path.unlink()
    return len(readable)


def _write(paths: list[Path], unfinished: Path, *, made_of: set[str]) -> str:
    """Write the rows of the files into one file; returns the name that a batch of all rows would have."""
    spans: list[pa.Table] = []
    waiting: list[pa.Table] = []
    with unfinished.open("wb") as file:
        with pq.ParquetWriter(file, arrow_schema(), compression="zstd") as writer:
            for rows in (rows for path in paths for rows in _pieces(path)):
                waiting.append(rows)
                spans.append(_span(rows))
                if sum(table.num_rows for table in waiting) >= _ROWS_AT_ONCE:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
            name = file_name(pa.concat_tables(spans)).removesuffix(".parquet") + DAY_FILE
            # If later rows do not change the span, the name stays the same and the new file replaces the old one.
            writer.add_key_value_metadata({MADE_OF: "\n".join(sorted(made_of - {name}))})
        file.flush()
        os.fsync(file.fileno())
    return name


def _pieces(path: Path) -> Iterator[pa.Table]:
    """The rows of a file, one row group at a time: a day of a large fleet does not fit in memory."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield conformed(file.read_row_group(number))


def _span(rows: pa.Table) -> pa.Table:
    """The rows that give a file its name: the groups, each with its first and its last instant."""
    firsts_and_lasts = rows.group_by(["cluster", "group"]).aggregate([("sampled_at", "min"), ("sampled_at", "max")])
    return pa.concat_tables(
        [
            firsts_and_lasts.select(["cluster", "group", column]).rename_columns(["cluster", "group", "sampled_at"])
            for column in ("sampled_at_min", "sampled_at_max")
        ]
    )


def _made_of(path: Path) -> list[str]:
    """The files that a day's file was made of; none for other files."""
    if not path.name.endswith(DAY_FILE):
        return []
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError):
        return []
    return str(metadata.get(MADE_OF.encode(), b""), "utf-8").splitlines()


def _is_readable(path: Path) -> bool:
    """True if the file has rows and can be read to its end as samples."""
    try:
        return any([rows.num_rows for rows in _pieces(path)])  # noqa: C419  # all of them are read
    except (pa.ArrowException, OSError, ValueError):
        return False


def _day_of(folder: Path) -> date | None:
    try:
        return date.fromisoformat(folder.name.removeprefix(_FOLDER))
    except ValueError:
        return None
