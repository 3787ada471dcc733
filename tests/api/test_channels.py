"""C29, C30: each channel shows the same advice, and no channel shows it after it has expired."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.keda.scaler import due
from api.keys import group_key
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


def test_every_channel_has_the_same_advice(
    service: TestClient, store: SqlDecisionStore, clock: Clock, given: Recommendation, tmp_path: Path
) -> None:
    """REST and Kafka send the same bytes, and the object's status, the metrics and KEDA show the same advice."""
    settings = load_settings(tmp_path / "lagcast.yaml", {"LAGCAST_STATE_DIR": str(tmp_path)})
    rest: dict[str, Any] = service.get(f"/api/v1/groups/{group_key('prod-eu', 'orders')}/recommendation").json()
    assert wire_document(given, settings=settings, now=clock()) == rest
    wire = RecommendationV1.model_validate(rest)
    recommendation = status_of(DOCUMENT, request_of(settings, read_scaler(DOCUMENT)), given, now=clock())[
        "recommendation"
    ]
    assert recommendation["recommendationId"] == wire.recommendation_id
    assert (
        (recommendation["currentReplicas"], recommendation["desiredReplicas"])
        == (wire.current_replicas, wire.desired_replicas)
        == (6, 8)
    )
    assert (recommendation["executeAt"], recommendation["validUntil"]) == (rest["execute_at"], rest["valid_until"])
    for minutes, replicas in ((0, 6), (3, 8)):
        clock.now = given.issued_at + timedelta(minutes=minutes)
        answer = service.get(f"/api/v1/groups/{group_key('prod-eu', 'orders')}/recommendation").json()
        assert answer["due_replicas"] == replicas
        assert metrics_of(store, clock)["lagcast_due_replicas"] == replicas
        assert due(store, ORDERS, now=clock()).replicas == replicas


def test_channels_without_a_clock_drop_advice_that_has_expired(
    store: SqlDecisionStore, clock: Clock, given: Recommendation
) -> None:
    """A second after `valid_until` there is no metric and no count for KEDA, whose readers ignore that instant."""
    clock.now = given.valid_until
    assert metrics_of(store, clock)["lagcast_due_replicas"] == 8
    clock.now = given.valid_until + timedelta(seconds=1)
    assert "lagcast_due_replicas" not in metrics_of(store, clock)
    assert due(store, ORDERS, now=clock()).failure.startswith("the last advice expired at")
