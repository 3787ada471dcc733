"""Minute plans: how many replicas in each minute, made by a search on the true rates, and changed in small ways.

A plan is an array with one count for each minute. It is given capacity and the useful replica counts; the effects of
rebalances are left to a replay.
"""

from itertools import groupby

import numpy as np

from forecasting.cheapest_path import cheapest_path
from forecasting.units import FloatArray, IntArray
from replay.trace import Trace
from replay.world import World

MINUTE_SECONDS = 60
WITHIN_MINUTE_QUANTILE = 0.9


def minute_plan(
    world: World, trace: Trace, *, capacity_factor: float, change_replica_hours: float, lead_minutes: int
) -> IntArray:
    """Replicas for each minute that carry the load at the least replica time plus price of changes; ups come early.

    `capacity_factor` times the load has to be carried; where that is more than all replicas carry, all are used.
    """
    demand = np.minimum(_demand(trace) * capacity_factor, world.carried(world.replica_ceiling))
    counts = _counts(world)
    carried = np.array([world.carried(int(count)) for count in counts])
    # A rounding error in a product of rates must not change the useful count.
    price = np.where(carried[None, :] >= demand[:, None] * (1.0 - 1e-12), counts[None, :] / 60.0, np.inf)
    plan: IntArray = counts[cheapest_path(price, change_replica_hours)]
    for _ in range(lead_minutes):
        plan = earlier_ups(plan)
    return plan


def _demand(trace: Trace) -> FloatArray:
    """Per minute the mean or, where the trace is finer than a minute, the rate exceeded a tenth of the time."""
    minutes = -(-trace.duration_seconds // MINUTE_SECONDS)
    if trace.step_seconds % MINUTE_SECONDS == 0:
        return np.repeat(trace.messages_per_second, trace.step_seconds // MINUTE_SECONDS)
    seconds = np.minimum(np.arange(minutes * MINUTE_SECONDS), trace.duration_seconds - 1)
    rates = trace.messages_per_second[seconds // trace.step_seconds].reshape(minutes, MINUTE_SECONDS)
    peak: FloatArray = np.maximum(rates.mean(axis=1), np.quantile(rates, WITHIN_MINUTE_QUANTILE, axis=1))
    return peak


def _counts(world: World) -> IntArray:
    """The replica counts that carry more than the count below."""
    every = range(world.min_replicas, world.replica_ceiling + 1)
    useful = [next(group) for _, group in groupby(every, key=world.carried)]
    return np.array(useful, dtype=np.int64)


def earlier_ups(plan: IntArray) -> IntArray:
    """The plan with each increase a minute earlier.

    >>> earlier_ups(np.array([6, 6, 12, 12, 8]))
    array([ 6, 12, 12, 12,  8])
    """
    early: IntArray = np.maximum(plan, np.append(plan[1:], plan[-1]))
    return early


def later_ups(plan: IntArray) -> IntArray:
    """The plan with each increase a minute later.

    >>> later_ups(np.array([6, 6, 12, 12, 8]))
    array([ 6,  6,  6, 12,  8])
    """
    late: IntArray = np.minimum(plan, np.insert(plan[:-1], 0, plan[0]))
    return late


def merged_moves(plan: IntArray, *, minutes: int) -> IntArray:
    """The plan without stretches of at most `minutes` between moves: the higher neighbour lasts longer, peaks stay.

    >>> merged_moves(np.array([4, 4, 4, 6, 8, 8, 8, 6, 4, 4, 3, 4, 4]), minutes=1)
    array([4, 4, 4, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4])
    """
    stretches = stretches_of(plan)
    for place in range(1, len(stretches) - 1):
        (before, _), (count, length), (after, _) = stretches[place - 1 : place + 2]
        if length <= minutes:
            # Between two ups it is the later count, between two downs the earlier one, in a dip the lower side.
            filled = min(before, after) if count < min(before, after) else max(before, after)
            stretches[place] = (max(count, filled), length)
    return _laid_out(stretches)


def without_shortest_excursion(plan: IntArray) -> IntArray:
    """The plan without its shortest peaks and dips: those as short as any; of neighbours, the first.

    >>> without_shortest_excursion(np.array([4, 4, 6, 4, 4, 3, 3, 4, 4]))
    array([4, 4, 4, 4, 4, 3, 3, 4, 4])
    """
    stretches = stretches_of(plan)
    sides = {
        place: sorted((stretches[place - 1][0], stretches[place + 1][0])) for place in range(1, len(stretches) - 1)
    }
    excursions = [place for place, (lower, upper) in sides.items() if not lower < stretches[place][0] < upper]
    shortest = min((stretches[place][1] for place in excursions), default=0)
    gone = 0
    for place in excursions:
        (count, length), (lower, upper) = stretches[place], sides[place]
        if length == shortest and (not gone or place - gone > 1):
            gone = place
            stretches[place] = (upper if count > upper else lower, length)
    return _laid_out(stretches)


def stretches_of(plan: IntArray) -> list[tuple[int, int]]:
    """Each count with the minutes that it lasts."""
    return [(count, sum(1 for _ in minutes)) for count, minutes in groupby(plan.tolist())]


def _laid_out(stretches: list[tuple[int, int]]) -> IntArray:
    counts, lengths = zip(*stretches, strict=True)
    return np.repeat(np.array(counts, dtype=np.int64), lengths)
