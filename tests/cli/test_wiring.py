"""The parts that several commands share."""

from datetime import UTC, datetime
from pathlib import Path

from cli.wiring import open_store, recommender, settings_of
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.time_limit import TIME_LIMIT_SECONDS, TimeLimit
from tests.feature_folder import steady_hour


def test_a_service_limits_the_time_of_forecasters(tmp_path: Path) -> None:
    """A replay waits for a forecaster without a limit, and a service, which decides for many groups, does not."""
    settings = settings_of(state_dir=tmp_path)
    table = steady_hour(tmp_path / "features", ["orders"], end_at=datetime(2026, 1, 5, tzinfo=UTC))
    loop = recommender(FeatureTable(table), settings, open_store(settings))
    assert loop.caller == TimeLimit(TIME_LIMIT_SECONDS)
