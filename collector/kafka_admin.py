"""Samples from Kafka's admin API: one shared client, a few requests for any number of groups."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from collector.client_libraries import client_libraries
from collector.errors import AdapterError, RejectedError, UnavailableError
from collector.kafka_requests import Answers, GroupDescription, KafkaRequests, Partition
from collector.other_groups import unsupported
from collector.sample import OffsetSample, Owns, every_group
from collector.streams import StreamsApplications
from collector.subscribed import Subscriptions
from collector.timeouts import GroupTimeouts, Timeouts

EVERY_GROUP = "*"
"""In `read_committed`, this name stands for every group."""

_Entry = TypeVar("_Entry")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The result of one round: a sample for each partition that was read, an error for each incomplete group.

    An error's `group` is None where it concerns no group in particular. `due_at` is an instant at which there is
    something new to read, and again an interval of the rounds later; None where that is so at any instant.
    """

    samples: tuple[OffsetSample, ...]
    errors: tuple[AdapterError, ...]
    due_at: datetime | None = None

    @property
    def unread(self) -> dict[str, AdapterError]:
        """The last error of each group of which there is not one sample."""
        sampled = {sample.group for sample in self.samples}
        return {error.group: error for error in self.errors if error.group is not None and error.group not in sampled}


class KafkaAdminCollector:
    """Reads many groups of one cluster; needs only the permission Describe on the groups and on their topics.

    `bootstrap` is `host:port[,host:port]`; `client_config` holds librdkafka settings, usually for security.
    `read_committed` names the groups whose consumers are set to `isolation.level=read_committed`, or `EVERY_GROUP`: for
    them a partition ends where the first open transaction begins, because they cannot read beyond it.
    `owns` chooses among the groups, those that are named and those that are listed.
    With `describe`, samples have what is known of Kafka Streams applications and of the timeouts of members. Describe
    on the cluster makes the bytes of changelogs known, Read on Kafka's topic of offsets and DescribeConfigs on groups
    the timeouts.
    Errors: RejectedError for settings that the client does not accept. No request is sent yet.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        cluster: str,
        client_config: Mapping[str, str] | None = None,
        read_committed: Collection[str] = (),
        describe: bool = True,
        owns: Owns = every_group,
    ) -> None:
        self._cluster = cluster
        self._owns = owns
        self._read_committed = frozenset(read_committed)
        self._subscriptions = Subscriptions()
        self._told = set[tuple[str, str]]()  # groups and topics that are left out
        self._kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=client_config or {})
        self._streams = StreamsApplications(self._kafka, client_config or {}) if describe else None
        self._timeouts = GroupTimeouts(self._kafka, bootstrap, client_config or {}) if describe else None

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """One sample, stamped `now`, for each partition of the groups; None: of every group that the cluster lists.

        A group's partitions are all those of the topics that it reads (`Subscriptions`), including those without a
        commit; if no consumer ever joined (offsets stored by hand), only the committed ones.
        A group that fails is an error in the result, beside the samples of the others; so is a group that is no
        consumer group. Errors: UnavailableError, RejectedError, raised when the groups cannot be listed;
        UnavailableError also when no group could be read and a retry may help.
        """
        self._kafka.begin_round()
        names, unlisted = self._names(groups)
        described = self._described(names)
        # Committed offsets are read before end offsets. The other way round, a group that commits between the two
        # reads shows negative lag: end 1,203,900, then committed 1,203,950, is -50 messages.
        committed = self._kafka.committed_offsets(described.got)
        self._subscriptions.forget(now)
        topics = {
            name: self._topics(name, described.got[name], commits, now) for name, commits in committed.got.items()
        }
        layout = self._kafka.partitions(_union(topics.values()))
        wanted = {
            name: _partitions(described.got[name], committed.got[name], topics[name], layout.got) for name in topics
        }
        stable = [name for name in wanted if self._reads_committed(name)]
        open_ended = [name for name in wanted if not self._reads_committed(name)]
        limits = self._kafka.limits(
            open_ended=_union(wanted[name] for name in open_ended), stable=_union(wanted[name] for name in stable)
        )
        readings = _Readings(
            where=self._kafka.where,
            described=described,
            streams={} if self._streams is None else self._streams.describe(described.got, now=now),
            timeouts={} if self._timeouts is None else self._timeouts.describe(described.got, now=now),
            committed=committed,
            topics=topics,
            layout=layout,
            wanted=wanted,
            ends={**dict.fromkeys(open_ended, limits.ends), **dict.fromkeys(stable, limits.stable_ends)},
            starts=limits.starts,
        )
        samples = (sample for name in wanted for sample in readings.samples(self._cluster, name, now))
        errors = (_one_error(name, readings.failures(name)) for name in names)
        return Collected(samples=tuple(samples), errors=(*unlisted, *(error for error in errors if error is not None)))

    def _reads_committed(self, group: str) -> bool:
        return not self._read_committed.isdisjoint((group, EVERY_GROUP))

    def _topics(
        self, name: str, group: GroupDescription, committed: Iterable[Partition], now: datetime
    ) -> frozenset[str]:
        """The topics of which every partition belongs to the group: none if no consumer ever joined."""
        if group.is_simple:
            return frozenset()
        known = {topic for topic, _ in committed}
        topics = self._subscriptions.topics(name, group, known, now=now)
        for topic in sorted(known):
            if topic not in topics and (name, topic) not in self._told:
                _log.info("topic_ignored", group=name, topic=topic, reason="no member has a partition of it")
                self._told.add((name, topic))
        return topics

    def _names(self, groups: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[AdapterError, ...]]:
        if groups is not None:
            return self._own(dict.fromkeys(groups)), ()
        # Before the consumer groups: a group that is created between the two requests is not mistaken for another kind.
        every_kind = self._kafka.groups_of_all_kinds()
        names, errors = self._kafka.group_names()
        if errors and not names:
            raise errors[0]
        of_other_kinds = self._own(every_kind.got.keys() - set(names))
        others = unsupported(self._kafka, {name: every_kind.got[name] for name in of_other_kinds})
        errors_of_others = (_one_error(name, [error]) for name, error in sorted(others.items()))
        return self._own(names), (
            *(errors or every_kind.failed.values()),
            *(error for error in errors_of_others if error is not None),
        )

    def _own(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if self._owns(self._cluster, name))

    def _described(self, names: Sequence[str]) -> Answers[str, GroupDescription]:
        answers = self._kafka.descriptions(names)
        failed = dict(answers.failed)
        if failed and not answers.got and all(isinstance(error, UnavailableError) for error in failed.values()):
            raise next(iter(failed.values()))
        got = {name: group for name, group in answers.got.items() if group.state != "DEAD"}
        return Answers(got=got, failed={**failed, **self._dead(answers.got.keys() - got.keys())})

    def _dead(self, names: Collection[str]) -> dict[str, AdapterError]:
        """Reasons why groups in state DEAD have no samples: another kind of group, or no group of that name."""
        if not names:
            return {}
        every_kind = self._kafka.groups_of_all_kinds()
        others = unsupported(self._kafka, {name: every_kind.got[name] for name in every_kind.got.keys() & names})
        unseen = every_kind.failed.get("")
        missing = {
            name: unseen or RejectedError(f"{self._kafka.where} has no group {name!r}; check its name")
            for name in names
        }
        return {**missing, **others}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """All requests of one round, and their answers: answers by group, by topic (`layout`) and by partition.

    `ends` holds, by group, the end offsets for groups with the same isolation level.
    """

    where: str
    described: Answers[str, GroupDescription]
    streams: Mapping[str, str]
    timeouts: Mapping[str, Timeouts]
    committed: Answers[str, dict[Partition, int]]
    topics: Mapping[str, frozenset[str]]
    layout: Answers[str, frozenset[Partition]]
    wanted: Mapping[str, frozenset[Partition]]
    ends: Mapping[str, Answers[Partition, int]]
    starts: Answers[Partition, int]

    def samples(self, cluster: str, group: str, now: datetime) -> Iterator[OffsetSample]:
        """A sample of each partition whose end offset is known."""
        description, committed = self.described.got[group], self.committed.got[group]
        ends, clients = self.ends[group].got, client_libraries(group, description.client_ids)
        timeouts = self.timeouts.get(group, Timeouts())
        for topic, number in sorted(self.wanted[group] & ends.keys()):
            yield OffsetSample(
                cluster=cluster,
                group=group,
                topic=topic,
                partition=number,
                sampled_at=now,
                end_offset=ends[topic, number],
                committed_offset=committed.get((topic, number)),
                log_start_offset=self.starts.got.get((topic, number)),
                group_state=description.state,
                group_protocol=description.protocol,
                group_assignor=description.assignor,
                members=description.members,
                static_members=description.static_members,
                clients=clients,
                streams=self.streams.get(group),
                session_timeout_seconds=timeouts.session_timeout_seconds,
                rebalance_timeout_seconds=timeouts.rebalance_timeout_seconds,
                consumer_heartbeat_seconds=timeouts.consumer_heartbeat_seconds,
            )

    def failures(self, group: str) -> list[AdapterError]:
        """The errors of all requests for this group's samples, in the order of the requests."""
        topics, partitions = sorted(self.topics.get(group, ())), sorted(self.wanted.get(group, ()))
        failures = [
            *_found([group], self.described.failed),
            *_found([group], self.committed.failed),
            *_found(topics, self.layout.failed),
            *_found(partitions, self.ends[group].failed if partitions else {}),
            *_found([key for key in partitions if key not in self.ends[group].failed], self.starts.failed),
        ]
        return failures if failures or partitions else [self._no_partition(group)]

    def _no_partition(self, group: str) -> AdapterError:
        # Kafka leaves out the commits of topics that the user may not describe, without notice.
        return RejectedError(
            f"{self.where} shows no partition of group {group!r}: it has committed nothing yet, or this user may not "
            "see it; in that case grant this user Describe on Topic of each topic that the group reads"
        )


def _partitions(
    group: GroupDescription,
    committed: Iterable[Partition],
    topics: Collection[str],
    layout: Mapping[str, frozenset[Partition]],
) -> frozenset[Partition]:
    """Every partition of the topics that are read; if no consumer ever joined, only the committed partitions."""
    own = (key for key in committed if group.is_simple or key[0] in topics)
    return frozenset(own).union(*(layout.get(topic, ()) for topic in topics))


def _union(sets: Iterable[Iterable[_Entry]]) -> frozenset[_Entry]:
    return frozenset(entry for entries in sets for entry in entries)


def _found(keys: Iterable[_Entry], failed: Mapping[_Entry, AdapterError]) -> list[AdapterError]:
    return [failed[key] for key in keys if key in failed]


def _one_error(group: str, failures: Sequence[AdapterError]) -> AdapterError | None:
    """One error for the group, the first failure with the number of the others: one line, not one per partition."""
    if not failures:
        return None
    rest = f" (and {len(failures) - 1} more such answers)" if len(failures) > 1 else ""
    error = type(failures[0])(f"group {group!r}: {failures[0]}{rest}", group=group)
    error.__cause__ = failures[0].__cause__
    return error
