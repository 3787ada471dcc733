"""Days are chosen before Spark reads anything: the plans of a run list the files of its days, and of no other day."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from collector.sample import OffsetSample
from collector.sinks import write_samples
from forecasting.issue import issue_group
from recommender.configuring.holidays import HolidayCalendar
from spark_features.batch import build_features
from spark_features.fleet import fit_fleet
from spark_features.fleet_decisions import FleetWork, decide_fleet
from spark_features.forecasts import issue_forecasts
from spark_features.pinned import pinned
from spark_features.samples import FeaturesError
from spark_features.table import read_manifest
from spark_features.transforms import group_intervals

# The session's own filter, which pytest replaces.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Sampled = Callable[..., OffsetSample]
FIRST = date(2026, 5, 4)
DAYS = 12


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def end_of(number: int) -> datetime:
    return datetime.combine(day(number + 1), datetime.min.time(), tzinfo=UTC)


@pytest.fixture(name="samples")
def samples_fixture(folder: Path, sampled: Sampled) -> Path:
    """Twelve days of one group, two samples of each hour: a file for each day."""
    hours = range(24 * DAYS)
    seen = [sampled(3600 * hour + 15 * step, 100 * hour + step) for hour in hours for step in (1, 2)]
    write_samples(seen, folder / "samples")
    return folder / "samples"


@pytest.fixture(name="features")
def features_fixture(spark: SparkSession, samples: Path) -> Path:
    """The feature table of all twelve days."""
    build_features(spark, samples, samples.with_name("features"))
    return samples.with_name("features")


def days_of(frame: DataFrame) -> set[date]:
    """The days of the files that the plan of this frame reads, as their names or those of their folders have it."""
    places = [Path(file) for file in frame.inputFiles()]
    found = [place.name if place.parent.name == "minutes" else place.parent.name for place in places]
    return {date.fromisoformat(name.removeprefix("date=")[:10]) for name in found}


@pytest.mark.parametrize(("first", "last"), [(6, 6), (4, 6)])
def test_a_run_for_some_days_reads_their_samples_and_those_of_the_day_on_either_side(
    spark: SparkSession, samples: Path, first: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve days three are read for one, and five for three; a file of another day is not even opened."""
    read: list[DataFrame] = []

    def noted(frame: DataFrame) -> DataFrame:
        read.append(frame)
        return group_intervals(frame)

    (samples / f"date={day(10)}" / "broken.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr("spark_features.batch.group_intervals", noted)
    run = build_features(spark, samples, samples.with_name("out"), first=day(first), last=day(last))
    assert days_of(read[0]) == {day(number) for number in range(first - 1, last + 2)}
    assert run.set_aside_files == 0
    written = {part.date for part in read_manifest(samples.with_name("out")).parts}
    assert written == {day(number).isoformat() for number in range(first, last + 1)}


def test_a_week_ahead_reads_the_minutes_of_its_own_days(
    spark: SparkSession, features: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a window of three days the minutes of these are read, and nothing of other days or lengths."""
    days: set[date] = set()
    lengths: set[int] = set()

    def noted(frame: DataFrame, *positional: object, **named: object) -> object:
        days.update(days_of(frame))
        lengths.update(row["interval_seconds"] for row in frame.select("interval_seconds").distinct().collect())
        return fit_fleet(frame, *positional, **named)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr("spark_features.forecasts.fit_fleet", noted)
    issued_at = end_of(6) - timedelta(hours=1)
    issue_one = partial(issue_group, issued_at=issued_at, holidays_of=HolidayCalendar(shared=(), own={}))
    since = issued_at - timedelta(days=2)
    issue_forecasts(
        spark, features, features.with_name("out"), issue_one, since=since, issued_at=issued_at, kept_days=3
    )
    assert days == {day(4), day(5), day(6)}
    assert lengths == {60}


def test_decisions_of_a_fleet_read_the_rows_of_their_own_days(
    spark: SparkSession, features: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the day that is so many before the decision up to its own; what comes later is not known yet."""
    found: list[str] = []

    def noted(*positional: object, **named: object) -> Path:
        folder = pinned(*positional, **named)  # type: ignore[arg-type]  # handed on
        found.extend(file.name for file in folder.iterdir())
        message = "seen"
        raise FeaturesError(message)

    monkeypatch.setattr("spark_features.fleet_decisions.pinned", noted)
    nobody: FleetWork = None  # type: ignore[assignment]  # it is not asked
    with pytest.raises(FeaturesError, match="seen"):
        decide_fleet(spark, features, nobody, listed=[("c", "g")], now=end_of(8) - timedelta(hours=1), days=3)
    assert {date.fromisoformat(name[:10]) for name in found} == {day(5), day(6), day(7), day(8)}
