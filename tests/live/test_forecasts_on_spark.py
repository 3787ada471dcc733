"""`lagcast forecast --master` on three workers: the weeks ahead of one process, though a machine is lost."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest

from benchmarks.speed.fleet import END_AT, write_table
from forecasting.columns import (
    FLEET_FITS,
    FLEET_FITS_FOLDER,
    ISSUE_DAY,
    ISSUE_FILE,
    LONG_FORECASTS,
    LONG_FORECASTS_FOLDER,
    Column,
)
from forecasting.issue import issue_group
from forecasting.long_term import WEEK_STEPS
from recommender.configuring.holidays import HolidayCalendar
from tests.live.harness.clients import wait_until
from tests.live.harness.spark_cluster import SparkCluster, spark_cluster

pytestmark = pytest.mark.spark

Lagcast = Callable[..., tuple[int, str, str]]
# Fits of so many take some seconds on three cores after the first one has been written.
GROUPS, DAYS = 24, 9


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Three workers."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=3) as running:
        yield running


def by_hand(features: Path) -> pd.DataFrame:
    """The rows of all groups, made in this process one after the other."""
    files = sorted(features.rglob("*.parquet"))
    minutes = pd.concat([pq.read_table(file, partitioning=None).to_pandas() for file in files], ignore_index=True)
    issue_one = partial(issue_group, issued_at=END_AT, holidays_of=HolidayCalendar(shared=(), own={}))
    return pd.concat([issue_one(rows) for _, rows in minutes.groupby("group")], ignore_index=True)


def issued(out: Path, table: str) -> Path:
    return out / table / END_AT.strftime(f"{ISSUE_DAY}/{ISSUE_FILE}")


def assert_rows(file: Path, expected: pd.DataFrame, columns: tuple[Column, ...]) -> None:
    """The file has these rows in this order, to the last bit."""
    written = pq.read_table(file, partitioning=None).to_pandas()
    wanted = expected[[column.name for column in columns]]
    pd.testing.assert_frame_equal(plain(written), plain(wanted), check_exact=True)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The same values as objects, with None for missing ones, which files and frames express differently."""
    return frame.astype(object).where(frame.notna(), None).reset_index(drop=True)


def test_the_weeks_ahead_are_those_of_one_process_though_a_machine_is_lost(
    lagcast_process: Lagcast, cluster: SparkCluster, tmp_path: Path
) -> None:
    """SIGKILL comes when some groups are fitted and others are not; no row is lost, doubled, or another one."""
    features, out = tmp_path / "features", tmp_path / "forecasts"
    write_table(features, groups=GROUPS, days=DAYS)
    words = ("--features", features, "--out", out, "--at", END_AT.isoformat(), "--master", cluster.master, "-o", "json")
    with ThreadPoolExecutor(max_workers=1) as beside:
        run = beside.submit(lagcast_process, "forecast", *words)
        wait_until(lambda: run.done() or any((out / ".unfinished").glob("issue/**/*.parquet")), seconds=600.0)
        cluster.lose_a_machine()
        assert not issued(out, FLEET_FITS_FOLDER).exists(), "the fits were over before"
        code, answer, err = run.result()
    assert code == 0, err
    rows = by_hand(features)
    is_step = rows["step_ends_at"].notna()
    assert is_step.sum() == GROUPS * WEEK_STEPS
    assert_rows(issued(out, LONG_FORECASTS_FOLDER), rows[is_step], LONG_FORECASTS)
    assert_rows(issued(out, FLEET_FITS_FOLDER), rows[~is_step], FLEET_FITS)
    assert [each["group"] for each in json.loads(answer)["groups"]] == sorted(rows["group"].unique())
