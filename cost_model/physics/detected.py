"""ObservedGroup and ObservedWorkload: what Kafka and the cluster tell of a group, which its owner need not set then."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from cost_model.physics.pods import PodStart
from cost_model.physics.profile import Assignor, Client, GroupProtocol
from forecasting.history import GroupInterval
from forecasting.units import Partitions, Replicas, Seconds

# A topic has one at least.
LEAST_PARTITIONS = Partitions(1)
# The fields of a profile that Kafka's description of a group shows.
DETECTABLE = frozenset({"protocol", "assignor", "static_membership", "client"})
# Those that the pods of the workload and its autoscaler show.
DETECTABLE_IN_CLUSTER = frozenset({"termination_grace_seconds", "min_replicas", "max_replicas"})
# The names of Kafka's own assignors; an assignor of one's own may be eager or not, and shows nothing.
_PROTOCOLS: dict[str, GroupProtocol] = {
    "range": "eager",
    "roundrobin": "eager",
    "sticky": "eager",
    "cooperative-sticky": "cooperative",
    "stream": "cooperative",
}
_ASSIGNORS: dict[str, Assignor] = {"range": "range", "roundrobin": "roundrobin", "sticky": "sticky"}
# How a client names its members where its application does not.
_CLIENT_IDS: tuple[tuple[str, Client], ...] = (("rdkafka", "librdkafka"), ("consumer-", "java"))
# Kafka's type of a group of the newer protocol, KIP-848.
NEWER_PROTOCOL = "consumer"
_STREAM_THREAD = "-StreamThread-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """What the samples of a group show of its profile; None: they do not show it.

    `static_membership` is true where any member has a `group.instance.id`.
    """

    partitions: Partitions = LEAST_PARTITIONS
    protocol: GroupProtocol | None = None
    assignor: Assignor | None = None
    static_membership: bool | None = None
    client: Client | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorkload:
    """What the cluster showed at `seen_at` of the workload that runs a group; None: it does not show it.

    `starts` are those of its newest pods, gone ones included. The bounds are those of the autoscaler `bounds_of`.
    """

    seen_at: datetime
    starts: tuple[PodStart, ...] = ()
    termination_grace_seconds: Seconds | None = None
    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    bounds_of: str | None = None


def observed_in(rows: Iterable[GroupInterval], *, before: ObservedGroup | None = None) -> ObservedGroup:
    """What rows show, each figure by the newest that shows it, or what was known `before` them; rows are oldest first.

    Partitions count for the useful counts even where the newest row saw only some of them. A group without members has
    neither protocol nor clients: what is known stays.
    """
    observed, last = before or ObservedGroup(), None
    for row in rows:
        if row.partitions != observed.partitions:
            observed = replace(observed, partitions=Partitions(row.partitions))
        described = (row.group_protocol, row.group_assignor, row.static_members, row.client_id)
        if row.members and described != last:
            observed, last = _with(observed, *described), described
    return observed


def _with(
    observed: ObservedGroup,
    group_protocol: str | None,
    group_assignor: str | None,
    static_members: int | None,
    client_id: str | None,
) -> ObservedGroup:
    """The group with what one row shows of it; what that does not show stays."""
    return ObservedGroup(
        partitions=observed.partitions,
        protocol=protocol_of(group_protocol, group_assignor) or observed.protocol,
        assignor=_ASSIGNORS.get(group_assignor or "") or observed.assignor,
        static_membership=observed.static_membership if static_members is None else static_members > 0,
        client=client_of(client_id or "") or observed.client,
    )


def protocol_of(group_protocol: str | None, group_assignor: str | None) -> GroupProtocol | None:
    """The rebalance protocol behind Kafka's type of a group and the name of its assignor; None: unknown.

    >>> protocol_of("classic", "cooperative-sticky"), protocol_of("consumer", "uniform"), protocol_of("classic", "own")
    ('cooperative', 'kip848', None)
    """
    return "kip848" if group_protocol == NEWER_PROTOCOL else _PROTOCOLS.get(group_assignor or "")


def client_of(client_id: str) -> Client | None:
    """The library that gives its members such client ids by default; None: an application may have chosen it.

    >>> client_of("rdkafka"), client_of("consumer-orders-1"), client_of("orders-5f7d")
    ('librdkafka', 'java', None)
    """
    if _STREAM_THREAD in client_id:
        return "java"
    return next((client for begin, client in _CLIENT_IDS if client_id.startswith(begin)), None)
