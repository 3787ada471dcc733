"""Owners of a workload's replica count, from the managed fields that the API server records. Pure.

`/scale` does not show managed fields, so the workload itself is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# The API server records the executor's writes under this name.
FIELD_MANAGER = "lagcast-executor"

_Path = tuple[str, ...]
_REPLICAS: _Path = ("f:spec", "f:replicas")
# Marks of a workload that a GitOps tool manages: the mark's place and name, the tool, and its field managers.
_GIT_MARKS = (
    ("labels", "argocd.argoproj.io/instance", "Argo CD", "argocd"),
    ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD", "argocd"),
    ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux", "kustomize-controller"),
    ("labels", "helm.toolkit.fluxcd.io/name", "Flux", "helm-controller"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A manager that has the count among its fields; `written_at` is when it last wrote any of them, to the second.

    None: it wrote through `/scale`, for which no time is recorded.
    """

    manager: str
    written_at: datetime | None = None

    def __str__(self) -> str:
        return self.manager if self.written_at is None else f"{self.manager} (at {self.written_at:%Y-%m-%dT%H:%M:%SZ})"


def owners_of(metadata: Mapping[str, Any]) -> tuple[Owner, ...]:
    """The managers that have the count among their fields, the executor included; empty if none is recorded.

    The count is `spec.replicas`, or the field that is written through `/scale`: for a KafkaConnector `spec.tasksMax`.
    That field is known as long as a writer through `/scale` owns it; afterwards only the count itself shows a change.

    >>> ours = {"manager": "lagcast-executor", "subresource": "scale", "fieldsV1": {"f:spec": {"f:tasksMax": {}}}}
    >>> theirs = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:tasksMax": {}, "f:config": {}}}}
    >>> [owner.manager for owner in owners_of({"managedFields": [ours, theirs]})]
    ['lagcast-executor', 'kubectl']
    """
    entries = metadata.get("managedFields") or ()
    scaled = (entry["fieldsV1"] for entry in entries if entry.get("subresource") == "scale" and "fieldsV1" in entry)
    counts = {_REPLICAS, *(path for fields in scaled for path in _leaves(fields))}
    return tuple(
        Owner(
            manager=entry.get("manager") or "a nameless manager",
            written_at=datetime.fromisoformat(entry["time"]) if entry.get("time") else None,
        )
        for entry in entries
        if any(_has(entry.get("fieldsV1") or {}, path) for path in counts)
    )


def git_owner(metadata: Mapping[str, Any]) -> str | None:
    """The tool that sets the count from Git; None if there is no mark of a tool, or its manifest has no count.

    A tool whose manifests have no count does not set it back, and is no obstacle.
    """
    managers = [owner.manager for owner in owners_of(metadata)]
    for block, mark, tool, prefix in _GIT_MARKS:
        found = (metadata.get(block) or {}).get(mark)
        if found is not None and any(manager.startswith(prefix) for manager in managers):
            return f"{tool} ({mark}: {found})"
    return None


def _leaves(fields: Mapping[str, Any], above: _Path = ()) -> Iterator[_Path]:
    for name, inner in fields.items():
        if inner:
            yield from _leaves(inner, (*above, name))
        else:
            yield (*above, name)


def _has(fields: Mapping[str, Any], path: _Path) -> bool:
    for name in path:
        if name not in fields:
            return False
        fields = fields[name]
    return True
