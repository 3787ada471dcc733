"""Each obstacle that keeps advice from being followed in a cluster is one line, with the next step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from recommender.cluster.doctor import Actor, Diagnosis, LeaseFacts, Rule, examine
from recommender.cluster.scaler import Document
from recommender.configuring.settings import Settings, TargetSettings
from recommender.ports import RejectedError

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass(slots=True)
class MemoryCluster:
    """A cluster of the namespace `shop` with the given contents; nothing is wrong with it unless a test makes it so."""

    installed: Literal["absent", "outdated", "current"] = "current"
    documents: list[dict[str, Any]] = field(default_factory=list)
    denied: set[tuple[str, str]] = field(default_factory=set)
    plurals: dict[str, str] = field(default_factory=lambda: {"Deployment": "deployments", "Rollout": "rollouts"})
    workloads: set[str] = field(default_factory=lambda: {"orders"})
    claims: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    leader: LeaseFacts | None = None
    ungraceful: bool = False
    queries: list[str] = field(default_factory=list)

    def add(self, name: str, **spec: Any) -> None:  # noqa: ANN401  # YAML
        """Add an object for the group of the same name; a later object is younger."""
        metadata = {"namespace": "shop", "name": name, "uid": name, "generation": 1}
        created = NOW + timedelta(seconds=len(self.documents))
        self.documents.append(
            {
                "metadata": metadata | {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")},
                "spec": {"cluster": "prod", "groupId": name} | spec,
            }
        )

    def version(self) -> str:
        """Its version."""
        return "v1.36.3"

    def definition(self) -> Literal["absent", "outdated", "current"]:
        """The state that the test set."""
        return self.installed

    def objects(self, namespace: str) -> Sequence[Document]:
        """The objects of one namespace."""
        return [each for each in self.documents if each["metadata"]["namespace"] == namespace]

    def may(self, actor: Actor, namespace: str, rule: Rule) -> bool:
        """True unless denied; raises if the cluster does not answer."""
        del namespace
        if self.ungraceful:
            message = "could not check: the API server answered 403 Forbidden; grant create on subjectaccessreviews"
            raise RejectedError(message)
        self.queries.append(f"{actor}: {rule}")
        return (actor, rule.resource) not in self.denied

    def plural(self, target: TargetSettings) -> str | None:
        """The plural of a kind that has a /scale."""
        return self.plurals.get(target.kind)

    def is_there(self, target: TargetSettings) -> bool:
        """True if it is among the workloads."""
        return target.name in self.workloads

    def autoscalers(self, namespace: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The autoscalers that the test set."""
        del namespace
        return self.claims

    def metrics_server(self, api: str) -> str | None:
        """The Service, if any."""
        return self.servers.get(api)

    def lease(self) -> LeaseFacts | None:
        """The lease that the test set."""
        return self.leader


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


def found(cluster: MemoryCluster, *states: str) -> list[Diagnosis]:
    """The findings in one of these states."""
    findings = examine(cluster, Settings(state_dir=Path("nowhere")), ["shop"], now=NOW)
    return [each for each in findings if each.state in states]


def test_a_cluster_in_order_has_no_trouble(cluster: MemoryCluster) -> None:
    """With an object in mode Apply, its workload and all rights, every check is ok and none has a remedy."""
    cluster.add("orders", mode="Apply", target={"name": "orders"})
    assert found(cluster, "problem", "unknown") == []
    sentences = [(each.check, each.sentence) for each in found(cluster, "ok")]
    assert sentences == [
        ("API server", "Kubernetes v1.36.3 is reachable."),
        ("definition", "consumergroupscalers.lagcast.io v1alpha1 is installed."),
        ("objects", "1 ConsumerGroupScaler here."),
        ("target", "Deployment orders is there, and has a /scale."),
        ("rights", "The recommender has every right that it needs."),
        ("rights", "The executor has every right that it needs."),
    ]


@pytest.mark.parametrize(
    ("changes", "check", "sentence", "remedy"),
    [
        (
            {"installed": "absent"},
            "definition",
            "is not installed",
            "kubectl apply -f deploy/manifests/scalers/crd.yaml",
        ),
        ({"installed": "outdated"}, "definition", "lacks fields", "kubectl apply -f deploy/manifests/scalers/crd.yaml"),
        ({"workloads": set()}, "target", "Deployment orders is not in namespace shop.", "correct the target"),
        (
            {"plurals": {}},
            "target",
            "Deployment of apps/v1 is not known to the cluster, or has no /scale.",
            "correct kind",
        ),
        (
            {"claims": {("Deployment", "orders"): ("ScaledObject shop/x",)}},
            "autoscalers",
            "ScaledObject shop/x scales the same workload",
            "lagcast export",
        ),
        (
            {"denied": {("executor", "deployments/scale")}},
            "rights",
            "The executor may not patch deployments/scale.apps.",
            "kubectl -n shop apply -f deploy/manifests/executor/target-role.yaml",
        ),
        (
            {"denied": {("recommender", "events"), ("recommender", "consumergroupscalers/status")}},
            "rights",
            "The recommender may not patch consumergroupscalers/status.lagcast.io, create events.events.k8s.io.",
            "kubectl -n shop apply -f deploy/manifests/scalers/target-role.yaml",
        ),
        (
            {"leader": LeaseFacts(holder="a", renewed_at=NOW - timedelta(seconds=95), duration_seconds=15)},
            "lease",
            "a renewed the Lease 95 s ago, and it lasts 15 s: no recommender leads.",
            "see whether a recommender runs",
        ),
    ],
)
def test_each_fault_is_one_line_with_a_remedy(
    *, cluster: MemoryCluster, changes: dict[str, Any], check: str, sentence: str, remedy: str
) -> None:
    """Each fault gives its line, and no other line."""
    cluster.add("orders", mode="Apply", target={"name": "orders"})
    for name, value in changes.items():
        setattr(cluster, name, value)
    (problem,) = found(cluster, "problem")
    assert problem.check == check
    assert sentence in problem.sentence
    assert problem.remedy is not None
    assert remedy in problem.remedy


def test_objects_that_are_not_followed_are_reported(cluster: MemoryCluster) -> None:
    """Two objects for one target, two for one group and a bad price are one line each, with the remedy."""
    cluster.add("orders", target={"name": "orders"})
    cluster.add("billing", target={"name": "orders"})
    cluster.add("again", groupId="orders")
    cluster.add("cheap", prices={"pricePerReplicaHour": 0})
    problems = {each.where: each for each in found(cluster, "problem")}
    assert problems.keys() == {"shop/billing", "shop/again", "shop/cheap"}
    assert "shop/orders has the target Deployment orders already" in problems["shop/billing"].sentence
    assert "shop/orders names group 'orders' of cluster 'prod' already" in problems["shop/again"].sentence
    assert problems["shop/cheap"].remedy == "kubectl -n shop edit cgs cheap"


@pytest.mark.parametrize(
    ("group", "limit"),
    [({"partitions": 24}, "24 partitions"), ({"streams": {"tasks": 8, "stateful": False}}, "8 tasks")],
)
def test_a_minimum_above_the_useful_maximum_is_reported(
    cluster: MemoryCluster, group: dict[str, Any], limit: str
) -> None:
    """Replicas beyond the partitions, or beyond the tasks, are idle."""
    cluster.add("orders", minReplicas=25, group=group)
    (problem,) = found(cluster, "problem")
    assert f"minReplicas is 25, above the useful maximum: there are {limit}" in problem.sentence


def test_an_executor_that_no_object_needs_is_no_problem(cluster: MemoryCluster) -> None:
    """Without an object in mode Apply, a missing right of the executor is a note; so is an autoscaler."""
    cluster.add("orders", target={"name": "orders"})
    cluster.denied = {("executor", "deployments/scale")}
    cluster.claims = {("Deployment", "orders"): ("HorizontalPodAutoscaler shop/x",)}
    assert found(cluster, "problem") == []
    notes = [each.sentence for each in found(cluster, "note") if each.check in ("rights", "autoscalers")]
    assert notes == [
        "HorizontalPodAutoscaler shop/x scales the same workload; the executor does not change it.",
        "The executor may not patch deployments/scale.apps; no object here has mode Apply.",
    ]


@pytest.mark.parametrize(
    ("resource", "figures"),
    [
        ("pods", "The recommender may not list pods: start-up time and termination grace period are as set"),
        ("horizontalpodautoscalers", "list horizontalpodautoscalers.autoscaling: the bounds of HPAs are as set"),
        ("scaledobjects", "The recommender may not list scaledobjects.keda.sh: the bounds of ScaledObjects are as set"),
    ],
)
def test_a_figure_that_the_recommender_may_not_read_is_a_note_with_the_right(
    cluster: MemoryCluster, resource: str, figures: str
) -> None:
    """Advice is given all the same, with what is set or assumed."""
    cluster.add("orders", target={"name": "orders"})
    cluster.denied = {("recommender", resource)}
    assert found(cluster, "problem") == []
    (note,) = (each for each in found(cluster, "note") if each.check == "rights")
    assert figures in note.sentence
    assert note.remedy == "kubectl -n shop apply -f deploy/manifests/scalers/target-role.yaml"


def test_rights_are_checked_for_the_kinds_that_are_present(cluster: MemoryCluster) -> None:
    """For an Argo Rollout its own right is checked, and that on /scale; for the recommender none on it."""
    cluster.add("orders", target={"name": "orders", "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"})
    found(cluster)
    assert {
        "executor: get rollouts.argoproj.io",
        "executor: get rollouts/scale.argoproj.io",
        "executor: patch rollouts/scale.argoproj.io",
    } <= set(cluster.queries)
    assert not [rule for rule in cluster.queries if "rollouts" in rule and not rule.startswith("executor")]


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ("keda/keda-operator-metrics-apiserver", "Served by KEDA (keda/keda-operator-metrics-apiserver)"),
        ("monitoring/prometheus-adapter", "Served by prometheus-adapter (monitoring/prometheus-adapter)"),
        ("custom-metrics/custom-metrics-stackdriver-adapter", "Served by the Stackdriver adapter"),
        ("x/y", "Served by a server that is not known here (x/y)"),
    ],
)
def test_b4_the_server_of_metrics_is_named(cluster: MemoryCluster, server: str, sentence: str) -> None:
    """KEDA, prometheus-adapter, Stackdriver, another server and none have a line each; no second one is proposed."""
    cluster.servers = {"external.metrics.k8s.io": server}
    served, absent = (each for each in found(cluster, "ok", "note") if each.check == "metrics API")
    assert (served.state, absent.state) == ("ok", "note")
    assert served.sentence.startswith(sentence)
    assert served.remedy is None
    assert "NotFound" in absent.sentence


def test_a_right_that_may_not_be_queried_is_unknown_and_the_rest_goes_on(cluster: MemoryCluster) -> None:
    """The state is neither ok nor problem, and the line names the right to grant."""
    cluster.ungraceful = True
    unknown = found(cluster, "unknown")
    assert [each.check for each in unknown] == ["rights", "rights"]
    assert all("grant create on subjectaccessreviews" in each.sentence for each in unknown)
    assert found(cluster, "problem") == []


def test_a_fresh_lease_names_its_holder(cluster: MemoryCluster) -> None:
    """Without a Lease there is no line; a renewal within its duration is ok."""
    assert not [each for each in found(cluster, "ok", "problem") if each.check == "lease"]
    cluster.leader = LeaseFacts(holder="a", renewed_at=NOW - timedelta(seconds=4), duration_seconds=15)
    (finding,) = (each for each in found(cluster, "ok") if each.check == "lease")
    assert finding.sentence == "a leads; renewed 4 s ago."
