"""ObservedGroup and ObservedWorkload: what Kafka and the cluster tell of a group, which its owner need not set then."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from cost_model.physics.clients import client_of
from cost_model.physics.pods import PodStart
from cost_model.physics.profile import Assignor, Client, GroupProtocol
from forecasting.history import GroupInterval
from forecasting.units import Partitions, Replicas, Seconds

# A topic has one at least.
LEAST_PARTITIONS = Partitions(1)
# The fields of a profile that Kafka's description of a group shows.
DETECTABLE = frozenset(
    {"protocol", "assignor", "static_membership", "client", "commit_interval_seconds"}
    | {"session_timeout_seconds", "max_poll_interval_seconds", "consumer_heartbeat_seconds"}
)
# Those that the pods of the workload and its autoscaler show.
DETECTABLE_IN_CLUSTER = frozenset({"termination_grace_seconds", "min_replicas", "max_replicas"})
# Those of a Streams application's profile, of which its clients measure the last one, and report it to Prometheus.
STREAMS_MEASURED = frozenset({"restore_bytes_per_second"})
STREAMS_DETECTABLE = STREAMS_MEASURED | {"tasks", "stateful", "standbys", "restore_bytes", "commit_interval_seconds"}
# Those that its samples tell in one word; its commits are measured as those of other groups.
_TOLD_OF_STREAMS = STREAMS_DETECTABLE - {"commit_interval_seconds"}
# The names of Kafka's own assignors; an assignor of one's own may be eager or not, and shows nothing.
_PROTOCOLS: dict[str, GroupProtocol] = {
    "range": "eager",
    "roundrobin": "eager",
    "sticky": "eager",
    "cooperative-sticky": "cooperative",
    "stream": "cooperative",
}
_ASSIGNORS: dict[str, Assignor] = {"range": "range", "roundrobin": "roundrobin", "sticky": "sticky"}
# The libraries that give brokers their max.poll.interval.ms as the rebalance timeout: ConsumerConfig of apache/kafka,
# rdkafka_cgrp.c of confluentinc/librdkafka, kafka/coordinator/base.py of dpkp/kafka-python. Others have one for
# rebalances alone.
_POLL_INTERVAL_IS_TOLD: frozenset[Client | None] = frozenset({"java", "librdkafka", "kafka-python"})
# Kafka's type of a group of the newer protocol, KIP-848.
NEWER_PROTOCOL = "consumer"
# The assignor of every Kafka Streams application of the classic protocol, and of nothing else.
STREAMS_ASSIGNOR = "stream"
# A state that has grown or shrunk by less counts as the same: each other figure begins the group's session anew.
_SAME_SIZE = 0.1
# A replica shows how fast it restores in its fastest minute: in others it waits for something else. A little more is
# the same.
_SAME_RATE = 0.1
# So does a commit interval: one that a batch makes longer differs from commit to commit.
_SAME_INTERVAL = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedStreams:
    """What the samples of a Kafka Streams application show of it; None: they do not show it."""

    tasks: int | None = None
    stateful: bool | None = None
    standbys: int | None = None
    restore_bytes: float | None = None
    restore_bytes_per_second: float | None = None
    commit_interval_seconds: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """What the samples of a group show of its profile; None: they do not show it.

    `static_membership` is true where any member has a `group.instance.id`. `streams` is None for plain consumers.
    """

    partitions: Partitions = LEAST_PARTITIONS
    protocol: GroupProtocol | None = None
    assignor: Assignor | None = None
    static_membership: bool | None = None
    client: Client | None = None
    commit_interval_seconds: Seconds | None = None
    session_timeout_seconds: Seconds | None = None
    max_poll_interval_seconds: Seconds | None = None
    consumer_heartbeat_seconds: Seconds | None = None
    streams: ObservedStreams | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedPrice:
    """What one replica costs an hour by what its pods request and the prices of their nodes, as read at `seen_at`."""

    price_per_replica_hour: float
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorkload:
    """What the cluster showed at `seen_at` of the workload that runs a group; None: it does not show it.

    `starts` are those of its newest pods, gone ones included. The bounds are those of the autoscaler `bounds_of`. The
    `price` was read elsewhere, at an instant of its own.
    """

    seen_at: datetime
    starts: tuple[PodStart, ...] = ()
    termination_grace_seconds: Seconds | None = None
    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    bounds_of: str | None = None
    price: DetectedPrice | None = None


def observed_in(rows: Iterable[GroupInterval], *, before: ObservedGroup | None = None) -> ObservedGroup:
    """What rows show, each figure by the newest that shows it, or what was known `before` them; rows are oldest first.

    Partitions count for the useful counts even where the newest row saw only some of them. A group without members has
    neither protocol nor clients: what is known stays.
    """
    observed, last = before or ObservedGroup(), None
    for row in rows:
        if row.partitions != observed.partitions:
            observed = replace(observed, partitions=Partitions(row.partitions))
        described = (
            *(row.group_protocol, row.group_assignor, row.static_members, row.clients, row.streams),
            *(row.commit_interval_seconds, row.session_timeout_seconds),
            *(row.rebalance_timeout_seconds, row.consumer_heartbeat_seconds),
        )
        if row.members and described != last:
            observed, last = _with(observed, row), described
    return observed


def _with(observed: ObservedGroup, row: GroupInterval) -> ObservedGroup:
    """The group with what one row shows of it; what that does not show stays."""
    newer, static = row.group_protocol == NEWER_PROTOCOL, row.static_members
    client = client_of(row.clients, assignor=row.group_assignor, newer_protocol=newer)
    # Ids that no longer name a library may be another one's; while a rebalance lasts, the assignor is not known.
    is_whole = row.clients is not None and (newer or row.group_assignor is not None)
    client = client if is_whole else client or observed.client
    interval = _interval(observed.commit_interval_seconds, row.commit_interval_seconds)
    poll_interval = row.rebalance_timeout_seconds if client in _POLL_INTERVAL_IS_TOLD else None
    return ObservedGroup(
        partitions=observed.partitions,
        protocol=protocol_of(row.group_protocol, row.group_assignor) or observed.protocol,
        assignor=_ASSIGNORS.get(row.group_assignor or "") or observed.assignor,
        static_membership=observed.static_membership if static is None else static > 0,
        client=client,
        commit_interval_seconds=interval,
        session_timeout_seconds=_known(row.session_timeout_seconds, observed.session_timeout_seconds),
        max_poll_interval_seconds=_known(poll_interval, observed.max_poll_interval_seconds),
        consumer_heartbeat_seconds=_known(row.consumer_heartbeat_seconds, observed.consumer_heartbeat_seconds),
        streams=_streams(observed.streams, row, interval),
    )


def _known(now: float | None, before: Seconds | None) -> Seconds | None:
    """A figure that Kafka keeps as it was set."""
    return before if now is None else Seconds(now)


def _interval(before: Seconds | None, now: float | None) -> Seconds | None:
    """The commit interval that is now measured; the one of before where nothing is, or hardly another one."""
    if now is None or (before is not None and abs(now - before) <= _SAME_INTERVAL * before):
        return before
    return Seconds(now)


def _streams(known: ObservedStreams | None, row: GroupInterval, interval: Seconds | None) -> ObservedStreams | None:
    """What is known of a Streams application; None once the group has another assignor.

    Prometheus knows no assignor, but what it tells of restores, it tells of an application.
    """
    if row.group_assignor != STREAMS_ASSIGNOR and row.streams is None:
        return known if row.group_assignor is None else None
    known = known or ObservedStreams()
    told = {} if row.streams is None else json.loads(row.streams)
    told = {name: told[name] for name in _TOLD_OF_STREAMS & told.keys()}
    seen = replace(known, **told, commit_interval_seconds=interval)
    before, now = known.restore_bytes, seen.restore_bytes
    if before and now is not None and abs(now - before) <= _SAME_SIZE * before:
        seen = replace(seen, restore_bytes=before)
    fastest, rate = known.restore_bytes_per_second, seen.restore_bytes_per_second
    if fastest is not None and rate is not None and rate <= (1.0 + _SAME_RATE) * fastest:
        seen = replace(seen, restore_bytes_per_second=fastest)
    return seen


def protocol_of(group_protocol: str | None, group_assignor: str | None) -> GroupProtocol | None:
    """The rebalance protocol behind Kafka's type of a group and the name of its assignor; None: unknown.

    >>> protocol_of("classic", "cooperative-sticky"), protocol_of("consumer", "uniform"), protocol_of("classic", "own")
    ('cooperative', 'kip848', None)
    """
    return "kip848" if group_protocol == NEWER_PROTOCOL else _PROTOCOLS.get(group_assignor or "")
