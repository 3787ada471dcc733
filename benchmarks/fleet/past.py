"""The weeks that a fleet was observed before a run, put into its feature table as if the features job had made them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from benchmarks.fleet.load import CLUSTER, FIRST_MEMBERS, LAG_SECONDS, NOISE, Load, wave_of
from benchmarks.speed.base_rows import base_rows
from forecasting.columns import BASE_INTERVAL_SECONDS
from spark_features.table import ROW_GROUP_ROWS, fresh_folder, parts_in, read_manifest, swap, writing

_DAY = timedelta(days=1)
# A day of so many groups is one file, and some 0.2 GB while it is made.
_GROUPS_OF_A_FILE = 100


def add_weeks(table_dir: Path, load: Load, *, weeks: int, until: datetime) -> None:
    """Add base rows of so many weeks, up to `until`, to a table that nobody writes meanwhile."""
    manifest, generator = read_manifest(table_dir), np.random.default_rng(0)
    version = fresh_folder(table_dir, version=manifest.feature_table_version + 1)
    begin = until - timedelta(weeks=weeks)
    while begin < until:
        midnight = datetime(begin.year, begin.month, begin.day, tzinfo=UTC) + _DAY
        _write_day(version, load, begin=begin, end=min(midnight, until), generator=generator)
        begin = midnight
    parts = (*manifest.parts, *parts_in(table_dir, version))
    with writing(table_dir):
        swap(table_dir, before=manifest, after=manifest.followed_by(parts, followed=manifest.followed))


def _write_day(version: Path, load: Load, *, begin: datetime, end: datetime, generator: np.random.Generator) -> None:
    """The rows of the intervals that end after `begin`, up to `end`, of one day."""
    folder = version / f"interval_seconds={BASE_INTERVAL_SECONDS}" / f"date={begin.date()}"
    folder.mkdir(parents=True)
    ends = np.arange(begin.timestamp(), end.timestamp(), BASE_INTERVAL_SECONDS) + BASE_INTERVAL_SECONDS
    for first in range(0, len(load.names), _GROUPS_OF_A_FILE):
        names = load.names[first : first + _GROUPS_OF_A_FILE]
        phases = (first + np.repeat(np.arange(len(names)), ends.size)) / len(load.names)
        at = np.tile(ends, len(names))
        rows = base_rows(
            CLUSTER,
            names,
            (1e6 * at).astype(np.int64),
            wave_of(at, phases) * generator.uniform(1.0 - NOISE, 1.0 + NOISE, at.size),
            partitions=load.partitions,
            members=FIRST_MEMBERS,
            lag_seconds=LAG_SECONDS,
            generator=generator,
        )
        pq.write_table(rows, folder / f"part-{first:05d}.parquet", row_group_size=ROW_GROUP_ROWS)
