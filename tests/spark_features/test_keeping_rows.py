"""Days of the feature table that are older than any reader looks back go when they are to, and no others."""

import time
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from collector.sample import OffsetSample
from collector.sinks import write_samples
from forecasting.columns import LEAST_KEPT_ROWS_DAYS
from forecasting.fleet import HISTORY_DAYS
from recommender.adapters.feature_table import FeatureTable
from recommender.watched_groups import LOOK_BACK
from spark_features import batch
from spark_features.batch import build_features
from spark_features.stream import follow_features
from spark_features.table import read_manifest
from tests.spark_features.conftest import at

Sampled = Callable[..., OffsetSample]
_DAY_SECONDS = 86_400


def days_of(table: Path) -> set[str]:
    return {part.date for part in read_manifest(table).parts}


def sampled_on(day: int, sampled: Sampled) -> list[OffsetSample]:
    """Two minutes of a day."""
    return [sampled(_DAY_SECONDS * day + 15 * step + 14, 1000 * day + 100 * step) for step in range(1, 9)]


def test_no_reader_looks_further_back_than_what_is_always_kept() -> None:
    """The model of the week ahead reads the most; decisions read less."""
    assert max(HISTORY_DAYS, LOOK_BACK.days) == LEAST_KEPT_ROWS_DAYS


@pytest.mark.parametrize("days", ["35", "1", "-1", "36501"])
def test_the_program_of_spark_submit_keeps_what_readers_look_at(
    days: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fewer days than that, and more than a century, are refused before Spark starts."""
    with pytest.raises(SystemExit) as ended:
        batch.main(["--samples", str(folder), "--out", str(folder / "out"), f"--keep-rows={days}"])
    assert ended.value.code == 2
    assert f"{days} days are not 36, from which forecasts are made, to 36,500" in capsys.readouterr().err


@pytest.mark.spark
def test_the_job_removes_older_days_of_the_table_and_leaves_their_files_to_readers_for_one_swap(
    spark: SparkSession, folder: Path, sampled: Sampled
) -> None:
    """Of all lengths, also days that it has not read; without a limit every day stays."""
    for day in range(3):
        write_samples(sampled_on(day, sampled), folder / "samples")
    build_features(spark, folder / "samples", folder / "out", last=date(2026, 5, 5))
    build_features(spark, folder / "samples", folder / "out", first=date(2026, 5, 6))
    assert days_of(folder / "out") == {"2026-05-04", "2026-05-05", "2026-05-06"}
    newest = {"first": date(2026, 5, 6), "oldest": date(2026, 5, 5)}
    build_features(spark, folder / "samples", folder / "out", **newest)
    assert days_of(folder / "out") == {"2026-05-05", "2026-05-06"}
    assert FeatureTable(folder / "out").intervals("c", "g")[0].interval_end_at > at(_DAY_SECONDS)
    assert list((folder / "out").glob("versions/*/*/date=2026-05-04"))
    build_features(spark, folder / "samples", folder / "out", **newest)
    assert not list((folder / "out").glob("versions/*/*/date=2026-05-04"))
    assert len(FeatureTable(folder / "out").intervals("c", "g", interval_seconds=60)) == 6


@pytest.mark.spark
def test_the_stream_removes_days_as_they_become_too_old(spark: SparkSession, folder: Path, sampled: Sampled) -> None:
    """It asks with each micro-batch; its rows before and after are the batch job's."""
    samples, out = folder / "samples", folder / "out"
    for day in range(2):
        write_samples(sampled_on(day, sampled), samples)
    today, until = [date(2026, 5, 4)], time.monotonic() + 120

    class Stop:
        """Ends it once the third day is in the table; its midnight comes when the second is."""

        def wait(self, timeout: float) -> bool:
            assert time.monotonic() < until, days_of(out)
            time.sleep(timeout)
            if "2026-05-05" in days_of(out) and today[0].day == 4:
                assert "2026-05-04" in days_of(out)
                today[0] = date(2026, 5, 5)
                write_samples(sampled_on(2, sampled), samples)
            return newest(out) == at(2 * _DAY_SECONDS + 135) and "2026-05-04" not in days_of(out)

    follow_features(spark, samples, out, stop=Stop(), oldest=lambda: today[0])
    assert days_of(out) == {"2026-05-05", "2026-05-06"}
    build_features(spark, samples, folder / "batch", first=date(2026, 5, 5))
    of_stream, of_batch = (FeatureTable(folder / name).intervals("c", "g") for name in ("out", "batch"))
    assert of_stream == of_batch


def newest(table: Path) -> datetime | None:
    """The end of the newest row."""
    return FeatureTable(table).newest_interval_end_at() if (table / "manifest.json").exists() else None
