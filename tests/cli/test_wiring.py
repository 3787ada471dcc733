"""The parts that several commands share."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.wiring import open_store, recommender, settings_of
from cost_model.physics.detected import ObservedGroup
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.time_limit import TIME_LIMIT_SECONDS, TimeLimit
from recommender.cluster.workloads import Workloads
from recommender.deciding.decision import DecisionSettings
from tests.feature_folder import steady_hour
from tests.recommender.cluster.test_workloads import Prices, Views, hpa, pod


def test_a_service_limits_the_time_of_forecasters(tmp_path: Path) -> None:
    """A replay waits for a forecaster without a limit, and a service, which decides for many groups, does not."""
    settings = settings_of(state_dir=tmp_path)
    table = steady_hour(tmp_path / "features", ["orders"], end_at=datetime(2026, 1, 5, tzinfo=UTC))
    loop = recommender(FeatureTable(table), settings, open_store(settings))
    assert loop.watched.caller == TimeLimit(TIME_LIMIT_SECONDS)


def test_a_group_is_planned_with_what_the_cluster_shows_of_its_target(tmp_path: Path) -> None:
    """The group with a target has the grace period, the bounds and the starts of its pods; another group has none."""
    config = tmp_path / "lagcast.yaml"
    config.write_text("groups: {orders: {target: {namespace: shop, name: orders}}}", encoding="utf-8")
    settings = settings_of(config, state_dir=tmp_path)
    table = steady_hour(tmp_path / "features", ["orders", "billing"], end_at=datetime(2026, 1, 5, tzinfo=UTC))
    views = Views()
    views.show(pod(), hpas=(hpa(minReplicas=3),))
    loop = recommender(FeatureTable(table), settings, open_store(settings), workloads=Workloads(views))
    profile, other = (loop.watched.profile_of("c", group, ObservedGroup()) for group in ("orders", "billing"))
    assert profile is not None
    assert other is not None
    assert (profile.termination_grace_seconds, profile.min_replicas, profile.max_replicas) == (90.0, 3, 20)
    assert (other.termination_grace_seconds, other.min_replicas, other.max_replicas) == (30.0, 1, None)
    workload = loop.watched.workload_of("c", "orders")
    assert workload is not None
    assert len(workload.starts) == 1
    assert loop.watched.workload_of("c", "billing") is None


def test_costs_are_in_money_where_nodes_have_prices(tmp_path: Path) -> None:
    """The group with a target costs what its pods request, another one is in pod-hours; a price that is set wins."""
    config = tmp_path / "lagcast.yaml"
    config.write_text("groups: {orders: {target: {namespace: shop, name: orders}}}", encoding="utf-8")
    settings = settings_of(config, state_dir=tmp_path)
    table = steady_hour(tmp_path / "features", ["orders", "billing"], end_at=datetime(2026, 1, 5, tzinfo=UTC))
    views = Views()
    views.show(pod(cpu="1"))
    workloads = Workloads(views, lambda: Prices({"node-0": 0.1}))
    loop = recommender(FeatureTable(table), settings, open_store(settings), workloads=workloads)
    assert loop.watched.settings_of is not None
    orders, billing = (loop.watched.settings_of("c", group) for group in ("orders", "billing"))
    assert orders.unit_of_cost == "USD"
    assert orders.price_per_replica_hour == pytest.approx(0.12)
    assert (billing.unit_of_cost, billing.price_per_replica_hour) == ("pod-hours", None)
    assert loop.watched.settings_of("c", "orders") == orders
    set_price = settings.model_copy(update={"decision": DecisionSettings(price_per_replica_hour=0.5)})
    loop = recommender(FeatureTable(table), set_price, open_store(settings), workloads=workloads)
    assert loop.watched.settings_of is not None
    assert loop.watched.settings_of("c", "orders") == set_price.decision
