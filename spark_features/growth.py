"""The growing feature table: small parts are added a few rows at a time, and merged so that few remain.

The rows of one micro-batch and the progress of the stream are in one manifest: both are visible or neither is.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # as above
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from forecasting.columns import BASE_INTERVAL_SECONDS, ROLLUP_INTERVALS_SECONDS
from spark_features.recent import Marks, after_marks, marks_at, microseconds, newest_ends
from spark_features.rollups import rollup
from spark_features.schema import GROUP_INTERVALS_ARROW, GROUP_INTERVALS_SCHEMA
from spark_features.table import (
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    Followed,
    Part,
    fresh_folder,
    parts_in,
    read_manifest,
    swap,
)
from spark_features.transforms import LAG_RATE_SECONDS, ROWS_BEFORE

# Most parts of a day of one interval length; beyond it the newest ones, at least MERGED_PARTS, are merged.
MOST_PARTS = 16
MERGED_PARTS = 9

_US = 1_000_000
_LONGEST_SECONDS = max(ROLLUP_INTERVALS_SECONDS)
_ENDS = ("cluster", "group", "interval_end_at")
_log = structlog.get_logger(__name__)

_ORDER = [("cluster", "ascending"), ("group", "ascending"), ("interval_end_at", "ascending")]


class GrowingTable:
    """The feature table in `out_dir`, for the one process that may write to it. Rows are added, never changed.

    `marks` are the ends of each group's rows; samples up to a mark come too late.
    """

    def __init__(self, spark: SparkSession, out_dir: Path, *, journal: str, since_day: str) -> None:
        self._spark = spark
        self._out_dir = out_dir
        self._manifest = read_manifest(out_dir)
        self._journal = journal
        followed = self._manifest.followed
        is_of_the_batch_job = followed is None or followed.journal != journal
        try:
            self.marks, self._open = self._begun(since_day, is_of_the_batch_job=is_of_the_batch_job)
        except (OSError, pa.ArrowException):
            if not self._set_aside(self._manifest.parts):
                raise
            self.marks, self._open = self._begun(since_day, is_of_the_batch_job=is_of_the_batch_job)

    @property
    def files(self) -> int:
        """The number of files of the journal whose rows are in the table."""
        return self._manifest.followed.files if self._manifest.followed is not None else 0

    def rows_before(self) -> pa.Table:
        """What the next rows depend on of those that are there, in the columns of `transforms.ROWS_BEFORE`."""
        since_us = {key: end_us - LAG_RATE_SECONDS * _US for key, end_us in self.marks.items()}
        return after_marks(self._open.select(list(ROWS_BEFORE)), since_us)

    def add(self, base: pa.Table, *, files: int) -> int:
        """Add base rows that end after their group's mark, and the rollups that they complete; returns the row count.

        `files` is the number of files of the journal that are in the table with these rows.
        """
        base = after_marks(base.cast(GROUP_INTERVALS_ARROW), self.marks).sort_by(_ORDER)
        marks = _highest(self.marks, newest_ends(base))
        open_rows = _together([self._open, base])
        rollups = self._complete_rollups(open_rows, marks)
        version = self._manifest.feature_table_version + 1
        folder = fresh_folder(self._out_dir, version=version)
        added = _write(_together([base, rollups]), folder, name=f"added-{version}")
        self._swap((*self._manifest.parts, *parts_in(self._out_dir, folder)), files=files)
        self.marks = marks
        self._open = _still_needed(open_rows, marks)
        return added

    def forget(self, *, before: date) -> None:
        """Take the days before that one out of the table."""
        after = self._manifest.since(before)
        if after != self._manifest:
            self._swap(after.parts, files=self.files)

    def merge(self) -> None:
        """Merge parts of days that have too many of them, and of days that are over."""
        days = sorted({(part.interval_seconds, part.date) for part in self._manifest.parts})
        # The day before the newest may still get rows from groups that are behind.
        growing = sorted({day for _, day in days})[-2:]
        for seconds, day in days:
            parts = [part for part in self._manifest.parts if (part.interval_seconds, part.date) == (seconds, day)]
            merged = alike_parts(parts) if day in growing else parts
            if len(merged) > 1:
                try:
                    self._merge(merged)
                except (PySparkException, Py4JJavaError):  # within a micro-batch errors come as Py4J raises them
                    if not self._set_aside(merged):
                        raise

    def _begun(self, since_day: str, *, is_of_the_batch_job: bool) -> tuple[Marks, pa.Table]:
        """The marks, and the base rows that are still needed, from the parts of `since_day` and later."""
        if is_of_the_batch_job:
            self._withdraw_open_rollups()
        since = [part for part in self._manifest.parts if part.date >= since_day]
        ends: list[Marks] = [newest_ends(rows) for rows in self._rows_of(since, columns=_ENDS)]
        nothing: Marks = {}
        marks = reduce(_highest, ends, nothing)
        base = [part for part in since if part.interval_seconds == BASE_INTERVAL_SECONDS]
        return marks, _together([_still_needed(rows, marks) for rows in self._rows_of(base)])

    def _set_aside(self, parts: Sequence[Part]) -> bool:
        """Take the parts out of the table that are no parquet files any more; False if there is none.

        The stream would fail at each start. The rows of the newest one are made again from their samples.
        """
        broken = [part for part in parts if (error := self._error_of(part)) and _tell(part, error)]
        if broken:
            self._swap(tuple(part for part in self._manifest.parts if part not in broken), files=self.files)
        return bool(broken)

    def _error_of(self, part: Part) -> Exception | None:
        """What is wrong with the content of a part; None also where the disk has failed, which may pass."""
        try:
            for file in (self._out_dir / part.folder).glob("*.parquet"):
                pq.read_table(file, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            return None if getattr(error, "errno", None) else error
        return None

    def _merge(self, parts: list[Part]) -> None:
        folder = fresh_folder(self._out_dir, version=self._manifest.feature_table_version + 1)
        day = folder / f"interval_seconds={parts[0].interval_seconds}" / f"date={parts[0].date}"
        folders = [str(self._out_dir / part.folder) for part in parts]
        rows = self._spark.read.schema(GROUP_INTERVALS_SCHEMA).parquet(*folders)
        in_order = rows.coalesce(1).sortWithinPartitions(*(name for name, _ in _ORDER))
        in_order.write.option("parquet.block.size", ROW_GROUP_BYTES).parquet(str(day))
        (merged,) = parts_in(self._out_dir, folder)
        # At the position of the oldest of them: parts of a day stay in the order of their ages.
        position = self._manifest.parts.index(parts[0])
        kept = [part for part in self._manifest.parts if part not in parts]
        self._swap((*kept[:position], merged, *kept[position:]), files=self.files)

    def _swap(self, parts: tuple[Part, ...], *, files: int) -> None:
        after = self._manifest.followed_by(parts, followed=Followed(journal=self._journal, files=files))
        swap(self._out_dir, before=self._manifest, after=after)
        self._manifest = after

    def _withdraw_open_rollups(self) -> None:
        """Remove the rollups of intervals that are not over: the batch job makes them from incomplete rows.

        They are written again, complete, when their interval is over.
        """
        parts = self._manifest.parts
        newest_day = max((part.date for part in parts), default="")
        of_day = [part for part in parts if part.date == newest_day]
        base = [part for part in of_day if part.interval_seconds == BASE_INTERVAL_SECONDS]
        newest_us = max((max(newest_ends(rows).values()) for rows in self._rows_of(base, columns=_ENDS)), default=0)
        folder = fresh_folder(self._out_dir, version=self._manifest.feature_table_version + 1)
        rollups = [part for part in of_day if part.interval_seconds != BASE_INTERVAL_SECONDS]
        of_rollups = _together(list(self._rows_of(rollups)))
        over = of_rollups.filter(pc.less_equal(microseconds(of_rollups, "interval_end_at"), newest_us))
        _write(over.sort_by(_ORDER), folder, name="over")
        kept = tuple(part for part in parts if part not in rollups)
        self._swap((*kept, *parts_in(self._out_dir, folder)), files=0)

    def _complete_rollups(self, open_rows: pa.Table, marks: Marks) -> pa.Table:
        """The rollups, of all lengths, of intervals that were not over at the old marks and are over at `marks`."""
        due = [seconds for seconds in ROLLUP_INTERVALS_SECONDS if self._closes(marks, seconds)]
        if not due:
            return GROUP_INTERVALS_ARROW.empty_table()
        begins_us = {key: _full(end_us, max(due)) for key, end_us in self.marks.items()}
        # In one partition, sorted: sums of fractions equal the batch job's to the last digit.
        sorted_rows = after_marks(open_rows, begins_us).sort_by(_ORDER)
        base = self._spark.createDataFrame(sorted_rows, GROUP_INTERVALS_SCHEMA).coalesce(1)
        rollups = reduce(DataFrame.unionByName, (rollup(base, seconds=seconds) for seconds in due))
        rows = rollups.toArrow().cast(GROUP_INTERVALS_ARROW)
        ends_us = microseconds(rows, "interval_end_at")
        rows = rows.filter(pc.less_equal(ends_us, marks_at(marks, rows)))
        return after_marks(rows, self.marks).sort_by(_ORDER)

    def _closes(self, marks: Marks, seconds: int) -> bool:
        """True if any group passes the end of an interval of this length."""
        length_us = seconds * _US
        return any(end_us // length_us > self.marks.get(key, 0) // length_us for key, end_us in marks.items())

    def _rows_of(
        self, parts: list[Part], *, columns: Sequence[str] = GROUP_INTERVALS_ARROW.names
    ) -> Iterator[pa.Table]:
        """The rows of these parts, in pieces: a day of a large fleet does not fit in memory."""
        files = [str(file) for part in parts for file in sorted((self._out_dir / part.folder).glob("*.parquet"))]
        dataset = ds.dataset(files, schema=GROUP_INTERVALS_ARROW, format="parquet")
        return (pa.Table.from_batches([batch]) for batch in dataset.to_batches(columns=list(columns)) if batch.num_rows)


def alike_parts(parts: list[Part]) -> list[Part]:
    """The newest parts of a day that have to be merged; none as long as there are no more than MOST_PARTS.

    At least MERGED_PARTS, and all older ones that are no larger than the newer ones together: so older parts are
    larger, and a row is written again as often as its day's rows double, not with each merge.
    """
    if len(parts) <= MOST_PARTS:
        return []
    first = len(parts) - MERGED_PARTS
    while first > 0 and parts[first - 1].rows <= sum(part.rows for part in parts[first:]):
        first -= 1
    return parts[first:]


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([GROUP_INTERVALS_ARROW.empty_table(), *tables]).combine_chunks()


def _still_needed(rows: pa.Table, marks: Marks) -> pa.Table:
    """The base rows of open hours, which a rollup needs, and of the last LAG_RATE_SECONDS, which the next rows need."""
    begins_us = {
        key: min(_full(end_us, _LONGEST_SECONDS), end_us - LAG_RATE_SECONDS * _US) for key, end_us in marks.items()
    }
    return after_marks(rows, begins_us)


def _full(end_us: int, seconds: int) -> int:
    """The end of the last full interval of so many seconds, up to an instant in microseconds since 1970."""
    return end_us // (seconds * _US) * seconds * _US


def _tell(part: Part, error: Exception) -> bool:
    """Log that a part is set aside, and how its rows come back. True."""
    next_step = f"stop this run, then `lagcast features --from {part.date} --to {part.date}` makes that day again"
    _log.warning("part_set_aside", folder=part.folder, rows=part.rows, error=str(error), next_step=next_step)
    return True


def _highest(marks: Marks, others: Marks) -> Marks:
    return {key: max(marks.get(key, 0), others.get(key, 0)) for key in {**marks, **others}}


def _write(rows: pa.Table, folder: Path, *, name: str) -> int:
    """Write the rows into a folder for each length and day, in their order; returns the number of rows."""
    ends_us = microseconds(rows, "interval_end_at").to_pylist()
    # The row that ends at midnight belongs to the day that it covers.
    days = [(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us - 1)).date().isoformat() for us in ends_us]
    lengths = rows["interval_seconds"].to_pylist()
    for seconds, day in sorted(set(zip(lengths, days, strict=True))):
        of_day = pa.array([key == (seconds, day) for key in zip(lengths, days, strict=True)])
        path = folder / f"interval_seconds={seconds}" / f"date={day}" / f"{name}.parquet"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            pq.write_table(rows.filter(of_day), file, row_group_size=ROW_GROUP_ROWS)
            # Without this a power cut can leave the manifest with an empty file.
            file.flush()
            os.fsync(file.fileno())
    return len(ends_us)
