"""Discovery of the workload of a consumer group: from its members' addresses over pods to their owners. Pure.

A wrong guess could scale another owner's workload, so that contradictions are reported instead of resolved.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

_ADDRESSES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Workload:
    """An owner of pods; `has_scale` is True where its kind has a `/scale`, so that it can be a target."""

    namespace: str
    kind: str
    name: str
    api_version: str
    has_scale: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod that has not ended. `workload` is its topmost owner, None where it has none."""

    namespace: str
    name: str
    addresses: tuple[str, ...]
    workload: Workload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Every member of the group is in a pod of `workload`, which can be scaled.

    Of its `replicas` pods, `pods` have members. `shared_with` are other groups that it runs too, or whose connections
    it forwards.
    """

    workload: Workload
    members: int
    pods: int
    replicas: int
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """No workload, or more than one, was found for the group's `members`."""

    reason: Literal["no_target", "ambiguous_target"]
    sentence: str
    members: int


def discover(hosts: Mapping[str, Sequence[str]], pods: Iterable[Pod]) -> dict[str, Found | NotFound]:
    """The workload of each group of `hosts`, which has an address for each of its members."""
    at_address: dict[str, list[Pod]] = defaultdict(list)
    replicas: Counter[Workload | None] = Counter()
    for pod in pods:
        replicas[pod.workload] += 1
        for address in pod.addresses:
            at_address[address].append(pod)
    answers = {group: _discover_one(members, at_address, replicas) for group, members in hosts.items()}
    runs: dict[Workload, list[str]] = defaultdict(list)
    for group, answer in answers.items():
        if isinstance(answer, Found):
            runs[answer.workload].append(group)
    return {
        group: replace(answer, shared_with=tuple(other for other in sorted(runs[answer.workload]) if other != group))
        if isinstance(answer, Found)
        else answer
        for group, answer in answers.items()
    }


def _discover_one(
    hosts: Sequence[str], at_address: Mapping[str, Sequence[Pod]], replicas: Mapping[Workload | None, int]
) -> Found | NotFound:
    members = len(hosts)
    if not hosts:
        return _no_target(members, "The group has no members now; retry while its consumers run")
    owners = {host: {pod.workload for pod in at_address[host]} for host in sorted(set(hosts)) if host in at_address}
    disagreement = _disagreement(hosts, owners)
    if disagreement is not None:
        return disagreement
    (workload,) = {workload for found in owners.values() for workload in found}
    if workload is None:
        return _no_target(members, "The members' pods have no owner that could be scaled")
    if not workload.has_scale:
        return _no_target(members, f"{workload} cannot be a target: {workload.api_version} gives its kind no /scale")
    pods = {(pod.namespace, pod.name) for host in owners for pod in at_address[host]}
    return Found(workload=workload, members=members, pods=len(pods), replicas=replicas[workload])


def _disagreement(hosts: Sequence[str], owners: Mapping[str, Collection[Workload | None]]) -> NotFound | None:
    """The reason why the members at `hosts` are not all in pods of one owner; None where they are."""
    members, strangers = len(hosts), sorted(set(hosts) - owners.keys())
    if not owners:
        return _no_target(members, f"No pod of these namespaces has a member's address ({_listed(strangers)})")
    # On the network of its node a pod shares the node's address: one address may belong to several pods.
    unclear = [host for host, found in owners.items() if len(found) > 1]
    if unclear:
        return _ambiguous(members, f"Pods of several workloads share a member's address ({_listed(unclear)})")
    counted = Counter(str(next(iter(owners[host])) or "no workload") for host in hosts if host in owners)
    counts = " and ".join(f"{count} in pods of {name}" for name, count in sorted(counted.items()))
    if strangers:
        elsewhere = members - counted.total()
        return _ambiguous(members, f"Members are {counts}, and {elsewhere} elsewhere ({_listed(strangers)})")
    return _ambiguous(members, f"Members are {counts}") if len(counted) > 1 else None


def _no_target(members: int, sentence: str) -> NotFound:
    return NotFound(reason="no_target", sentence=f"{sentence}.", members=members)


def _ambiguous(members: int, sentence: str) -> NotFound:
    return NotFound(reason="ambiguous_target", sentence=f"{sentence}; name the target yourself.", members=members)


def _listed(addresses: Sequence[str]) -> str:
    """The first few addresses.

    >>> _listed(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"])
    '10.0.0.1, 10.0.0.2, 10.0.0.3 and 1 more'
    """
    shown = ", ".join(addresses[:_ADDRESSES_SHOWN])
    more = len(addresses) - _ADDRESSES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
