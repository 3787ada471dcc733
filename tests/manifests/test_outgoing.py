"""Manifests with which HPA and KEDA follow the advice: the metric without delay, and no change without advice."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.objects import ManifestError
from manifests.outgoing import (
    METRIC,
    FollowedGroup,
    adapter_values,
    alerts,
    horizontal_pod_autoscaler,
    kubernetes_version,
    prometheus_trigger,
    scaled_object,
)
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation

FOLLOWED = FollowedGroup(
    cluster="prod",
    group="orders",
    namespace="shop",
    api_version="apps/v1",
    kind="Deployment",
    name="order-consumer",
    least=2,
    most=24,
)


def test_an_hpa_has_the_metric_itself_as_its_count_without_delay() -> None:
    """The HPA has one replica for each due one, no window, no tolerance, and steps of any size."""
    spec = horizontal_pod_autoscaler(FOLLOWED, kubernetes=(1, 36))["spec"]
    (metric,) = spec["metrics"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "1"}
    assert metric["external"]["metric"]["selector"]["matchLabels"] == {"cluster": "prod", "group": "orders"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 24)
    for direction in ("scaleUp", "scaleDown"):
        assert spec["behavior"][direction] == {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 24, "periodSeconds": 15}],
            "tolerance": "0",
        }


def test_before_1_33_the_tolerance_is_left_out() -> None:
    """The field, which an older API server refuses, is left out."""
    behavior = horizontal_pod_autoscaler(FOLLOWED, kubernetes=(1, 32))["spec"]["behavior"]
    assert "tolerance" not in behavior["scaleUp"]


def test_a_scaledobject_reads_no_missing_sample_as_zero() -> None:
    """The trigger fails while there is no advice, and KEDA then keeps the count."""
    spec = scaled_object(FOLLOWED, prometheus_trigger(FOLLOWED, "http://prometheus:9090"), kubernetes=(1, 33))["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"] == {
        "serverAddress": "http://prometheus:9090",
        "query": 'max(lagcast_due_replicas{cluster="prod",group="orders"})',
        "threshold": "1",
        "ignoreNullValues": "false",
    }
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 24)


def test_a_group_that_may_have_no_replica_keeps_those_it_has_while_the_trigger_fails() -> None:
    """The fallback takes effect before the cooldown ends: polls and the HPA fail twice in each polling interval."""
    idle = replace(FOLLOWED, to_zero=True)
    spec = scaled_object(idle, prometheus_trigger(idle, "http://prometheus:9090"), kubernetes=(1, 33))["spec"]
    fallback = spec["fallback"]
    assert (spec["minReplicaCount"], fallback["replicas"], fallback["behavior"]) == (0, 1, "currentReplicasIfHigher")
    until_the_fallback_seconds = (fallback["failureThreshold"] + 1) / 2 * spec["pollingInterval"]
    assert until_the_fallback_seconds + spec["pollingInterval"] < spec["cooldownPeriod"]
    assert spec["initialCooldownPeriod"] == spec["cooldownPeriod"]


def test_a_group_of_any_name_can_be_queried_by_keda_but_not_by_an_hpa() -> None:
    """Names with blanks or slashes, which labels exclude, are refused for an HPA, and quotes are escaped in a query."""
    odd = FollowedGroup(**{name: getattr(FOLLOWED, name) for name in FOLLOWED.__slots__} | {"group": 'a "b"/c'})
    query = prometheus_trigger(odd, "http://p")["metadata"]["query"]
    assert r'group="a \"b\"/c"' in query
    with pytest.raises(ManifestError, match="no value of a label"):
        horizontal_pod_autoscaler(odd, kubernetes=(1, 33))


def test_the_adapter_serves_the_metric_under_its_own_name_alone() -> None:
    """The metric of every group is served, whatever its namespace."""
    rules = adapter_values()["rules"]
    (rule,) = rules["external"]
    assert rules["default"] is False
    assert rule["name"] == {"as": METRIC}
    assert rule["resources"] == {"namespaced": False}


def test_alerts_query_existing_metrics(tmp_path: Path, advice: Callable[..., Recommendation]) -> None:
    """Each metric of an expression is on the page of metrics while there is advice."""
    store = SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.sqlite'}")
    given = advice()
    store.save(given)
    page = Metrics(store, clock=lambda: given.issued_at, version="1", leads=lambda: True).page().decode()
    queried = {
        name for rule in alerts()["spec"]["groups"][0]["rules"] for name in re.findall(r"lagcast_\w+", rule["expr"])
    }
    assert len(queried) == 6
    assert all(re.search(rf"^{name}[ {{]", page, re.MULTILINE) for name in queried)


@pytest.mark.parametrize("text", ["", "latest", "one.two"])
def test_an_invalid_version_is_refused(text: str) -> None:
    """The error has an example of a version."""
    with pytest.raises(ManifestError, match=r"like 1\.33"):
        kubernetes_version(text)
