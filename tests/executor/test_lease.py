"""How an executor judges from a Lease that it reads, by its own clock, whether a recommender is leading."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from executor.errors import ScaleError
from executor.lease import LOOK_SECONDS, LeaseWatch, Sighting, held_by_shard
from recommender.shards import shard_of

HELD = Sighting(holder="a", renewed="2026-01-05T12:00:00.000000Z", lease_seconds=15.0, clock_skew=timedelta(0))


@dataclass
class Lease:
    """A Lease, the time in seconds, and whether it can be read."""

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
        """Change the renewal time to any text that differs from the one before."""
        self.renewals += 1
        self.sighting = replace(self.sighting, holder="a", renewed=f"renewal {self.renewals}")

    def watched(self, watch: LeaseWatch, *, seconds: float, renewed: bool) -> None:
        """Let the time pass with a look every two seconds, each after a renewal or without."""
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
    """The reason why moves are held; it fails if they are not."""
    held = watch.held()
    assert held is not None
    assert held.reason in ("no_leader", "clock_skew")
    return held.sentence


def test_a_lease_is_held_once_a_renewal_was_seen(lease: Lease, watch: LeaseWatch) -> None:
    """A holder alone is no proof, as one that ended without releasing the lease stays in it for good."""
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


def test_a_lease_is_over_no_later_than_its_duration_after_the_last_renewal(lease: Lease, watch: LeaseWatch) -> None:
    """The duration is counted from the look before, since the renewal may have come right after that look."""
    lease.watched(watch, seconds=20, renewed=True)
    # The last look was 2 s ago and saw a renewal that was made 4 s ago at the earliest.
    lease.now += 10.9
    assert watch.held() is None
    lease.now += 0.2
    assert "was not seen to be renewed for 13 s" in sentence(watch)


def test_a_renewal_after_a_gap_makes_the_lease_held_again(lease: Lease, watch: LeaseWatch) -> None:
    """After a gap a renewal counts from the last look that did not show it."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.watched(watch, seconds=60, renewed=False)
    assert watch.held() is not None
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_one_look_after_a_long_sleep_is_no_proof(lease: Lease, watch: LeaseWatch) -> None:
    """An executor that was frozen sees a changed renewal time and cannot know how old that is."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.now += 60
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is not None
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_a_released_lease_is_over_at_once(lease: Lease, watch: LeaseWatch) -> None:
    """A released lease is over before its duration ends, until the first renewal by the next holder."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.sighting = replace(lease.sighting, holder="")
    watch.look()
    assert sentence(watch).startswith("the Lease lagcast/lagcast-recommender has no holder; ")
    lease.watched(watch, seconds=1, renewed=True)
    assert watch.held() is None


def test_a_lease_that_cannot_be_read_holds_moves_at_once(lease: Lease, watch: LeaseWatch) -> None:
    """Moves are held while the Lease cannot be read, and no longer once it can."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.answers = False
    watch.look()
    assert "cannot be read: the API server answered 403 Forbidden" in sentence(watch)
    lease.answers = True
    watch.look()
    assert watch.held() is None


def test_an_unexpected_error_holds_moves_and_is_survived(lease: Lease, watch: LeaseWatch) -> None:
    """An unreadable token at one look holds moves until the next look."""
    lease.watched(watch, seconds=20, renewed=True)
    lease.odd = OSError("no such token")
    watch.look()
    assert "cannot be read: no such token" in sentence(watch)
    lease.odd = None
    watch.look()
    assert watch.held() is None


def test_clocks_that_differ_hold_moves(lease: Lease, watch: LeaseWatch) -> None:
    """Moves are held when the API server's clock differs by more than two seconds."""
    lease.watched(watch, seconds=20, renewed=True)
    for skew, expected in ((2.0, None), (2.1, "clock_skew")):
        lease.sighting = replace(lease.sighting, clock_skew=timedelta(seconds=skew))
        lease.watched(watch, seconds=1, renewed=True)
        held = watch.held()
        assert (None if held is None else held.reason) == expected
    assert "clocks of executor and API server differ by 2.1 s or more; the limit is 2 s" in sentence(watch)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_only_the_groups_of_a_shard_without_a_leader_are_held(count: int) -> None:
    """Which those are is the recommenders' own rule, whatever the names; one recommender alone has every group."""
    leases = [Lease(name=f"lagcast/lagcast-recommender-{number}") for number in range(1, count + 1)]
    watches = [LeaseWatch(lease, clock=lambda: 500.0) for lease in leases]
    for lease, watch in zip(leases[1:], watches[1:], strict=True):
        watch.look()
        lease.renew()
        watch.look()
    held = held_by_shard(watches)
    groups = [("prod", name) for name in ("", "a/b ü", *(f"orders-{number}" for number in range(50)))]
    assert {group for group in groups if held(group) is not None} == {
        group for group in groups if shard_of(*group, count=count) == 1
    }
    (reason,) = {each.sentence for each in map(held, groups) if each is not None}
    assert "the Lease lagcast/lagcast-recommender-1 " in reason
