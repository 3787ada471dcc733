"""How long Kafka waits for silent members of a group, from where the brokers keep it.

A classic group: the session and rebalance timeout of each member are in the group's record of `__consumer_offsets`. A
group of the newer protocol: its members' rebalance timeouts are there, and session and heartbeats are settings of the
group. Each needs a right of its own; without it the figure stays unknown, and one line says which right would add it.

The record names its members. It is looked for when a group has others than before, from shortly before the change on,
and is found once its members are those that the group has.
"""

import struct
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from collector.client_config import without_secrets
from collector.errors import AdapterError, RejectedError
from collector.kafka_errors import Complaints, Question, in_our_words
from collector.kafka_requests import GroupDescription, KafkaRequests, client_log
from collector.offsets_topic import (
    AT_END,
    CLASSIC_GROUP,
    EPOCH,
    MEMBER,
    MOST_RECORDS,
    NO_FAILURES,
    OFFSETS_TOPIC,
    members_in,
    partitions_of,
    reader_settings,
    string_at,
)

# Kafka's type of a group of the newer protocol, KIP-848.
NEWER_PROTOCOL = "consumer"
# What one round reads at most, of all partitions together. A partition in which a record is looked for the first time
# is read over several rounds: three million records in eight minutes.
MOST_RECORDS_A_ROUND = 100_000
MOST_SECONDS_A_ROUND = 2.0
_ANSWER_SECONDS = 2.0
_AT_ONCE, _LOOK_SECONDS = 10_000, 0.1
# The record of a change may be so much older than the last round that saw the group before it, as clocks differ.
_CLOCKS_DIFFER = timedelta(minutes=1)
# Settings of groups are asked for this often, and so is what was refused or not answered.
REFRESH = timedelta(minutes=5)
_INT, _SHORT = struct.Struct(">i"), struct.Struct(">h")
# From this version on a GroupMetadataValue has the members' instance ids.
_STATIC_VERSION = 3

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Of a group, in seconds, the longest of its members; None: not known.

    A member that is silent for its session is missed; one that does not join a rebalance within its rebalance timeout
    is left out. `consumer_heartbeat_seconds` is between two signs of life, as the broker tells newer clients.
    """

    session_timeout_seconds: float | None = None
    rebalance_timeout_seconds: float | None = None
    consumer_heartbeat_seconds: float | None = None


class MemberTimeouts(NamedTuple):
    """Of one member, in milliseconds; None: its record does not have it."""

    session: int | None
    rebalance: int | None


class GroupRecord(NamedTuple):
    """All members that a classic group has from now on."""

    group: str
    members: dict[str, MemberTimeouts]


class MemberRecord(NamedTuple):
    """A member of a group of the newer protocol; None: it has left."""

    group: str
    member: str
    timeouts: MemberTimeouts | None


def timeouts_in(key: bytes, value: bytes | None) -> GroupRecord | MemberRecord | None:
    """What a record of the topic tells of timeouts; None for another kind of record, or a version that is not known."""
    try:
        (kind,) = _SHORT.unpack_from(key)
        if kind == CLASSIC_GROUP:
            group, _ = string_at(key, _SHORT.size)
            members = {} if value is None else _classic_members(value)
            return None if members is None else GroupRecord(group, members)
        if kind == MEMBER:
            group, at = string_at(key, _SHORT.size)
            member, _ = string_at(key, at)
            return MemberRecord(group, member, None if value is None else _newer_member(value))
    except (struct.error, UnicodeDecodeError, IndexError):
        pass
    return None


def _classic_members(value: bytes) -> dict[str, MemberTimeouts] | None:
    """The members of a GroupMetadataValue; None in a version that is not known, or is older than Kafka 0.10.1."""
    counted, (version,) = members_in(value), _SHORT.unpack_from(value)
    if counted is None or version == 0:
        return None
    count, at = counted
    members: dict[str, MemberTimeouts] = {}
    for _ in range(count):
        member, at = string_at(value, at)
        for _ in range(3 if version >= _STATIC_VERSION else 2):  # instance id, client id, host
            _, at = string_at(value, at)
        (rebalance,), (session,) = _INT.unpack_from(value, at), _INT.unpack_from(value, at + _INT.size)
        at += 2 * _INT.size
        for _ in range(2):  # what it subscribes to, and what it is assigned
            (length,) = _INT.unpack_from(value, at)
            at += _INT.size + max(0, length)
        members[member] = MemberTimeouts(session, rebalance)
    return members


def _newer_member(value: bytes) -> MemberTimeouts:
    """The rebalance timeout in a ConsumerGroupMemberMetadataValue. Errors: IndexError on another version."""
    (version,) = _SHORT.unpack_from(value)
    if version != 0:
        raise IndexError(version)
    at = _SHORT.size
    for _ in ("instance id", "rack", "client id", "host"):
        at = _after_compact(value, at)
    topics, at = _compact_length(value, at)
    for _ in range(topics):
        at = _after_compact(value, at)
    at = _after_compact(value, at)  # the pattern that it subscribes to
    (rebalance,) = _INT.unpack_from(value, at)
    return MemberTimeouts(None, rebalance if rebalance >= 0 else None)


def _compact_length(data: bytes, at: int) -> tuple[int, int]:
    """A length as Kafka's flexible versions have it, one too high and seven bits a byte; and the place after it."""
    number, shift = 0, 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return max(0, number - 1), at


def _after_compact(data: bytes, at: int) -> int:
    length, at = _compact_length(data, at)
    return at + length


@dataclass(slots=True, kw_only=True)
class _Search:
    """A search for the record of these members, at `next_offset` of its partition, which is None before it begins.

    It begins shortly before `changed_after`, when the group was last seen with other members; None: among the newest
    records of all.
    """

    members: frozenset[str]
    changed_after: datetime | None
    next_offset: int | None = None


@dataclass(slots=True, kw_only=True)
class _Followed:
    """A group: the timeouts of members up to an offset, and the members that need no search any more."""

    read_to: int = -1
    read: dict[str, MemberTimeouts] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    settled_at: datetime | None = None
    search: _Search | None = None


class GroupTimeouts:
    """Tells the timeouts of the groups of each round, with a bounded number of records read in each."""

    def __init__(self, kafka: KafkaRequests, bootstrap: str, client_config: Mapping[str, str]) -> None:
        self._kafka, self._bootstrap, self._client_config = kafka, bootstrap, client_config
        self._groups: dict[str, _Followed] = {}
        self._read_to: dict[int, int] = {}
        self._read_again_at: datetime | None = None
        self._settings: Mapping[str, Mapping[str, str]] = {}
        self._asked_at: datetime | None = None
        self._asked_for: frozenset[str] = frozenset()
        self._told: dict[str, type[AdapterError]] = {}

    def describe(self, groups: Mapping[str, GroupDescription], *, now: datetime) -> Mapping[str, Timeouts]:
        """What is known of each group. A failure leaves the figure out, and is logged once."""
        self._groups = {name: self._groups.get(name) or _Followed() for name in groups}
        for name, group in groups.items():
            if group.state == "STABLE" and group.member_ids:
                self._notice(self._groups[name], group.member_ids, now)
        searches = {name: known.search for name, known in self._groups.items() if known.search is not None}
        if searches and (self._read_again_at is None or now >= self._read_again_at):
            self._look(searches, now)
        newer = frozenset(name for name, group in groups.items() if group.protocol == NEWER_PROTOCOL)
        self._ask(newer, now)
        return {name: self._timeouts(name, group) for name, group in groups.items()}

    def _notice(self, known: _Followed, members: frozenset[str], now: datetime) -> None:
        """Begin a search if the group has other members than those that were settled, and none is read of one."""
        if known.read.keys() >= members:
            known.settled, known.search = members, None
        if known.settled == members:
            known.settled_at = now
        elif known.search is None:
            known.search = _Search(members=members, changed_after=known.settled_at)
        else:  # what is searched now comes after what was
            known.search.members = members

    def _look(self, searches: Mapping[str, _Search], now: datetime) -> None:
        """Read on in the partitions of the groups. A failure is a reason to wait."""
        complaints = Complaints(lambda words: without_secrets(words, self._client_config))
        try:
            settings = reader_settings(self._bootstrap, self._client_config, complaints)
            # What is fetched ahead of a round's records is thrown away with the client.
            settings["queued.max.messages.kbytes"] = 16_384
            with closing(Consumer(settings, logger=client_log)) as consumer:
                partitions = partitions_of(consumer, searches, answer_seconds=_ANSWER_SECONDS)
                self._read(consumer, searches, partitions, now)
        except KafkaException as cause:
            self._read_again_at = now + REFRESH
            self._tell("records", self._reading_error(cause, complaints))

    def _reading_error(self, cause: KafkaException, complaints: Complaints) -> AdapterError:
        if cause.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return RejectedError(f"grant this user Read on Topic {OFFSETS_TOPIC!r} to know the sessions of its groups")
        question = Question(words="the timeouts of groups", topic=OFFSETS_TOPIC)
        return in_our_words(self._kafka.where, question, cause, complaints)

    def _read(
        self, consumer: Consumer, searches: Mapping[str, _Search], partitions: Mapping[str, int], now: datetime
    ) -> None:
        places: dict[int, list[str]] = {}
        for name, number in partitions.items():
            places.setdefault(number, []).append(name)
        ends, spots = {}, []
        for number, names in places.items():
            spot = TopicPartition(OFFSETS_TOPIC, number)
            first, ends[number] = consumer.get_watermark_offsets(spot, timeout=_ANSWER_SECONDS)
            for search in (searches[name] for name in names):
                if search.next_offset is None:
                    newest = ends[number] - MOST_RECORDS // len(places)
                    search.next_offset = self._begin(consumer, search, number, newest, ends[number])
                search.next_offset = max(first, search.next_offset)
            spot.offset = min(searches[name].next_offset or 0 for name in names)
            spots.append(spot)
        consumer.assign(spots)
        reached = self._consumed(consumer, {spot.partition: spot.offset for spot in spots}, ends)
        for number, names in places.items():
            is_whole = reached[number] >= ends[number]
            if is_whole:
                self._read_to[number] = reached[number]
            for name in names:
                self._went_on(self._groups[name], searches[name], reached[number], is_whole=is_whole, now=now)

    def _begin(self, consumer: Consumer, search: _Search, number: int, newest: int, end: int) -> int:
        """Where a search begins: shortly before the change and not in what was read, or with the newest records."""
        if search.changed_after is None:
            return newest
        instant = round((search.changed_after - _CLOCKS_DIFFER - EPOCH).total_seconds() * 1e3)
        (found,) = consumer.offsets_for_times([TopicPartition(OFFSETS_TOPIC, number, instant)], timeout=_ANSWER_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        return max(newest, found.offset if found.offset >= 0 else end, self._read_to.get(number, 0))

    def _consumed(self, consumer: Consumer, begins: Mapping[int, int], ends: Mapping[int, int]) -> Mapping[int, int]:
        """Take what can be read within a round; how far each partition was read."""
        reached = dict(begins)
        unread = {number for number, begin in begins.items() if begin < ends[number]}
        until, records = time.monotonic() + MOST_SECONDS_A_ROUND, 0
        while unread and records < MOST_RECORDS_A_ROUND and time.monotonic() < until:
            for message in consumer.consume(_AT_ONCE, timeout=_LOOK_SECONDS):
                failure, number = message.error(), message.partition() or 0
                if failure is None:
                    records += 1
                    self._take(message)
                    reached[number] = (message.offset() or 0) + 1
                elif failure.name() == AT_END:
                    reached[number] = max(reached[number], ends[number])
                elif failure.name() not in NO_FAILURES:
                    raise KafkaException(failure)
            unread = {number for number in unread if reached[number] < ends[number]}
        return reached

    def _take(self, message: Message) -> None:
        key = message.key()
        record = None if key is None else timeouts_in(bytes(key), message.value())
        known = None if record is None else self._groups.get(record.group)
        offset = message.offset() or 0
        if known is None or offset <= known.read_to:
            return  # a search for another group that begins earlier comes by again
        known.read_to = offset
        if isinstance(record, GroupRecord):
            known.read = record.members
        elif isinstance(record, MemberRecord):
            if record.timeouts is None:
                known.read.pop(record.member, None)
            else:
                known.read[record.member] = record.timeouts

    def _went_on(self, known: _Followed, search: _Search, reached: int, *, is_whole: bool, now: datetime) -> None:
        """The search goes on from there, unless the record of its members is found, or is nowhere."""
        search.next_offset = max(search.next_offset or 0, reached)
        if known.read.keys() >= search.members:
            known.read = {member: known.read[member] for member in search.members}
        elif not is_whole:
            return
        elif search.changed_after is not None:
            # A clock that is further ahead than clocks should be: then it is among the newest records.
            known.search = _Search(members=search.members, changed_after=None)
            return
        known.settled, known.settled_at, known.search = search.members, now, None

    def _ask(self, names: frozenset[str], now: datetime) -> None:
        """The settings of groups of the newer protocol, every few minutes and where one is new."""
        is_due = self._asked_at is None or now - self._asked_at >= REFRESH or not names <= self._asked_for
        if not names or not is_due:
            return
        self._asked_at, self._asked_for = now, names
        answers = self._kafka.group_settings(sorted(names))
        self._settings = answers.got
        self._tell("settings", next(iter(answers.failed.values()), None))

    def _timeouts(self, name: str, group: GroupDescription) -> Timeouts:
        known = self._groups[name]
        own = [known.read[member] for member in group.member_ids if member in known.read]
        is_whole = bool(own) and len(own) == len(group.member_ids)
        settings = self._settings.get(name, {}) if group.protocol == NEWER_PROTOCOL else {}
        session = settings.get("consumer.session.timeout.ms")
        sessions = [each.session for each in own] if session is None else [int(session)]
        return Timeouts(
            session_timeout_seconds=_longest(sessions if is_whole or session is not None else ()),
            rebalance_timeout_seconds=_longest([each.rebalance for each in own] if is_whole else ()),
            consumer_heartbeat_seconds=_longest([_number(settings.get("consumer.heartbeat.interval.ms"))]),
        )

    def _tell(self, what: str, error: AdapterError | None) -> None:
        """Log why records or settings are not read, if it is of another kind than before: one line for all groups."""
        if error is not None and self._told.get(what) is not type(error):
            self._told[what] = type(error)
            _log.info("timeouts_unknown", error=str(error))


def _number(words: str | None) -> int | None:
    return None if words is None else int(words)


def _longest(milliseconds: Collection[int | None]) -> float | None:
    """The longest in seconds; None where one is not known, or there is none."""
    known = [each for each in milliseconds if each is not None]
    return max(known) / 1e3 if known and len(known) == len(milliseconds) else None
