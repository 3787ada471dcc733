"""Failures of a real Kafka, and the samples from it: none is invented, and the other groups go on."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]  # not in __all__
from structlog.testing import capture_logs

from collector.errors import AdapterError, UnavailableError
from collector.isolated import IsolatedCollector
from collector.kafka_admin import Collected, KafkaAdminCollector
from collector.run import collect_forever
from collector.sample import OffsetSample
from tests.live.harness.broker import Broker, running_brokers, wait_for_coordinator
from tests.live.harness.clients import NOON, commit, create_topic, fresh_name, has_members, member, produce, read_until

pytestmark = pytest.mark.kafka

# A broker on loopback that does not answer in five seconds is unreachable, and is tried again twice a second; defaults
# of ten seconds are meant for rounds that are fifteen apart.
QUICK = {"socket.timeout.ms": "5000", "reconnect.backoff.max.ms": "500"}


def offsets(collected: Collected) -> list[tuple[int, int | None, int | None, int]]:
    """Partition, log start, commit and end of each sample."""
    return [(row.partition, row.log_start_offset, row.committed_offset, row.end_offset) for row in collected.samples]


def errors(collected: Collected) -> dict[str | None, AdapterError]:
    return {error.group: error for error in collected.errors}


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def broker(jars: Path, tmp_path: Path) -> Iterator[Broker]:
    """A broker that a test may stop."""
    with running_brokers(jars, tmp_path) as (broker,):
        yield broker


def test_broker_restart(broker: Broker) -> None:
    """Rounds without a broker fail with one sentence each; the first one with it continues where the last one was."""
    topic, group = fresh_name("topic"), fresh_name("group")
    create_topic(broker.address, topic, partitions=1)
    produce(broker.address, topic, {0: 10})
    commit(broker.address, group, TopicPartition(topic, 0, 4))
    seen: list[OffsetSample] = []
    now, rounds = NOON, 0

    def clock() -> datetime:
        return now

    def wait(seconds: float) -> bool:
        nonlocal now, rounds
        now += timedelta(seconds=seconds)
        rounds += 1
        if rounds == 2:
            broker.stop()
        if rounds == 4:
            broker.start()
            broker.wait_until_open()
            wait_for_coordinator(broker.address)
        return rounds == 9

    make = partial(KafkaAdminCollector, broker.address, cluster="live", client_config=QUICK)
    with IsolatedCollector(make) as collector, capture_logs() as lines:
        collect_forever(collector, seen.extend, groups=[group], interval_seconds=120, clock=clock, wait=wait)
    read_at = [round((row.sampled_at - NOON).total_seconds() / 120) for row in seen]
    # Rounds 2 and 3 reach no broker; the next one may meet a broker that is not ready yet.
    assert read_at[0] == 1
    assert read_at[1] in {4, 5}
    assert read_at[1:] == list(range(read_at[1], 9))
    assert {(row.committed_offset, row.end_offset) for row in seen} == {(4, 10)}
    failed = [line["error"] for line in lines if line["event"] == "round_failed"]
    assert len(failed) == read_at[1] - 2
    for error in failed[:2]:
        assert f"at {broker.address} for the state of group {group!r}" in error
        assert error.endswith("Connection refused); check host and port, and that the broker runs")


def test_partitions_added(bootstrap: str, admin: AdminClient, collector: KafkaAdminCollector, topic: str) -> None:
    """A new partition is there in the next reading, empty and without a commit, before any member has it."""
    group = fresh_name("group")
    with member(bootstrap, group, topic):
        read_until(collector, group, has_members(1))
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
        rows = read_until(collector, group, lambda rows: len(rows) == 4)[-1]
    assert (rows[3].partition, rows[3].committed_offset, rows[3].end_offset) == (3, None, 0)


def test_topic_deleted_and_created_again(
    bootstrap: str, admin: AdminClient, collector: KafkaAdminCollector, topic: str
) -> None:
    """Kafka deletes the commits with the topic: the group has no sample, and starts anew with the new topic."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 90))
    assert offsets(collector.collect([group], now=NOON)) == [(0, 0, 90, 100)]
    admin.delete_topics([topic])[topic].result()
    until = time.monotonic() + 15
    gone = collector.collect([group], now=NOON)
    while gone.samples and time.monotonic() < until:
        time.sleep(0.1)
        gone = collector.collect([group], now=NOON)
    assert gone.samples == ()
    assert errors(gone).keys() == {group}
    create_topic(bootstrap, topic, partitions=3)
    produce(bootstrap, topic, {0: 5})
    commit(bootstrap, group, TopicPartition(topic, 0, 2))
    again = collector.collect([group], now=NOON)
    assert offsets(again) == [(0, 0, 2, 5)]
    assert again.errors == ()


def test_offsets_reset_forward_and_back(
    bootstrap: str, admin: AdminClient, collector: KafkaAdminCollector, topic: str
) -> None:
    """A reset moves the commit and nothing else: forward no lag is left though nothing was read, back all of it is."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 40))
    read = [offsets(collector.collect([group], now=NOON))]
    for offset in (100, 0):
        reset = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
        admin.alter_consumer_group_offsets([reset])[group].result()
        read.append(offsets(collector.collect([group], now=NOON)))
    assert read == [[(0, 0, 40, 100)], [(0, 0, 100, 100)], [(0, 0, 0, 100)]]


def test_group_deleted(bootstrap: str, admin: AdminClient, collector: KafkaAdminCollector, topic: str) -> None:
    """A deleted group is an error if it is named, and absent if all groups are read."""
    group, other = fresh_name("group"), fresh_name("group")
    for name in (group, other):
        commit(bootstrap, name, TopicPartition(topic, 0, 40))
    admin.delete_consumer_groups([group])[group].result()
    named, everything = collector.collect([group, other], now=NOON), collector.collect(None, now=NOON)
    assert {row.group for row in named.samples} == {other}
    assert f"has no group {group!r}" in str(errors(named)[group])
    assert other in {row.group for row in everything.samples}
    assert group not in {row.group for row in everything.samples} | errors(everything).keys()


def test_retention_overtakes_the_group(
    bootstrap: str, admin: AdminClient, collector: KafkaAdminCollector, topic: str
) -> None:
    """Messages that retention took before they were read show as a log start beyond the commit."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 10))
    for deleted in admin.delete_records([TopicPartition(topic, 0, 60)]).values():
        deleted.result()
    assert offsets(collector.collect([group], now=NOON)) == [(0, 60, 10, 100)]


def test_consumer_that_never_commits(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """A member that reads everything and commits nothing is sampled with all partitions, without any commit."""
    group = fresh_name("group")
    with member(bootstrap, group, topic, **{"enable.auto.commit": "false"}):
        read_until(collector, group, has_members(1))
        collected = collector.collect([group], now=NOON)
    assert offsets(collected) == [(0, 0, None, 100), (1, 0, None, 20), (2, 0, None, 0)]
    assert collected.errors == ()


def coordinators(bootstrap: str, groups: list[str]) -> dict[str, int]:
    """The broker that coordinates each group."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    described = client.describe_consumer_groups(groups)
    return {group: answer.result().coordinator.id for group, answer in described.items()}


def one_group_for_each(bootstrap: str) -> tuple[str, str]:
    """Two group names, the first coordinated by the first broker, the second by the second broker."""
    names = [fresh_name("group") for _ in range(40)]
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            owners = coordinators(bootstrap, names)
        except KafkaException:  # the topic of commits is made at the first request
            time.sleep(0.2)
        else:
            return next(name for name in names if owners[name] == 1), next(name for name in names if owners[name] == 2)
    pytest.fail("no coordinators within 20 s")


def test_one_of_two_brokers_dies(jars: Path, tmp_path: Path) -> None:
    """Groups and topics on the broker that is left go on; each group that needs the other has its own error."""
    spread = {"offsets.topic.num.partitions": "10"}
    with ExitStack() as stops:
        first, second = stops.enter_context(running_brokers(jars, tmp_path, count=2, properties=spread))
        kept, lost = one_group_for_each(first.address)
        here, there = fresh_name("here"), fresh_name("there")
        admin = AdminClient({"bootstrap.servers": first.address})
        placed = [NewTopic(name, 1, replica_assignment=[[node]]) for name, node in ((here, 1), (there, 2))]
        for created in admin.create_topics(placed).values():
            created.result()
        for group in (kept, lost):
            commit(first.address, group, TopicPartition(here, 0, 0))
        commit(first.address, kept, TopicPartition(there, 0, 0))
        make = partial(KafkaAdminCollector, first.address, cluster="live", client_config=QUICK)
        collector = stops.enter_context(IsolatedCollector(make))
        whole = collector.collect(None, now=NOON)
        assert {(row.group, row.topic) for row in whole.samples} == {(kept, here), (kept, there), (lost, here)}
        second.stop(signal.SIGKILL)
        named, everything = collector.collect([kept, lost], now=NOON), collector.collect(None, now=NOON)
    for collected in (named, everything):
        assert {(row.group, row.topic) for row in collected.samples} == {(kept, here)}
        assert all(isinstance(error, UnavailableError) for error in collected.errors)
        assert f"the end offset of partition {there}-0" in str(errors(collected)[kept])
    assert lost in errors(named)
    assert lost in errors(everything) or None in errors(everything)
