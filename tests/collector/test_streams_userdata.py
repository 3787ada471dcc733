"""What members of a Streams application tell each other, as a broker passes it on."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.streams_userdata import MemberData, Topology, topology_of
from tests.collector.streams_members import MEMBERS


def test_b8_tasks_of_every_sub_topology_are_counted_once() -> None:
    """Four of the one and six of the other, over three threads, each of the six with a copy elsewhere."""
    assert topology_of(MEMBERS) == Topology(tasks=10, has_state=True, standbys=1)


def test_copies_that_warm_up_are_not_taken_for_standbys() -> None:
    """While a member has a probing rebalance ahead of it, their number is not known."""
    first, *others = MEMBERS
    probing = MemberData(first.subscription, first.assignment[:-8] + struct.pack(">q", 1_795_577_956_720))
    found = topology_of([probing, *others])
    assert found is not None
    assert (found.tasks, found.standbys) == (10, None)


def _old(tasks: list[tuple[int, int]], *, version: int) -> MemberData:
    """An assignment of an older Kafka Streams: no second version up to 2, no name of a topology in tasks up to 9."""
    words = [version] if version < 3 else [version, version]
    body = struct.pack(f">{len(words)}ii", *words, len(tasks)) + b"".join(struct.pack(">ii", *task) for task in tasks)
    userdata = body + struct.pack(">i", 0) + struct.pack(">iq", 0, 2**63 - 1)
    subscription = struct.pack(">hii", 0, 0, 4) + struct.pack(">i", version)
    return MemberData(subscription, struct.pack(">hii", 0, 0, len(userdata)) + userdata)


@pytest.mark.parametrize("version", [1, 2, 3, 6])
def test_older_applications_are_read_too(version: int) -> None:
    """Their tasks; they have not said yet that they have state."""
    members = [_old([(0, 0), (1, 0)], version=version), _old([(0, 1)], version=version)]
    assert topology_of(members) == Topology(tasks=3, has_state=False, standbys=0)


def test_a_member_without_an_assignment_leaves_the_tasks_unknown() -> None:
    """A rebalance has begun between two requests; a part of the tasks would look like a smaller application."""
    assert topology_of([*MEMBERS[:2], MemberData(MEMBERS[2].subscription, b"")]) is None
    assert topology_of([]) is None


@given(st.binary(max_size=200), st.integers(0, 400))
def test_bytes_of_another_layout_are_no_topology_and_no_crash(noise: bytes, cut: int) -> None:
    """Any bytes may stand there, since any assignor may call itself that; what is read has at least one task."""
    for assignment in (noise, MEMBERS[0].assignment[:cut] + noise):
        found = topology_of([MemberData(MEMBERS[0].subscription, assignment)])
        assert found is None or found.tasks > 0
        found = topology_of([MemberData(noise, MEMBERS[0].assignment)])
        assert found is None or found.tasks > 0
