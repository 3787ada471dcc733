"""Kafka Streams applications among the groups: their tasks, their standbys, and the bytes of their changelogs.

Nothing is configured: the group's assignor is `stream`, its members tell each other the tasks, and its changelogs are
the topics `<application.id>-<store>-changelog`. Tasks are asked for when the assignment has changed, and what changes
slowly every few minutes.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from collector.errors import AdapterError
from collector.kafka_requests import GroupDescription, KafkaRequests, Partition, TopicLeaders
from collector.log_dirs import LogDirs
from collector.streams_userdata import Topology, topology_of

# The assignor of every application of the classic protocol: ConsumerPartitionAssignor.name of Kafka Streams.
STREAMS_ASSIGNOR = "stream"
# A changelog of 10 GB that fills within a day grows by 0.3 % in this time.
REFRESH = timedelta(seconds=300)
# Applications whose members are asked for in one round: each is one request of about 5 ms to every broker.
_EACH_ROUND = 20
_CHANGELOG = "-changelog"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the members of one application last told, how many they were, and what all of them were assigned.

    Not `is_settled`: copies were warming up, which may become standbys without another assignment of the partitions.
    """

    topology: Topology
    is_settled: bool
    members: int
    assigned: frozenset[Partition]
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changelogs:
    """Whether an application has changelogs, and their bytes; None where the brokers did not tell them."""

    exist: bool
    restore_bytes: int | None


class StreamsApplications:
    """Describes the applications among the groups of each round."""

    def __init__(self, kafka: KafkaRequests, settings: Mapping[str, str]) -> None:
        self._kafka, self._settings = kafka, settings
        self._known: dict[str, _Known] = {}
        self._changelogs: dict[str, _Changelogs] = {}
        self._listed_at: datetime | None = None
        self._told: str | None = None

    def describe(self, groups: Mapping[str, GroupDescription], *, now: datetime) -> Mapping[str, str]:
        """What is known of each application among the groups, as JSON under the names of its settings.

        A failure leaves what was known, or the figure out, and is logged once.
        """
        names = sorted(name for name, group in groups.items() if group.assignor == STREAMS_ASSIGNOR)
        self._known = {name: known for name, known in self._known.items() if name in groups}
        stale = [name for name in names if groups[name].state == "STABLE" and self._is_stale(name, groups[name], now)]
        for name in stale[:_EACH_ROUND]:
            self._ask(name, groups[name], now)
        known = [name for name in names if name in self._known]
        is_due = self._listed_at is None or now - self._listed_at >= REFRESH
        if known and (is_due or not self._changelogs.keys() >= set(known)):
            self._listed_at = now
            self._list_changelogs(known, every_group=groups)
        return {name: self._words(name) for name in known}

    def _is_stale(self, name: str, group: GroupDescription, now: datetime) -> bool:
        known = self._known.get(name)
        if known is None or not known.is_settled:
            return True
        # One member or two are assigned the same partitions: all of them.
        is_same = (known.members, known.assigned) == (group.members, group.assigned)
        return not is_same or now - known.asked_at >= REFRESH

    def _ask(self, name: str, group: GroupDescription, now: datetime) -> None:
        try:
            topology = topology_of(self._kafka.member_data(name))
        except AdapterError as error:
            self._tell(error)
            return
        before = self._known.get(name)
        if topology is None:  # the next rebalance has begun meanwhile, or the layout is not one that is known
            if before is not None:
                self._known[name] = replace(before, asked_at=now)
            return
        is_settled = topology.standbys is not None
        if not is_settled and before is not None:
            # Between the two rebalances of a move a task that is being handed over is in nobody's assignment.
            most = max(topology.tasks, before.topology.tasks)
            topology = replace(topology, tasks=most, standbys=before.topology.standbys)
        self._known[name] = _Known(
            topology=topology, is_settled=is_settled, members=group.members, assigned=group.assigned, asked_at=now
        )

    def _list_changelogs(self, names: Iterable[str], *, every_group: Iterable[str]) -> None:
        try:
            topics = self._kafka.topic_leaders()
        except AdapterError as error:
            self._tell(error)
            return
        owned = changelogs_of(topics.leaders, names, every_group)
        sizes = self._sizes([partition for partitions in owned.values() for partition in partitions], topics)
        for name, partitions in owned.items():
            # A sum over some of the partitions would look like a smaller state.
            is_whole = all(partition in sizes for partition in partitions)
            before = self._changelogs.get(name)
            known = None if before is None else before.restore_bytes
            total = sum(sizes[partition] for partition in partitions) if is_whole else known
            self._changelogs[name] = _Changelogs(exist=bool(partitions), restore_bytes=total)

    def _sizes(self, partitions: Iterable[Partition], topics: TopicLeaders) -> dict[Partition, int]:
        """The bytes of the partitions that are led by a broker which tells them."""
        by_leader: dict[int, list[Partition]] = {}
        for partition in partitions:
            if topics.leaders[partition] in topics.addresses:  # it may be without a leader at the moment
                by_leader.setdefault(topics.leaders[partition], []).append(partition)
        sizes: dict[Partition, int] = {}
        for leader, led in by_leader.items():
            try:
                sizes |= LogDirs(self._settings).bytes_of(led, *topics.addresses[leader])
            except AdapterError as error:
                self._tell(error)
        return sizes

    def _words(self, name: str) -> str:
        topology, changelogs = self._known[name].topology, self._changelogs.get(name)
        figures = {
            "tasks": topology.tasks,
            "stateful": topology.has_state or (changelogs is not None and changelogs.exist),
            "standbys": topology.standbys,
            "restore_bytes": changelogs and changelogs.restore_bytes,
        }
        return json.dumps({key: value for key, value in figures.items() if value is not None}, sort_keys=True)

    def _tell(self, error: AdapterError) -> None:
        """Log a failure when it is another one than before: a line in every round would say nothing new."""
        if str(error) != self._told:
            self._told = str(error)
            _log.warning("streams_not_described", error=str(error))


def changelogs_of(
    partitions: Iterable[Partition], applications: Iterable[str], every_group: Iterable[str]
) -> dict[str, list[Partition]]:
    """The partitions of each application's changelogs, whose topics begin with its name and end in "-changelog".

    Of several groups that a topic's name begins with, the longest is its own.

    >>> changelogs_of([("shop-eu-last-changelog", 0), ("shop-last-changelog", 0)], ["shop"], ["shop", "shop-eu"])
    {'shop': [('shop-last-changelog', 0)]}
    """
    found: dict[str, list[Partition]] = {name: [] for name in applications}
    groups = sorted({*found, *every_group}, key=len, reverse=True)
    owners: dict[str, str | None] = {}
    for topic, number in sorted(partitions):
        if topic.endswith(_CHANGELOG):
            if topic not in owners:
                owners[topic] = next((name for name in groups if topic.startswith(f"{name}-")), None)
            if (owner := owners[topic]) in found:
                found[owner].append((topic, number))
    return found
