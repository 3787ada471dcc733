"""The collector on a real broker: its readings are right, also during a rebalance."""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds  # type: ignore[import-untyped]  # ships no types
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import KafkaAdminCollector
from collector.run import collect_forever
from collector.sample import OffsetSample
from collector.sinks import arrow_schema, write_samples
from forecasting.columns import REBALANCING_STATES
from recommender.shards import Shard
from tests.live.harness.ask_for_unknown import CLIENTS, ROUNDS
from tests.live.harness.clients import NOON, commit, create_topic, fresh_name, has_members, member, read_until

pytestmark = pytest.mark.kafka


def test_offsets_and_commits(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """End, committed and log start offsets are those of the broker, after old messages were deleted too."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 90), TopicPartition(topic, 1, 20))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 40)]).values():
        deleted.result()
    collected = collector.collect([group], now=NOON)
    rows = [(row.partition, row.log_start_offset, row.committed_offset, row.end_offset) for row in collected.samples]
    assert rows == [(0, 40, 90, 100), (1, 0, 20, 20)]
    assert {(row.cluster, row.topic, row.group_state, row.members) for row in collected.samples} == {
        ("live", topic, "EMPTY", 0)
    }
    assert collected.errors == ()


def test_topics_that_do_not_exist_do_not_end_the_process(bootstrap: str, topic: str) -> None:
    """Of such processes, four at a time, 10 of 12 ended by SIGSEGV while a round sent its three requests at once."""
    command = [sys.executable, "-m", "tests.live.harness.ask_for_unknown", bootstrap, topic]
    together = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answered = [asked.communicate()[0] for asked in together]
    assert [asked.returncode for asked in together] == [0] * 4
    assert answered == [str(CLIENTS * ROUNDS)] * 4


def test_partition_without_a_commit(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """While members read the topic, its empty partition is sampled as well, with no commit."""
    group = fresh_name("group")
    with member(bootstrap, group, topic, **{"auto.commit.interval.ms": "100"}):
        has_caught_up = [100, 20, None]
        rows = read_until(collector, group, lambda rows: [row.committed_offset for row in rows] == has_caught_up)[-1]
    assert [(row.partition, row.end_offset) for row in rows] == [(0, 100), (1, 20), (2, 0)]
    assert {(row.group_protocol, row.group_assignor, row.members) for row in rows} == {("classic", "range", 1)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_was_given_up_is_left_out(bootstrap: str, topic: str, protocol: str) -> None:
    """Its commits are read as long as the group is empty; later they are on the broker, but not in the samples."""
    group, old = fresh_name("group"), fresh_name("old")
    create_topic(bootstrap, old, partitions=2)
    commit(bootstrap, group, TopicPartition(topic, 0, 90), TopicPartition(old, 0, 0))
    collector = KafkaAdminCollector(bootstrap, cluster="live")
    assert {row.topic for row in collector.collect([group], now=NOON).samples} == {topic, old}
    with member(bootstrap, group, topic, **{"group.protocol": protocol}):
        rows = read_until(collector, group, has_members(1))[-1]
        assert {row.topic for row in rows} == {topic}
        restarted = KafkaAdminCollector(bootstrap, cluster="live")
        assert {row.topic for row in restarted.collect([group], now=NOON).samples} == {topic}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_static_members_are_counted(bootstrap: str, collector: KafkaAdminCollector, topic: str, protocol: str) -> None:
    """Of two members the one with an instance id is counted, under the older and under the newer protocol.

    Their client id is that which the library gives itself.
    """
    group = fresh_name("group")
    settings = {"group.protocol": protocol}
    with (
        member(bootstrap, group, topic, **settings, **{"group.instance.id": "pod-0"}),
        member(bootstrap, group, topic, **settings),
    ):
        rows = read_until(collector, group, has_members(2))[-1]
    assert {(row.static_members, row.clients) for row in rows} == {(1, "librdkafka")}


def test_eager_rebalance_is_seen(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """A second eager member rebalances the group: readings in between show it, and each one has all partitions."""
    group = fresh_name("group")
    eager = {"partition.assignment.strategy": "range", "auto.commit.interval.ms": "100"}
    with ExitStack() as members:
        seen = threading.Event()

        def answer_late(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
            seen.wait(30)

        # The first member does not answer before the rebalance was read: it may be over before a reading is.
        members.enter_context(member(bootstrap, group, topic, answer_late, **eager))
        read_until(collector, group, lambda rows: [row.committed_offset for row in rows] == [100, 20, None])
        members.enter_context(member(bootstrap, group, topic, **eager))
        preparing = {"PREPARING_REBALANCING"}
        readings = read_until(collector, group, lambda rows: {row.group_state for row in rows} == preparing)
        seen.set()
        readings += read_until(collector, group, has_members(2))
    states = [rows[0].group_state for rows in readings]
    assert "PREPARING_REBALANCING" in states
    assert set(states) <= REBALANCING_STATES | {"STABLE"}
    assert {tuple(row.partition for row in rows) for rows in readings} == {(0, 1, 2)}


def test_newer_protocol_reconciles(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """Under the broker-side protocol the client cannot name the state while partitions move: it is a rebalance."""
    group = fresh_name("group")
    with ExitStack() as members:
        members.enter_context(member(bootstrap, group, topic, **{"group.protocol": "consumer"}))
        read_until(collector, group, has_members(1))
        members.enter_context(member(bootstrap, group, topic, **{"group.protocol": "consumer"}))
        readings = read_until(collector, group, has_members(2))
    assert "RECONCILING" in {row.group_state for rows in readings for row in rows}
    assert {(row.group_protocol, row.group_assignor) for row in readings[-1]} == {("consumer", "uniform")}


def test_many_groups_in_one_call(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """A hundred groups come back from one call, each with its own commits, well inside the sampling interval."""
    names = [fresh_name(f"many-{number:03d}") for number in range(100)]
    for number, name in enumerate(names):
        commit(bootstrap, name, TopicPartition(topic, 0, number))
    began = time.monotonic()
    collected = collector.collect(names, now=NOON)
    took_seconds = time.monotonic() - began
    assert {row.group: row.committed_offset for row in collected.samples} == {
        name: number for number, name in enumerate(names)
    }
    assert set(names) <= {row.group for row in collector.collect(None, now=NOON).samples}
    assert took_seconds < 5, f"100 groups took {took_seconds:.1f} s of the 15 s that a round may take"


def test_shards_read_each_group_once(bootstrap: str, topic: str) -> None:
    """Listed by the broker or named: a group is read by exactly one of two collectors."""
    groups = [fresh_name("shared") for _ in range(8)]
    for group in groups:
        commit(bootstrap, group, TopicPartition(topic, 0, 90))
    for asked in (None, groups):
        read = [
            row.group
            for number in (1, 2)
            for row in KafkaAdminCollector(bootstrap, cluster="live", owns=Shard(number, 2).owns)
            .collect(asked, now=NOON)
            .samples
            if row.group in groups and row.partition == 0
        ]
        assert sorted(read) == sorted(groups)


def test_unknown_group_beside_a_known_one(bootstrap: str, collector: KafkaAdminCollector, topic: str) -> None:
    """A misspelt group is an error by its name; the other group's samples are there."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 1))
    collected = collector.collect([group, "no-such-group"], now=NOON)
    assert [row.group for row in collected.samples] == [group]
    assert [(type(error), error.group) for error in collected.errors] == [(RejectedError, "no-such-group")]


@pytest.mark.parametrize("groups", [None, ["orders", "billing"]])
def test_unreachable_broker(groups: list[str] | None) -> None:
    """The error for an absent broker names the address, the request and the cause."""
    away = KafkaAdminCollector("127.0.0.1:1", cluster="away", client_config={"socket.timeout.ms": "2000"})
    with pytest.raises(UnavailableError, match=r"cluster 'away' at 127\.0\.0\.1:1 for .*Connection refused") as caught:
        away.collect(groups, now=NOON)
    assert isinstance(caught.value.__cause__, KafkaException)


def test_samples_are_read_back_equal(
    bootstrap: str, collector: KafkaAdminCollector, topic: str, tmp_path: Path
) -> None:
    """The loop's files hold, row by row, what the collector saw of the broker."""
    group = fresh_name("group")
    commit(bootstrap, group, TopicPartition(topic, 0, 90), TopicPartition(topic, 1, 3))
    seen: list[OffsetSample] = []

    def sink(batch: Sequence[OffsetSample]) -> None:
        seen.extend(batch)
        write_samples(batch, tmp_path)

    waits = iter([False, False, True])
    instants = iter(NOON + timedelta(seconds=second) for second in range(0, 150, 15))
    collect_forever(collector, sink, groups=[group], clock=lambda: next(instants), wait=lambda _: next(waits))
    rows = ds.dataset(tmp_path, format="parquet").to_table(columns=arrow_schema().names).to_pylist()
    assert [row.end_offset - (row.committed_offset or 0) for row in seen] == [10, 17] * 2
    assert sorted((OffsetSample(**row) for row in rows), key=lambda row: (row.sampled_at, row.partition)) == seen
