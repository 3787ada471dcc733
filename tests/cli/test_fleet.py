"""What `lagcast recommend --on-spark` gives to Spark."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.advise import instant_of
from cli.fleet import decided_on_spark
from recommender.configuring.settings import load_settings
from spark_features.deaths import Group
from spark_features.fleet_decisions import FleetRun
from tests.feature_folder import steady_hour


@pytest.fixture(name="seen")
def seen_fixture(monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    """The groups that are given to Spark, which decides none."""
    seen: list[Group] = []

    @contextmanager
    def no_spark(*_: object, **__: object) -> Iterator["Future[object]"]:
        session: Future[object] = Future()
        session.set_result(SimpleNamespace())
        yield session

    def decide_fleet(*_: object, listed: list[Group], **__: object) -> FleetRun:
        seen.extend(listed)
        return FleetRun(version=1, decisions=(), left_out=())

    monkeypatch.setattr("cli.spark.spark_beside", no_spark)
    monkeypatch.setattr("spark_features.fleet_decisions.decide_fleet", decide_fleet)
    return seen


@pytest.mark.parametrize(
    ("newest", "first"),
    [(None, None), (date(2026, 5, 3), date(2026, 5, 3)), (date(2999, 1, 1), date(2026, 5, 4))],
)
def test_rows_of_samples_are_made_from_the_newest_day_on(
    seen: list[Group],
    newest: date | None,
    first: date | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All days where there is no table, and no later than today's, whatever a wrong clock has left in the table."""
    features, days = tmp_path / "features", []
    if newest is not None:
        steady_hour(features, ["orders"], end_at=datetime.combine(newest, time(12), UTC))

    def make_features(*_: object, first: date | None, **__: object) -> None:
        days.append(first)
        steady_hour(features, ["billing"], end_at=datetime(2026, 5, 4, 13, tzinfo=UTC))

    def find_samples(*_: object, first: date | None, **__: object) -> None:
        days.append(first)

    monkeypatch.setattr("cli.fleet.read_clock", lambda: datetime(2026, 5, 4, 13, tzinfo=UTC))
    monkeypatch.setattr("cli.features.make_features", make_features)
    monkeypatch.setattr("spark_features.samples.find_samples", find_samples)
    settings = load_settings(None, {"LAGCAST_STATE_DIR": str(tmp_path / "state")})
    instant = partial(instant_of, "2026-05-04T13:00:00Z")
    decided_on_spark(features, settings, samples=tmp_path / "samples", instant=instant, master=None)
    assert days == [first, first]
    assert ("c", "billing") in seen  # listed of the table as it is then


def test_a_group_that_is_off_is_not_even_opened(tmp_path: Path, seen: list[Group]) -> None:
    """It is not listed for Spark, so that a group that kills its worker can be switched off."""
    (tmp_path / "lagcast.yaml").write_text('groups: {"heavy": {mode: "off"}}')
    settings = load_settings(tmp_path / "lagcast.yaml", {"LAGCAST_STATE_DIR": str(tmp_path / "state")})
    newest = datetime(2026, 5, 4, 12, tzinfo=UTC)
    features = steady_hour(tmp_path / "features", ("heavy", "orders"), end_at=newest)
    instant = partial(instant_of, "latest")
    now, decisions = decided_on_spark(features, settings, samples=None, instant=instant, master=None)
    assert (now, decisions, seen) == (newest, [], [("c", "orders")])
