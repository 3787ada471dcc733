"""The stream: sample files to the feature table as they appear, by the same transforms as the batch job.

    OUT/.follow/checkpoint/    Spark's checkpoint: begun and finished micro-batches
    OUT/.follow/files/         the announced sample files, see `announce`
    OUT/.follow/journal        the journal's name, which the manifest repeats

An interval of a group is complete when it is over and a sample of it or of a later one was read: each file has all
samples that its collector took of a group in an interval. Groups do not wait for each other. Samples that arrive after
their row was written are counted and logged; the batch job of that day includes them. A micro-batch that a kill
interrupted is repeated; if its rows had become visible before, the manifest shows it.
"""

import gc
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import structlog
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from forecasting.columns import DAY_FILE
from spark_features.announce import Journal, SampleFileSource, first_followed_day
from spark_features.growth import GrowingTable
from spark_features.recent import Marks, late_samples, read_samples, thinned
from spark_features.samples import FeaturesError, require_folder
from spark_features.schema import SAMPLES_ARROW, SAMPLES_SCHEMA
from spark_features.table import read_manifest, writing
from spark_features.transforms import LOOK_BACK_SECONDS, group_intervals

# A look for files lists two folders; a file waits half of this on average.
LOOK_SECONDS = 0.5

# The most samples and files of a micro-batch. In a trial with 1,000 groups of 24 partitions, 480,000 samples at once
# took 9.5 s of the processor and 1.8 GB of the JVM; 984,000 took 16.6 s and 2.4 GB; 240,000 took 9.8 s and 1.8 GB.
# 1,000 files are four hours of a collector that writes one each 15 s.
MOST_SAMPLES = 500_000
MOST_FILES = 1000

_FOLLOW = ".follow"
_US = 1_000_000
_DAY_US = 86_400 * _US

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRun:
    """Result of one run of the stream: files read and set aside, samples that came too late, rows by length."""

    files: int = 0
    set_aside_files: int = 0
    late_samples: int = 0
    rows: int = 0


class Stop(Protocol):
    """An event that requests a stop, such as `threading.Event`."""

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds; true if the stream should stop."""
        ...


def follow_features(
    spark: SparkSession, samples_dir: Path, out_dir: Path, *, stop: Stop, oldest: Callable[[], date] = lambda: date.min
) -> FollowRun:
    """Add the rows of every sample file in `samples_dir/date=*/` to the table until `stop`, and count them.

    For a table without rows it begins with the oldest file; for a table of the batch job, with its newest day.
    Days before `oldest`, which is asked after each micro-batch, are removed.
    A file that cannot be read is set aside with a warning, and the stream goes on.
    Errors: FeaturesError on no folder, and if another run is writing.
    """
    require_folder(samples_dir)
    with writing(out_dir):
        session = _session(spark)
        started_from = _newest_table_day(out_dir)
        batches = _MicroBatches(session, samples_dir, out_dir, started_from=started_from, oldest=oldest)
        query = _start(session, batches, samples_dir, out_dir / _FOLLOW, started_from=started_from)
        try:
            while query.isActive and not stop.wait(LOOK_SECONDS):
                pass
            failure = batches.failure or query.exception()
        finally:
            batches.finish()
            with suppress(PySparkException):  # the error of a micro-batch that was begun too late
                query.stop()
    if failure is not None:
        raise failure
    return batches.done


class _MicroBatches:
    """Processes each micro-batch: a list of new files, or of files whose rows may be in the table already."""

    def __init__(
        self,
        spark: SparkSession,
        samples_dir: Path,
        out_dir: Path,
        *,
        started_from: str | None,
        oldest: Callable[[], date],
    ) -> None:
        self.done = FollowRun()
        self.failure: Exception | None = None
        self._is_finished = False
        self._spark = spark
        self._samples_dir = samples_dir
        self._oldest = oldest
        self._journal_dir = out_dir / _FOLLOW / "files"
        first_day = first_followed_day(Journal(self._journal_dir), started_from)
        table_day = (date.fromisoformat(first_day) - timedelta(days=1)).isoformat() if first_day else ""
        self._table = GrowingTable(spark, out_dir, journal=_journal_name(out_dir / _FOLLOW), since_day=table_day)
        # Samples that the batch job has read do not count as late when the stream lists their files for the first time.
        self._known: Marks = self._table.marks if self._table.files == 0 else {}
        self._samples: pa.Table | None = None
        self._at_work = threading.Lock()

    def __call__(self, announced: DataFrame, _batch_id: int) -> None:
        """Read the files, and add the rows that they complete. Spark counts the micro-batch as done on return."""
        with self._at_work:
            if self._is_finished:
                message = "stopped"
                raise InterruptedError(message)
            try:
                # A repeated micro-batch may have its rows in the table already: the positions show it.
                files = {row.position: Path(f"date={row.day}", row.name) for row in announced.collect()}
                new = {position: files[position] for position in sorted(files) if position > self._table.files}
                if new:
                    self._take(new)
            except Exception as error:
                self.failure = error
                raise

    def finish(self) -> None:
        """Wait for the running micro-batch, and begin no other."""
        with self._at_work:
            self._is_finished = True

    def _take(self, files: dict[int, Path]) -> None:
        if self._samples is None:
            self._samples = self._read_again(before=min(files))
        read: list[tuple[Path, pa.Table]] = []
        rows = 0
        for path in files.values():
            for samples in self._read(path):
                if rows + samples.num_rows > MOST_SAMPLES and read:
                    # Of one file that is larger. Files count when they are read to their end: if this is interrupted
                    # they are read again, and rows that are in the table are not written again.
                    self._add(read, files=self._table.files)
                    read, rows = [], 0
                read.append((path, samples))
                rows += samples.num_rows
        self._add(read, files=max(files))

    def _add(self, read: list[tuple[Path, pa.Table]], *, files: int) -> None:
        """Add the rows of these samples; `files` is the number of the journal's files that are in the table then."""
        # A day's file repeats samples that were read before it was made, for instance while no stream ran.
        single = [samples for path, samples in read if not path.name.endswith(DAY_FILE)]
        late = self._count_late(pa.concat_tables([SAMPLES_ARROW.empty_table(), *single]))
        samples = pa.concat_tables([self._samples, *(samples for _, samples in read)])
        # In one partition nothing is shuffled.
        frame = self._spark.createDataFrame(samples.combine_chunks(), SAMPLES_SCHEMA).coalesce(1)
        rows_before = self._spark.createDataFrame(self._table.rows_before())
        base = group_intervals(frame, rows_before=rows_before).toArrow()
        rows = self._table.add(base, files=files)
        self._samples = thinned(samples, self._table.marks)
        self.done = replace(self.done, late_samples=self.done.late_samples + late, rows=self.done.rows + rows)
        self._table.forget(before=self._oldest())
        self._table.merge()
        # Py4J's objects refer to themselves, and hold those of the JVM: of 1,000 groups 90 MB with each micro-batch.
        gc.collect()
        # The first micro-batch after a restart reads up to a day of samples again: 250 MB of 40 groups that Arrow kept.
        pa.default_memory_pool().release_unused()

    def _read(self, path: Path) -> Iterator[pa.Table]:
        """The file's samples, at most MOST_SAMPLES at once; none if it is set aside."""
        if path.suffix != ".parquet":
            day = path.name.removeprefix("date=")
            next_step = f"if files came, stop this run, then `lagcast features --from {day} --to {day}` takes them in"
            _log.warning("old_day_changed", folder=str(path), next_step=next_step)
            self.done = replace(self.done, set_aside_files=self.done.set_aside_files + 1)
            return
        try:
            yield from read_samples(self._samples_dir / path, most_rows=MOST_SAMPLES)
        except FeaturesError as error:
            _log.warning("sample_file_set_aside", file=str(path), error=str(error))
            self.done = replace(self.done, set_aside_files=self.done.set_aside_files + 1)
        else:
            self.done = replace(self.done, files=self.done.files + 1)

    def _read_again(self, *, before: int) -> pa.Table:
        """The samples that rows after the marks depend on, from files at positions before `before`."""
        marks = self._table.marks
        newest_us = max(marks.values(), default=0)
        # A group that returns after more than a day counts as new, so none of its old samples is needed.
        oldest_us = min((end_us for end_us in marks.values() if end_us > newest_us - _DAY_US), default=0)
        since_us = oldest_us - LOOK_BACK_SECONDS * _US
        files = Journal(self._journal_dir).up_to(before - 1)
        read, rows = [SAMPLES_ARROW.empty_table()], 0
        for file in files:
            if file.newest_us is not None and file.newest_us > since_us:
                with suppress(FeaturesError):  # already set aside when it was new
                    for samples in read_samples(self._samples_dir / file.path, most_rows=MOST_SAMPLES):
                        read.append(samples)
                        rows += samples.num_rows
                        if rows >= MOST_SAMPLES:
                            read, rows = [thinned(pa.concat_tables(read), marks)], 0
        return thinned(pa.concat_tables(read), marks)

    def _count_late(self, samples: pa.Table) -> int:
        late = late_samples(samples, self._table.marks)
        known = late_samples(late, self._known)
        count: int = late.num_rows - known.num_rows
        if count:
            days = sorted({str(at.date()) for at in late["sampled_at"].unique().to_pylist()})
            _log.warning(
                "late_samples",
                samples=count,
                groups=sorted(set(late["group"].to_pylist())),
                days=days,
                next_step=f"stop this run, then `lagcast features --from {days[0]} --to {days[-1]}` takes them in",
            )
        return count


def _session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark for small tables, where planning and shuffling take longer than the work itself."""
    session = spark.newSession()
    for name, value in (
        ("spark.sql.shuffle.partitions", "1"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.session.timeZone", "UTC"),
    ):
        session.conf.set(name, value)
    return session


def _start(
    spark: SparkSession, batches: _MicroBatches, samples_dir: Path, folder: Path, *, started_from: str | None
) -> StreamingQuery:
    spark.dataSource.register(SampleFileSource)
    options = {
        "samples_dir": str(samples_dir.resolve()),
        "journal_dir": str((folder / "files").resolve()),
        "most_samples": str(MOST_SAMPLES),
        "most_files": str(MOST_FILES),
    }
    if started_from is not None:
        options["started_from"] = started_from
    return (
        spark.readStream.format(SampleFileSource.name())
        .options(**options)
        .load()
        .writeStream.foreachBatch(batches)
        .option("checkpointLocation", str((folder / "checkpoint").resolve()))
        .trigger(processingTime=f"{LOOK_SECONDS * 1000:.0f} milliseconds")
        .start()
    )


def _newest_table_day(out_dir: Path) -> str | None:
    """The day before the newest that has base rows: samples of its evening determine its first rows."""
    newest = max((part.date for part in read_manifest(out_dir).parts), default=None)
    return None if newest is None else (date.fromisoformat(newest) - timedelta(days=1)).isoformat()


def _journal_name(folder: Path) -> str:
    """A name for this journal, made once: positions of another journal stand for other files."""
    path = folder / "journal"
    if not path.exists():
        unfinished = folder / ".journal"
        unfinished.write_text(uuid.uuid4().hex)
        unfinished.replace(path)
    return path.read_text()
