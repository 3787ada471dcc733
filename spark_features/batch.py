"""The batch job: sample files to the feature table, for all days or some, with the same result in every run."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from pathlib import Path

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import (
    BASE_INTERVAL_SECONDS,
    LEAST_KEPT_ROWS_DAYS,
    MOST_KEPT_DAYS,
    ROLLUP_INTERVALS_SECONDS,
)
from spark_features.rollups import rollup
from spark_features.samples import FeaturesError, SampleFiles, find_samples, reading, require_folder
from spark_features.schema import GROUP_INTERVALS_SCHEMA, SAMPLES_SCHEMA
from spark_features.session import submitted_session
from spark_features.table import ROW_GROUP_BYTES, Part, fresh_folder, parts_in, read_manifest, swap, writing
from spark_features.transforms import LOOK_BACK_SECONDS, group_intervals

# A task sorts so many samples: 50 million in four tasks ran over a heap of 1.5 GB. More tasks take hardly longer: 10
# million took 75.0 s in four and 75.9 s in eight, in a trial.
SAMPLES_OF_A_TASK = 1_250_000
LEAST_TASKS = 4

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRun:
    """The result of one run: the table's new version, its own days and rows by interval length."""

    feature_table_version: int
    first: date
    last: date
    sample_rows: int
    set_aside_files: int
    rows: tuple[tuple[int, int], ...]  # (interval_seconds, rows)


def build_features(
    spark: SparkSession,
    samples_dir: Path,
    out_dir: Path,
    *,
    first: date | None = None,
    last: date | None = None,
    oldest: date = date.min,
) -> FeatureRun:
    """Write the days `first` to `last` (UTC, both included; None: no limit) of the feature table.

    A day's rows replace the whole day, and other days stay, but for those before `oldest`. Readers see the table before
    the run or after it. A sample file that cannot be read is set aside with a warning.
    Errors: FeaturesError on invalid input, and if another run is writing.
    """
    require_folder(samples_dir)
    with writing(out_dir), reading(samples_dir):
        samples = find_samples(samples_dir, first=first, last=last)
        for error in samples.set_aside:
            _log.warning("sample_file_set_aside", error=error)
        tasks = max(LEAST_TASKS, -(-samples.rows // SAMPLES_OF_A_TASK))
        spark.conf.set("spark.sql.shuffle.partitions", tasks)
        before = read_manifest(out_dir)
        folder = fresh_folder(out_dir, version=before.feature_table_version + 1)
        _write_base(_read(spark, samples, first=first, last=last), folder, first=first)
        _write_rollups(spark, folder)
        parts = parts_in(out_dir, folder)
        if not parts:
            span = f"from {first or 'the start'} to {last or 'the end'}"
            message = f"{samples_dir} holds no sample {span}; name other days"
            raise FeaturesError(message)
        after = before.replaced_by(parts).since(oldest)
        swap(out_dir, before=before, after=after)
    return _summary(parts, version=after.feature_table_version, samples=samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program of `spark-submit spark_features/batch.py --samples DIR --out DIR` and what `lagcast features` has.

    The exit code is 0 if the table was written, 2 after one sentence on stderr if the input is invalid.
    """
    parser = argparse.ArgumentParser(prog="batch.py", description="Offset samples to the feature table.")
    parser.add_argument("--samples", type=Path, required=True, metavar="DIR", help="offset samples, parquet files")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the feature table")
    parser.add_argument("--from", type=date.fromisoformat, dest="first", metavar="DAY", help="first day to write (UTC)")
    parser.add_argument("--to", type=date.fromisoformat, dest="last", metavar="DAY", help="last day to write (UTC)")
    parser.add_argument("--keep-rows", type=_kept_days, metavar="DAYS", help="days that rows are kept; all unless set")
    options = parser.parse_args(arguments)
    now = datetime.now(UTC)  # noqa: TID251  # a process entry point
    oldest = date.min if options.keep_rows is None else (now - timedelta(days=options.keep_rows)).date()
    spark = submitted_session("lagcast features")
    try:
        run = build_features(spark, options.samples, options.out, first=options.first, last=options.last, oldest=oldest)
    except FeaturesError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        spark.stop()
    rows = ", ".join(f"{rows} of {seconds} s" for seconds, rows in run.rows)
    sys.stdout.write(f"{options.out} version {run.feature_table_version}: {run.sample_rows} samples -> {rows}\n")
    return 0


def _kept_days(text: str) -> int:
    """A number of days that leaves to every reader what it looks back at."""
    if not LEAST_KEPT_ROWS_DAYS <= int(text) <= MOST_KEPT_DAYS:
        message = f"{text} days are not {LEAST_KEPT_ROWS_DAYS}, from which forecasts are made, to {MOST_KEPT_DAYS:,}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _read(spark: SparkSession, samples: SampleFiles, *, first: date | None, last: date | None) -> DataFrame:
    """The samples that the rows of these days depend on."""
    rows = spark.read.schema(SAMPLES_SCHEMA).parquet(*(str(path) for path in samples.paths))
    if first is not None:
        rows = rows.where(F.col("sampled_at") > F.lit(_midnight(first) - timedelta(seconds=LOOK_BACK_SECONDS)))
    if last is not None:
        rows = rows.where(F.col("sampled_at") <= F.lit(_midnight(last) + _DAY))
    return rows


def _write_base(samples: DataFrame, folder: Path, *, first: date | None) -> None:
    base = group_intervals(samples)
    if first is not None:
        base = base.where(F.col("interval_end_at") > F.lit(_midnight(first)))
    _by_day(base, "date", folder=_of_length(folder, BASE_INTERVAL_SECONDS))


def _write_rollups(spark: SparkSession, folder: Path) -> None:
    """All rollups in one job, of the base rows that were just written: every rollup's length divides a day."""
    base = spark.read.schema(GROUP_INTERVALS_SCHEMA).parquet(str(_of_length(folder, BASE_INTERVAL_SECONDS)))
    rollups = reduce(DataFrame.unionByName, (rollup(base, seconds=seconds) for seconds in ROLLUP_INTERVALS_SECONDS))
    together = folder / "rollups"
    _by_day(rollups.withColumn("seconds", F.col("interval_seconds")), "seconds", "date", folder=together)
    for written in together.glob("seconds=*"):
        written.rename(folder / f"interval_{written.name}")


def _by_day(rows: DataFrame, *levels: str, folder: Path) -> None:
    """Write a folder for each value of `levels`; rows are sorted, so that a reader of one group skips other groups."""
    # The row that ends at midnight belongs to the day that it covers.
    day = F.to_date(F.col("interval_end_at") - F.expr("INTERVAL 1 MICROSECOND"))
    (
        rows.withColumn("date", day)
        .repartition("date")
        .sortWithinPartitions(*levels, "cluster", "group", "interval_end_at")
        .write.option("parquet.block.size", ROW_GROUP_BYTES)
        .partitionBy(*levels)
        .parquet(str(folder))
    )


def _of_length(folder: Path, seconds: int) -> Path:
    return folder / f"interval_seconds={seconds}"


_DAY = timedelta(days=1)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _summary(parts: tuple[Part, ...], *, version: int, samples: SampleFiles) -> FeatureRun:
    lengths = (BASE_INTERVAL_SECONDS, *ROLLUP_INTERVALS_SECONDS)
    return FeatureRun(
        feature_table_version=version,
        first=date.fromisoformat(min(part.date for part in parts)),
        last=date.fromisoformat(max(part.date for part in parts)),
        sample_rows=samples.rows,
        set_aside_files=len(samples.set_aside),
        rows=tuple(
            (seconds, sum(part.rows for part in parts if part.interval_seconds == seconds)) for seconds in lengths
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
