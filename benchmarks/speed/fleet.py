"""Measures the time of `lagcast forecast` for a fleet: `python -m benchmarks.speed.fleet --groups 40 --days 28`.

Generated groups, each a day's wave with noise of its own, on Spark with as many cores as the machine has. Prints the
seconds of the Spark job, its CPU seconds, and both in proportion for a thousand groups: an estimate without the time
that sorting a larger table takes. On a cluster, `make bench-fleet-spark FORECASTS=10000` measures it.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]  # ships no types
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.columns import GROUP_INTERVALS
from forecasting.fleet import HISTORY_DAYS
from forecasting.issue import issue_group
from recommender.configuring.holidays import HolidayCalendar
from spark_features.fleet import FLEET_INTERVAL_SECONDS
from spark_features.forecasts import issue_forecasts
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.table import fresh_folder, parts_in, read_manifest, swap, writing

MINUTES_PER_DAY = 1440
# A day of so many groups is held in memory at once.
_CHUNK_GROUPS = 500
END_AT = datetime(2026, 1, 5, tzinfo=UTC)
_KINDS = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
SCHEMA = pa.schema(
    [(column.name, (_KINDS | {"timestamp": pa.timestamp("us", tz="UTC")})[column.kind]) for column in GROUP_INTERVALS]
)


def write_table(features: Path, *, groups: int, days: int) -> None:
    """The feature table of a generated fleet, minutes only."""
    generator = np.random.default_rng(7)
    phases, levels = generator.uniform(0.0, 1.0, groups), generator.lognormal(5.0, 1.5, groups)
    with writing(features):
        folder = fresh_folder(features, version=1)
        angles = 2.0 * np.pi * np.arange(MINUTES_PER_DAY) / MINUTES_PER_DAY
        for back in range(days):
            end_at = END_AT - timedelta(days=back)
            day: date = (end_at - timedelta(days=1)).date()
            ends_at = [end_at - timedelta(minutes=before) for before in reversed(range(MINUTES_PER_DAY))]
            part = folder / f"interval_seconds={FLEET_INTERVAL_SECONDS}" / f"date={day}"
            part.mkdir(parents=True)
            with pq.ParquetWriter(part / "part-0.parquet", SCHEMA) as file:
                for chunk in range(0, groups, _CHUNK_GROUPS):
                    names = range(chunk, min(groups, chunk + _CHUNK_GROUPS))
                    waves = 1.5 + np.sin(angles + 2.0 * np.pi * phases[names, None])
                    noise = np.exp(generator.normal(0.0, 0.1, (len(names), MINUTES_PER_DAY)))
                    known: Mapping[str, pa.Array] = {
                        "cluster": pa.repeat("c", noise.size),
                        "group": pa.array(np.repeat([f"g{group:05}" for group in names], MINUTES_PER_DAY)),
                        "interval_end_at": pa.array(ends_at * len(names), SCHEMA.field("interval_end_at").type),
                        "interval_seconds": pa.repeat(pa.scalar(FLEET_INTERVAL_SECONDS, pa.int32()), noise.size),
                        "produce_messages_per_second": pa.array((levels[names, None] * waves * noise).ravel()),
                    }
                    columns = [known.get(field.name, pa.nulls(noise.size, field.type)) for field in SCHEMA]
                    file.write_table(pa.table(columns, schema=SCHEMA))
        after = read_manifest(features).replaced_by(parts_in(features, folder))
        swap(features, before=read_manifest(features), after=after)


def main() -> int:
    """Generate, run once, print."""
    parser = argparse.ArgumentParser(description="Times the week ahead of a generated fleet.")
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--days", type=int, default=28)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "features", groups=options.groups, days=options.days)
        spark = spark_session("fleet", java=find_java(os.environ), log_path=folder / "spark.log")
        issue_one = partial(issue_group, issued_at=END_AT, holidays_of=HolidayCalendar(shared=(), own={}))
        since = END_AT - timedelta(days=HISTORY_DAYS)
        began = time.perf_counter()
        issue = issue_forecasts(
            spark, folder / "features", folder / "out", issue_one, since=since, issued_at=END_AT, kept_days=1
        )
        seconds = time.perf_counter() - began
        cores = spark.sparkContext.defaultParallelism
        # Spark's JVM and workers; other work on the machine makes a run longer, but does not change this figure.
        busy = sum(sum(child.cpu_times()[:4]) for child in psutil.Process().children(recursive=True))
        spark.stop()
    print(f"{issue.forecast_groups} groups of {options.days} days, {cores} cores: {seconds:.0f} s")
    print(f"processor time of Spark and its workers: {busy:.0f} s, {busy / options.groups:.2f} s a group")
    idle, here = (total * 1000 / options.groups / 60 for total in (busy / cores, seconds))
    print(f"1,000 groups in proportion: {idle:.0f} min where nothing else runs, {here:.0f} min as things were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
