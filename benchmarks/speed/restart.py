"""Measures a restart: the seconds until every group of a table with weeks of history has its first decision.

    python -m benchmarks.speed.restart --groups 24 --days 28

Writes rows of that many groups into a feature table, as the features job lays them out, and decides all of them twice:
as a recommender without a store, which reads every row, and as one that goes on from the store of the first, which
reads a day of rows and minutes before it. Each is a process of its own, so that its memory is its own. The load has a
daily shape, replicas change between two counts, the capacity is set.
"""

import argparse
import logging
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog
from numpy.typing import NDArray

from benchmarks.command import end_with_parent
from benchmarks.speed.base_rows import base_rows
from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.units import SECONDS_PER_DAY
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings_group import GroupSettings
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from replay.contest import PRICED
from spark_features.table import ROW_GROUP_ROWS, Manifest, fresh_folder, parts_in, swap

BEGAN_AT = datetime(2026, 1, 5, tzinfo=UTC)
ROWS_A_DAY = SECONDS_PER_DAY // BASE_INTERVAL_SECONDS
PARTITIONS, CAPACITY = 24, 600.0
# Rows at one count of replicas before the other one.
ROWS_AT_ONE_COUNT = 700
A_WHILE = timedelta(minutes=2)
# Of a shorter past a restart reads every row too.
LEAST_DAYS = 2


def main() -> int:
    """Write the table, decide twice, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=24)
    parser.add_argument("--days", type=int, default=28)
    arguments = parser.parse_args()
    if arguments.groups < 1 or arguments.days < LEAST_DAYS:
        parser.error(f"--groups {arguments.groups} --days {arguments.days}: at least 1 group and {LEAST_DAYS} days")
    print("| | processor | for a group | memory at most |\n|---|---:|---:|---:|")
    with TemporaryDirectory() as folder:
        write_table(Path(folder), groups=arguments.groups, days=arguments.days)
        end_at = BEGAN_AT + timedelta(days=arguments.days)
        for name, at in (("first start", end_at - 3 * A_WHILE), ("restart", end_at - A_WHILE)):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent) as alone:
                seconds, megabytes = alone.submit(decided, Path(folder), at, arguments.groups).result()
            print(f"| {name} | {seconds:.1f} s | {seconds / arguments.groups:.2f} s | {megabytes:.0f} MB |", flush=True)
    return 0


def write_table(folder: Path, *, groups: int, days: int) -> None:
    """A part for each day, its rows in the order of groups and time."""
    generator, version = np.random.default_rng(0), fresh_folder(folder, version=1)
    for day in range(days):
        begin = BEGAN_AT + timedelta(days=day)
        part = version / f"interval_seconds={BASE_INTERVAL_SECONDS}" / f"date={begin.date()}"
        part.mkdir(parents=True)
        rows = rows_of_day(np.tile(np.arange(ROWS_A_DAY) + day * ROWS_A_DAY, groups), generator)
        pq.write_table(rows, part / "part-0.parquet", row_group_size=ROW_GROUP_ROWS)
    empty = Manifest()
    swap(folder, before=empty, after=empty.followed_by(parts_in(folder, version), followed=None))


def rows_of_day(places: NDArray[np.int64], generator: np.random.Generator) -> pa.Table:
    """The base rows of a day, whose places since the beginning these are."""
    rows = places.size
    rates = 3000.0 * (1.0 - 0.5 * np.cos(2.0 * np.pi * places / ROWS_A_DAY)) * generator.lognormal(0.0, 0.1, rows)
    ends_us = round(BEGAN_AT.timestamp()) * 1_000_000 + (places + 1) * (BASE_INTERVAL_SECONDS * 1_000_000)
    return base_rows(
        "prod",
        [f"team-{group:05d}-orders" for group in range(rows // ROWS_A_DAY)],
        ends_us,
        rates,
        partitions=PARTITIONS,
        members=np.where(places // ROWS_AT_ONE_COUNT % 2 == 0, 8, 10),
        lag_seconds=3.0,
        generator=generator,
    )


def decided(folder: Path, at: datetime, groups: int) -> tuple[float, float]:
    """Processor time of a recommender's first cycle over the table, and the most memory of this process, in MB."""
    settings = GroupSettings(capacity_messages_per_second_per_replica=CAPACITY)
    loop = Recommender(
        watched=WatchedGroups(
            histories=FeatureTable(folder),
            profile_of=settings.profile,
            settings=PRICED,
            store=SqlDecisionStore(f"sqlite:///{folder / 'store.sqlite'}"),
            timer=time.perf_counter,
        )
    )
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    began = time.process_time()
    decisions = loop.run_once(now=at)
    seconds = time.process_time() - began
    # An account is kept with the decision that follows the first rows after the first one.
    loop.run_once(now=at + A_WHILE)
    if len(decisions) != groups:
        message = f"{len(decisions)} of {groups} groups were decided"
        raise RuntimeError(message)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    sys.exit(main())
