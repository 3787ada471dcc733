"""What `lagcast recommend --on-spark` gives to Spark."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
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


def test_a_group_that_is_off_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not listed for Spark, so that a group that kills its worker can be switched off."""
    (tmp_path / "lagcast.yaml").write_text('groups: {"heavy": {mode: "off"}}')
    settings = load_settings(tmp_path / "lagcast.yaml", {"LAGCAST_STATE_DIR": str(tmp_path / "state")})
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
    newest = datetime(2026, 5, 4, 12, tzinfo=UTC)
    features = steady_hour(tmp_path / "features", ("heavy", "orders"), end_at=newest)
    instant = partial(instant_of, "latest")
    now, decisions = decided_on_spark(features, settings, samples=None, instant=instant, master=None)
    assert (now, decisions, seen) == (newest, [], [("c", "orders")])
