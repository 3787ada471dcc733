"""Pods of a cluster and their owners, from which discovery starts.

Reads only pods and ReplicaSets, and which kinds have a `/scale`, which every account may read.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

from kubernetes import client

from recommender.adapters.kubernetes_client import TIMEOUT_SECONDS, entries_of, translate_error
from recommender.cluster.discovery import Pod, Workload
from recommender.ports import RejectedError

_ENDED = {"Succeeded", "Failed"}


def pods_in(api: client.ApiClient, namespaces: Sequence[str]) -> tuple[Pod, ...]:
    """Every pod of those namespaces that has an address and has not ended: an ended pod's address may be in use again.

    Errors: AdapterError, naming the grant that is missing.
    """
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    owner_of = partial(_owner, has_scale=cache(partial(_has_scale, client.CustomObjectsApi(api))))
    found: list[Pod] = []
    for namespace in namespaces:
        with translate_error(f"list the pods of namespace {namespace}", grant="list on pods"):
            pods = entries_of(core.list_namespaced_pod, namespace)
        with translate_error(f"list the replicasets of namespace {namespace}", grant="list on replicasets.apps"):
            replica_sets = entries_of(apps.list_namespaced_replica_set, namespace)
        above = {entry["metadata"]["name"]: owner_of(entry) for entry in replica_sets}
        found += [
            Pod(
                namespace=namespace,
                name=pod["metadata"]["name"],
                addresses=tuple(address["ip"] for address in pod["status"]["podIPs"]),
                workload=_topmost(owner_of(pod), above),
            )
            for pod in pods
            if pod["status"].get("podIPs") and pod["status"]["phase"] not in _ENDED
        ]
    return tuple(found)


def namespaces_at(api: client.ApiClient, namespaces: Sequence[str]) -> Mapping[str, Collection[str]]:
    """The namespaces of the pods at each address, of pods that have one of their own and have not ended.

    A pod on the network of its node is at the address of every such pod there, and of all that leaves the node.

    Errors: AdapterError, naming the grant that is missing.
    """
    core = client.CoreV1Api(api)
    found: dict[str, set[str]] = {}
    for namespace in namespaces:
        with translate_error(f"list the pods of namespace {namespace}", grant="list on pods"):
            pods = entries_of(core.list_namespaced_pod, namespace)
        for pod in pods:
            if pod["status"]["phase"] not in _ENDED and not pod["spec"].get("hostNetwork"):
                for address in pod["status"].get("podIPs", ()):
                    found.setdefault(address["ip"], set()).add(namespace)
    return found


def _has_scale(custom: client.CustomObjectsApi, api_version: str, kind: str) -> bool:
    """True if the cluster serves a `/scale` for that kind; no kind of the core group can be a target."""
    group, _, version = api_version.rpartition("/")
    if not group:
        return False
    try:
        with translate_error(
            f"read the resources of {api_version}", grant="get on the path /apis", missing=f"is {kind} still installed?"
        ):
            known = custom.get_api_resources(group, version, _request_timeout=TIMEOUT_SECONDS).resources
    except RejectedError:  # the definition of the pods' owner was deleted
        return False
    plurals = {each.name for each in known if each.kind == kind and "/" not in each.name}
    return any(each.name == f"{plural}/scale" for plural in plurals for each in known)


def _owner(entry: dict[str, Any], has_scale: Callable[[str, str], bool]) -> Workload | None:
    """The controller of a pod or a ReplicaSet."""
    metadata = entry["metadata"]
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller"):
            return Workload(
                namespace=metadata["namespace"],
                kind=owner["kind"],
                name=owner["name"],
                api_version=owner["apiVersion"],
                has_scale=has_scale(owner["apiVersion"], owner["kind"]),
            )
    return None


def _topmost(owner: Workload | None, above: dict[str, Workload | None]) -> Workload | None:
    """The Deployment of a ReplicaSet, where it has one: it is scaled in place of the ReplicaSet."""
    if owner is None or owner.kind != "ReplicaSet":
        return owner
    return above.get(owner.name) or owner
