"""Several recommenders on one store: one decides, others stand by, and a change of leader loses nothing."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.cluster.leadership import (
    CYCLES_WITHOUT_STORE,
    HAND_OVERS_APART,
    Elector,
    Fence,
    FencedPublisher,
    NotLeadingError,
)
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.ports import AccountPart, Obstacle, Publisher, UnavailableError
from recommender.run import Recommender, run_forever
from recommender.watched_groups import WatchedGroups
from tests.recommender.leases import TERMS, World, goes_on
from tests.recommender.loop import RecordingPublisher, Rows

Row = Callable[..., GroupInterval]
NOW = datetime.fromisoformat("2026-01-05T12:00:00Z")
MINUTE = timedelta(minutes=1)
KILLS = 200


@dataclass
class Replica:
    """One of several recommenders, with its parts."""

    name: str
    elector: Elector
    fence: Fence
    store: SqlDecisionStore
    loop: Recommender

    def cycle(self, now: datetime) -> None:
        """One cycle, leading or standing by."""
        run_forever(self.loop, instants=iter([now]), fence=self.fence)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def rows(row: Row) -> Rows:
    """An hour of steady rows."""
    return Rows([row(NOW - timedelta(seconds=15 * back), 5000.0) for back in reversed(range(240))])


@pytest.fixture
def replica(world: World, rows: Rows, profile: GroupProfile, tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    """`replica("a", [publisher])`: a recommender on the store and the lease that all of them share."""
    made: list[Replica] = []

    def make(identity: str, publishers: Sequence[Publisher] = ()) -> Replica:
        elector = world.elector(identity)
        fence = Fence(elector)
        store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"), may_write=fence.check)
        loop = Recommender(
            watched=WatchedGroups(
                histories=rows,
                profile_of=lambda _cluster, group, _partitions: replace(profile, group=group),
                settings=DecisionSettings(),
                store=store,
                timer=perf_counter,
            ),
            publishers=[FencedPublisher(each, fence) for each in publishers],
        )
        made.append(Replica(identity, elector, fence, store, loop))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


def test_a_recommender_that_stands_by_stores_and_publishes_nothing(replica: Callable[..., Replica]) -> None:
    """It reads the obstacles, as a leader does, so that its answers are up to date."""
    received, looked = RecordingPublisher(), []
    waiting = replica("a", [received])

    def look() -> dict[tuple[str, str], Obstacle]:
        looked.append(True)
        return {}

    waiting.loop.obstacles = look
    for minute in range(3):
        waiting.cycle(NOW + minute * MINUTE)
    assert (received.decisions, waiting.store.groups(), len(looked)) == ([], (), 3)


def test_a_recommender_that_stands_by_has_decided_once_before_it_leads(
    replica: Callable[..., Replica], rows: Rows
) -> None:
    """Compiling loops takes 10 s and more without a cache; a group without advice is not taken for the trial."""
    rows.poisoned["bad"] = KeyError("odd")
    waiting = replica("a")
    for minute in range(3):
        waiting.cycle(NOW + minute * MINUTE)
    assert waiting.loop._rehearsed
    assert len(rows.asked_since) == 1
    assert waiting.loop.watched._watched == {}


def test_a_lead_that_is_lost_in_a_cycle_ends_the_cycle(
    replica: Callable[..., Replica], world: World, rows: Rows
) -> None:
    """What was published before the loss stays; the rest is left to the new leader, and the loop stands by.

    Decisions are stored together, while it leads, before the first of them is published.
    """
    rows.rows = [replace(row, group=f"group-{index}") for index in range(3) for row in rows.rows]
    received: list[str] = []

    class Slow:
        def publish(self, decision: Decision) -> None:
            received.append(decision.group)
            world.now += 6

    leader = replica("a", [Slow()])
    leader.elector.step()
    leader.cycle(NOW)
    leader.cycle(NOW + MINUTE)
    assert received == ["group-0", "group-1"]
    assert leader.store.groups() == (("c", "group-0"), ("c", "group-1"), ("c", "group-2"))


def test_a_write_that_has_waited_for_too_long_is_undone(
    replica: Callable[..., Replica], advice: Callable[..., Recommendation], world: World
) -> None:
    """The lease is checked last, after every lock, so a database that hangs makes no late decision."""
    leader = replica("a")
    leader.elector.step()
    leader.fence.enter()
    leader.store.save(advice(group="before"))
    world.now += TERMS.renew_deadline_seconds
    with pytest.raises(NotLeadingError):
        leader.store.save(advice(group="after", recommendation_id="r-2"))
    assert leader.store.groups() == (("prod-eu", "before"),)


def test_while_the_store_fails_a_leader_refuses_and_one_that_has_lost_its_lead_says_nothing(
    replica: Callable[..., Replica], world: World
) -> None:
    """The database takes back the writes that a frozen process had begun, which looks like an unreachable store."""
    received = RecordingPublisher()
    leader = replica("a", [received])
    leader.elector.step()

    def away(_: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        message = "the connection is gone"
        raise UnavailableError(message)

    leader.loop.watched.store = Saving(leader.store, away)  # type: ignore[assignment]  # the rest of the port is the store's
    leader.cycle(NOW)
    assert [each.reason for each in received.decisions] == ["source_unreachable"]

    def frozen(decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        world.now += TERMS.lease_seconds
        away(decided)

    leader.loop.watched.store = Saving(leader.store, frozen)  # type: ignore[assignment]  # as above
    leader.cycle(NOW + MINUTE)
    assert len(received.decisions) == 1


@dataclass
class Shared:
    """The store of all as one of them reaches it, or does not."""

    store: SqlDecisionStore
    away: bool = False

    def __getattr__(self, name: str) -> object:
        if self.away:
            message = "no route to the store"
            raise UnavailableError(message)
        return getattr(self.store, name)


def cut_off(replica: Replica) -> Shared:
    """Its store, which does not answer from now on."""
    shared = Shared(replica.store, away=True)
    replica.loop.watched.store = shared  # type: ignore[assignment]  # the port is the store's
    return shared


CYCLE_SECONDS = 15
CYCLE = timedelta(seconds=CYCLE_SECONDS)


def cycles(world: World, *replicas: Replica, count: int, now: datetime) -> Iterator[list[str]]:
    """So many cycles of each, with the steps for their leases between them; the names of the leaders after each."""
    for number in range(1, count + 1):
        goes_on(world, *(each.elector for each in replicas), seconds=CYCLE_SECONDS)
        for each in replicas:
            each.cycle(now + number * CYCLE)
        yield [each.name for each in replicas if each.elector.term() is not None]


def test_a_leader_that_has_lost_its_store_hands_over_to_one_that_reaches_it(
    replica: Callable[..., Replica], world: World
) -> None:
    """It refuses meanwhile; the advice of the other names its last one, and it leads again when the other is gone."""
    received = RecordingPublisher()
    first, second = replica("a", [received]), replica("b", [received])
    list(cycles(world, first, second, count=2, now=NOW))
    advised = received.decisions[-1]
    shared = cut_off(first)
    leaders = list(cycles(world, first, second, count=20, now=NOW + 2 * CYCLE))
    assert leaders == [["a"]] * CYCLES_WITHOUT_STORE + [["b"]] * (20 - CYCLES_WITHOUT_STORE)
    refused = [each for each in received.decisions if isinstance(each, Refusal)]
    assert [each.reason for each in refused] == ["source_unreachable"] * CYCLES_WITHOUT_STORE
    after = received.decisions[received.decisions.index(refused[-1]) + 1]
    assert isinstance(advised, Recommendation)
    assert isinstance(after, Recommendation)
    assert after.supersedes == advised.recommendation_id
    shared.away = False
    list(cycles(world, first, second, count=1, now=NOW + 22 * CYCLE))
    second.elector.release()
    assert list(cycles(world, first, count=1, now=NOW + 23 * CYCLE)) == [["a"]]
    assert isinstance(received.decisions[-1], Recommendation)


@pytest.mark.parametrize("count", [1, 2])
def test_a_store_that_is_away_for_all_costs_a_twentieth_of_the_lead_for_each(
    replica: Callable[..., Replica], world: World, count: int
) -> None:
    """In three hours each gives its lease up every ten minutes at most, and leaders refuse in all other cycles."""
    received = RecordingPublisher()
    replicas = [replica(name, [received]) for name in "ab"[:count]]
    list(cycles(world, *replicas, count=2, now=NOW))
    shared = [cut_off(each) for each in replicas]
    received.decisions.clear()
    long = timedelta(hours=3)
    cycles_of_outage = long // CYCLE
    leaders = list(cycles(world, *replicas, count=cycles_of_outage, now=NOW + MINUTE))
    hand_overs = sum(before != [] and after == [] for before, after in pairwise(leaders))
    assert long // HAND_OVERS_APART <= hand_overs <= count * (long // HAND_OVERS_APART + 1)
    without_leader = leaders.count([])
    assert without_leader * CYCLE_SECONDS <= hand_overs * (TERMS.deference_seconds + CYCLE_SECONDS)
    assert [each.reason for each in received.decisions if isinstance(each, Refusal)] == ["source_unreachable"] * (
        cycles_of_outage - without_leader
    )
    for each in shared:
        each.away = False
    list(cycles(world, *replicas, count=2, now=NOW + long + 2 * MINUTE))
    # The rows of this test end where it begins.
    assert received.decisions[-1].reason == "history_stale"


def test_a_new_leader_goes_on_from_the_last_published_advice(
    replica: Callable[..., Replica], world: World, rows: Rows, row: Row
) -> None:
    """Each advice names the one before it, whichever process made it, in both directions."""
    received = RecordingPublisher()
    first, second = replica("a", [received]), replica("b", [received])
    for each in (first, second):
        each.cycle(NOW)
    now = NOW
    for leader, other in ((first, second), (second, first), (first, second)):
        goes_on(world, leader.elector, seconds=20)
        for each in (leader, other, leader):
            now += MINUTE
            rows.rows += [row(now - timedelta(seconds=15 * back), 5000.0) for back in reversed(range(4))]
            each.cycle(now)
        leader.elector.release()
    published = [decision for decision in received.decisions if isinstance(decision, Recommendation)]
    assert len(published) == 6
    assert [each.supersedes for each in published] == [None, *(each.recommendation_id for each in published[:-1])]


class KilledError(BaseException):
    """The process is killed; nothing after this instant is done."""


@dataclass
class Killer:
    """A publisher before or behind others, which ends its process at the given moment."""

    chance: random.Random
    armed: bool = False

    def publish(self, _decision: Decision) -> None:
        """Do nothing, or end the process."""
        if self.armed and self.chance.random() < 0.5:
            raise KilledError


@pytest.mark.slow
def test_p5_two_hundred_leaders_killed_while_they_publish_leave_one_history(
    replica: Callable[..., Replica], world: World, rows: Rows, row: Row
) -> None:
    """After the decision was made, stored or published: every id appears once, and each names the one before.

    What was published is in the store, and the next leader's first advice is out within 20 s of the kill.
    """
    chance, received, now = random.Random(7), RecordingPublisher(), NOW  # noqa: S311  # a test's
    killers = {}

    def fresh(number: int) -> Replica:
        before, between, after = (Killer(chance) for _ in range(3))
        made = replica(f"process-{number}", [between, received, after])
        real = made.store.save_all

        def save_all(decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
            for decision, _ in decided:
                before.publish(decision)
            real(decided)

        # The moment between the decision and its storing has no publisher of its own.
        made.loop.watched.store = Saving(made.store, save_all)  # type: ignore[assignment]  # the rest of the port is the store's
        killers[id(made)] = (before, between, after)
        return made

    leader, other = fresh(0), fresh(1)
    goes_on(world, leader.elector, seconds=1)
    latest: list[float] = []
    for number in range(KILLS):
        killed_at = None
        for killer in killers[id(leader)]:
            killer.armed = True
        while killed_at is None:
            now += MINUTE
            rows.rows = [*rows.rows[-240:], *(row(now - timedelta(seconds=15 * b), 5000.0) for b in (3, 2, 1, 0))]
            goes_on(world, leader.elector, other.elector, seconds=60)
            try:
                leader.cycle(now)
            except KilledError:
                killed_at = world.now
        out = len(received.decisions)
        while len(received.decisions) == out:
            goes_on(world, other.elector, seconds=0.1)
            now += timedelta(seconds=0.1)
            if other.elector.term() is not None:
                other.cycle(now)
        latest.append(world.now - killed_at)
        leader.store.close()
        leader, other = other, fresh(number + 2)
    assert max(latest) < 20
    kept = leader.store.history("c", "orders", NOW, now + MINUTE)
    published = [each.recommendation_id for each in received.decisions if isinstance(each, Recommendation)]
    ids = [each.recommendation_id for each in kept if isinstance(each, Recommendation)]
    assert len(ids) == len(kept) == len(set(ids))
    assert len(published) == len(set(published)) >= KILLS
    assert [each for each in ids if each in set(published)] == published
    assert [each.supersedes for each in kept if isinstance(each, Recommendation)] == [None, *ids[:-1]]


class Saving:
    """A store with another `save_all`."""

    def __init__(
        self,
        store: SqlDecisionStore,
        save_all: Callable[[Sequence[tuple[Decision, Sequence[AccountPart]]]], None],
    ) -> None:
        self._store, self.save_all = store, save_all

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)
