"""Manifests that make HPA and KEDA follow the advice: the metric as it is, at once, and nothing while there is none."""

import re
from collections.abc import Callable
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


def test_an_hpa_has_the_metric_itself_as_its_count_and_waits_for_nothing() -> None:
    """One replica for each that is due, no window, no tolerance, steps as large as they have to be."""
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


def test_before_1_33_no_tolerance_can_be_said() -> None:
    """An older API server refuses the field."""
    behavior = horizontal_pod_autoscaler(FOLLOWED, kubernetes=(1, 32))["spec"]["behavior"]
    assert "tolerance" not in behavior["scaleUp"]


def test_a_scaledobject_takes_no_missing_sample_for_zero() -> None:
    """The trigger errs while there is no advice, and KEDA then holds."""
    spec = scaled_object(FOLLOWED, prometheus_trigger(FOLLOWED, "http://prometheus:9090"), kubernetes=(1, 33))["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"] == {
        "serverAddress": "http://prometheus:9090",
        "query": 'max(lagcast_due_replicas{cluster="prod",group="orders"})',
        "threshold": "1",
        "ignoreNullValues": "false",
    }
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 24)


def test_a_group_of_any_name_can_be_asked_for_by_keda_but_not_by_an_hpa() -> None:
    """Labels of Kubernetes take no blanks and no slashes; a query does, and quotes are escaped."""
    odd = FollowedGroup(**{name: getattr(FOLLOWED, name) for name in FOLLOWED.__slots__} | {"group": 'a "b"/c'})
    query = prometheus_trigger(odd, "http://p")["metadata"]["query"]
    assert r'group="a \"b\"/c"' in query
    with pytest.raises(ManifestError, match="no value of a label"):
        horizontal_pod_autoscaler(odd, kubernetes=(1, 33))


def test_the_adapter_serves_the_metric_under_its_own_name_and_no_other() -> None:
    """Of all groups, whatever their namespace."""
    rules = adapter_values()["rules"]
    (rule,) = rules["external"]
    assert rules["default"] is False
    assert rule["name"] == {"as": METRIC}
    assert rule["resources"] == {"namespaced": False}


def test_alerts_ask_for_metrics_that_there_are(tmp_path: Path, advice: Callable[..., Recommendation]) -> None:
    """Each name in an expression stands on the page of metrics while there is advice."""
    store = SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.sqlite'}")
    given = advice()
    store.save(given)
    page = Metrics(store, clock=lambda: given.issued_at, version="1", leads=lambda: True).page().decode()
    asked = {
        name for rule in alerts()["spec"]["groups"][0]["rules"] for name in re.findall(r"lagcast_\w+", rule["expr"])
    }
    assert len(asked) == 6
    assert all(re.search(rf"^{name}[ {{]", page, re.MULTILINE) for name in asked)


@pytest.mark.parametrize("text", ["", "latest", "one.two"])
def test_a_version_that_is_none_is_refused(text: str) -> None:
    """With an example of one."""
    with pytest.raises(ManifestError, match=r"like 1\.33"):
        kubernetes_version(text)
