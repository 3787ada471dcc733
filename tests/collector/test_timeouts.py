"""Timeouts of groups out of Kafka's own topic and out of settings of groups, with a bounded reading in each round."""

# ruff: noqa: D102  # the fake's methods are the client's own

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from collector import timeouts
from collector.kafka_admin import KafkaAdminCollector
from collector.timeouts import GroupRecord, MemberRecord, MemberTimeouts, timeouts_in
from tests.collector.memory_cluster import COMMITS, NOON, MemoryCluster, failure, group

DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED
ROUND = timedelta(seconds=15)


def text(words: str | None) -> bytes:
    """A string as the coordinator's older formats have it."""
    return struct.pack(">h", -1) if words is None else struct.pack(">h", len(words.encode())) + words.encode()


def compact(words: str | None) -> bytes:
    """A string as its newer formats have it, of less than 128 bytes."""
    return b"\x00" if words is None else bytes([len(words.encode()) + 1]) + words.encode()


def group_key(name: str) -> bytes:
    return struct.pack(">h", 2) + text(name)


def group_value(members: Mapping[str, tuple[int, int]], *, version: int = 3) -> bytes:
    """A GroupMetadataValue; `members` have session and rebalance timeout in milliseconds."""
    value = struct.pack(">h", version) + text("consumer") + struct.pack(">i", 7) + text("range") + text(None)
    value += (struct.pack(">q", 1) if version >= 2 else b"") + struct.pack(">i", len(members))
    for name, (session, rebalance) in members.items():
        value += text(name) + (text(None) if version >= 3 else b"") + text("an id") + text("/10.1.2.3")
        value += struct.pack(">ii", rebalance, session) + struct.pack(">i", 5) + b"topic" + struct.pack(">i", -1)
    return value


def member_key(name: str, member: str) -> bytes:
    return struct.pack(">h", 5) + text(name) + text(member)


def member_value(rebalance: int, *, topics: Sequence[str] = ("orders-in",), version: int = 0) -> bytes:
    """A ConsumerGroupMemberMetadataValue of a member without an instance id."""
    value = struct.pack(">h", version) + compact(None) + compact(None) + compact("an id") + compact("/10.1.2.3")
    value += bytes([len(topics) + 1]) + b"".join(compact(topic) for topic in topics) + compact(None)
    return value + struct.pack(">i", rebalance) + compact(None) + b"\x00"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_classic_group_has_the_timeouts_of_each_of_its_members(version: int) -> None:
    """In every version that has both; an ended group has no members."""
    value = group_value({"a": (30_000, 300_000), "b": (45_000, 600_000)}, version=version)
    members = {"a": MemberTimeouts(30_000, 300_000), "b": MemberTimeouts(45_000, 600_000)}
    assert timeouts_in(group_key("orders"), value) == GroupRecord("orders", members)
    assert timeouts_in(group_key("orders"), None) == GroupRecord("orders", {})


def test_a_member_of_the_newer_protocol_has_its_rebalance_timeout() -> None:
    """Its session is a setting of the group; -1 is a member that has told none."""
    told = timeouts_in(member_key("orders", "a"), member_value(120_000, topics=["in", "out", "größte"]))
    assert told == MemberRecord("orders", "a", MemberTimeouts(None, 120_000))
    assert timeouts_in(member_key("orders", "a"), member_value(-1)) == MemberRecord(
        "orders", "a", MemberTimeouts(None, None)
    )
    assert timeouts_in(member_key("orders", "a"), None) == MemberRecord("orders", "a", None)


def test_records_of_other_versions_tell_no_timeouts() -> None:
    """Version 0 has no rebalance timeout, version 4 strings of another form; a commit has neither."""
    for version in (0, 4):
        assert timeouts_in(group_key("orders"), group_value({"a": (1, 1)}, version=version)) is None
    assert timeouts_in(member_key("orders", "a"), member_value(1, version=1)) is None
    assert timeouts_in(struct.pack(">h", 1) + text("orders"), b"") is None


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_whatever_stands_there_is_read_without_an_error(key: bytes, value: bytes | None) -> None:
    """Keys of all kinds, cut off anywhere."""
    for kind in range(6):
        timeouts_in(struct.pack(">h", kind) + key, value)
        timeouts_in(struct.pack(">h", kind) + text("orders") + text("a"), value)


@dataclass
class MemoryLog:
    """The topic with one partition: records with the instant of each, and what was read of them."""

    records: list[tuple[datetime, bytes, bytes | None]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    most_at_once: int = 1000
    error: int | None = None

    def write(self, at: datetime, key: bytes, value: bytes | None) -> None:
        self.records.append((at, key, value))

    def write_commits(self, at: datetime, count: int) -> None:
        for _ in range(count):
            self.write(at, struct.pack(">h", 1) + text("orders") + text("in") + struct.pack(">i", 0), b"\x00" * 10)


class MemoryReader:
    """The client's reader of the log."""

    def __init__(self, log: MemoryLog) -> None:
        self.log, self.next = log, 0

    def list_topics(self, name: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, len(self.log.records)

    def offsets_for_times(self, spots: Sequence[TopicPartition], **_: object) -> list[TopicPartition]:
        (spot,) = spots
        later = (number for number, (at, _, _) in enumerate(self.log.records) if at.timestamp() * 1000 >= spot.offset)
        return [TopicPartition(spot.topic, spot.partition, next(later, -1))]

    def assign(self, spots: Sequence[TopicPartition]) -> None:
        (spot,) = spots
        self.next = spot.offset

    def consume(self, count: int, **_: object) -> list[SimpleNamespace]:
        if self.log.error is not None:
            return [message(error=KafkaError(self.log.error))]
        numbers = range(self.next, min(len(self.log.records), self.next + min(count, self.log.most_at_once)))
        self.next = numbers.stop
        self.log.read += numbers
        return [
            message(offset=number, key=self.log.records[number][1], value=self.log.records[number][2])
            for number in numbers
        ]

    def close(self) -> None: ...


def message(**fields: Any) -> SimpleNamespace:  # noqa: ANN401  # of a client's message
    known = {"error": None, "partition": 0, "offset": 0, "key": None, "value": None, **fields}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in known.items()})


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> MemoryLog:
    made = MemoryLog()
    monkeypatch.setattr(timeouts, "Consumer", lambda *_, **__: MemoryReader(made))
    return made


def run(name: str, *, members: int = 2) -> SimpleNamespace:
    """The group `orders` with the members of one deploy."""
    return group(run=name, assigned=[[("orders-in", number)] for number in range(members)])


def ids_of(described: SimpleNamespace) -> list[str]:
    return [member.member_id for member in described.members]


def told(collector: KafkaAdminCollector, *, rounds: float = 0, name: str = "orders") -> tuple[float | None, ...]:
    samples = collector.collect([name], now=NOON + rounds * ROUND).samples
    ((*figures,),) = {
        (row.session_timeout_seconds, row.rebalance_timeout_seconds, row.consumer_heartbeat_seconds) for row in samples
    }
    return tuple(figures)


def test_the_longest_timeouts_of_a_group_are_on_its_samples(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """Of the newest record that has its members, however many commits lie after it; once known nothing is read."""
    first, second = ids_of(cluster.groups["orders"])
    log.write(NOON, group_key("orders"), group_value({first: (6_000, 60_000)}))
    log.write(NOON, group_key("orders"), group_value({first: (10_000, 300_000), second: (30_000, 60_000)}))
    log.write(NOON, group_key("others"), group_value({first: (99_000, 99_000), second: (99_000, 99_000)}))
    log.write_commits(NOON, 50)
    assert told(collector) == (30.0, 300.0, None)
    log.read.clear()
    assert told(collector, rounds=1) == (30.0, 300.0, None)
    assert log.read == []


def test_a_deploy_changes_the_timeouts_with_the_next_round_and_little_is_read(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """Nothing of what was read, and nothing of the hours between: from a minute before the change on."""
    first, second = ids_of(cluster.groups["orders"])
    log.write(NOON, group_key("orders"), group_value({first: (45_000, 300_000), second: (45_000, 300_000)}))
    for number in range(241):
        assert told(collector, rounds=number) == (45.0, 300.0, None)
        log.write_commits(NOON + number * ROUND, 10)
    cluster.groups["orders"] = run("second")
    first, second = ids_of(cluster.groups["orders"])
    log.write(NOON + 241 * ROUND, group_key("orders"), group_value({first: (6_000, 90_000), second: (6_000, 90_000)}))
    log.read.clear()
    assert told(collector, rounds=242) == (6.0, 90.0, None)
    assert 10 <= len(log.read) <= 6 * 10 + 1


def test_a_group_that_is_rebalancing_keeps_nothing_of_members_that_are_not_its_own(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """Until its members are settled, what they have set is unknown."""
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (45000, 300000))
    log.write(NOON, group_key("orders"), group_value(known))
    assert told(collector)[0] == 45.0
    cluster.groups["orders"] = group(state="PREPARING_REBALANCING", run="second")
    log.read.clear()
    assert told(collector, rounds=1) == (None, None, None)
    assert log.read == []


def test_a_round_reads_a_bounded_number_of_records_and_the_next_one_goes_on(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record behind 95 commits, of which a round reads thirty: in the fourth round it is found."""
    monkeypatch.setattr(timeouts, "MOST_RECORDS_A_ROUND", 30)
    log.most_at_once = 10
    log.write_commits(NOON, 95)
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (30000, 300000))
    log.write(NOON, group_key("orders"), group_value(known))
    assert [told(collector, rounds=number)[0] for number in range(4)] == [None, None, None, 30.0]
    assert log.read == list(range(96))


def test_a_record_that_is_not_there_is_looked_for_once(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """A version that is not known, or a record before the newest ones: its figures stay unknown."""
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (30000, 300000))
    log.write(NOON, group_key("orders"), group_value(known, version=4))
    assert told(collector) == (None, None, None)
    log.read.clear()
    assert told(collector, rounds=1) == (None, None, None)
    assert log.read == []


def test_a_clock_that_is_further_ahead_than_clocks_should_be_hides_no_deploy(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """The broker's stamps are an hour old: the newest records are looked through in the round after."""
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (30000, 300000))
    log.write(NOON - timedelta(hours=1), group_key("orders"), group_value(known))
    assert told(collector)[0] == 30.0
    cluster.groups["orders"] = run("second")
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (6000, 300000))
    log.write(NOON - timedelta(hours=1), group_key("orders"), group_value(known))
    assert [told(collector, rounds=number)[0] for number in (1, 2)] == [None, 6.0]


def test_two_groups_of_one_partition_do_not_read_over_each_other(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """The search for a new group comes by older records of the other, whose newest one still counts."""
    orders = cluster.groups["orders"]
    log.write(NOON, group_key("orders"), group_value({ids_of(orders)[0]: (99_000, 99_000)}))
    log.write(NOON, group_key("orders"), group_value(dict.fromkeys(ids_of(orders), (30_000, 300_000))))
    assert told(collector)[0] == 30.0
    cluster.groups["later"], cluster.commits["later"] = run("later"), COMMITS
    log.write(NOON, group_key("later"), group_value(dict.fromkeys(ids_of(cluster.groups["later"]), (10_000, 1_000))))
    log.most_at_once = 1
    rows = collector.collect(["orders", "later"], now=NOON + ROUND).samples
    assert {(row.group, row.session_timeout_seconds) for row in rows} == {("orders", 30.0), ("later", 10.0)}


def test_groups_of_the_newer_protocol_have_the_session_that_the_broker_tells(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """Session and heartbeats are settings of the group, asked for every five minutes; members have the rest."""
    cluster.groups["orders"] = group(protocol="CONSUMER", assignor="uniform")
    first, second = ids_of(cluster.groups["orders"])
    for member, rebalance in ((first, 300_000), (second, 600_000), ("gone", 900_000)):
        log.write(NOON, member_key("orders", member), member_value(rebalance))
    log.write(NOON, member_key("orders", "gone"), None)
    cluster.group_settings["orders"] = {
        "consumer.session.timeout.ms": "45000",
        "consumer.heartbeat.interval.ms": "5000",
    }
    assert told(collector) == (45.0, 600.0, 5.0)
    cluster.group_settings["orders"] = {
        "consumer.session.timeout.ms": "60000",
        "consumer.heartbeat.interval.ms": "9000",
    }
    assert told(collector, rounds=19) == (45.0, 600.0, 5.0)
    assert told(collector, rounds=20) == (60.0, 600.0, 9.0)
    assert cluster.requests.count("group settings") == 2


def test_what_may_not_be_read_stays_unknown_and_is_said_once(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog
) -> None:
    """The samples have all the rest, both grants are named, and the next attempt is five minutes later."""
    cluster.groups["newer"], cluster.commits["newer"] = group(protocol="CONSUMER"), COMMITS
    cluster.group_settings["newer"] = failure(KafkaError.GROUP_AUTHORIZATION_FAILED)
    for name in ("orders", "newer"):
        log.write(NOON, group_key(name), group_value(dict.fromkeys(ids_of(cluster.groups[name]), (30_000, 300_000))))
    log.error = DENIED
    with capture_logs() as lines:
        for number in range(60):
            rows = collector.collect(["orders", "newer"], now=NOON + number * ROUND).samples
            assert {row.session_timeout_seconds for row in rows} == {None}
    said = [line["error"] for line in lines if line["event"] == "timeouts_unknown"]
    assert said[0] == "grant this user Read on Topic '__consumer_offsets' to know the sessions of its groups"
    assert said[1].endswith("grant this user DescribeConfigs on Group 'newer'")
    assert len(said) == 2
    assert cluster.requests.count("group settings") == 3
    log.error = None
    assert told(collector, rounds=61)[0] == 30.0


def test_a_reading_that_fails_is_repeated_minutes_later(
    collector: KafkaAdminCollector, cluster: MemoryCluster, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that does not answer costs one wait in five minutes, and no round."""
    known = dict.fromkeys(ids_of(cluster.groups["orders"]), (30_000, 300_000))
    log.write(NOON, group_key("orders"), group_value(known))

    def away(*_: object, **__: object) -> tuple[int, int]:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    with monkeypatch.context() as while_away:
        while_away.setattr(MemoryReader, "get_watermark_offsets", away)
        assert told(collector) == (None, None, None)
    assert told(collector, rounds=19) == (None, None, None)
    assert told(collector, rounds=20)[0] == 30.0
