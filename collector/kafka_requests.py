"""The collector's requests to Kafka: each covers many groups or partitions, and returns answers and failures.

The only module here that handles the client's futures and error codes; its results are plain values.
"""

import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

# Documented as public, but not in the `__all__` that the type checker uses.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ConsumerGroupDescription,
    OffsetSpec,
)

from collector.client_config import without_secrets
from collector.errors import AdapterError, MalformedError, RejectedError, UnavailableError
from collector.kafka_errors import Complaints, Question, in_our_words, said
from collector.streams_userdata import MemberData

# Defaults of every client; a caller's settings override them. A round waits three times for a broker that is
# unavailable: for its list of groups of every kind, for its groups and for its partitions. 2 + 6 + 6 s fit into the
# 15 s between rounds (the client's own default is 60 s).
_DEFAULTS = {"client.id": "lagcast", "socket.timeout.ms": "6000"}
_LIST_SECONDS = 2.0
# librdkafka writes to standard error unless it has a logger. Its messages appear in our errors, and some of them
# show values of settings, secrets among them.
client_log = logging.getLogger("confluent_kafka")
client_log.addHandler(logging.NullHandler())
client_log.propagate = False

# Requests of `offsets_at` in flight at once: a broker answers 20 of 24 partitions each in 15 ms.
_SENT_AHEAD = 20

Partition = tuple[str, int]  # topic and partition number
Key = TypeVar("Key")
Value = TypeVar("Value")
_Changed = TypeVar("_Changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[Key, Value]):
    """The answers, one for each key requested: it is in `got` or in `failed`, never in both."""

    got: Mapping[Key, Value]
    failed: Mapping[Key, AdapterError]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator describes it, in Kafka's terms; None where the broker returned no value.

    `client_ids` and `hosts` have the client id of each member, and the address that it connects from; a member that
    joins anew has another id in `member_ids`. `is_simple`: no consumer ever joined it, its offsets are stored by hand.
    """

    state: str
    protocol: str | None
    assignor: str | None
    members: int
    static_members: int
    member_ids: frozenset[str]
    client_ids: tuple[str, ...]
    hosts: tuple[str, ...]
    is_simple: bool
    assigned: frozenset[Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLeaders:
    """Every topic that the user may describe, with the broker that leads each partition, and the brokers' addresses."""

    leaders: Mapping[Partition, int]
    addresses: Mapping[int, tuple[str, int]]


class FirstMessage(NamedTuple):
    """The offset of a message in its partition, and its own time stamp in milliseconds since 1970."""

    offset: int
    timestamp_milliseconds: int


class Limits(NamedTuple):
    """Begin and end offsets of partitions."""

    ends: Answers[Partition, int]
    stable_ends: Answers[Partition, int]
    starts: Answers[Partition, int]


class KafkaRequests:
    """One admin client of one cluster. Errors: RejectedError for settings it does not accept; nothing is sent yet."""

    def __init__(self, bootstrap: str, *, cluster: str, client_config: Mapping[str, str]) -> None:
        self.where = f"cluster {cluster!r} at {bootstrap}"
        self._complaints = Complaints(lambda words: without_secrets(words, client_config))
        settings: dict[str, Any] = {**_DEFAULTS, **client_config, "bootstrap.servers": bootstrap}
        settings["error_cb"] = self._complaints.note
        try:
            self._client = AdminClient(settings, logger=client_log)
        except KafkaException as cause:
            complaint = without_secrets(said(cause.args[0]), client_config)
            message = f"the Kafka client of {self.where} does not accept its settings: {complaint}"
            # The client's message repeats the rejected value: a cause with a secret is left out of the traceback.
            raise RejectedError(message) from (cause if complaint == said(cause.args[0]) else None)

    def begin_round(self) -> None:
        """Begin a new round of requests: its errors are explained by messages of the client from now on."""
        self._complaints.begin_round()

    def group_names(self) -> tuple[tuple[str, ...], tuple[AdapterError, ...]]:
        """Every consumer group that the cluster lists, sorted, and an error for each broker whose list failed."""
        question = Question(words="its list of groups")
        answered = self._answers(lambda: {"": self._client.list_consumer_groups()}, lambda _: question)
        if answered.failed:
            return (), tuple(answered.failed.values())
        listed = answered.got[""]
        names = sorted(listing.group_id for listing in listed.valid or ())
        return tuple(names), tuple(self._error(question, KafkaException(error)) for error in listed.errors or ())

    def groups_of_all_kinds(self) -> Answers[str, str]:
        """Every group that the cluster lists, of any kind, with its protocol type; "" is the key of a failure.

        The type is empty for share groups, for Kafka Streams groups and for consumer groups of the newer protocol:
        this request is older than all three. Kafka Connect's workers are `connect`.
        """
        try:
            with warnings.catch_warnings():
                # The client advises `list_consumer_groups` instead, which leaves out groups of other kinds.
                warnings.simplefilter("ignore", DeprecationWarning)
                listed: list[Any] = self._client.list_groups(timeout=_LIST_SECONDS)
        except KafkaException as cause:
            self._client.poll(0)
            return Answers(got={}, failed={"": self._error(Question(words="its list of groups of every kind"), cause)})
        return Answers(got={group.id: group.protocol_type for group in listed}, failed={})

    def member_data(self, group: str) -> tuple[MemberData, ...]:
        """What the members of a group of the classic protocol have told each other through it.

        Errors: UnavailableError, RejectedError.
        """
        try:
            with warnings.catch_warnings():
                # The client advises `describe_consumer_groups` instead, which leaves these bytes out.
                warnings.simplefilter("ignore", DeprecationWarning)
                described: list[Any] = self._client.list_groups(group, timeout=_LIST_SECONDS)
        except KafkaException as cause:
            self._client.poll(0)
            raise self._error(Question(words=f"the members of group {group!r}", group=group), cause) from cause
        return tuple(
            MemberData(member.metadata or b"", member.assignment or b"")
            for found in described
            for member in found.members
        )

    def topic_leaders(self) -> TopicLeaders:
        """Where every partition of the cluster is led. Errors: UnavailableError, RejectedError."""
        try:
            listed = self._client.list_topics(timeout=_LIST_SECONDS)
        except KafkaException as cause:
            self._client.poll(0)
            raise self._error(Question(words="its list of topics"), cause) from cause
        return TopicLeaders(
            leaders={
                (name, number): partition.leader
                for name, topic in listed.topics.items()
                for number, partition in topic.partitions.items()
            },
            addresses={
                number: (broker.host, broker.port)  # type: ignore[misc]  # their types know no host
                for number, broker in listed.brokers.items()
            },
        )

    def descriptions(self, groups: Iterable[str]) -> Answers[str, GroupDescription]:
        """State, protocol, members and assignments of the groups; a group that the cluster does not know is DEAD."""
        names = list(groups)
        answered = self._answers(
            lambda: self._client.describe_consumer_groups(names) if names else {},
            lambda name: Question(words=f"the state of group {name!r}", group=name),
        )
        return _mapped(answered, _description)

    def committed_offsets(self, groups: Iterable[str]) -> Answers[str, dict[Partition, int]]:
        """Per group, the partitions with a commit and the next offset that the group will read from each."""
        answered = self._answers(
            # The client takes one group per call, but does not wait for one answer before it sends the next request.
            lambda: {
                name: self._client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name]
                for name in groups
            },
            lambda name: Question(words=f"the commits of group {name!r}", group=name),
        )
        return _mapped(answered, _commits)

    def partitions(self, topics: Iterable[str]) -> Answers[str, frozenset[Partition]]:
        """The partitions of each topic."""
        names = list(topics)
        answered = self._answers(
            lambda: self._client.describe_topics(TopicCollection(names)) if names else {},
            lambda topic: Question(words=f"the partitions of topic {topic!r}", topic=topic),
        )
        return _mapped(answered, lambda topic: frozenset((topic.name, partition.id) for partition in topic.partitions))

    def limits(self, *, open_ended: Iterable[Partition], stable: Iterable[Partition]) -> Limits:
        """End and log start of each partition; for the `stable` ones the end is the last stable offset.

        The start of a partition without a known end is not requested, so a broker that is unavailable costs one timeout
        for each isolation level. One request is answered before the next is sent: see `_ask`.
        """
        latest, earliest = OffsetSpec.latest(), OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # their types are missing
        ends = self._offsets(self._ask(open_ended, latest), "end offset")
        read_committed = self._ask(stable, latest, isolation_level=IsolationLevel.READ_COMMITTED)
        stable_ends = self._offsets(read_committed, "last stable offset")
        starts = self._ask(ends.got.keys() | stable_ends.got.keys(), earliest)
        return Limits(ends=ends, stable_ends=stable_ends, starts=self._offsets(starts, "log start offset"))

    def offsets_at(
        self, partitions: Iterable[Partition], instants: Iterable[datetime]
    ) -> Iterator[tuple[datetime, Answers[Partition, FirstMessage | None]]]:
        """For each instant, in the order given, each partition's first message from then on; None if there is none.

        One request for each instant and broker, a few in flight at once while no partition fails: see `_ask`.
        """
        keys = [TopicPartition(topic, number) for topic, number in partitions]
        sent: deque[tuple[datetime, Mapping[TopicPartition, Future[Any]]]] = deque()
        at_once = 1
        for instant in instants if keys else ():
            spec = OffsetSpec.for_timestamp(round(instant.timestamp() * 1000))
            sent.append((instant, self._client.list_offsets(dict.fromkeys(keys, spec))))
            while len(sent) >= at_once:
                answered = self._first_messages(*sent.popleft())
                at_once = 1 if answered[1].failed else _SENT_AHEAD
                yield answered
        while sent:
            yield self._first_messages(*sent.popleft())

    def _first_messages(
        self, instant: datetime, futures: Mapping[TopicPartition, "Future[Any]"]
    ) -> tuple[datetime, Answers[Partition, FirstMessage | None]]:
        answered = self._answers(
            lambda: futures,
            lambda key: Question(
                words=f"the offset of {instant:%Y-%m-%dT%H:%M:%SZ} in partition {key.topic}-{key.partition}",
                topic=key.topic,
            ),
        )
        return instant, Answers(
            got={
                _partition(key): FirstMessage(int(answer.offset), int(answer.timestamp)) if answer.offset >= 0 else None
                for key, answer in answered.got.items()
            },
            failed={_partition(key): error for key, error in answered.failed.items()},
        )

    def compacted(self, topics: Iterable[str]) -> frozenset[str]:
        """The compacted ones of these topics, where Kafka removes old messages by key; none if it does not answer."""
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        answered = self._answers(
            lambda: self._client.describe_configs(resources) if resources else {},
            lambda resource: Question(words=f"the settings of topic {resource.name!r}", topic=str(resource.name)),
        )
        return frozenset(
            str(resource.name) for resource, found in answered.got.items() if "compact" in found["cleanup.policy"].value
        )

    def group_settings(self, groups: Iterable[str]) -> Answers[str, Mapping[str, str]]:
        """The settings that brokers apply to groups of the newer protocol, by their names; needs DescribeConfigs."""
        resources = [ConfigResource(ConfigResource.Type.GROUP, group) for group in groups]
        answered = self._answers(
            lambda: self._client.describe_configs(resources) if resources else {},
            lambda resource: Question(
                words=f"the settings of group {resource.name!r}",
                group=str(resource.name),
                group_right="DescribeConfigs",
            ),
        )
        return Answers(
            got={
                str(resource.name): {name: entry.value for name, entry in found.items()}
                for resource, found in answered.got.items()
            },
            failed={str(resource.name): error for resource, error in answered.failed.items()},
        )

    def topic_rights(self, topics: Iterable[str]) -> Answers[str, frozenset[str]]:
        """The operations that this user may do on each of the topics, such as READ; all of them without an authorizer.

        Each topic is a request of its own: one that may not be described fails alone.
        """
        names = list(topics)
        answered = self._answers(
            lambda: {
                name: self._client.describe_topics(TopicCollection([name]), include_authorized_operations=True)[name]
                for name in names
            },
            lambda topic: Question(words=f"the rights on topic {topic!r}", topic=topic),
        )
        return _mapped(answered, _operations)

    def cluster_rights(self) -> frozenset[str]:
        """The operations that this user may do on the cluster. Errors: UnavailableError, RejectedError."""
        answered = self._answers(
            lambda: {"": self._client.describe_cluster(include_authorized_operations=True)},
            lambda _: Question(words="the rights on the cluster"),
        )
        if answered.failed:
            raise answered.failed[""]
        return _operations(answered.got[""])

    def _ask(
        self, partitions: Iterable[Partition], spec: OffsetSpec, **level: IsolationLevel
    ) -> Mapping[TopicPartition, "Future[Any]"]:
        """Send one request for offsets, while no other one is in flight whose leaders the client may not know.

        librdkafka 2.16 ends the process (SIGSEGV) where it looks for the leader of a partition, such as one of a topic
        that was deleted, while metadata arrive for another request: it uses the request after it was freed
        (`rd_kafka_topic_partition_list_query_leaders_async_worker`). With three at once, 10 of 12 processes that ask
        for topics that do not exist ended within 600 rounds (tests/live/test_collector.py); one at a time, none did.
        """
        request = {TopicPartition(topic, number): spec for topic, number in partitions}
        return self._client.list_offsets(request, **level) if request else {}

    def _offsets(self, futures: Mapping[TopicPartition, "Future[Any]"], what: str) -> Answers[Partition, int]:
        answered = self._answers(
            lambda: futures,
            lambda key: Question(words=f"the {what} of partition {key.topic}-{key.partition}", topic=key.topic),
        )
        odd = {
            key: self._odd_offset(answer.offset, f"the {what} of partition {key.topic}-{key.partition}")
            for key, answer in answered.got.items()
            if answer.offset < 0
        }
        return Answers(
            got={_partition(key): int(answer.offset) for key, answer in answered.got.items() if key not in odd},
            failed={_partition(key): error for key, error in {**answered.failed, **odd}.items()},
        )

    def _odd_offset(self, offset: int, words: str) -> AdapterError:
        if offset == OFFSET_INVALID:  # the client could not reach the leader
            return UnavailableError(f"request to {self.where} for {words} got no answer; is its leader down?")
        return MalformedError(f"{self.where} returned {offset} as {words}")

    def _answers(
        self, send: Callable[[], Mapping[Key, "Future[Any]"]], question: Callable[[Key], Question]
    ) -> Answers[Key, Any]:
        futures = send()
        got: dict[Key, Any] = {}
        causes: dict[Key, KafkaException] = {}
        for key, future in futures.items():
            try:
                got[key] = future.result()
            except KafkaException as cause:
                causes[key] = cause
        self._client.poll(0)  # lets the client report what happened to its connections
        return Answers(got=got, failed={key: self._error(question(key), cause) for key, cause in causes.items()})

    def _error(self, question: Question, cause: KafkaException) -> AdapterError:
        return in_our_words(self.where, question, cause, self._complaints)


def _mapped(answered: Answers[Key, Any], change: Callable[[Any], _Changed]) -> Answers[Key, _Changed]:
    return Answers(got={key: change(value) for key, value in answered.got.items()}, failed=answered.failed)


def _partition(key: TopicPartition) -> Partition:
    return key.topic, key.partition


def _operations(described: Any) -> frozenset[str]:  # noqa: ANN401  # of a topic or of a cluster
    return frozenset(operation.name for operation in described.authorized_operations or ())


def _description(group: ConsumerGroupDescription) -> GroupDescription:
    protocol = group.type.name.lower() if group.type is not ConsumerGroupType.UNKNOWN else None
    # The client does not know the states ASSIGNING and RECONCILING of the newer protocol: partitions change owners.
    is_reconciling = group.state.name == "UNKNOWN" and protocol == "consumer"
    return GroupDescription(
        state="RECONCILING" if is_reconciling else group.state.name,
        protocol=protocol,
        assignor=group.partition_assignor or None,
        members=len(group.members),
        static_members=sum(bool(member.group_instance_id) for member in group.members),
        member_ids=frozenset(member.member_id for member in group.members),
        client_ids=tuple(member.client_id or "" for member in group.members),
        # Brokers run on Java, which writes a slash between name and address of a host: "/10.1.2.3".
        hosts=tuple(member.host.rpartition("/")[2] for member in group.members),
        is_simple=group.is_simple_consumer_group,
        assigned=frozenset(
            (entry.topic, entry.partition) for member in group.members for entry in member.assignment.topic_partitions
        ),
    )


def _commits(answer: ConsumerGroupTopicPartitions) -> dict[Partition, int]:
    # A negative offset is Kafka's code for "nothing committed", not a number.
    return {
        (entry.topic, entry.partition): entry.offset for entry in answer.topic_partitions or () if entry.offset >= 0
    }
