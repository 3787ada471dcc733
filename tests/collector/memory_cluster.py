"""A small admin client that answers from memory."""

# ruff: noqa: D102  # the fake's methods are the client's own

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
COMMITS = {("orders-in", 0): 90, ("orders-in", 1): 200}
ENDS = {("orders-in", 0): 100, ("orders-in", 1): 250, ("orders-in", 2): 7}


def settled(value: Any) -> "Future[Any]":  # noqa: ANN401  # an answer of any type, or the error instead of one
    future: Future[Any] = Future()
    if isinstance(value, KafkaException):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


class MemoryCluster:
    """Groups, topics and offsets as tables; a `KafkaException` in a table is the answer for that entry."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.list_errors: list[KafkaError] = []
        self.groups: dict[str, Any] = {"orders": group()}
        self.other_groups: dict[str, str] = {}
        self.member_data: dict[str, Any] = {}
        self.every_topic: Any = {}
        self.kinds_error: KafkaException | None = None
        self.commits: dict[str, Any] = {"orders": COMMITS}
        self.topics: dict[str, Any] = {"orders-in": 3}
        self.ends: dict[tuple[str, int], Any] = dict(ENDS)
        self.stable_ends: dict[tuple[str, int], Any] = dict(ENDS)
        self.group_settings: dict[str, Any] = {}
        self.starts: dict[tuple[str, int], Any] = dict.fromkeys(ENDS, 5)

    def poll(self, _: float) -> None: ...

    def list_consumer_groups(self) -> "Future[Any]":
        listed = [SimpleNamespace(group_id=name) for name in self.groups] if not self.list_errors else []
        return settled(SimpleNamespace(valid=listed, errors=self.list_errors))

    def list_groups(self, name: str | None = None, *, timeout: float) -> list[SimpleNamespace]:
        warnings.warn(f"old, and at most {timeout} s", DeprecationWarning, stacklevel=2)
        if name is not None:
            self.requests.append("member data")
            members = self.member_data.get(name, ())
            if isinstance(members, KafkaException):
                raise members
            return [SimpleNamespace(members=[SimpleNamespace(metadata=said, assignment=got) for said, got in members])]
        if self.kinds_error is not None:
            raise self.kinds_error
        listed = {**dict.fromkeys(self.groups, "consumer"), **self.other_groups}
        return [SimpleNamespace(id=name, protocol_type=protocol_type) for name, protocol_type in listed.items()]

    def describe_consumer_groups(self, names: Sequence[str]) -> Mapping[str, "Future[Any]"]:
        self.requests.append("groups")
        return {name: settled(self.groups.get(name, group(state="DEAD"))) for name in names}

    def list_consumer_group_offsets(self, request: Sequence[Any]) -> Mapping[str, "Future[Any]"]:
        self.requests.append("commits")
        name = request[0].group_id
        commits = self.commits.get(name, {})
        if isinstance(commits, KafkaException):
            return {name: settled(commits)}
        entries = [TopicPartition(topic, number, offset) for (topic, number), offset in commits.items()]
        return {name: settled(SimpleNamespace(topic_partitions=entries))}

    def list_topics(self, *, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        self.requests.append("every topic")
        if isinstance(self.every_topic, KafkaException):
            raise self.every_topic
        topics = {
            name: SimpleNamespace(partitions={number: SimpleNamespace(leader=1) for number in range(count)})
            for name, count in self.every_topic.items()
        }
        return SimpleNamespace(topics=topics, brokers={1: SimpleNamespace(host="broker-1", port=9092)})

    def describe_topics(self, request: Any) -> Mapping[str, "Future[Any]"]:  # noqa: ANN401  # the client's own request type
        return {name: settled(self._topic(name)) for name in request.topic_names}

    def _topic(self, name: str) -> Any:  # noqa: ANN401  # an answer or an error
        count = self.topics[name]
        if isinstance(count, KafkaException):
            return count
        return SimpleNamespace(name=name, partitions=[SimpleNamespace(id=number) for number in range(count)])

    def list_offsets(
        self, request: Mapping[TopicPartition, Any], isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> Mapping[TopicPartition, "Future[Any]"]:
        is_latest = "Latest" in type(next(iter(request.values()))).__name__
        is_stable = isolation_level is IsolationLevel.READ_COMMITTED
        self.requests.append(("stable ends" if is_stable else "ends") if is_latest else "starts")
        table = (self.stable_ends if is_stable else self.ends) if is_latest else self.starts
        return {key: settled(self._offset(table[key.topic, key.partition])) for key in request}

    def describe_configs(self, resources: Sequence[Any]) -> Mapping[Any, "Future[Any]"]:
        self.requests.append("group settings")
        return {resource: settled(self._settings(resource.name)) for resource in resources}

    def _settings(self, name: str) -> Any:  # noqa: ANN401  # an answer or an error
        found = self.group_settings.get(name, {})
        if isinstance(found, KafkaException):
            return found
        return {key: SimpleNamespace(value=value) for key, value in found.items()}

    @staticmethod
    def _offset(value: Any) -> Any:  # noqa: ANN401  # an answer or an error
        return value if isinstance(value, KafkaException) else SimpleNamespace(offset=value)


class NoReader:
    """A reader of a cluster that shows its own topics to nobody."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def list_topics(self, *_: object, **__: object) -> SimpleNamespace:
        raise failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    def close(self) -> None: ...


def group(
    *,
    state: str = "STABLE",
    protocol: str = "CLASSIC",
    assignor: str = "range",
    assigned: Sequence[Sequence[tuple[str, int]]] = ((("orders-in", 0), ("orders-in", 1)), (("orders-in", 2),)),
    is_simple: bool = False,
    instance_ids: Sequence[str | None] = (None, None),
    client_ids: Sequence[str] = ("consumer-orders-1", "consumer-orders-2", "consumer-orders-3"),
    run: str = "first",
) -> SimpleNamespace:
    return SimpleNamespace(
        state=ConsumerGroupState[state],
        type=ConsumerGroupType[protocol],
        partition_assignor=assignor,
        is_simple_consumer_group=is_simple,
        members=[
            SimpleNamespace(
                assignment=SimpleNamespace(topic_partitions=[TopicPartition(*entry) for entry in entries]),
                group_instance_id=instance_id,
                host="/10.1.2.3",
                client_id=client_id,
                member_id=f"{client_id}-{run}",
            )
            for entries, instance_id, client_id in zip(assigned, instance_ids, client_ids, strict=False)
        ],
    )
