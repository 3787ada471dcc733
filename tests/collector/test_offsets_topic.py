"""Records of Kafka's own topic of offsets: what they tell, and commits and members at the minutes of the past."""

# ruff: noqa: D102  # the fake's methods are the client's own

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from collector import offsets_topic
from collector.offsets_topic import Committed, GroupMembers, Membership, PastCommits, read_past_commits, record_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def text(words: str | None) -> bytes:
    """A string as the coordinator's older formats have it."""
    return struct.pack(">h", -1) if words is None else struct.pack(">h", len(words.encode())) + words.encode()


def commit_key(group: str, topic: str, partition: int, *, version: int = 1) -> bytes:
    return struct.pack(">h", version) + text(group) + text(topic) + struct.pack(">i", partition)


def group_value(members: int, *, version: int = 3, assignor: str | None = "range") -> bytes:
    """A GroupMetadataValue up to the number of members, of which the first bytes follow."""
    instant = struct.pack(">q", 1) if version >= 2 else b""
    names = text("consumer") + struct.pack(">i", 7) + text(assignor) + text(None)
    return struct.pack(">h", version) + names + instant + struct.pack(">i", members) + b"\x00\x05member"


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


@pytest.mark.parametrize("version", [0, 1])
def test_a_commit_is_the_next_offset_of_a_partition_and_may_be_deleted(version: int) -> None:
    """Whatever follows the offset in the value, which differs between Kafka's versions, is not needed."""
    key = commit_key("größte", "orders.in", 3, version=version)
    value = struct.pack(">hq", 3, 1_234_567) + b"whatever follows"
    assert record_of(key, value) == Committed("größte", "orders.in", 3, 1_234_567)
    assert record_of(key, None) == Committed("größte", "orders.in", 3, None)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_classic_group_has_as_many_members_as_its_record_counts(version: int) -> None:
    """None in a record that ends the group; a group that is being joined has no assignor yet."""
    key = struct.pack(">h", 2) + text("orders")
    assert record_of(key, group_value(12, version=version)) == GroupMembers("orders", 12)
    assert record_of(key, group_value(0, version=version, assignor=None)) == GroupMembers("orders", 0)
    assert record_of(key, None) == GroupMembers("orders", 0)


def test_a_record_of_a_later_version_tells_nothing() -> None:
    """Its strings have another form: a count read from them would be any number."""
    assert record_of(struct.pack(">h", 2) + text("orders"), group_value(12, version=4)) is None


def test_members_of_the_newer_protocol_come_and_go_one_by_one() -> None:
    """A record of each, which is empty when it leaves."""
    key = struct.pack(">h", 5) + text("orders") + text("member-1")
    assert record_of(key, b"\x00\x00...") == Membership("orders", "member-1", present=True)
    assert record_of(key, None) == Membership("orders", "member-1", present=False)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_whatever_stands_there_is_read_without_an_error(key: bytes, value: bytes | None) -> None:
    """Keys of all kinds, cut off anywhere."""
    for kind in range(6):
        record_of(struct.pack(">h", kind) + key, value)
    record_of(key, value)


def test_the_commit_of_a_minute_is_the_last_one_before_it() -> None:
    """Commits at 11:57:10, 11:57:50 and 11:59:00: at 11:58 and 11:59 the second is in force, at noon the third."""
    past = PastCommits()
    for seconds, offset in ((-170, 10), (-130, 20), (-60, 30)):
        at = milliseconds(NOON + timedelta(seconds=seconds))
        past.take(Committed("orders", "in", 0, offset), timestamp_milliseconds=at)
    known = [past.committed_at("orders", "in", 0, NOON - ago * MINUTE) for ago in (3, 2, 1, 0)]
    assert known == [None, 20, 20, 30]
    assert past.committed_at("orders", "in", 1, NOON) is None
    assert past.committed_at("others", "in", 0, NOON) is None


def test_members_are_counted_from_those_that_came_and_left() -> None:
    """Two come at 11:57, one of them leaves at 11:59; the minutes in which they did have a rebalance in them."""
    past = PastCommits()
    for minutes, member, present in ((3, "a", True), (3, "b", True), (1, "a", False)):
        at = milliseconds(NOON - minutes * MINUTE)
        past.take(Membership("orders", member, present), timestamp_milliseconds=at)
    assert [past.members_at("orders", NOON - ago * MINUTE) for ago in (3, 2, 1, 0)] == [None, 2, 2, 1]
    assert [past.rebalanced_before("orders", NOON - ago * MINUTE) for ago in (3, 2, 1, 0)] == [False, True, False, True]


def test_a_clock_that_was_set_back_changes_nothing_that_was_read_before() -> None:
    """The record after it counts in the newest minute."""
    past = PastCommits()
    for minutes, offset in ((2, 10), (60, 11), (1, 12)):
        at = milliseconds(NOON - minutes * MINUTE)
        past.take(Committed("orders", "in", 0, offset), timestamp_milliseconds=at)
    assert [past.committed_at("orders", "in", 0, NOON - ago * MINUTE) for ago in (30, 1, 0)] == [None, 11, 12]


class MemoryTopic:
    """The client's reader over a topic of one partition: one commit of the group `orders` a read, of three."""

    def __init__(self, *_: object, **__: object) -> None:
        self.next = 0

    def list_topics(self, name: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, 3

    def assign(self, spots: Sequence[TopicPartition]) -> None:
        assert [spot.offset for spot in spots] == [0]

    def consume(self, *_: object, **__: object) -> list[SimpleNamespace]:
        offset, self.next = self.next, self.next + 1
        fields = {
            "error": None,
            "partition": 0,
            "offset": offset,
            "key": commit_key("orders", "in", 0),
            "value": struct.pack(">hq", 3, 10 * offset),
            "timestamp": (1, milliseconds(NOON)),
        }
        return [SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})]

    def close(self) -> None: ...


@pytest.mark.parametrize(("looks_until_stop", "records"), [(2, 0), (100, 3)])
def test_a_reading_that_is_stopped_half_way_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, looks_until_stop: int, records: int
) -> None:
    """Older commits without the newest would look like a group that stands still."""
    monkeypatch.setattr(offsets_topic, "Consumer", MemoryTopic)
    looks = iter(range(100))
    past = read_past_commits(
        "127.0.0.1:9092",
        cluster="prod",
        client_config={},
        groups=["orders"],
        stopped=lambda: next(looks) >= looks_until_stop,
    )
    assert past.records == records
    known = past.committed_at("orders", "in", 0, NOON + MINUTE)
    assert known == (20 if records else None)
