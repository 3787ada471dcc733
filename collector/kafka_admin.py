"""Samples out of Kafka's admin API: one shared client, a handful of requests for any number of groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from collector.errors import AdapterError, RejectedError, UnavailableError
from collector.kafka_requests import Answers, GroupDescription, KafkaRequests, Partition
from collector.sample import OffsetSample

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one round brought: a sample for each partition that answered, an error for each group that did not in full.

    An error's `group` is None where it concerns no group in particular.
    """

    samples: tuple[OffsetSample, ...]
    errors: tuple[AdapterError, ...]


class KafkaAdminCollector:
    """Reads many groups of one cluster; needs the right to Describe on the groups and on their topics, nothing more.

    `bootstrap` is `host:port[,host:port]`; `client_config` holds librdkafka settings, for security as a rule.
    Errors: RejectedError for settings that the client does not take. Nothing is asked of the cluster yet.
    """

    def __init__(self, bootstrap: str, *, cluster: str, client_config: Mapping[str, str] | None = None) -> None:
        self._cluster = cluster
        self._kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=client_config or {})

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """One sample, stamped `now`, for each partition of the groups; None: of every group that the cluster lists.

        A group's partitions are all those of the topics that it has committed to or been assigned, so that one
        without a commit is seen too; where nobody ever joined (offsets stored by hand), the committed ones alone.
        A group that fails is an error in the result, and the others are there.
        Errors: UnavailableError, RejectedError, raised when the groups cannot be listed; UnavailableError also when not
        one group could be read and asking again may help.
        """
        names, unlisted = self._names(groups)
        described = self._described(names)
        # Committed offsets are read before end offsets. The other way round, a group that commits between the two
        # reads shows negative lag: end 1,203,900, then committed 1,203,950, is -50 messages.
        committed = self._kafka.committed_offsets(described.got)
        topics = {name: _topics(described.got[name], commits) for name, commits in committed.got.items()}
        layout = self._kafka.partitions(_union(topics.values()))
        wanted = {name: _partitions(committed.got[name], topics[name], layout.got) for name in topics}
        every_partition = _union(wanted.values())
        readings = _Readings(
            described=described,
            committed=committed,
            topics=topics,
            layout=layout,
            wanted=wanted,
            ends=self._kafka.end_offsets(every_partition),
            starts=self._kafka.log_start_offsets(every_partition),
        )
        samples = (sample for name in wanted for sample in readings.samples(self._cluster, name, now))
        errors = (_one_error(name, readings.failures(name)) for name in names)
        return Collected(samples=tuple(samples), errors=(*unlisted, *(error for error in errors if error is not None)))

    def _names(self, groups: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[AdapterError, ...]]:
        if groups is not None:
            return tuple(dict.fromkeys(groups)), ()
        names, errors = self._kafka.group_names()
        if errors and not names:
            raise errors[0]
        return names, errors

    def _described(self, names: Sequence[str]) -> Answers[str, GroupDescription]:
        answers = self._kafka.descriptions(names)
        failed = dict(answers.failed)
        if failed and not answers.got and all(isinstance(error, UnavailableError) for error in failed.values()):
            raise next(iter(failed.values()))
        got = {name: group for name, group in answers.got.items() if group.state != "DEAD"}
        for name in answers.got.keys() - got.keys():
            failed[name] = RejectedError(f"{self._kafka.where} knows no group {name!r}; check its name")
        return Answers(got=got, failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """All that one round asked, and what came back: answers by group, by topic (`layout`) and by partition."""

    described: Answers[str, GroupDescription]
    committed: Answers[str, dict[Partition, int]]
    topics: Mapping[str, frozenset[str]]
    layout: Answers[str, frozenset[Partition]]
    wanted: Mapping[str, frozenset[Partition]]
    ends: Answers[Partition, int]
    starts: Answers[Partition, int]

    def samples(self, cluster: str, group: str, now: datetime) -> Iterator[OffsetSample]:
        """A sample of each partition whose end offset is known; without it a row would say nothing."""
        description, committed = self.described.got[group], self.committed.got[group]
        for topic, number in sorted(self.wanted[group] & self.ends.got.keys()):
            yield OffsetSample(
                cluster=cluster,
                group=group,
                topic=topic,
                partition=number,
                sampled_at=now,
                end_offset=self.ends.got[topic, number],
                committed_offset=committed.get((topic, number)),
                log_start_offset=self.starts.got.get((topic, number)),
                group_state=description.state,
                group_protocol=description.protocol,
                group_assignor=description.assignor,
                members=description.members,
            )

    def failures(self, group: str) -> list[AdapterError]:
        """Everything that went wrong on the way to this group's samples, in the order in which it was asked."""
        topics, partitions = sorted(self.topics.get(group, ())), sorted(self.wanted.get(group, ()))
        return [
            *_found([group], self.described.failed),
            *_found([group], self.committed.failed),
            *_found(topics, self.layout.failed),
            *_found(partitions, {**self.starts.failed, **self.ends.failed}),
        ]


def _topics(group: GroupDescription, committed: Iterable[Partition]) -> frozenset[str]:
    """The topics of which every partition is the group's: none where nobody ever joined."""
    return frozenset() if group.is_simple else frozenset(topic for topic, _ in (*committed, *group.assigned))


def _partitions(
    committed: Iterable[Partition], topics: Iterable[str], layout: Mapping[str, frozenset[Partition]]
) -> frozenset[Partition]:
    return frozenset(committed).union(*(layout.get(topic, ()) for topic in topics))


def _union(sets: Iterable[Iterable[_Entry]]) -> frozenset[_Entry]:
    return frozenset(entry for entries in sets for entry in entries)


def _found(keys: Iterable[_Entry], failed: Mapping[_Entry, AdapterError]) -> list[AdapterError]:
    return [failed[key] for key in keys if key in failed]


def _one_error(group: str, failures: Sequence[AdapterError]) -> AdapterError | None:
    """The first failure in the group's name, counting the rest: 24 partitions without a leader are one line."""
    if not failures:
        return None
    rest = f" (and {len(failures) - 1} more such answers)" if len(failures) > 1 else ""
    error = type(failures[0])(f"group {group!r}: {failures[0]}{rest}", group=group)
    error.__cause__ = failures[0].__cause__
    return error
