"""The dead man: what an executor makes of a Lease that it looks at, by its own clock alone."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from executor.errors import ScaleError
from executor.lease import LOOK_SECONDS, LeaseWatch, Sighting

HELD = Sighting(holder="a", renewed="2026-01-05T12:00:00.000000Z", lease_seconds=15.0, clock_skew=timedelta(0))


@dataclass
class Lease:
    """A Lease, the time in seconds, and whether there is an answer."""

    sighting: Sighting = HELD
    answers: bool = True
    name: str = "lagcast/lagcast-recommender"
    now: float = 500.0
    renewals: int = field(default=0)
    odd: Exception | None = None

    def read(self) -> Sighting:
        """Return the lease's state."""
        if self.odd is not None:
            raise self.odd
        if not self.answers:
            message = "the API server answered 403 Forbidden"
            raise ScaleError(message)
        return self.sighting

    def renew(self) -> None:
        """The renewal time may be any text that differs from the one before."""
        self.renewals += 1
        self.sighting = replace(self.sighting, holder="a", renewed=f"renewal {self.renewals}")

    def watched(self, watch: LeaseWatch, *, seconds: float, renewed: bool) -> None:
        """The time passes, with a look every two seconds, each after a renewal or without."""
        until = self.now + seconds
        while self.now < until:
            if renewed:
                self.renew()
            watch.look()
            self.now += LOOK_SECONDS


@pytest.fixture
def lease() -> Lease:
    return Lease()


@pytest.fixture
def watch(lease: Lease) -> LeaseWatch:
    return LeaseWatch(lease, clock=lambda: lease.now)


def sentence(watch: LeaseWatch) -> str:
    """The reason why nothing may be done; it fails if something may."""
    held = watch.held()
    assert held is not None
    assert held.reason in ("no_leader", "clock_skew")
    return held.sentence


def test_a_lease_is_alive_once_it_was_seen_to_be_renewed(lease: Lease, watch: LeaseWatch) -> None:
    """A holder alone proves nothing: one that ended without releasing the lease stays in it for good."""
    watch.look()
    lease.now += 2
    watch.look()
    assert sentence(watch) == (
        "the Lease lagcast/lagcast-recommender was not seen to be renewed for 2 s; nothing is changed until a "
        "recommender renews it"
    )
    lease.renew()
    watch.look()
    assert watch.held() is None


def test_it_is_dead_no_later_than_its_time_after_the_last_renewal(lease: Lease, watch: LeaseWatch) -> None:
    """Counted from the look before: the renewal may have come right after it. In between there need be no look."""
    lease.watched(watch, seconds=20, renewed=True)
    # The last look was 2 s ago and saw a renewal that was made 4 s ago at the earliest.
    lease.now += 10.9
    assert watch.held() is None
    lease.now += 0.2
    assert "was not seen to be renewed for 13 s" in sentence(watch)


def test_a_renewal_after_a_gap_brings_it_back(lease: Lease, watch: LeaseWatch) -> None:
    """The gap proves nothing of the renewal but its end: it counts from the last look in which it was not there."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.watched(watch, seconds=60, renewed=False)
    assert watch.held() is not None
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_one_look_after_a_long_sleep_is_no_proof(lease: Lease, watch: LeaseWatch) -> None:
    """An executor that was frozen sees a change, and cannot know how old it is."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.now += 60
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is not None
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_a_lease_that_was_let_go_is_nobodys_at_once(lease: Lease, watch: LeaseWatch) -> None:
    """Without waiting for its time; the next holder brings it back with its first renewal."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.sighting = replace(lease.sighting, holder="")
    watch.look()
    assert sentence(watch).startswith("nobody holds the Lease lagcast/lagcast-recommender; ")
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_a_lease_that_cannot_be_read_stops_at_once(lease: Lease, watch: LeaseWatch) -> None:
    """Whatever was seen before; with the answer it was alive all the time."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.answers = False
    watch.look()
    assert "cannot be read: the API server answered 403 Forbidden" in sentence(watch)
    lease.answers = True
    watch.look()
    assert watch.held() is None


def test_trouble_that_nobody_expected_stops_it_and_is_looked_past(lease: Lease, watch: LeaseWatch) -> None:
    """A token that cannot be read at the moment of a look, for one."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.odd = OSError("no such token")
    watch.look()
    assert "cannot be read: no such token" in sentence(watch)
    lease.odd = None
    watch.look()
    assert watch.held() is None


def test_clocks_that_differ_stop_it(lease: Lease, watch: LeaseWatch) -> None:
    """By more than two seconds from the API server's: what advice says of instants means nothing then."""
    lease.watched(watch, seconds=20, renewed=True)
    for skew, expected in ((2.0, None), (2.1, "clock_skew")):
        lease.sighting = replace(lease.sighting, clock_skew=timedelta(seconds=skew))
        lease.watched(watch, seconds=1, renewed=True)
        held = watch.held()
        assert (None if held is None else held.reason) == expected
    assert "clocks of executor and API server differ by 2.1 s or more; the limit is 2 s" in sentence(watch)
