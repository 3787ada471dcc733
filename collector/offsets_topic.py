"""Past commits and members from `__consumer_offsets`, the topic in which Kafka itself keeps both, where it may be read.

Kafka compacts the topic, but only segments that are full: of most groups the commits of the last hours or days are
there. Formats: OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue and
ConsumerGroupMemberMetadataKey of Kafka's group coordinator, whose keys begin with their number.
"""

import struct
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from collector.client_config import without_secrets
from collector.errors import AdapterError, RejectedError, UnavailableError
from collector.kafka_errors import Complaints, Question, in_our_words
from collector.kafka_requests import client_log

OFFSETS_TOPIC = "__consumer_offsets"
MINUTE = timedelta(minutes=1)
# The newest records that are read, of all partitions together: a day of a commit every 5 s from 170 partitions.
MOST_RECORDS = 3_000_000
MOST_SECONDS = 90.0
_ANSWER_SECONDS = 10.0
_AT_ONCE = 10_000
# The client looks for the coordinator of the group whose name it must have, and may not; it is not needed.
AT_END = "_PARTITION_EOF"
NO_FAILURES = (AT_END, "GROUP_AUTHORIZATION_FAILED")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The first two bytes of a key: what the record is of.
_COMMITS, CLASSIC_GROUP, MEMBER = (0, 1), 2, 5
# The version that added an instant, and the one from which on strings have another form; Kafka 4.3 writes 3.
_INSTANT_GROUP_VERSION = 2
_FLEXIBLE_GROUP_VERSION = 4
_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class Committed(NamedTuple):
    """The group's next offset of a partition; None: it was deleted."""

    group: str
    topic: str
    partition: int
    offset: int | None


class GroupMembers(NamedTuple):
    """A group of the classic protocol has so many members from now on."""

    group: str
    members: int


class Membership(NamedTuple):
    """A member of a group of the newer protocol is there, or has left."""

    group: str
    member: str
    present: bool


Record = Committed | GroupMembers | Membership


def record_of(key: bytes, value: bytes | None) -> Record | None:
    r"""What a record of the topic tells; None for another kind of record, or a version that is not known.

    >>> key = b"\x00\x01" + b"\x00\x06orders" + b"\x00\x02in" + b"\x00\x00\x00\x07"
    >>> record_of(key, b"\x00\x03" + (1234).to_bytes(8, "big") + b"...")
    Committed(group='orders', topic='in', partition=7, offset=1234)
    >>> record_of(b"\x00\x0b...", None) is None
    True
    """
    try:
        return _read(key, value)
    except (struct.error, UnicodeDecodeError, IndexError):
        return None


def _read(key: bytes, value: bytes | None) -> Record | None:
    (kind,) = _SHORT.unpack_from(key)
    if kind in _COMMITS:
        group, at = string_at(key, _SHORT.size)
        topic, at = string_at(key, at)
        (partition,) = _INT.unpack_from(key, at)
        offset = None if value is None else int(_LONG.unpack_from(value, _SHORT.size)[0])
        return Committed(group, topic, partition, offset)
    if kind == CLASSIC_GROUP:
        group, _ = string_at(key, _SHORT.size)
        counted = (0, 0) if value is None else members_in(value)
        return None if counted is None else GroupMembers(group, counted[0])
    if kind == MEMBER:
        group, at = string_at(key, _SHORT.size)
        member, _ = string_at(key, at)
        return Membership(group, member, value is not None)
    return None


def members_in(value: bytes) -> tuple[int, int] | None:
    """The number of members in a GroupMetadataValue, and the place after it; None in a version that is not known.

    Before it are type, generation, assignor, leader and, but for older versions, an instant.
    """
    (version,) = _SHORT.unpack_from(value)
    if version >= _FLEXIBLE_GROUP_VERSION:
        return None
    _, at = string_at(value, _SHORT.size)
    at += _INT.size
    for _ in ("assignor", "leader"):
        _, at = string_at(value, at)
    if version >= _INSTANT_GROUP_VERSION:
        at += _LONG.size
    return int(_INT.unpack_from(value, at)[0]), at + _INT.size


def string_at(data: bytes, at: int) -> tuple[str, int]:
    """A string with its length in two bytes before it, -1 for none; and the place after it."""
    (length,) = _SHORT.unpack_from(data, at)
    begin = at + _SHORT.size
    end = begin + max(0, length)
    if end > len(data):
        raise IndexError(end)
    return data[begin:end].decode(), end


class _Minutes:
    """The last value in each minute that has one, oldest first."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._values: list[int | None] = []

    def put(self, number: int, value: int | None) -> None:
        # Clocks of two brokers differ, and a new leader may go on a little earlier.
        number = max(number, self._numbers[-1]) if self._numbers else number
        if self._numbers and self._numbers[-1] == number:
            self._values[-1] = value
        else:
            self._numbers.append(number)
            self._values.append(value)

    def before(self, number: int) -> int | None:
        """The value at the beginning of a minute."""
        place = bisect_left(self._numbers, number)
        return self._values[place - 1] if place else None

    def has(self, number: int) -> bool:
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number


class PastCommits:
    """Commits and members at each minute, as far as the records tell; for any group that was taken."""

    def __init__(self) -> None:
        self._commits: defaultdict[tuple[str, str, int], _Minutes] = defaultdict(_Minutes)
        self._members: defaultdict[str, _Minutes] = defaultdict(_Minutes)
        self._present: defaultdict[str, set[str]] = defaultdict(set)
        self.records = 0

    def take(self, record: Record, *, timestamp_milliseconds: int) -> None:
        """Take a record; those of a group come in the order in which they were written."""
        self.records += 1
        number = minute_number(EPOCH + timedelta(milliseconds=timestamp_milliseconds))
        if isinstance(record, Committed):
            self._commits[record.group, record.topic, record.partition].put(number, record.offset)
        elif isinstance(record, GroupMembers):
            self._members[record.group].put(number, record.members)
        else:
            present = self._present[record.group]
            (present.add if record.present else present.discard)(record.member)
            self._members[record.group].put(number, len(present))

    def committed_at(self, group: str, topic: str, partition: int, at: datetime) -> int | None:
        """The commit in force at a whole minute; None where none is known."""
        minutes = self._commits.get((group, topic, partition))
        return None if minutes is None else minutes.before(minute_number(at))

    def members_at(self, group: str, at: datetime) -> int | None:
        """The members at a whole minute; None where they are not known."""
        minutes = self._members.get(group)
        return None if minutes is None else minutes.before(minute_number(at))

    def rebalanced_before(self, group: str, at: datetime) -> bool:
        """True if members came, left or were dealt partitions anew in the minute before."""
        minutes = self._members.get(group)
        return minutes is not None and minutes.has(minute_number(at) - 1)


def read_past_commits(
    bootstrap: str,
    *,
    cluster: str,
    client_config: Mapping[str, str],
    groups: Collection[str],
    stopped: Callable[[], bool] = lambda: False,
) -> PastCommits:
    """Read what the topic has of these groups, joining no group and committing nothing.

    Older commits without the newest would look like a group that stands still: nothing is returned if `stopped` comes
    first. Errors: UnavailableError where the topic was not read in 90 s, RejectedError where the user may not read it.
    """
    complaints = Complaints(lambda words: without_secrets(words, client_config))
    where = f"cluster {cluster!r} at {bootstrap}"

    def error(cause: KafkaException) -> AdapterError:
        if cause.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return RejectedError(f"grant this user Read on Topic {OFFSETS_TOPIC!r} to know commits of the past")
        return in_our_words(where, Question(words="commits of the past", topic=OFFSETS_TOPIC), cause, complaints)

    settings = reader_settings(bootstrap, client_config, complaints) | {"isolation.level": "read_committed"}
    past = PastCommits()
    try:
        with closing(Consumer(settings, logger=client_log)) as consumer:
            if not _read_all(consumer, past, groups, stopped):
                return PastCommits()
    except KafkaException as cause:
        raise error(cause) from cause
    return past


def reader_settings(bootstrap: str, client_config: Mapping[str, str], complaints: Complaints) -> dict[str, Any]:
    """Settings of a client that reads the topic, joins no group and commits nothing."""
    return {
        "client.id": "lagcast",
        **client_config,
        "bootstrap.servers": bootstrap,
        # Anyone who reads needs a group id by librdkafka's rules; nothing is ever committed or joined under it.
        "group.id": "lagcast",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "error_cb": complaints.note,
    }


def _read_all(consumer: Consumer, past: PastCommits, groups: Collection[str], stopped: Callable[[], bool]) -> bool:
    """Read to where each partition ends now; False if `stopped` came first."""
    wanted = frozenset(groups)
    unread = _assigned(consumer, wanted)
    until = time.monotonic() + MOST_SECONDS
    while unread and not stopped():
        if time.monotonic() > until:
            late = f"{past.records:,} records of {OFFSETS_TOPIC} were read in {MOST_SECONDS:g} s, and more are left"
            raise UnavailableError(late)
        for message in consumer.consume(_AT_ONCE, timeout=1.0):
            failure, number = message.error(), message.partition() or 0
            if failure is None:
                _take(message, past, wanted)
            elif failure.name() not in NO_FAILURES:
                raise KafkaException(failure)
            # The end is reported where nothing follows for half a second; in a busy partition a later record is there.
            at_end = failure is not None and failure.name() == AT_END
            if at_end or (message.offset() or 0) + 1 >= unread.get(number, 0):
                unread.pop(number, None)
    return not unread


def _assigned(consumer: Consumer, groups: frozenset[str]) -> dict[int, int]:
    """Begin with the newest records of each partition that has one of these groups; where each of them ends now."""
    numbers = sorted(set(partitions_of(consumer, groups).values()))
    spots, ends = [], {}
    for number in numbers:
        spot = TopicPartition(OFFSETS_TOPIC, number)
        first, end = consumer.get_watermark_offsets(spot, timeout=_ANSWER_SECONDS)
        spot.offset = max(first, end - MOST_RECORDS // len(numbers))
        spots.append(spot)
        if spot.offset < end:
            ends[number] = end
    consumer.assign(spots)
    return ends


def partitions_of(
    consumer: Consumer, groups: Iterable[str], *, answer_seconds: float = _ANSWER_SECONDS
) -> dict[str, int]:
    """The partition of the topic in which each group is kept; none where no group has ever committed.

    Errors: KafkaException.
    """
    topic = consumer.list_topics(OFFSETS_TOPIC, timeout=answer_seconds).topics[OFFSETS_TOPIC]
    if topic.error is not None:
        if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return {}
        raise KafkaException(topic.error)
    return {group: _hash(group) % len(topic.partitions) for group in groups}


def _take(message: Message, past: PastCommits, wanted: frozenset[str]) -> None:
    key = message.key()
    record = None if key is None else record_of(bytes(key), message.value())
    if record is not None and record.group in wanted:
        past.take(record, timestamp_milliseconds=message.timestamp()[1])


def _hash(group: str) -> int:
    """The number that Kafka takes modulo the partitions of the topic: Java's hash of the name, without its sign.

    >>> _hash("orders") % 50  # as `"orders".hashCode()` in Java is -1008770331
    31
    """
    units = group.encode("utf-16-be")
    total = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + 256 * high + low) & 0xFFFFFFFF
    signed = total - (1 << 32) if total >= 1 << 31 else total
    return 0 if signed == -(1 << 31) else abs(signed)


def minute_number(at: datetime) -> int:
    """The minute that holds the instant, counted from 1970."""
    return (at - EPOCH) // MINUTE
