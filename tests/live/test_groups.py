"""Kinds of groups on a real broker: share groups, Streams groups, and groups that read committed data only."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from collector.errors import AdapterError, RejectedError
from collector.kafka_admin import Collected, KafkaAdminCollector
from tests.live.harness.clients import NOON, commit, create_topic, fresh_name, member, read_until

pytestmark = pytest.mark.kafka

JavaClient = Callable[..., AbstractContextManager[None]]


def error_of(collected: Collected, group: str) -> AdapterError | None:
    return next((error for error in collected.errors if error.group == group), None)


def error_until(collector: KafkaAdminCollector, group: str, words: str) -> AdapterError:
    """The error of the named group, once it holds the words; fails after 30 s, as a JVM has to start."""
    until, error = time.monotonic() + 30, None
    while time.monotonic() < until:
        error = error_of(collector.collect([group], now=NOON), group)
        if words in str(error):
            assert error is not None
            return error
        time.sleep(0.2)
    pytest.fail(f"not seen within 30 s; last error: {error}")


def test_share_group(bootstrap: str, collector: KafkaAdminCollector, topic: str, java_client: JavaClient) -> None:
    """A share group is reported as one, named or not, and the groups beside it are sampled."""
    shared, group = fresh_name("shared"), fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 1))
    with java_client("ShareMember", bootstrap, shared, topic):
        named = error_until(collector, shared, "a share group (KIP-932)")
        everything = collector.collect(None, now=NOON)
    assert isinstance(named, RejectedError)
    assert str(error_of(everything, shared)) == str(named)
    assert group in {row.group for row in everything.samples}
    assert error_of(everything, group) is None


def test_streams_group(
    bootstrap: str, collector: KafkaAdminCollector, topic: str, java_client: JavaClient, tmp_path: Path
) -> None:
    """A Kafka Streams group of the newer protocol is distinguished from a share group by its commits."""
    flow = fresh_name("flow")
    with java_client("StreamsMember", bootstrap, flow, topic, str(tmp_path)):
        named = error_until(collector, flow, "a Kafka Streams group of the newer protocol (KIP-1071)")
        everything = collector.collect(None, now=NOON)
    assert isinstance(named, RejectedError)
    assert str(error_of(everything, flow)) == str(named)
    assert flow not in {row.group for row in everything.samples}


def lag(collector: KafkaAdminCollector, group: str) -> int:
    (row,) = collector.collect([group], now=NOON).samples
    return row.end_offset - (row.committed_offset or 0)


def test_open_transaction_is_no_backlog_of_a_group_that_reads_committed_only(bootstrap: str) -> None:
    """Five messages of an open transaction are lag 5 of a group that reads everything, and 0 of one that does not."""
    topic, everything, committed = fresh_name("ledger"), fresh_name("everything"), fresh_name("committed")
    create_topic(bootstrap, topic, partitions=1)
    for group in (everything, committed):
        commit(bootstrap, group, TopicPartition(topic, 0, 0))
    collector = KafkaAdminCollector(bootstrap, cluster="live", read_committed=[committed])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"message")
    assert producer.flush(10) == 0
    assert (lag(collector, everything), lag(collector, committed)) == (5, 0)
    producer.commit_transaction(10)
    until = time.monotonic() + 10
    while lag(collector, committed) == 0 and time.monotonic() < until:
        time.sleep(0.05)
    # The marker that ends the transaction has an offset of its own.
    assert (lag(collector, everything), lag(collector, committed)) == (6, 6)
    with member(bootstrap, committed, topic, **{"isolation.level": "read_committed", "auto.commit.interval.ms": "100"}):
        rows = read_until(collector, committed, lambda rows: [row.committed_offset for row in rows] == [6])[-1]
    assert [row.end_offset for row in rows] == [6]
