"""Workloads as the cluster shows them: how their pods start and leave, what they cost, and their autoscalers' bounds.

Documents of the API server and prices of nodes in, `ObservedWorkload` out; what a price rests on is logged.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

import structlog

from cost_model.physics.detected import DetectedPrice, ObservedWorkload
from cost_model.physics.pods import STARTS_KEPT, PodStart
from forecasting.units import Replicas, Seconds
from recommender.cluster.prices import GIBIBYTE, NodePrices, PodRequests, UnknownPriceError, price_of, requests_of
from recommender.configuring.settings import TargetSettings

Document = Mapping[str, Any]

# A pod that is ready this long after its containers started may have lost its readiness and regained it.
LONGEST_READYING = timedelta(minutes=10)
# Controllers of ReplicaSets, by the label that has the end of the ReplicaSet's name.
_HASH_LABELS = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
_ENDED = {"Succeeded", "Failed"}
# A price is replaced after a day at the earliest, by one that differs by more than a tenth: each other one begins the
# group's session anew, and no decision depends on it. It is a mean over nodes, and changes with each move between them.
_PRICE_KEPT, _SAME_PRICE = timedelta(days=1), 0.1

_log = structlog.get_logger()


class Owner(NamedTuple):
    """Kind and name of what controls pods, within a namespace."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """What one pod tells. `start` is None while it is not ready, and where its first start is not known any more.

    `node` is None before it has one, and after it has ended.
    """

    uid: str
    owners: tuple[Owner, ...]
    created_at: datetime
    termination_grace_seconds: float | None
    start: PodStart | None
    requests: PodRequests
    node: str | None


class Bounds(NamedTuple):
    """The bounds of an autoscaler; None: it sets none that advice could have."""

    autoscaler: str
    min_replicas: int | None
    max_replicas: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceView:
    """The pods and the bounds of a namespace by the workload that they belong to, as they were at `seen_at`."""

    seen_at: datetime
    pods: Mapping[Owner, Sequence[SeenPod]]
    bounds: Mapping[Owner, Bounds]


class NamespaceViews(Protocol):
    """The newest view of each namespace that could be read."""

    def views(self) -> Mapping[str, NamespaceView]:
        """All of them; a call costs nothing."""
        ...


class Workloads:
    """The workloads of targets over time: pods that are gone still tell how long they took to start.

    `prices` gives the newest prices of nodes, None while there are none. A price of replicas that was known stays until
    another one is: costs do not change their unit while a server is away or a new node has no price yet.
    """

    def __init__(self, views: NamespaceViews, prices: Callable[[], NodePrices | None] = lambda: None) -> None:
        self._views, self._node_prices = views, prices
        self._starts: dict[TargetSettings, dict[str, PodStart]] = {}
        self._prices: dict[TargetSettings, DetectedPrice] = {}
        self._unpriced: dict[TargetSettings, str] = {}

    def of(self, target: TargetSettings | None) -> ObservedWorkload | None:
        """What the cluster has shown of the workload; None where its namespace could not be read yet.

        The first start of a pod that is seen counts: a pod may lose its readiness later, and regain it.
        """
        view = None if target is None else self._views.views().get(target.namespace)
        if target is None or view is None:
            return None
        owner = Owner(target.kind, target.name)
        pods, bounds = view.pods.get(owner, ()), view.bounds.get(owner)
        starts = {pod.uid: pod.start for pod in pods if pod.start is not None} | self._starts.get(target, {})
        newest = sorted(starts.items(), key=lambda each: each[1].created_at)[-STARTS_KEPT:]
        self._starts[target] = dict(newest)
        grace = max(pods, key=lambda pod: pod.created_at).termination_grace_seconds if pods else None
        least, most = (None, None) if bounds is None else (bounds.min_replicas, bounds.max_replicas)
        return ObservedWorkload(
            seen_at=view.seen_at,
            starts=tuple(start for _, start in newest),
            termination_grace_seconds=None if grace is None else Seconds(grace),
            min_replicas=None if least is None else Replicas(least),
            max_replicas=None if most is None else Replicas(most),
            bounds_of=None if bounds is None else bounds.autoscaler,
            price=self._price(target, pods),
        )

    def _price(self, target: TargetSettings, pods: Sequence[SeenPod]) -> DetectedPrice | None:
        """The price of a replica: what the newest pod requests, on the nodes that all of them run on."""
        known, prices = self._prices.get(target), self._node_prices()
        nodes = [pod.node for pod in pods if pod.node is not None]
        # A server without any price is one that OpenCost does not export to: nothing is wrong with the group.
        if prices is None or not prices.nodes or not nodes:
            return known
        requests = max(pods, key=lambda pod: pod.created_at).requests
        place = {"namespace": target.namespace, "kind": target.kind, "name": target.name}
        try:
            price = price_of(requests, nodes, prices)
        except UnknownPriceError as error:
            if self._unpriced.get(target) != str(error):
                _log.warning("price_unknown", **place, sentence=str(error), used=known and known.price_per_replica_hour)
            self._unpriced[target] = str(error)
            return known
        self._unpriced.pop(target, None)
        if known is not None and not _replaces(price, known, at=prices.seen_at):
            return known
        self._prices[target] = DetectedPrice(price_per_replica_hour=price, seen_at=prices.seen_at)
        _log.info(
            "price_detected",
            **place,
            price_per_replica_hour=round(price, 6),
            cores=requests.cores,
            memory_gibibytes=round(requests.memory_bytes / GIBIBYTE, 3),
            nodes=len(set(nodes)),
            where=prices.where,
        )
        return self._prices[target]


def _replaces(price: float, known: DetectedPrice, *, at: datetime) -> bool:
    """True if a price is to be used from this instant on in place of the one that is known."""
    changed = abs(price - known.price_per_replica_hour) > _SAME_PRICE * known.price_per_replica_hour
    return changed and at - known.seen_at >= _PRICE_KEPT


def namespace_view(
    pods: Iterable[Document], autoscalers: Iterable[Document], scaled_objects: Iterable[Document], *, seen_at: datetime
) -> NamespaceView:
    """The view that these documents of one namespace give. KEDA's own HPA gives way to its ScaledObject."""
    by_owner: dict[Owner, list[SeenPod]] = defaultdict(list)
    for document in pods:
        pod = seen_pod(document)
        for owner in pod.owners:
            by_owner[owner].append(pod)
    bounds = dict(filter(None, map(_bounds_of_hpa, autoscalers)))
    bounds |= dict(filter(None, map(_bounds_of_scaled_object, scaled_objects)))
    return NamespaceView(seen_at=seen_at, pods=by_owner, bounds=bounds)


def seen_pod(document: Document) -> SeenPod:
    """One pod, from its document."""
    metadata = document["metadata"]
    grace = document["spec"].get("terminationGracePeriodSeconds")
    return SeenPod(
        uid=metadata["uid"],
        owners=tuple(_owners(metadata)),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        termination_grace_seconds=None if grace is None else float(grace),
        start=_start(document),
        requests=requests_of(document["spec"]),
        node=None if document.get("status", {}).get("phase") in _ENDED else document["spec"].get("nodeName"),
    )


def _owners(metadata: Document) -> Iterable[Owner]:
    """The controller of a pod; of a ReplicaSet's pod also what controls that, whose name Kubernetes puts into it."""
    for reference in metadata.get("ownerReferences", ()):
        if not reference.get("controller"):
            continue
        owner = Owner(reference["kind"], reference["name"])
        yield owner
        for label, kind in _HASH_LABELS.items() if owner.kind == "ReplicaSet" else ():
            end = metadata.get("labels", {}).get(label)
            if end and owner.name.endswith(f"-{end}"):
                yield Owner(kind, owner.name.removesuffix(f"-{end}"))


def _start(document: Document) -> PodStart | None:
    """The steps of a pod's start; None while it is not ready, after a restart, and where a step is missing."""
    status = document.get("status", {})
    since = {
        each["type"]: each.get("lastTransitionTime")
        for each in status.get("conditions", ())
        if each.get("status") == "True"
    }
    containers = status.get("containerStatuses", ())
    started = [each.get("state", {}).get("running", {}).get("startedAt") for each in containers]
    restarted = any(each.get("restartCount", 0) for each in containers)
    instants = (since.get("PodScheduled"), *started, since.get("Ready"))
    if not started or restarted or not all(instants):
        return None
    start = PodStart(
        created_at=datetime.fromisoformat(document["metadata"]["creationTimestamp"]),
        scheduled_at=datetime.fromisoformat(since["PodScheduled"]),
        started_at=max(map(datetime.fromisoformat, started)),
        ready_at=datetime.fromisoformat(since["Ready"]),
    )
    # The clocks of nodes differ: an order that cannot be tells nothing.
    in_order = start.created_at <= start.scheduled_at <= start.started_at <= start.ready_at
    return start if in_order and start.ready_at - start.started_at <= LONGEST_READYING else None


def _bounds_of_hpa(document: Document) -> tuple[Owner, Bounds] | None:
    spec = document["spec"]
    return _bounds(document, "HorizontalPodAutoscaler", spec.get("minReplicas", 1), spec["maxReplicas"])


def _bounds_of_scaled_object(document: Document) -> tuple[Owner, Bounds] | None:
    """A minimum of 0 is that of a group that is idle; while it is active it has one replica."""
    spec = document["spec"]
    least = spec.get("minReplicaCount")
    return _bounds(document, "ScaledObject", None if least is None else max(1, least), spec.get("maxReplicaCount"))


def _bounds(document: Document, kind: str, least: int | None, most: int | None) -> tuple[Owner, Bounds] | None:
    """The bounds by the workload they are for; None where no count is within them."""
    if least is not None and most is not None and least > most:
        return None
    target = document["spec"]["scaleTargetRef"]
    owner = Owner(target.get("kind", "Deployment"), target["name"])
    return owner, Bounds(f"{kind} {document['metadata']['name']}", least, most)
