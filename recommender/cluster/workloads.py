"""Workloads as the cluster shows them: how their pods start and leave, and the bounds of their autoscalers.

Pure: documents of the API server in, `ObservedWorkload` out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from cost_model.physics.detected import ObservedWorkload
from cost_model.physics.pods import STARTS_KEPT, PodStart
from forecasting.units import Replicas, Seconds
from recommender.configuring.settings import TargetSettings

Document = Mapping[str, Any]

# A pod that is ready this long after its containers started may have lost its readiness and regained it.
LONGEST_READYING = timedelta(minutes=10)
# Controllers of ReplicaSets, by the label that has the end of the ReplicaSet's name.
_HASH_LABELS = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}


class Owner(NamedTuple):
    """Kind and name of what controls pods, within a namespace."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """What one pod tells. `start` is None while it is not ready, and where its first start is not known any more."""

    uid: str
    owners: tuple[Owner, ...]
    created_at: datetime
    termination_grace_seconds: float | None
    start: PodStart | None


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
    """The workloads of targets over time: pods that are gone still tell how long they took to start."""

    def __init__(self, views: NamespaceViews) -> None:
        self._views = views
        self._starts: dict[TargetSettings, dict[str, PodStart]] = {}

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
        )


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
