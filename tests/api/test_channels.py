"""C29, C30: one piece of advice, the same on every channel, and on none of them after it has expired."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.convert import group_key
from api.keda.scaler import due
from api.schemas import RecommendationV1
from cli.explain import wire_document
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.cluster.scaler import read_scaler, request_of
from recommender.cluster.scaler_status import status_of
from recommender.configuring.settings import load_settings
from recommender.deciding.recommendation import Recommendation
from tests.api.conftest import Clock

ORDERS = {"cluster": "prod-eu", "groupId": "orders"}
DOCUMENT = {
    "metadata": {"namespace": "shop", "name": "orders", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": ORDERS,
}


@pytest.fixture
def given(store: SqlDecisionStore, advice: Callable[..., Recommendation]) -> Recommendation:
    """Advice in the store: from 6 to 8 in two minutes."""
    given = advice()
    store.save(given)
    return given


def metrics_of(store: SqlDecisionStore, clock: Clock) -> dict[str, float]:
    """The gauges of the group, as Prometheus reads them."""
    page = Metrics(store, clock=clock, version="0.1.0").page().decode()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("group") == "orders"
    }


def test_every_channel_says_the_same(
    service: TestClient, store: SqlDecisionStore, clock: Clock, given: Recommendation, tmp_path: Path
) -> None:
    """Name, counts and instants on REST and on Kafka to the byte, in the object's status, as a metric and for KEDA."""
    settings = load_settings(tmp_path / "lagcast.yaml", {"LAGCAST_STATE_DIR": str(tmp_path)})
    rest: dict[str, Any] = service.get(f"/api/v1/groups/{group_key('prod-eu', 'orders')}/recommendation").json()
    assert wire_document(given, settings=settings, now=clock()) == rest
    wire = RecommendationV1.model_validate(rest)
    told = status_of(DOCUMENT, request_of(settings, read_scaler(DOCUMENT)), given, now=clock())["recommendation"]
    assert told["recommendationId"] == wire.recommendation_id
    assert (
        (told["currentReplicas"], told["desiredReplicas"]) == (wire.current_replicas, wire.desired_replicas) == (6, 8)
    )
    assert (told["executeAt"], told["validUntil"]) == (rest["execute_at"], rest["valid_until"])
    for minutes, replicas in ((0, 6), (3, 8)):
        clock.now = given.issued_at + timedelta(minutes=minutes)
        asked = service.get(f"/api/v1/groups/{group_key('prod-eu', 'orders')}/recommendation").json()
        assert asked["due_replicas"] == replicas
        assert metrics_of(store, clock)["lagcast_due_replicas"] == replicas
        assert due(store, ORDERS, now=clock()).replicas == replicas


def test_no_channel_without_a_clock_of_its_own_outlives_the_advice(
    store: SqlDecisionStore, clock: Clock, given: Recommendation
) -> None:
    """A channel whose reader ignores `valid_until` has no figure a second after it: no metric, no count for KEDA."""
    clock.now = given.valid_until
    assert metrics_of(store, clock)["lagcast_due_replicas"] == 8
    clock.now = given.valid_until + timedelta(seconds=1)
    assert "lagcast_due_replicas" not in metrics_of(store, clock)
    assert due(store, ORDERS, now=clock()).failure.startswith("the last advice expired at")
