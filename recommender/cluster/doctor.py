"""Checks of a cluster for obstacles to advice and scaling: one finding for each check, with its remedy.

The cluster is read through `ClusterView` alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple, Protocol

from recommender.cluster.scaler import API_GROUP, API_VERSION, KIND, PLURAL, Document, GroupRequest, standing
from recommender.cluster.tenants import objection_of_settings
from recommender.configuring.settings import Settings, TargetSettings
from recommender.ports import RejectedError

State = Literal["ok", "note", "problem", "unknown"]
Actor = Literal["recommender", "executor"]

_ROLES: dict[Actor, str] = {
    "recommender": "deploy/manifests/scalers/target-role.yaml",
    "executor": "deploy/manifests/executor/target-role.yaml",
}
_INSTALL = "kubectl apply -f deploy/manifests/scalers/crd.yaml"
# Server of a metrics API, by the name of its Service.
_ADAPTERS = (
    ("keda", "KEDA"),
    ("prometheus-adapter", "prometheus-adapter"),
    ("stackdriver", "the Stackdriver adapter"),
)
METRICS_APIS = {
    "external.metrics.k8s.io": "lagcast export prometheus-adapter, where an HPA is to follow the advice",
    "custom.metrics.k8s.io": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of one check. `problem` keeps advice from being given or followed; `remedy` is the next step."""

    check: str
    where: str
    state: State
    sentence: str
    remedy: str | None = None


class Rule(NamedTuple):
    """An action on resources of an API group."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFacts:
    """A Lease: its holder, the time of its last renewal, and how long a renewal lasts."""

    holder: str
    renewed_at: datetime
    duration_seconds: float


class ClusterView(Protocol):
    """A cluster as the doctor sees it. Errors of each: RejectedError for a denial, UnavailableError for no response."""

    def version(self) -> str:
        """Version that the API server reports."""
        ...

    def definition(self) -> Literal["absent", "outdated", "current"]:
        """State of the definition of ConsumerGroupScalers: absent, or served with or without this release's fields."""
        ...

    def objects(self, namespace: str) -> Sequence[Document]:
        """The ConsumerGroupScalers of a namespace."""
        ...

    def may(self, actor: Actor, namespace: str, rule: Rule) -> bool:
        """True if the service account of `actor` may do that in a namespace."""
        ...

    def plural(self, target: TargetSettings) -> str | None:
        """Name of the target's kind in paths; None where the cluster does not know it, or it has no `/scale`."""
        ...

    def is_there(self, target: TargetSettings) -> bool:
        """True if the workload itself exists."""
        ...

    def autoscalers(self, namespace: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The autoscalers that claim each workload, by its kind and name."""
        ...

    def metrics_server(self, api: str) -> str | None:
        """The Service that serves a metrics API, `namespace/name`; None where none does."""
        ...

    def lease(self) -> LeaseFacts | None:
        """The Lease of the recommenders; None where there is none."""
        ...


def examine(
    view: ClusterView, settings: Settings, namespaces: Sequence[str], *, now: datetime
) -> tuple[Diagnosis, ...]:
    """Every finding, in the order of installation. Errors: UnavailableError where the cluster does not respond."""
    findings = [
        Diagnosis(check="API server", where="-", state="ok", sentence=f"Kubernetes {view.version()} is reachable.")
    ]
    findings += _answered("definition", "-", partial(_definition, view))
    documents: list[Document] = []
    for namespace in namespaces:
        findings += _answered("objects", namespace, partial(_objects, view, namespace, documents))
    known = standing(settings, documents, objection_of_settings)
    for (namespace, name), problem in known.invalid.items():
        remedy = f"kubectl -n {namespace} edit cgs {name}"
        findings.append(_finding("objects", f"{namespace}/{name}", "problem", problem.sentence, remedy))
    requests = sorted(known.requests.values(), key=lambda each: (each.scaler.namespace, each.scaler.name))
    for each in requests:
        findings += _bounds(each)
        findings += _answered("target", _place(each), partial(_target, view, each))
    for namespace in namespaces:
        here = [each for each in requests if each.scaler.namespace == namespace]
        findings += _answered("autoscalers", namespace, partial(_autoscalers, view, namespace, here))
        for actor in _ROLES:
            findings += _answered("rights", namespace, partial(_rights, view, actor, namespace, here))
    for api in METRICS_APIS:
        findings += _answered("metrics API", api, partial(_metrics, view, api))
    findings += _answered("lease", "-", partial(_lease, view, now=now))
    return tuple(findings)


def _answered(check: str, where: str, ask: Callable[[], Iterator[Diagnosis]]) -> list[Diagnosis]:
    """The findings of `ask`, or one that reports that the cluster did not respond."""
    try:
        return list(ask())
    except RejectedError as error:
        return [_finding(check, where, "unknown", f"{error}.", "run it as a user who may read that")]


def _definition(view: ClusterView) -> Iterator[Diagnosis]:
    resource = f"{PLURAL}.{API_GROUP} {API_VERSION}"
    match view.definition():
        case "absent":
            yield _finding("definition", "-", "problem", f"{resource} is not installed.", _INSTALL)
        case "outdated":
            sentence = f"{resource} lacks fields that this release writes; they would be dropped without notice."
            yield _finding("definition", "-", "problem", sentence, _INSTALL)
        case "current":
            yield _finding("definition", "-", "ok", f"{resource} is installed.")


def _objects(view: ClusterView, namespace: str, documents: list[Document]) -> Iterator[Diagnosis]:
    found = view.objects(namespace)
    documents += found
    if found:
        yield _finding("objects", namespace, "ok", f"{_counted(len(found), KIND)} here.")
    else:
        remedy = "docs/kubernetes.md has one to begin with"
        yield _finding("objects", namespace, "note", f"No {KIND} here.", remedy)


def _bounds(request: GroupRequest) -> Iterator[Diagnosis]:
    """A minimum above the useful maximum: more replicas than partitions, or tasks, sit idle."""
    least, streams, partitions = request.group.min_replicas, request.group.streams, request.group.partitions
    ceiling, what = (partitions, "partitions") if streams is None or streams.tasks is None else (streams.tasks, "tasks")
    if ceiling is not None and least > ceiling:
        sentence = f"minReplicas is {least}, above the useful maximum: there are {ceiling} {what}, the rest sits idle."
        yield _finding("bounds", _place(request), "problem", sentence, f"set minReplicas to {ceiling} or less")


def _target(view: ClusterView, request: GroupRequest) -> Iterator[Diagnosis]:
    target, where = request.group.target, _place(request)
    if target is None:
        return
    what = f"{target.kind} {target.name}"
    if view.plural(target) is None:
        sentence = f"{target.kind} of {target.api_version} is not known to the cluster, or has no /scale."
        yield _finding("target", where, "problem", sentence, "correct kind and apiVersion of the target")
    elif not view.is_there(target):
        remedy = "correct the target, or deploy it"
        yield _finding("target", where, "problem", f"{what} is not in namespace {target.namespace}.", remedy)
    else:
        yield _finding("target", where, "ok", f"{what} is there, and has a /scale.")


def _autoscalers(view: ClusterView, namespace: str, here: Sequence[GroupRequest]) -> Iterator[Diagnosis]:
    claims = view.autoscalers(namespace)
    for request in here:
        target = request.group.target
        for name in claims.get((target.kind, target.name), ()) if target is not None else ():
            state: State = "problem" if request.group.mode == "apply" else "note"
            sentence = f"{name} scales the same workload; the executor does not change it."
            remedy = "remove one of them, or let it follow the advice: lagcast export"
            yield _finding("autoscalers", _place(request), state, sentence, remedy)


def _rights(view: ClusterView, actor: Actor, namespace: str, here: Sequence[GroupRequest]) -> Iterator[Diagnosis]:
    """The permissions that a service account lacks; an executor needs none where no object is in mode Apply."""
    needed = _RECOMMENDERS if actor == "recommender" else [*_EXECUTORS, *_rules_of_targets(view, here)]
    missing = [str(rule) for rule in needed if not view.may(actor, namespace, rule)]
    if not missing:
        yield _finding("rights", namespace, "ok", f"The {actor} has every right that it needs.")
    else:
        yield _missing_rights(actor, namespace, missing, here)
    if actor == "recommender":
        yield from _rights_on_workloads(view, namespace)


def _missing_rights(actor: Actor, namespace: str, missing: Sequence[str], here: Sequence[GroupRequest]) -> Diagnosis:
    idle = actor == "executor" and all(request.group.mode != "apply" for request in here)
    sentence = f"The {actor} may not {', '.join(missing)}{'; no object here has mode Apply' if idle else ''}."
    remedy = f"kubectl -n {namespace} apply -f {_ROLES[actor]}"
    return _finding("rights", namespace, "note" if idle else "problem", sentence, remedy)


def _rights_on_workloads(view: ClusterView, namespace: str) -> Iterator[Diagnosis]:
    """Figures that the recommender may not read for itself, so that they stay as set or assumed."""
    for rule, figures in _ON_WORKLOADS.items():
        if not view.may("recommender", namespace, rule):
            sentence = f"The recommender may not {rule}: {figures} are as set, or assumed."
            remedy = f"kubectl -n {namespace} apply -f {_ROLES['recommender']}"
            yield _finding("rights", namespace, "note", sentence, remedy)


def _rules_of_targets(view: ClusterView, here: Sequence[GroupRequest]) -> Iterator[Rule]:
    kinds = {
        (each.api_version, each.kind): each for each in (request.group.target for request in here) if each is not None
    }
    for (api_version, _), target in sorted(kinds.items()):
        plural, group = view.plural(target), api_version.rpartition("/")[0]
        if plural is not None:
            yield Rule("get", group, plural)
            yield Rule("patch", group, f"{plural}/scale")
            # Only `/scale` has the replica count of a custom kind.
            if group != "apps":
                yield Rule("get", group, f"{plural}/scale")


def _metrics(view: ClusterView, api: str) -> Iterator[Diagnosis]:
    server = view.metrics_server(api)
    if server is None:
        sentence = "No adapter serves it: an HPA on such metrics finds none (NotFound)."
        yield _finding("metrics API", api, "note", sentence, METRICS_APIS[api])
        return
    known = next((name for part, name in _ADAPTERS if part in server), "a server that is not known here")
    yield _finding("metrics API", api, "ok", f"Served by {known} ({server}); a cluster has one, so add no second.")


def _lease(view: ClusterView, *, now: datetime) -> Iterator[Diagnosis]:
    lease = view.lease()
    if lease is None:
        return
    age = now - lease.renewed_at
    if age <= timedelta(seconds=lease.duration_seconds):
        yield _finding("lease", "-", "ok", f"{lease.holder} leads; renewed {age.total_seconds():.0f} s ago.")
        return
    renewed = f"{lease.holder} renewed the Lease {age.total_seconds():,.0f} s ago"
    sentence = f"{renewed}, and it lasts {lease.duration_seconds:.0f} s: no recommender leads."
    yield _finding("lease", "-", "problem", sentence, "see whether a recommender runs, and whether clocks agree")


_RECOMMENDERS = (
    Rule("list", API_GROUP, PLURAL),
    Rule("watch", API_GROUP, PLURAL),
    Rule("patch", API_GROUP, f"{PLURAL}/status"),
    Rule("create", "events.k8s.io", "events"),
)
# Advice is given without these too.
_ON_WORKLOADS = {
    Rule("list", "", "pods"): "start-up time and termination grace period",
    Rule("list", "autoscaling", "horizontalpodautoscalers"): "the bounds of HPAs",
    Rule("list", "keda.sh", "scaledobjects"): "the bounds of ScaledObjects",
}
_EXECUTORS = (
    Rule("list", "autoscaling", "horizontalpodautoscalers"),
    Rule("list", "keda.sh", "scaledobjects"),
    Rule("get", API_GROUP, PLURAL),
    Rule("list", API_GROUP, PLURAL),
    Rule("patch", API_GROUP, f"{PLURAL}/status"),
    Rule("create", "", "events"),
)


def _finding(check: str, where: str, state: State, sentence: str, remedy: str | None = None) -> Diagnosis:
    return Diagnosis(check=check, where=where, state=state, sentence=sentence, remedy=remedy)


def _place(request: GroupRequest) -> str:
    return f"{request.scaler.namespace}/{request.scaler.name}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
