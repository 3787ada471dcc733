"""Manifests of a file, and the result of an import: ConsumerGroupScalers, and a sentence for each lost field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from recommender.cluster.scaler import API_GROUP, API_VERSION, KIND

Document = Mapping[str, Any]

# Built-in kinds of workloads; for other kinds a target needs the apiVersion too.
SCALED_KINDS = ("Deployment", "StatefulSet")


class ManifestError(ValueError):
    """Manifests that cannot be read or imported; the sentence names the object and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Documents to apply, and a sentence for each field that has no equivalent and for each gap to fill."""

    documents: tuple[Document, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(documents=self.documents + other.documents, warnings=self.warnings + other.warnings)


def read_documents(text: str) -> tuple[Document, ...]:
    """The objects of a YAML or JSON text, those inside a `List` one by one. Errors: ManifestError."""
    try:
        found = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        message = f"this is not YAML: {' '.join(str(error).split())}"
        raise ManifestError(message) from error
    documents = [each for document in found for each in _listed(document)]
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict) or not isinstance(document.get("spec", {}), dict) or "kind" not in document:
            message = f"document {number} is no object of Kubernetes: it has no kind, or a spec without fields"
            raise ManifestError(message)
    return tuple(documents)


def _listed(document: Any) -> Sequence[Any]:  # noqa: ANN401  # whatever a file may hold
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        return document.get("items") or ()
    return (document,)


def place_of(document: Document) -> str:
    """The kind, namespace and name of the object, for messages.

    >>> place_of({"kind": "ScaledObject", "metadata": {"name": "orders", "namespace": "shop"}})
    'ScaledObject shop/orders'
    """
    metadata = document.get("metadata", {})
    return f"{document['kind']} {metadata.get('namespace', 'default')}/{metadata.get('name', '?')}"


def without_equivalent(
    fields: Document, *, taken: Iterable[str], path: str, reasons: Mapping[str, str]
) -> tuple[str, ...]:
    """A sentence for each of the `fields` that is not among `taken`; `reasons` has explanations for known fields."""
    left = [name for name in fields if name not in set(taken)]
    unknown = "it has no equivalent"
    return tuple(f"{path}.{name}: {reasons.get(name, unknown)}" for name in left)


def scaler(
    source: Document,
    *,
    name: str,
    cluster: str,
    group: str,
    target: Document | None,
    namespace: str | None = None,
    least: int | None = None,
    most: int | None = None,
    policy: str | None = None,
) -> Document:
    """A ConsumerGroupScaler in mode Recommend; arguments that are None are left to the settings.

    Labels of `source` that belong to its own autoscaler's applications are kept.
    """
    metadata = source.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key.startswith("app.federator.ai/")}
    spec = {
        "cluster": cluster,
        "groupId": group,
        "target": target,
        "minReplicas": least,
        "maxReplicas": most,
        "policy": policy,
        "mode": "Recommend",
    }
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": namespace or metadata.get("namespace", "default"),
            **({"labels": labels} if labels else {}),
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def least_replicas(given: int | None, *, path: str) -> tuple[int, tuple[str, ...]]:
    """At least one replica, and a sentence if the given count is 0 or missing.

    >>> least_replicas(0, path="spec.minReplicaCount")
    (1, ('spec.minReplicaCount is 0: minReplicas is 1; for none while nothing comes, set scaleToZero.enabled',))
    """
    if given is None or given >= 1:
        return given or 1, ()
    return 1, (f"{path} is {given}: minReplicas is 1; for none while nothing comes, set scaleToZero.enabled",)


def target_of(reference: Document, *, path: str) -> tuple[Document | None, tuple[str, ...]]:
    """The workload of a scaleTargetRef, or a sentence if its API group is missing."""
    kind = reference.get("kind", "Deployment")
    if kind not in SCALED_KINDS and "apiVersion" not in reference:
        return None, (f"{path}.kind is {kind}: no target, because {path}.apiVersion is missing; add it to spec.target",)
    return {"apiVersion": reference.get("apiVersion", "apps/v1"), "kind": kind, "name": reference["name"]}, ()
