"""Decisions on a fleet of any size: rows and kept state of each group to its decision, by a `FleetWork`.

Two passes, because groups of a kind teach each other: the first opens each group, and what it has learned is pooled;
the second decides. Opened groups wait on the disks of the workers in between: where a worker is lost, Spark opens its
groups again. Groups come as Arrow tables (`applyInArrow`) and not as pandas frames, in which an unknown count of
members would become a float that is no number. A group that kills its worker is refused, and the others go on
(`deaths`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from forecasting.columns import BASE_INTERVAL_SECONDS, FLEET_STATE
from spark_features.deaths import JOB_ERRORS, Deaths, Group, WorkersDieError, watched
from spark_features.decided import FOLDER, files_of, publish, read_version
from spark_features.pinned import pinned, scratch
from spark_features.schema import GROUP_INTERVALS_SCHEMA, spark_schema
from spark_features.table import read_manifest, writing

# Part of the group's key in every table.
_GROUP = ("cluster", "group")
_DECISIONS, _KEPT = "decisions", "kept"
# The kind of the row that stands beside a group's kept ones where it is to be decided.
_LISTED = "listed"
# So many groups are one task: 5 to 60 s of work, which is what the loss of a worker costs.
_GROUPS_A_TASK = 100
# Tasks for each core at least, so that no core waits long for the last one.
_TASKS_A_CORE = 4
# An opened group of 28 days is 3 MB.
_BATCH_BYTES = 16 * 2**20

_STATE_SCHEMA = spark_schema(FLEET_STATE)
_KEPT_SCHEMA = StructType(_STATE_SCHEMA.fields[1:])
_OPENED_SCHEMA = StructType(
    [
        *(StructField(name, StringType(), nullable=False) for name in _GROUP),
        StructField("lesson", BinaryType()),
        StructField("opened", BinaryType(), nullable=False),
    ]
)
_STATE_ARROW, _OPENED_ARROW = (to_arrow_schema(schema, timezone="UTC") for schema in (_STATE_SCHEMA, _OPENED_SCHEMA))
_NAMES = pa.schema([(name, pa.string()) for name in _GROUP])

_RUN_ERRORS = (*JOB_ERRORS, WorkersDieError)


class FleetJobError(RuntimeError):
    """The Spark job failed for a reason that is no group's; nothing was written."""


class FleetWork(Protocol):
    """What is done for each group; it is sent to the workers."""

    def open_group(
        self, group: Group, rows: pa.Table, kept: pa.Table, *, is_listed: bool, lost: str | None
    ) -> tuple[bytes | None, bytes]:
        """What the group teaches others of its kind, if it teaches anything; and the group, opened."""
        ...

    def decide_group(self, opened: bytes, prior: bytes) -> pa.Table:
        """Its decision, and what is kept of it, as rows of FLEET_STATE."""
        ...

    def pooled(self, lessons: Iterable[bytes]) -> bytes:
        """What groups begin from, by the lessons of all of them."""
        ...

    def refuse_group(self, group: Group, kept: pa.Table, *, deaths: int) -> pa.Table:
        """The refusal of a group at which so many workers have died, and what is kept of it, as rows of FLEET_STATE."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """The result of one run: the files with its decisions, and the files that could not be read and were left out."""

    version: int
    decisions: tuple[Path, ...]
    left_out: tuple[Path, ...]


def decide_fleet(
    spark: SparkSession, features_dir: Path, work: FleetWork, *, listed: Sequence[Group], now: datetime, days: int
) -> FleetRun:
    """Decide every group that is `listed`, from its rows of the last `days` until `now`, and keep what comes of it.

    Of a table whose newest rows are older than that, all rows are used. A file that cannot be read is left out: rows in
    it are missing, as those of a gap are, and a group of which nothing is kept elsewhere is opened with the reason.
    A group that kills its worker when it is alone as well is refused. Where no listed group passes, or workers still
    die when groups have been set aside nine times, the job fails.
    Errors: FeaturesError where another run is writing; FleetJobError where the job fails. Then nothing has changed.
    """
    decisions_dir = features_dir / FOLDER
    with writing(decisions_dir), scratch(decisions_dir / ".unfinished") as unfinished:
        version, since = read_version(decisions_dir), _since(features_dir, now=now, days=days)
        span = ("" if since is None else since.date().isoformat(), now.date().isoformat())
        rows = pinned(features_dir, unfinished / "rows", span, interval_seconds=BASE_INTERVAL_SECONDS)
        read = _Read(tuple(sorted(rows.iterdir())), tuple(files_of(decisions_dir, version=version, table=_KEPT)))
        written = unfinished / "version"
        run = partial(_run, spark, work=work, listed=listed, since=since, now=now, written=written)
        try:
            try:
                run(read, deaths=Deaths(spark, unfinished / "deaths"))
            except _RUN_ERRORS:
                with suppress(*JOB_ERRORS):  # of a cluster that is gone
                    read = _readable(spark, read)
                if not read.left_out:
                    raise
                run(read, deaths=Deaths(spark, unfinished / "deaths-again"))
        except _RUN_ERRORS as error:
            raise FleetJobError(_sentence(error)) from error
        publish(written, decisions_dir, version=version + 1, decided_at=now)
        decided = tuple(files_of(decisions_dir, version=version + 1, table=_DECISIONS))
    return FleetRun(version=version + 1, decisions=decided, left_out=read.left_out)


@dataclass(frozen=True, slots=True)
class _Read:
    """The files that a run reads, and those that cannot be read."""

    rows: tuple[Path, ...]
    kept: tuple[Path, ...]
    left_out_rows: tuple[Path, ...] = ()
    left_out_kept: tuple[Path, ...] = ()

    @property
    def left_out(self) -> tuple[Path, ...]:
        """The files that cannot be read."""
        return self.left_out_rows + self.left_out_kept

    def lost(self) -> str | None:
        """The reason why something that was kept may be missing; None where nothing is."""
        names = ", ".join(map(str, self.left_out_kept))
        return f"what was kept of this group may have been in {names}, which cannot be read" if names else None


def _since(features_dir: Path, *, now: datetime, days: int) -> datetime | None:
    """The instant after which rows are read; None for all, as a group that has none after it is told how old they are.

    Groups that are listed have a row in the day before the newest one of the table.
    """
    since = now - timedelta(days=days)
    dates = [part.date for part in read_manifest(features_dir).parts if part.interval_seconds == BASE_INTERVAL_SECONDS]
    newest = date.fromisoformat(max(dates, default=date.min.isoformat()))
    return since if newest - timedelta(days=1) > since.date() else None


def _run(
    spark: SparkSession,
    read: _Read,
    *,
    work: FleetWork,
    listed: Sequence[Group],
    since: datetime | None,
    now: datetime,
    written: Path,
    deaths: Deaths,
) -> None:
    """Both passes over all groups; the rows of FLEET_STATE are below `written` then.

    Groups that are set aside in a pass are alone in a job of their own after it, for as long as each one takes.
    """
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_BATCH_BYTES))
    tasks = max(_TASKS_A_CORE * spark.sparkContext.defaultParallelism, len(listed) // _GROUPS_A_TASK)
    rows, before = _rows(spark, read.rows, since=since, now=now), _kept(spark, read.kept)
    kept = before.unionByName(_listed(spark, listed))
    open_in = partial(_opened, work=work, lost=read.lost())

    def opened_alone(group: Group) -> DataFrame:
        return open_in(rows.where(_is(group)), kept.where(_is(group)), tasks=1)

    opened = open_in(rows, kept, tasks=tasks).persist(StorageLevel.DISK_ONLY)
    try:
        lessons = deaths.survived(partial(_lessons, opened))
        for group in deaths.aside:
            lessons |= deaths.alone(group, partial(_lessons, opened_alone(group))) or {}
        decide_in = partial(_decided, work=work, prior=work.pooled(lessons.values()))
        deaths.survived(partial(_write, decide_in(opened), written, deaths))
        for group in deaths.aside:
            one = deaths.alone(group, decide_in(opened_alone(group)).toArrow)
            if one is None:
                one = work.refuse_group(group, before.where(_is(group)).toArrow(), deaths=deaths.of[group])
            _save(spark.createDataFrame(one.cast(_STATE_ARROW), _STATE_SCHEMA), written, mode="append")
    finally:
        with suppress(*JOB_ERRORS):  # of a cluster that is gone, which hide that of the job
            spark.catalog.clearCache()
    if deaths.fatal and set(listed) <= set(deaths.fatal):
        raise WorkersDieError


def _opened(rows: DataFrame, kept: DataFrame, *, tasks: int, work: FleetWork, lost: str | None) -> DataFrame:
    """The groups of these rows, opened, and what each teaches; without those that are set aside."""

    def open_one(key: tuple[pa.Scalar, ...], rows: pa.Table, kept: pa.Table) -> pa.Table:
        cluster, group = (part.as_py() for part in key)
        is_listed = pc.equal(kept["kind"], _LISTED)
        opening = partial(
            work.open_group,
            (cluster, group),
            rows,
            kept.filter(pc.invert(is_listed)),
            is_listed=pc.any(is_listed, min_count=0).as_py(),
            lost=lost,
        )
        found = watched((cluster, group), opening, aside=None)
        if found is None:
            return _OPENED_ARROW.empty_table()
        values = (cluster, group, *found)
        return pa.table([[value] for value in values], schema=_OPENED_ARROW)

    rows_of, kept_of = (frame.repartition(tasks, *_GROUP).groupBy(*_GROUP) for frame in (rows, kept))
    return rows_of.cogroup(kept_of).applyInArrow(open_one, _OPENED_SCHEMA)


def _lessons(opened: DataFrame) -> dict[Group, bytes]:
    """What each group teaches that teaches anything."""
    taught = opened.where(F.col("lesson").isNotNull()).select(*_GROUP, "lesson").toArrow()
    return {(row["cluster"], row["group"]): row["lesson"] for row in taught.to_pylist()}


def _decided(opened: DataFrame, *, work: FleetWork, prior: bytes) -> DataFrame:
    """The rows of FLEET_STATE of these groups, without those that are set aside."""

    def decide_some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cluster, group, one in zip(*(batch[name] for name in (*_GROUP, "opened")), strict=True):
                deciding = partial(work.decide_group, one.as_py(), prior)
                rows = watched((cluster.as_py(), group.as_py()), deciding, aside=None)
                if rows is not None:
                    yield from rows.cast(_STATE_ARROW).to_batches()

    return opened.select(*_GROUP, "opened").mapInArrow(decide_some, _STATE_SCHEMA)


def _write(decided: DataFrame, written: Path, deaths: Deaths) -> None:
    """Write the rows; once a job has failed they are persisted, as Spark removes what a job that fails has written.

    A task that ends after its job has failed may have persisted a group that is set aside since.
    """
    if deaths.is_watching:
        decided.persist(StorageLevel.DISK_ONLY)
    for group in deaths.aside:
        decided = decided.where(~_is(group))
    _save(decided, written, mode="overwrite")


def _save(state: DataFrame, written: Path, *, mode: str) -> None:
    state.write.mode(mode).partitionBy("table").parquet(str(written))


def _is(group: Group) -> Column:
    cluster, name = group
    return (F.col("cluster") == cluster) & (F.col("group") == name)


def _rows(spark: SparkSession, files: Sequence[Path], *, since: datetime | None, now: datetime) -> DataFrame:
    """The base rows in these files after `since`, until `now`."""
    if not files:
        return spark.createDataFrame([], GROUP_INTERVALS_SCHEMA)
    ends_at = F.col("interval_end_at")
    rows = spark.read.schema(GROUP_INTERVALS_SCHEMA).parquet(*map(str, files)).where(ends_at <= F.lit(now))
    return rows if since is None else rows.where(ends_at > F.lit(since))


def _kept(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    return (
        spark.read.schema(_KEPT_SCHEMA).parquet(*map(str, files)) if files else spark.createDataFrame([], _KEPT_SCHEMA)
    )


def _listed(spark: SparkSession, groups: Sequence[Group]) -> DataFrame:
    """A row for each group that is to be decided, in the columns of what is kept."""
    names = pa.table({name: [group[place] for group in groups] for place, name in enumerate(_GROUP)}, schema=_NAMES)
    listed = spark.createDataFrame(names)
    return listed.select(
        *_GROUP, F.lit(_LISTED).alias("kind"), F.lit(None).cast("timestamp").alias("at"), F.lit("").alias("document")
    )


def _readable(spark: SparkSession, read: _Read) -> _Read:
    """The files that can be read to their end, tried on the workers; the others are left out."""
    files = [*read.rows, *read.kept]
    tried = spark.sparkContext.parallelize([str(file) for file in files], max(1, len(files))).map(_reads).collect()
    reads = dict(zip(files, tried, strict=True))
    return _Read(
        tuple(file for file in read.rows if reads[file]),
        tuple(file for file in read.kept if reads[file]),
        tuple(file for file in read.rows if not reads[file]),
        tuple(file for file in read.kept if not reads[file]),
    )


def _reads(file: str) -> bool:
    try:
        pq.read_table(file, partitioning=None)
    except (OSError, pa.ArrowException):
        return False
    return True


def _sentence(error: Exception) -> str:
    """The failure in one line: the last cause that Java names, the end of Python's traceback, or the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if not causes:
        causes = lines if isinstance(error, PythonException) else lines[:1]
    return f"the Spark job failed, and the decisions of the run before stay valid: {causes[-1]}"
