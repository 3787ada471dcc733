"""Hindsight: the cheapest plan found with the whole load known beforehand.

An upper bound of the true optimum, not the optimum: plans come from a search on the minute rates of the true trace,
with several capacity factors and several reluctances to move. Each is replayed in the plant like every policy's; the
best is changed in small ways, and a change is kept if its replay is cheaper.
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
CAPACITY_FACTORS = (0.95, 1.0, 1.05, 1.1, 1.2)
# Prices of one change in replica-hours: tried first, and then with the best capacity factor. Where pauses are short a
# change costs next to nothing; 3 is more than the planner's own prior risk.
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
    """The cheapest of all plans replayed (at most 17) and of the others' plans; its name is in the note."""
    search = _Search(contest=contest)
    search.try_capacity_factors()
    search.try_reluctances()
    search.try_small_changes()
    search.try_best_of_each_day()
    best = min([search.best.entry, *others], key=lambda entry: entry.cost.total)
    if best.policy == HINDSIGHT:
        return best
    return replace(best, policy=HINDSIGHT, note=f"best plan found: what {best.policy} did")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """A plan, its kind, how it was made, and its cost in the plant."""

    plan: IntArray
    words: str
    capacity_factor: float
    entry: Entry


@dataclass(slots=True, kw_only=True)
class _Search:
    """The plans replayed so far; each one once."""

    contest: Contest
    _tried: list[_Tried] = field(default_factory=list, init=False)
    _known: set[bytes] = field(default_factory=set, init=False)

    @property
    def best(self) -> _Tried:
        """The cheapest so far."""
        return min(self._tried, key=lambda tried: tried.entry.cost.total)

    def try_capacity_factors(self) -> None:
        """The grid of capacity factors, then half-way from the best to its neighbours."""
        for capacity_factor in CAPACITY_FACTORS:
            self._try_minute_plan(capacity_factor, FIRST_CHANGE_REPLICA_HOURS)
        best = CAPACITY_FACTORS.index(self.best.capacity_factor)
        for neighbour in {max(0, best - 1), min(best + 1, len(CAPACITY_FACTORS) - 1)} - {best}:
            self._try_minute_plan(
                (CAPACITY_FACTORS[best] + CAPACITY_FACTORS[neighbour]) / 2.0, FIRST_CHANGE_REPLICA_HOURS
            )

    def try_reluctances(self) -> None:
        """The other prices of a change, at the best capacity factor."""
        capacity_factor = self.best.capacity_factor
        for change in CHANGES_REPLICA_HOURS:
            self._try_minute_plan(capacity_factor, change)

    def try_small_changes(self) -> None:
        """Each small change of the best plan so far."""
        for words, change in SMALL_CHANGES:
            best = self.best
            self._try(change(best.plan), f"{best.words}, {words}", best.capacity_factor)

    def try_best_of_each_day(self) -> None:
        """A plan with each day taken from the plan that was cheapest on it."""
        costs = np.array([[day.total for day in tried.entry.daily] for tried in self._tried])
        if costs.shape[1] > 1:
            cheapest = np.repeat(costs.argmin(axis=0), MINUTES_PER_DAY)
            plans = np.stack([tried.plan for tried in self._tried])
            minutes = np.arange(plans.shape[1])
            self._try(plans[cheapest[: minutes.size], minutes], "the best plan of each day", self.best.capacity_factor)

    def _try_minute_plan(self, capacity_factor: float, change_replica_hours: float) -> None:
        plan = minute_plan(
            self.contest.world,
            self.contest.trace,
            capacity_factor=capacity_factor,
            change_replica_hours=change_replica_hours,
            lead_minutes=ceil(self.contest.world.start_up_seconds / MINUTE_SECONDS),
        )
        words = f"minute plan, capacity factor {capacity_factor:g}, a change at {change_replica_hours:g} replica-hours"
        self._try(plan, words, capacity_factor)

    def _try(self, plan: IntArray, words: str, capacity_factor: float) -> None:
        if plan.tobytes() in self._known:
            return
        self._known.add(plan.tobytes())
        entry = _replayed(self.contest, plan, note=f"best plan found: {words}")
        self._tried.append(_Tried(plan=plan, words=words, capacity_factor=capacity_factor, entry=entry))


def _replayed(contest: Contest, plan: IntArray, *, note: str) -> Entry:
    plant = contest.plant()
    for replicas, minutes in stretches_of(plan):
        plant.scale(replicas)
        plant.advance(MINUTE_SECONDS * minutes)
    return entry_of(HINDSIGHT, plant, contest, note=note)
