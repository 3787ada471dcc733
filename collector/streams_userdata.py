"""What members of a Kafka Streams application tell each other through their group: tasks, standbys and state.

The broker passes these bytes on without reading them. Their layout is that of the classes AssignmentInfo and TaskId and
of the message SubscriptionInfoData of apache/kafka, inside ConsumerProtocolAssignment and ConsumerProtocolSubscription.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Task = tuple[int, int]  # sub-topology and partition

# Versions of AssignmentInfo: 3 has a second version after its own, 7 the time of the next probing rebalance as its last
# field, and 10 an empty name of a topology in each task. SubscriptionInfoData lists tasks with their state from 7 on.
_SECOND_VERSION, _PROBING, _NAMED = 3, 7, 10
_NO_PROBING = 2**63 - 1
# SubscriptionInfoData from 7 on: two versions, then the process's UUID.
_PROCESS_ID_BYTES = 16


class MemberData(NamedTuple):
    """What a member has said when it joined, and what it was assigned, as bytes; empty where there is none."""

    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The tasks of an application, whether members have state on disk, and the standbys of each task that has state.

    `standbys` is None while copies warm up.
    """

    tasks: int
    has_state: bool
    standbys: int | None


def topology_of(members: Iterable[MemberData]) -> Topology | None:
    """The topology that the members were assigned; None where an assignment is missing or cannot be read.

    Copies that warm up are listed as standbys are: while a member has a probing rebalance ahead of it, they cannot be
    told apart.
    """
    active: set[Task] = set()
    copies: list[Task] = []
    has_state = is_probing = False
    try:
        for member in members:
            reader = _Reader(_userdata_of_assignment(member.assignment))
            version = reader.int32()
            if version >= _SECOND_VERSION:
                reader.int32()
            active.update(reader.task(version) for _ in range(reader.count()))
            for _ in range(reader.count()):
                copies.append(reader.task(version))
                reader.skip_partitions()
            is_probing |= version >= _PROBING and reader.last_int64() != _NO_PROBING
            has_state |= _lists_state(member.subscription)
    except (struct.error, ValueError, UnicodeDecodeError):
        return None
    if not active:
        return None
    return Topology(
        tasks=len(active),
        has_state=has_state or bool(copies),
        standbys=None if is_probing else round(len(copies) / max(len(set(copies)), 1)),
    )


def _userdata_of_assignment(assignment: bytes) -> bytes:
    reader = _Reader(assignment)
    reader.int16()
    reader.skip_partition_lists()
    return reader.sized()


def _lists_state(subscription: bytes) -> bool:
    """True if the member has said that it has state of a task on its disk; before its first rebalance it has none."""
    reader = _Reader(subscription)
    reader.int16()
    for _ in range(reader.count()):
        reader.string()
    userdata = _Reader(reader.sized())
    version = userdata.int32()
    if version < _PROBING:
        return False
    userdata.int32()
    userdata.skip(_PROCESS_ID_BYTES)
    userdata.sized()  # the address of the application's own endpoint
    return userdata.int32() > 0


class _Reader:
    """Reads Kafka's types from bytes, in order. Errors: struct.error at the end of the bytes, ValueError on lengths."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def count(self) -> int:
        """The length of an array. Errors: ValueError where so many entries cannot follow."""
        count = self.int32()
        if not 0 <= count <= len(self._data) - self._at:
            message = f"an array of {count} entries in {len(self._data) - self._at} bytes"
            raise ValueError(message)
        return count

    def sized(self) -> bytes:
        return self.skip(max(0, self.int32()))

    def string(self) -> str:
        return self.skip(self.int16()).decode()

    def skip(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self._at:
            message = f"{length} of {len(self._data) - self._at} bytes"
            raise ValueError(message)
        self._at += length
        return self._data[self._at - length : self._at]

    def task(self, version: int) -> Task:
        task = self.int32(), self.int32()
        if version >= _NAMED:
            self.skip(2 * self.int32())
        return task

    def skip_partitions(self) -> None:
        """A list of single partitions, each with its topic."""
        for _ in range(self.count()):
            self.string()
            self.int32()

    def skip_partition_lists(self) -> None:
        """A list of topics, each with its partitions."""
        for _ in range(self.count()):
            self.string()
            self.skip(4 * self.count())

    def last_int64(self) -> int:
        return int(struct.unpack(">q", self._data[-8:])[0])

    def _number(self, form: str) -> int:
        (number,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(number)
