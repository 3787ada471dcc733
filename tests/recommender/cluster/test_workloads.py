"""What pods and autoscalers tell of a group's workload, from documents as the API server has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collector.node_prices import NodePrice
from cost_model.physics.detected import DetectedPrice
from cost_model.physics.pods import STARTS_KEPT, PodStart
from recommender.cluster.workloads import NamespaceView, Workloads, namespace_view
from recommender.configuring.settings import TargetSettings

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TARGET = TargetSettings(namespace="shop", name="orders")
Document = dict[str, Any]


def instant(seconds: float) -> str:
    """An instant as Kubernetes writes it, so many seconds after noon."""
    return (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    uid: str = "a",
    *,
    ready: float | None = 50.0,
    restarts: int = 0,
    created: float = 0.0,
    cpu: str = "500m",
    node: str = "node-0",
    **metadata: object,
) -> Document:
    """A pod of the Deployment `orders`, whose ReplicaSet carries its hash."""
    owned = {
        "labels": {"app": "orders", "pod-template-hash": "7f9c"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "orders-7f9c", "controller": True}],
    }
    return {
        "metadata": {"uid": uid, "creationTimestamp": instant(created)} | owned | metadata,
        "spec": {
            "terminationGracePeriodSeconds": 90,
            "nodeName": node,
            "containers": [{"resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}],
        },
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": instant(created + 2)},
                {
                    "type": "Ready",
                    "status": "False" if ready is None else "True",
                    "lastTransitionTime": instant(created + (ready or 0.0)),
                },
            ],
            "containerStatuses": [
                {"restartCount": restarts, "state": {"running": {"startedAt": instant(created + 10)}}},
                {"restartCount": 0, "state": {"running": {"startedAt": instant(created + 30)}}},
            ],
        },
    }


def hpa(name: str = "orders", *, kind: str = "Deployment", **bounds: int) -> Document:
    """An HPA on `orders`."""
    spec = {"scaleTargetRef": {"kind": kind, "name": "orders"}, "maxReplicas": 20} | bounds
    return {"metadata": {"name": name}, "spec": spec}


def scaled_object(**bounds: int) -> Document:
    """A ScaledObject on `orders`, which names no kind."""
    return {"metadata": {"name": "orders"}, "spec": {"scaleTargetRef": {"name": "orders"}} | bounds}


@dataclass
class Views:
    """The views that a test has."""

    known: dict[str, NamespaceView] = field(default_factory=dict)

    def views(self) -> Mapping[str, NamespaceView]:
        """All of them."""
        return self.known

    def show(self, *pods: Document, hpas: tuple[Document, ...] = (), objects: tuple[Document, ...] = ()) -> None:
        """Have the namespace of the target so."""
        self.known = {"shop": namespace_view(pods, hpas, objects, seen_at=NOON)}


@pytest.fixture
def views() -> Views:
    return Views()


@pytest.fixture
def workloads(views: Views) -> Workloads:
    return Workloads(views)


def starts_of(workloads: Workloads, target: TargetSettings = TARGET) -> tuple[PodStart, ...]:
    """The starts that are known of the target."""
    found = workloads.of(target)
    assert found is not None
    return found.starts


def test_a_pod_of_the_target_tells_the_steps_of_its_start_and_its_grace_period(
    views: Views, workloads: Workloads
) -> None:
    """Its containers run when the last of them has started."""
    views.show(pod())
    found = workloads.of(TARGET)
    assert found is not None
    assert (found.seen_at, found.termination_grace_seconds) == (NOON, 90.0)
    (start,) = found.starts
    steps = (start.created_at, start.scheduled_at, start.started_at, start.ready_at)
    assert [(each - NOON).total_seconds() for each in steps] == [0.0, 2.0, 30.0, 50.0]


@pytest.mark.parametrize(
    ("target", "metadata"),
    [
        (
            TargetSettings(namespace="shop", name="orders", kind="StatefulSet"),
            {"labels": {}, "ownerReferences": [{"kind": "StatefulSet", "name": "orders", "controller": True}]},
        ),
        (
            TargetSettings(namespace="shop", name="orders", kind="Rollout", api_version="argoproj.io/v1alpha1"),
            {
                "labels": {"rollouts-pod-template-hash": "7f9c"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "orders-7f9c", "controller": True}],
            },
        ),
    ],
    ids=["StatefulSet", "Rollout"],
)
def test_the_pods_of_other_kinds_are_found_by_their_controller(
    views: Views, workloads: Workloads, target: TargetSettings, metadata: dict[str, Any]
) -> None:
    """A StatefulSet controls its pods itself, a Rollout of Argo by a ReplicaSet that carries its own hash."""
    views.show(pod(**metadata))
    assert len(starts_of(workloads, target)) == 1
    assert starts_of(workloads) == ()


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": []},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "orders-7f9c"}]},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "orders-slow-7f9c", "controller": True}]},
        {"labels": {}},
    ],
    ids=["no owner", "no controller", "another Deployment", "a ReplicaSet of its own"],
)
def test_a_pod_of_another_workload_tells_nothing(views: Views, workloads: Workloads, metadata: dict[str, Any]) -> None:
    """Only what the controller and its hash name counts; a name that begins alike does not."""
    views.show(pod(**metadata))
    found = workloads.of(TARGET)
    assert found is not None
    assert (found.starts, found.termination_grace_seconds) == ((), None)


@pytest.mark.parametrize(
    "document",
    [
        pod(ready=None),
        pod(restarts=1),
        pod(ready=3600.0),
        pod(ready=20.0),
        pod() | {"status": {"phase": "Pending"}},
    ],
    ids=["not ready", "restarted", "ready an hour after it started", "ready before it started", "pending"],
)
def test_a_start_that_cannot_be_told_is_left_out(views: Views, workloads: Workloads, document: Document) -> None:
    """After a restart, or where readiness came back much later, the instants are no longer those of the start."""
    views.show(document)
    assert starts_of(workloads) == ()


def test_pods_that_are_gone_still_tell_and_the_first_start_of_a_pod_counts(views: Views, workloads: Workloads) -> None:
    """A pod that regains its readiness keeps its start; after many newer ones it is forgotten."""
    views.show(pod("a"), pod("b", created=100.0))
    first = starts_of(workloads)
    views.show(pod("b", created=100.0, ready=500.0))
    assert starts_of(workloads) == first
    views.show(*(pod(f"new-{number}", created=1000.0 + number) for number in range(STARTS_KEPT)))
    newest = starts_of(workloads)
    assert len(newest) == STARTS_KEPT
    assert min(start.created_at for start in newest) == NOON + timedelta(seconds=1000)


def test_a_namespace_that_could_not_be_read_tells_nothing(workloads: Workloads) -> None:
    """Neither does a group without a target."""
    assert workloads.of(TARGET) is None
    assert workloads.of(None) is None


@pytest.mark.parametrize(
    ("hpas", "objects", "bounds"),
    [
        ((hpa(minReplicas=3),), (), ("HorizontalPodAutoscaler orders", 3, 20)),
        ((hpa(),), (), ("HorizontalPodAutoscaler orders", 1, 20)),
        ((hpa(kind="StatefulSet"),), (), (None, None, None)),
        ((hpa(minReplicas=30),), (), (None, None, None)),
        ((), (scaled_object(minReplicaCount=2, maxReplicaCount=9),), ("ScaledObject orders", 2, 9)),
        ((), (scaled_object(minReplicaCount=0),), ("ScaledObject orders", 1, None)),
        ((), (scaled_object(),), ("ScaledObject orders", None, None)),
        (
            (hpa("keda-hpa-orders", minReplicas=1),),
            (scaled_object(maxReplicaCount=9),),
            ("ScaledObject orders", None, 9),
        ),
    ],
    ids=[
        *("HPA", "HPA without a minimum", "HPA on another kind", "HPA out of order"),
        *("ScaledObject", "idle at 0", "defaults of KEDA", "KEDA's own HPA"),
    ],
)
def test_the_bounds_are_those_of_the_targets_autoscaler(
    views: Views,
    workloads: Workloads,
    hpas: tuple[Document, ...],
    objects: tuple[Document, ...],
    bounds: tuple[str | None, int | None, int | None],
) -> None:
    """A ScaledObject is heard before the HPA that KEDA makes of it; what it leaves to KEDA's defaults is no bound."""
    views.show(hpas=hpas, objects=objects)
    found = workloads.of(TARGET)
    assert found is not None
    assert (found.bounds_of, found.min_replicas, found.max_replicas) == bounds


@dataclass
class Prices:
    """Prices of nodes that a test sets; a core of a node costs this, a GiB a tenth of it."""

    by_node: dict[str, float]
    seen_at: datetime = NOON
    where: str = "http://prometheus:9090"

    @property
    def nodes(self) -> dict[str, NodePrice]:
        """The prices of each node."""
        return {name: NodePrice(per_core=price, per_gibibyte=0.1 * price) for name, price in self.by_node.items()}


@pytest.fixture
def prices() -> Prices:
    return Prices({"node-0": 0.04})


@pytest.fixture
def priced(views: Views, prices: Prices) -> Callable[[], DetectedPrice | None]:
    """What gives the price of a replica of the target now."""
    workloads = Workloads(views, lambda: prices)

    def price() -> DetectedPrice | None:
        found = workloads.of(TARGET)
        assert found is not None
        return found.price

    return price


def test_a_replica_costs_what_its_newest_pod_requests_on_the_nodes_of_all(
    views: Views, prices: Prices, priced: Callable[[], DetectedPrice | None]
) -> None:
    """Half a core and 2 GiB are 0.028 at 0.04 a core, 0.084 on the other node, on the mean 0.056."""
    prices.by_node["node-1"] = 0.12
    views.show(pod("a", cpu="4"), pod("b", created=10.0, node="node-1"))
    found = priced()
    assert found is not None
    assert found.price_per_replica_hour == pytest.approx(0.056)
    assert found.seen_at == NOON


def test_a_price_stays_for_a_day_and_then_gives_way_to_one_that_differs_by_more_than_a_tenth(
    views: Views, prices: Prices, priced: Callable[[], DetectedPrice | None]
) -> None:
    """A session begins anew with each other price: 9 % more are the same on the next day, 50 % more are not."""
    views.show(pod())
    first = priced()
    prices.by_node["node-0"], prices.seen_at = 0.06, NOON + timedelta(hours=23)
    assert priced() == first
    prices.by_node["node-0"], prices.seen_at = 0.0436, NOON + timedelta(hours=24)
    assert priced() == first
    prices.by_node["node-0"] = 0.06
    found = priced()
    assert found is not None
    assert found.price_per_replica_hour == pytest.approx(0.042)
    assert found.seen_at == NOON + timedelta(hours=24)


def test_a_known_price_outlasts_pods_and_nodes_without_one(
    views: Views, priced: Callable[[], DetectedPrice | None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Costs do not change their unit when a group is scaled to zero, or gets a node that has no price yet."""
    views.show(pod())
    first = priced()
    views.show()
    assert priced() == first
    views.show(pod(), pod("b", created=10.0, node="new"))
    assert priced() == priced() == first
    logged = capsys.readouterr().out
    assert logged.count("price_unknown") == 1
    assert "node new has no price on http://prometheus:9090" in logged
    assert logged.count("price_detected") == 1


def test_a_server_that_has_no_prices_is_no_warning_of_each_group(
    views: Views, prices: Prices, priced: Callable[[], DetectedPrice | None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Samples are read from it, and OpenCost is not there: costs are in pod-hours."""
    prices.by_node.clear()
    views.show(pod())
    assert priced() is None
    assert "price_unknown" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "document",
    [pod() | {"status": {"phase": "Succeeded"}}, pod(node=""), pod(cpu="0"), pod(node="elsewhere")],
    ids=["ended", "no node yet", "no request", "no price"],
)
def test_without_a_pod_on_a_node_with_a_price_there_is_none(
    views: Views, priced: Callable[[], DetectedPrice | None], document: Document
) -> None:
    """None is taken from another workload, or assumed."""
    if not document["spec"]["nodeName"]:
        del document["spec"]["nodeName"]
    views.show(document)
    assert priced() is None
