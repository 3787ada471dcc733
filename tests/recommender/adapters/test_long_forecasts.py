"""C15: long forecasts as the recommender reads them, from files that are written here without Spark."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest

from forecasting.columns import ISSUE_DAY, ISSUE_FILE, LONG_FORECASTS_FOLDER, quantile_column
from forecasting.forecast import QUANTILES
from recommender.adapters.long_forecasts import LongForecastsFolder
from recommender.ports import AdapterError

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def write(folder: Path, issued_at: datetime, levels: Mapping[str, float], *, steps: int = 5) -> Path:
    """One issue: each group stays at its level, p05 at 1.05 times, p99 at 1.99 times."""
    rows = [
        {
            "cluster": "c",
            "group": group,
            "model": "long_term",
            "history_tier": "daily",
            "issued_at": issued_at,
            "step_ends_at": issued_at + timedelta(minutes=5 * step),
            "step_seconds": 300,
            **{quantile_column(quantile): (1.0 + quantile) * level for quantile in QUANTILES},
        }
        for group, level in levels.items()
        for step in range(1, steps + 1)
    ]
    file = folder / LONG_FORECASTS_FOLDER / issued_at.strftime(f"{ISSUE_DAY}/{ISSUE_FILE}")
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file


def test_the_newest_issue_that_was_known_is_read(tmp_path: Path) -> None:
    """Of three issues the one before the instant is read, with all quantiles and its tier; later ones were unknown."""
    for hours, level in ((0, 100.0), (24, 200.0), (25, 300.0)):
        write(tmp_path, NOON + timedelta(hours=hours), {"a": level, "b": 1.0})
    week = LongForecastsFolder(tmp_path).newest("c", "a", until=NOON + timedelta(hours=24, minutes=59))
    assert week is not None
    assert (week.group, week.origin_at, week.history_tier, week.step_seconds) == (
        "a",
        NOON + timedelta(days=1),
        "daily",
        300,
    )
    np.testing.assert_allclose(week.paths, np.outer(1.0 + np.array(QUANTILES), np.full(5, 200.0)))


def test_an_issue_without_the_group_is_passed_over(tmp_path: Path) -> None:
    """A group refused today has yesterday's forecast; one never forecast, or only a week ago, has None."""
    write(tmp_path, NOON, {"a": 1.0})
    write(tmp_path, NOON + timedelta(days=1), {"b": 1.0})
    folder = LongForecastsFolder(tmp_path)
    week = folder.newest("c", "a", until=NOON + timedelta(days=1))
    assert week is not None
    assert week.origin_at == NOON
    assert folder.newest("c", "x", until=NOON) is None
    assert folder.newest("c", "a", until=NOON + timedelta(days=7)) is None
    assert folder.newest("c", "a", until=NOON - timedelta(seconds=1)) is None


def test_a_folder_that_is_not_there_yet_has_no_forecasts(tmp_path: Path) -> None:
    """The daily job may first run tomorrow; then its forecast is read without a restart."""
    folder = LongForecastsFolder(tmp_path / "forecasts")
    assert folder.newest("c", "a", until=NOON) is None
    write(tmp_path / "forecasts", NOON, {"a": 1.0})
    assert folder.newest("c", "a", until=NOON) is not None


def test_a_damaged_issue_is_the_adapters_error(tmp_path: Path) -> None:
    """The error for a file that is cut short, or lacks a step, has its name and the next step."""
    file = write(tmp_path, NOON, {"a": 1.0})
    pq.write_table(pq.read_table(file, partitioning=None).slice(1), file)
    folder = LongForecastsFolder(tmp_path)
    with pytest.raises(AdapterError, match=r"issued-20260504T120000Z\.parquet has steps missing or doubled; remove it"):
        folder.newest("c", "a", until=NOON)
    file.write_bytes(b"PAR1")
    with pytest.raises(AdapterError, match=r"cannot be read .*; remove it and run `lagcast forecast` again"):
        folder.newest("c", "a", until=NOON)


def test_files_of_others_are_left_aside(tmp_path: Path) -> None:
    """A file whose name is no instant is no issue."""
    file = write(tmp_path, NOON, {"a": 1.0})
    (file.parent / "issued-by-hand.parquet").write_bytes(b"")
    assert LongForecastsFolder(tmp_path).newest("c", "a", until=NOON) is not None
