"""Hindsight: the cheapest plan found by someone who saw the whole load beforehand.

An upper bound of the true optimum, not the optimum: plans come from a search on the minute rates of the true trace,
with several head-rooms and several reluctances to move. Each is replayed in the plant like everybody else's; the best
is changed in small ways, and a change is kept if its replay is cheaper.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

import numpy as np

from forecasting.units import IntArray
from replay.contest import Contest, Entry, entry_of
from replay.plans import (
    MINUTE_SECONDS,
    earlier_ups,
    later_ups,
    merged_moves,
    minute_plan,
    stretches_of,
    without_shortest_excursion,
)

HINDSIGHT = "hindsight"
HEAD_ROOMS = (0.95, 1.0, 1.05, 1.1, 1.2)
# Prices of one change in replica-hours: tried first, and then with the best head-room. Where pauses are short a change
# costs next to nothing; 3 is more than the planner's own prior risk.
FIRST_CHANGE_REPLICA_HOURS = 0.25
CHANGES_REPLICA_HOURS = (0.1, 1.0, 3.0)
SMALL_CHANGES: tuple[tuple[str, Callable[[IntArray], IntArray]], ...] = (
    ("ups a minute earlier", earlier_ups),
    ("ups a minute later", later_ups),
    ("moves within 5 min merged", partial(merged_moves, minutes=5)),
    ("moves within 10 min merged", partial(merged_moves, minutes=10)),
    ("moves within 15 min merged", partial(merged_moves, minutes=15)),
    ("without the shortest excursions", without_shortest_excursion),
)
MINUTES_PER_DAY = 1440


def best_plan(contest: Contest, others: Iterable[Entry]) -> Entry:
    """The cheapest of all plans replayed (at most 17) and of what the others did; it says which."""
    search = _Search(contest=contest)
    search.try_head_rooms()
    search.try_reluctances()
    search.try_small_changes()
    search.try_best_of_each_day()
    best = min([search.best.entry, *others], key=lambda entry: entry.bill.total)
    if best.policy == HINDSIGHT:
        return best
    return replace(best, policy=HINDSIGHT, note=f"best plan found: what {best.policy} did")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """A plan, what it is, how it was made, and what it came to in the plant."""

    plan: IntArray
    words: str
    head_room: float
    entry: Entry


@dataclass(slots=True, kw_only=True)
class _Search:
    """The plans replayed so far; none twice."""

    contest: Contest
    _tried: list[_Tried] = field(default_factory=list, init=False)
    _known: set[bytes] = field(default_factory=set, init=False)

    @property
    def best(self) -> _Tried:
        """The cheapest so far."""
        return min(self._tried, key=lambda tried: tried.entry.bill.total)

    def try_head_rooms(self) -> None:
        """The grid of head-rooms, then half-way from the best to its neighbours."""
        for head_room in HEAD_ROOMS:
            self._try_minute_plan(head_room, FIRST_CHANGE_REPLICA_HOURS)
        best = HEAD_ROOMS.index(self.best.head_room)
        for neighbour in {max(0, best - 1), min(best + 1, len(HEAD_ROOMS) - 1)} - {best}:
            self._try_minute_plan((HEAD_ROOMS[best] + HEAD_ROOMS[neighbour]) / 2.0, FIRST_CHANGE_REPLICA_HOURS)

    def try_reluctances(self) -> None:
        """The other prices of a change, at the best head-room."""
        head_room = self.best.head_room
        for change in CHANGES_REPLICA_HOURS:
            self._try_minute_plan(head_room, change)

    def try_small_changes(self) -> None:
        """Each small change of the best plan so far."""
        for words, change in SMALL_CHANGES:
            best = self.best
            self._try(change(best.plan), f"{best.words}, {words}", best.head_room)

    def try_best_of_each_day(self) -> None:
        """A plan with each day taken from the plan that was cheapest on it."""
        bills = np.array([[day.total for day in tried.entry.daily] for tried in self._tried])
        if bills.shape[1] > 1:
            cheapest = np.repeat(bills.argmin(axis=0), MINUTES_PER_DAY)
            plans = np.stack([tried.plan for tried in self._tried])
            minutes = np.arange(plans.shape[1])
            self._try(plans[cheapest[: minutes.size], minutes], "the best plan of each day", self.best.head_room)

    def _try_minute_plan(self, head_room: float, change_replica_hours: float) -> None:
        plan = minute_plan(
            self.contest.world,
            self.contest.trace,
            head_room=head_room,
            change_replica_hours=change_replica_hours,
            lead_minutes=ceil(self.contest.world.start_up_seconds / MINUTE_SECONDS),
        )
        words = f"minute plan, head-room {head_room:g}, a change at {change_replica_hours:g} replica-hours"
        self._try(plan, words, head_room)

    def _try(self, plan: IntArray, words: str, head_room: float) -> None:
        if plan.tobytes() in self._known:
            return
        self._known.add(plan.tobytes())
        entry = _replayed(self.contest, plan, note=f"best plan found: {words}")
        self._tried.append(_Tried(plan=plan, words=words, head_room=head_room, entry=entry))


def _replayed(contest: Contest, plan: IntArray, *, note: str) -> Entry:
    plant = contest.plant()
    for replicas, minutes in stretches_of(plan):
        plant.scale(replicas)
        plant.advance(MINUTE_SECONDS * minutes)
    return entry_of(HINDSIGHT, plant, contest, note=note)
