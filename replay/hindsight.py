"""Hindsight: the cheapest plan found by someone who saw the whole load beforehand.

An upper bound of the true optimum, not the optimum: plans come from a search on the minute rates of the true trace,
with several head-rooms and several reluctances to move, and each is replayed in the plant like everybody else's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, product

import numpy as np

from forecasting.units import FloatArray, IntArray
from replay.contest import Contest, Entry, entry_of
from replay.trace import Trace
from replay.world import World

HINDSIGHT = "hindsight"
HEAD_ROOMS = (1.0, 1.05, 1.1, 1.2)
# Price of one change in replica-hours: half of one, and as much as the planner's own prior risk.
CHANGE_REPLICA_HOURS = (0.5, 2.0)
MINUTE_SECONDS = 60
WITHIN_MINUTE_QUANTILE = 0.9


def best_plan(contest: Contest, others: Iterable[Entry]) -> Entry:
    """The cheapest of all plans replayed and of what the others did; it says which."""
    planned = (_replayed(contest, room, reluctance) for room, reluctance in product(HEAD_ROOMS, CHANGE_REPLICA_HOURS))
    best = min([*planned, *others], key=lambda entry: entry.bill.total)
    if best.policy == HINDSIGHT:
        return best
    return replace(best, policy=HINDSIGHT, note=f"best plan found: what {best.policy} did")


def minute_plan(world: World, trace: Trace, *, head_room: float, change_replica_hours: float) -> IntArray:
    """Replicas for each minute that carry the load at the least replica time plus price of changes; ups a minute early.

    Where the load is more than all replicas carry, all of them it is.
    """
    demand = np.minimum(_demand(trace) * head_room, world.carried(world.replica_ceiling))
    counts = _counts(world)
    carried = np.array([world.carried(int(count)) for count in counts])
    running = counts / 60.0
    price = np.where(carried[None, :] >= demand[:, None] - 1e-9, running[None, :], np.inf)
    plan = counts[_cheapest_path(price, change_replica_hours)]
    ahead = np.concatenate([plan[1:], plan[-1:]])
    early: IntArray = np.maximum(plan, ahead)
    return early


def _demand(trace: Trace) -> FloatArray:
    """Per minute the mean or, where the trace is finer than a minute, the rate exceeded a tenth of the time."""
    minutes = -(-trace.duration_seconds // MINUTE_SECONDS)
    last = trace.duration_seconds - 1
    seconds = np.minimum(np.arange(minutes * MINUTE_SECONDS), last)
    rates = trace.messages_per_second[seconds // trace.step_seconds].reshape(minutes, MINUTE_SECONDS)
    peak: FloatArray = np.maximum(rates.mean(axis=1), np.quantile(rates, WITHIN_MINUTE_QUANTILE, axis=1))
    return peak


def _counts(world: World) -> IntArray:
    """The counts that carry more than the one below."""
    every = range(world.min_replicas, world.replica_ceiling + 1)
    useful = [next(group) for _, group in groupby(every, key=world.carried)]
    return np.array(useful, dtype=np.int64)


def _cheapest_path(price: FloatArray, change: float) -> IntArray:
    """Index of the count for each minute: least sum of prices, `change` more whenever the count differs."""
    minutes, choices = price.shape
    came_from = np.empty((minutes, choices), dtype=np.int64)
    total = price[0].copy()
    for minute in range(1, minutes):
        cheapest = int(np.argmin(total))
        moved = total[cheapest] + change
        came_from[minute] = np.where(total <= moved, np.arange(choices), cheapest)
        total = np.minimum(total, moved) + price[minute]
    path = np.empty(minutes, dtype=np.int64)
    path[-1] = int(np.argmin(total))
    for minute in range(minutes - 1, 0, -1):
        path[minute - 1] = came_from[minute, path[minute]]
    return path


def _replayed(contest: Contest, head_room: float, change_replica_hours: float) -> Entry:
    plan = minute_plan(contest.world, contest.trace, head_room=head_room, change_replica_hours=change_replica_hours)
    plant = contest.plant()
    for replicas, seconds in _stretches(plan):
        plant.scale(replicas)
        plant.advance(seconds)
    note = f"best plan found: minute plan, head-room {head_room:g}, a change at {change_replica_hours:g} replica-hours"
    return entry_of(HINDSIGHT, plant, contest, note=note)


def _stretches(plan: IntArray) -> Iterator[tuple[int, int]]:
    """Each count with the seconds that it lasts."""
    for replicas, minutes in groupby(plan.tolist()):
        yield replicas, MINUTE_SECONDS * sum(1 for _ in minutes)
