"""Producers, consumers and administrators of the live tests."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def wait_until(holds: Callable[[], object], *, seconds: float = 120.0, every_seconds: float = 0.1) -> None:
    """Check repeatedly; fails with a sentence instead of a hang."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"still not so after {seconds:.0f} s"
        time.sleep(every_seconds)


def fresh_name(kind: str) -> str:
    """A name that is unused on the broker."""
    return f"{kind}-{uuid4().hex[:8]}"


def create_topic(bootstrap: str, name: str, *, partitions: int, **config: str) -> None:
    """A new, empty topic, which the broker knows; the controller answers a moment before."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result()

    def known() -> bool:
        topic = admin.list_topics(name, timeout=10).topics.get(name)
        return topic is not None and topic.error is None and len(topic.partitions) == partitions

    wait_until(known)


def producer_in_order(bootstrap: str) -> Producer:
    """A producer whose messages keep their order in a partition though some are sent again, as after a topic was made.

    Where they do not, Kafka finds the first one since an instant far too early or too late.
    """
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})


def produce(bootstrap: str, topic: str, counts: Mapping[int, int]) -> None:
    """So many messages into each of the partitions."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, count in counts.items():
        for _ in range(count):
            producer.produce(topic, b"message", partition=partition)
    assert producer.flush(10) == 0


@contextmanager
def produced_steadily(
    bootstrap: str, topics: Sequence[str], *, partitions: int, each: int = 1, every_seconds: float = 0.1
) -> Iterator[None]:
    """So many messages without a key into each partition every so often, until the block ends."""
    producer, stop = Producer({"bootstrap.servers": bootstrap}), threading.Event()

    def produce() -> None:
        while not stop.wait(every_seconds):
            for topic in topics:
                for partition in range(partitions):
                    for _ in range(each):
                        producer.produce(topic, b"message", partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.flush(10)


def commit(bootstrap: str, group: str, *offsets: TopicPartition) -> None:
    """Store offsets for a group without members."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


def read_topic(bootstrap: str, topic: str) -> list[Message]:
    """Every message of the topic's only partition."""
    words = {"bootstrap.servers": bootstrap, "group.id": fresh_name("reader"), "enable.auto.commit": False}
    reader = Consumer(words | {"enable.partition.eof": True})
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    until = time.monotonic() + 20
    while time.monotonic() < until:
        message = reader.poll(1.0)
        if message is not None and message.error() is not None:
            break
        if message is not None:
            found.append(message)
    reader.close()
    return found


@contextmanager
def member(
    bootstrap: str,
    group: str,
    topic: str,
    on_revoke: Callable[[Consumer, list[TopicPartition]], None] | None = None,
    /,
    **settings: str,
) -> Iterator[Consumer]:
    """A real consumer that polls in the background until the block ends, and then leaves the group.

    `on_revoke` runs before the member gives up its partitions.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
    )
    if on_revoke is None:
        consumer.subscribe([topic])
    else:
        consumer.subscribe([topic], on_revoke=on_revoke)
    stopping = threading.Event()

    def poll() -> None:
        while not stopping.is_set():
            consumer.poll(0.05)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield consumer
    finally:
        stopping.set()
        thread.join()


def read_until(
    collector: KafkaAdminCollector, group: str, is_there: Callable[[Sequence[OffsetSample]], bool]
) -> list[tuple[OffsetSample, ...]]:
    """Every reading of the group up to the first that `is_there`; fails after a minute."""
    readings: list[tuple[OffsetSample, ...]] = []
    until = time.monotonic() + 60
    while time.monotonic() < until:
        readings.append(collector.collect([group], now=NOON).samples)
        if is_there(readings[-1]):
            return readings
        time.sleep(0.02)
    pytest.fail(f"not seen within 60 s; last reading: {readings[-1]}")


def has_members(count: int) -> Callable[[Sequence[OffsetSample]], bool]:
    """True if a reading shows a stable group of so many members."""
    return lambda rows: {(row.group_state, row.members) for row in rows} == {("STABLE", count)}
