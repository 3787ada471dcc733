"""The law of a lease: never two leaders, and never long none, for any clocks, requests and processes."""

import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from recommender.cluster.leadership import (
    CYCLES_WITHOUT_STORE,
    HAND_OVERS_APART,
    Elector,
    Fence,
    HandOvers,
    LeaseFailedError,
    LeaseTerms,
    NotLeadingError,
)
from recommender.cluster.leading import kept
from tests.recommender.leases import TERMS, World, goes_on


def test_a_released_lease_is_taken_at_once_and_kept() -> None:
    """One leads, in one term, for as long as it renews; the other knows the holder."""
    world = World()
    first, second = world.elector("first"), world.elector("second", ahead=7e6)
    goes_on(world, first, second, seconds=100)
    assert (first.term(), second.term(), second.holder) == (1, None, "first")


def test_a_holder_that_is_gone_is_followed_within_its_lease_and_one_look() -> None:
    """After a kill at any moment of two seconds, the other leads 15 to 17 s later, and not before the lease is over."""
    for tenths in range(20):
        world = World()
        first, second = world.elector("first"), world.elector("second", ahead=-500)
        goes_on(world, first, second, seconds=30 + tenths / 10)
        killed_at = world.now
        while second.term() is None:
            goes_on(world, second, seconds=0.1)
        assert TERMS.lease_seconds - TERMS.retry_seconds <= world.now - killed_at
        assert world.now - killed_at <= TERMS.lease_seconds + TERMS.retry_seconds + 0.2


def test_a_holder_that_cannot_renew_stops_before_another_begins() -> None:
    """It stops 10 s after its last renewal was sent; the other, which still reaches the cluster, begins 5 s later."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    cut_at = world.now
    stopped = began = None
    while began is None:
        goes_on(world, second, seconds=0.1)
        stopped = stopped or (world.now if first.term() is None else None)
        began = world.now if second.term() is not None else None
    assert stopped is not None
    assert stopped - cut_at <= TERMS.renew_deadline_seconds
    assert began - stopped >= TERMS.margin_seconds - 0.2


def test_time_counts_from_when_a_renewal_was_sent() -> None:
    """An answer that takes 4 s leaves 6 s of the deadline, not 10."""
    world = World()
    first = world.elector("first")
    first.step()
    slow = iter([0.0, 4.0])

    def wait() -> None:
        world.now += next(slow)

    world.weather = wait
    first.step()
    world.now += 5.9
    assert first.term() == 1
    world.now += 0.2
    assert first.term() is None


def test_a_frozen_leader_knows_at_once() -> None:
    """Stopped for longer than its lease and continued, it has no term before its next step, and none after it."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    goes_on(world, second, seconds=20)
    assert (first.term(), second.term()) == (None, 1)
    first.step()
    assert (first.term(), first.holder) == (None, "second")


def test_a_leader_that_returns_before_another_begins_leads_in_another_term() -> None:
    """Others may have published newer decisions since it lost the lease, so its state is not trusted."""
    world = World()
    first = world.elector("first")
    goes_on(world, first, seconds=10)
    world.now += 60
    assert first.term() is None
    first.step()
    assert first.term() == 2


def test_a_lease_that_is_let_go_is_taken_without_waiting() -> None:
    """It is taken at the other's next step; the process that released it does not lead any more."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    first.release()
    assert first.term() is None
    goes_on(world, second, seconds=TERMS.retry_seconds + 0.1)
    assert second.term() == 1


def test_a_renewal_whose_answer_is_lost_costs_no_term() -> None:
    """The renewal was written: the next step finds itself as the holder, and goes on."""
    world = World()
    first = world.elector("first")
    first.step()
    answers = iter([None, LeaseFailedError()])

    def lost() -> None:
        if (failure := next(answers)) is not None:
            raise failure

    world.weather = lost
    with pytest.raises(LeaseFailedError):
        first.step()
    world.weather = lambda: None
    world.now += 2
    first.step()
    assert first.term() == 1


def test_a_process_that_is_started_again_waits_for_the_one_before() -> None:
    """The new process has another identity, because the old one may be frozen and continue."""
    world = World()
    goes_on(world, world.elector("pod_1"), seconds=30)
    again = world.elector("pod_2")
    goes_on(world, again, seconds=14.9)
    assert again.term() is None
    goes_on(world, again, seconds=0.2)
    assert again.term() == 1


def test_a_lease_that_was_made_anew_is_not_taken_for_a_free_one() -> None:
    """Deleted and made again, it names no holder, while the earlier holder may still lead."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    world.by_hand(holder=None)
    goes_on(world, second, seconds=14.9)
    assert (first.term(), second.term()) == (None, None)
    goes_on(world, second, seconds=0.2)
    assert second.term() == 1


def test_a_lease_that_was_given_to_another_by_hand_ends_the_term() -> None:
    """The term ends as soon as the change is read, whatever is left of the deadline."""
    world = World()
    first = world.elector("first")
    first.step()
    world.by_hand(holder="other")
    first.step()
    assert first.term() is None


def test_a_lease_that_is_handed_over_is_taken_at_the_others_next_look_and_left_to_it() -> None:
    """The recommender whose store does not answer stands by for as long as the other leads."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    first.defer(to_others=True)
    first.hand_over()
    first.step()
    assert (first.term(), first.holder) == (None, "")
    goes_on(world, first, second, seconds=2 * TERMS.retry_seconds)
    assert (first.term(), second.term()) == (None, 1)
    goes_on(world, first, second, seconds=600)
    assert (first.term(), second.term()) == (None, 1)


@pytest.mark.parametrize("released", [True, False], ids=["released", "not released"])
def test_where_nobody_takes_the_lease_the_one_that_gave_it_up_leads_again(released: bool) -> None:  # noqa: FBT001  # a case
    """After 30 s, and no earlier, in a new term; also where the cluster did not answer as it gave the lease up."""
    world = World()
    first = world.elector("first")
    goes_on(world, first, seconds=29)
    first.defer(to_others=True)
    first.hand_over()
    if not released:
        world.weather = fails_once(world)
    goes_on(world, first, seconds=TERMS.retry_seconds)
    assert (first.term(), world.lease.holder) == (None, "" if released else "first")
    goes_on(world, first, seconds=TERMS.deference_seconds - 2 * TERMS.retry_seconds)
    assert first.term() is None
    goes_on(world, first, seconds=3 * TERMS.retry_seconds)
    assert first.term() == 2


def test_of_a_lease_that_could_not_be_given_up_others_take_it_first() -> None:
    """They wait until it expires, which is earlier than the time for which its holder leaves it to them."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=29)
    first.defer(to_others=True)
    first.hand_over()
    world.weather = fails_once(world)
    goes_on(world, first, second, seconds=TERMS.lease_seconds + 2 * TERMS.retry_seconds)
    assert (first.term(), second.term()) == (None, 1)


def fails_once(world: World) -> Callable[[], None]:
    """Weather in which the next request is not answered."""

    def weather() -> None:
        world.weather = lambda: None
        raise LeaseFailedError

    return weather


def test_a_standby_whose_store_does_not_answer_takes_a_lease_that_nobody_else_takes() -> None:
    """A killed leader is followed by the one that reaches its store; where there is none, 30 s later by the other."""
    world = World()
    killed, blind, well = (world.elector(name) for name in ("killed", "blind", "well"))
    blind.defer(to_others=True)
    goes_on(world, killed, blind, well, seconds=30)
    goes_on(world, blind, well, seconds=60)
    assert (blind.term(), well.term()) == (None, 1)
    goes_on(world, blind, seconds=TERMS.lease_seconds + TERMS.deference_seconds - 2 * TERMS.retry_seconds)
    assert blind.term() is None
    goes_on(world, blind, seconds=3 * TERMS.retry_seconds)
    assert blind.term() == 1
    blind.defer(to_others=False)
    blind.release()
    blind.step()
    assert blind.term() == 2


def test_a_leader_whose_store_does_not_answer_renews_its_lease_meanwhile() -> None:
    """It defers with the lease it does not hold alone: a renewal whose answer is lost costs no term either."""
    world = World()
    first, second = world.elector("first"), world.elector("second")
    goes_on(world, first, second, seconds=30)
    first.defer(to_others=True)
    answers = iter([None, LeaseFailedError()])

    def lost() -> None:
        if (failure := next(answers)) is not None:
            raise failure

    world.weather = lost
    with pytest.raises(LeaseFailedError):
        first.step()
    world.weather = lambda: None
    goes_on(world, first, second, seconds=600)
    assert (first.term(), second.term()) == (1, None)


NOW = datetime.fromisoformat("2026-01-05T12:00:00Z")
MINUTE = timedelta(minutes=1)


def test_a_lease_is_given_up_after_cycles_in_a_row_that_led_without_the_store() -> None:
    """One answer, or one cycle as a standby, and they are counted anew."""
    for leads, store_answers in ((True, True), (False, False), (False, True)):
        rule = HandOvers()
        cycles = [(True, False)] * (CYCLES_WITHOUT_STORE - 1) + [(leads, store_answers)]
        cycles += [(True, False)] * CYCLES_WITHOUT_STORE
        due = [
            rule.is_due(leads=leads, store_answers=answers, now=NOW + cycle * MINUTE)
            for cycle, (leads, answers) in enumerate(cycles)
        ]
        assert due == [False] * (len(cycles) - 1) + [True]


def test_a_lease_is_given_up_once_in_ten_minutes_whatever_the_clock_does() -> None:
    """Between two times the store may have answered; a clock that is set back by a day does not make it a day."""
    rule = HandOvers()

    def first_due(began_at: datetime) -> datetime:
        instants = (began_at + number * timedelta(seconds=15) for number in range(1000))
        return next(now for now in instants if rule.is_due(leads=True, store_answers=False, now=now))

    given_up_at = first_due(NOW)
    assert given_up_at == NOW + (CYCLES_WITHOUT_STORE - 1) * timedelta(seconds=15)
    assert not rule.is_due(leads=True, store_answers=True, now=given_up_at + MINUTE)
    assert first_due(given_up_at + 2 * MINUTE) == given_up_at + HAND_OVERS_APART
    assert first_due(NOW - timedelta(days=1)) < NOW - timedelta(days=1) + MINUTE


@pytest.mark.parametrize("seed", range(40))
def test_there_are_never_two(seed: int) -> None:
    """Three processes run for an hour with freezes, lost and slow requests, releases, restarts and deletions.

    Their stores come and go, and some give their leases up for that.
    """
    chance, world = random.Random(seed), World()  # noqa: S311  # a test's
    electors = [world.elector(f"{number}", ahead=chance.uniform(-1e6, 1e6)) for number in range(3)]
    due = [world.now] * 3
    terms: set[int] = set()

    def rough() -> None:
        world.now += chance.choice((0.0, 0.0, 0.01, 0.3, 3.0))
        leading(electors)
        if chance.random() < 0.05:
            raise LeaseFailedError

    world.weather = rough
    for event in range(3000):
        number = min(range(3), key=lambda each: due[each])
        world.now = max(world.now, due[number])
        try:
            wait = electors[number].step()
        except LeaseFailedError:
            wait = TERMS.retry_seconds
        leads = leading(electors)
        terms.update(leads)
        fate = chance.random()
        if fate < 0.02:
            wait += chance.uniform(5, 40)
        elif fate < 0.025:
            electors[number] = world.elector(f"{number}-{event}", ahead=chance.uniform(-1e6, 1e6))
        elif fate < 0.028:
            world.by_hand(holder=None, lease_seconds=15.0)
        elif fate < 0.05:
            electors[number].defer(to_others=fate < 0.04)
        elif fate < 0.06:
            electors[number].hand_over()
        due[number] = world.now + wait
    assert terms == {0, 1, 2}


def leading(electors: list[Elector]) -> list[int]:
    """The leader now; fails if there are several."""
    found = [number for number, elector in enumerate(electors) if elector.term() is not None]
    assert len(found) <= 1, found
    return found


def test_a_cycle_publishes_in_its_own_term_only() -> None:
    """The first cycle of a term is marked; a cycle whose term has ended is refused, also in a later term."""
    world = World()
    first = world.elector("first")
    fence = Fence(first)
    with pytest.raises(NotLeadingError):
        fence.enter()
    first.step()
    assert (fence.enter(), fence.enter()) == (True, False)
    fence.check()
    world.now += 11
    with pytest.raises(NotLeadingError, match="does not hold the lease"):
        fence.check()
    first.step()
    with pytest.raises(NotLeadingError):
        fence.check()
    assert fence.enter()


def test_a_lease_is_kept_through_any_trouble_and_let_go_in_the_end() -> None:
    """An unexpected error, such as an unreadable token, is logged once; the term begins after it."""
    world, began = World(), threading.Event()
    failures = iter([OSError("no such token")] * 3)

    def once() -> None:
        for failure in failures:
            raise failure

    world.weather = once
    elector = Elector(
        world, identity="a", clock=lambda: world.now, terms=LeaseTerms(lease_seconds=15, retry_seconds=0.01)
    )
    with capture_logs() as logs:
        with kept(elector, began=began):
            assert began.wait(10)
            assert elector.term() == 1
        assert elector.term() is None
    assert world.lease.holder == ""
    assert [line["event"] for line in logs] == ["lease_failed", "lease_reachable", "leading"]
