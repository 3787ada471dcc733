"""The plan search's question as arrays: what each replica count carries and costs, what each move does and costs."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from math import ceil
from typing import NamedTuple

import numpy as np

from cost_model.backlog import HIGHEST_LOAD, expected_overrun, spare
from cost_model.capacity import group_capacity, useful_replicas
from cost_model.duplicates import repeated_seconds
from cost_model.price import Prices
from cost_model.profile import GroupProfile
from cost_model.rebalance import move_effect
from cost_model.situation import Situation
from forecasting.units import SECONDS_PER_HOUR, FloatArray, IntArray, MessagesPerSecond, Replicas, Seconds

LAG_POINTS = 80
# A group without replicas carries nothing; a billionth of one replica keeps its waiting time a number.
LEAST_CAPACITY_FRACTION = 1e-9


class Problem(NamedTuple):
    """A `Situation` as compiled loops read it. Choice i is `choices[i]` replicas; (n, m) is the move from n to m.

    Shapes: H steps, a choices, G lag grid points. `running_price` is for one step; `repeat_price` is per message/s of
    demand; `lost_messages` is what the stop of a move keeps the group from consuming. `pause_shares` and
    `pause_overruns` (a, a, 2) describe the classes of partitions that stop. A move may not take effect before its
    `first_step`, which is H where it is never available.
    """

    demand: FloatArray
    step_seconds: float
    max_lag_seconds: float
    capacity: FloatArray
    running_price: FloatArray
    risk_price: float
    start_up_price: FloatArray
    repeat_price: FloatArray
    late_price: float
    held_price: float
    lost_messages: FloatArray
    pause_shares: FloatArray
    pause_overruns: FloatArray
    first_step: IntArray
    lag_grid: FloatArray


class Switches(NamedTuple):
    """What every move (n, m) does, whatever it costs: lost seconds of the whole group's work, repeated ones, stops."""

    lost_seconds: FloatArray
    repeated_seconds: FloatArray
    pause_shares: FloatArray
    pause_overruns: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ending:
    """The price of the state a plan ends in; without it every plan sheds replicas and hoards lag at the end.

    From (n, backlog) the group goes on to the cheapest count that carries the last demand: the move there, replica time
    for working the backlog off, and the messages that are late until it is gone.
    Shapes: `moves` is (a, 4): pause_late, duplicates, start_up, risk of the move from each choice.
    """

    moves: FloatArray
    backlog_price: float
    late_price: float
    on_time_messages: float  # backlog that is worked off within max_lag

    def late(self, backlog: FloatArray | float) -> FloatArray:
        """Price of what arrives late while the backlog drains."""
        priced: FloatArray = self.late_price * np.maximum(np.asarray(backlog) - self.on_time_messages, 0.0)
        return priced

    def values(self, lag_grid: FloatArray) -> FloatArray:
        """(a, G): the whole price for each choice and backlog."""
        priced: FloatArray = self.moves.sum(axis=1)[:, None] + self.backlog_price * lag_grid + self.late(lag_grid)
        return priced


def legal_choices(situation: Situation) -> tuple[int, ...]:
    """The useful replica counts within the group's bounds, and the present one."""
    profile = situation.profile
    useful = useful_replicas(profile.partitions, minimum=profile.min_replicas, maximum=profile.max_replicas)
    return tuple(sorted({*useful, situation.replicas}))


def tabulate(situation: Situation, choices: tuple[int, ...]) -> Problem:
    """The arrays of a situation.

    Errors: ValueError on a profile of unknown capacity or an empty path; nothing can be planned then.
    """
    profile, prices, step = situation.profile, situation.prices, situation.step_seconds
    demand = np.ascontiguousarray(situation.demand_messages_per_second, dtype=np.float64)
    if demand.size == 0:
        message = f"the demand path of group '{profile.group}' has 0 steps; a plan needs at least 1"
        raise ValueError(message)
    switches = _switches(
        replace(profile, capacity=None),
        choices,
        pause_prior_seconds=situation.pause_prior_seconds,
        pause_spread=situation.pause_spread,
        max_lag_seconds=situation.max_lag_seconds,
    )
    replicas = np.array(choices, dtype=np.float64)
    capacity = situation.head_room * _carried(profile, choices)
    lost = np.minimum(capacity[:, None], capacity[None, :]) * switches.lost_seconds
    return Problem(
        demand=demand,
        step_seconds=float(step),
        max_lag_seconds=float(situation.max_lag_seconds),
        capacity=capacity,
        running_price=prices.replica_hour * replicas * step / SECONDS_PER_HOUR,
        risk_price=float(prices.move),
        start_up_price=_start_up_price(profile, prices, replicas),
        repeat_price=prices.duplicate_message * switches.repeated_seconds,
        late_price=float(prices.late_message),
        held_price=float(prices.held_message_second),
        lost_messages=lost,
        pause_shares=switches.pause_shares,
        pause_overruns=switches.pause_overruns,
        first_step=_first_steps(situation, choices, steps=demand.size),
        lag_grid=_lag_grid(situation, demand, capacity, lost),
    )


def ending_of(situation: Situation, problem: Problem, choices: tuple[int, ...]) -> Ending:
    """What it costs to go on from each state at the end of the horizon, the last step's demand continuing."""
    last = problem.demand[-1]
    enough = np.flatnonzero(problem.capacity >= last)
    home = int(enough[0]) if enough.size else int(np.argmax(problem.capacity))
    carried = float(_carried(situation.profile, choices)[home])  # without head-room: the end is not an hour to plan for
    moving = np.arange(len(choices)) != home
    load = min(last / problem.capacity[home], HIGHEST_LOAD)
    overrun = np.minimum(problem.pause_overruns[:, home] / (1.0 - load), problem.step_seconds)
    pause_late = problem.late_price * last * (problem.pause_shares[:, home] * overrun).sum(axis=1)
    moves = np.column_stack(
        [pause_late, problem.repeat_price[:, home] * last, problem.start_up_price[:, home], moving * problem.risk_price]
    )
    per_replica = _capacity_of(situation.profile)
    unused = spare(produce=MessagesPerSecond(last), capacity=MessagesPerSecond(carried))
    return Ending(
        moves=moves,
        backlog_price=situation.prices.replica_hour / (SECONDS_PER_HOUR * per_replica),
        late_price=problem.late_price * last / unused,
        on_time_messages=problem.max_lag_seconds * carried,
    )


def _capacity_of(profile: GroupProfile) -> MessagesPerSecond:
    if profile.capacity is None or not profile.capacity.p20 > 0.0:
        message = f"the capacity of group '{profile.group}' is unknown or 0 messages/s; a plan needs one above 0"
        raise ValueError(message)
    return profile.capacity.p20


def _carried(profile: GroupProfile, choices: tuple[int, ...]) -> FloatArray:
    capacity = _capacity_of(profile)
    carried = [group_capacity(Replicas(n), partitions=profile.partitions, capacity=capacity) for n in choices]
    floored: FloatArray = np.maximum(np.array(carried, dtype=np.float64), LEAST_CAPACITY_FRACTION * capacity)
    return floored


def _start_up_price(profile: GroupProfile, prices: Prices, replicas: FloatArray) -> FloatArray:
    """Replica time that a move pays for without getting work: starting pods going up, leaving ones going down."""
    more = replicas[None, :] - replicas[:, None]
    seconds = np.where(more > 0.0, profile.start_up_seconds, profile.termination_grace_seconds)
    price: FloatArray = prices.replica_hour * np.abs(more) * seconds / SECONDS_PER_HOUR
    return price


def _first_steps(situation: Situation, choices: tuple[int, ...], *, steps: int) -> IntArray:
    """When each move can first take effect: up after the start-up, down at once; to illegal counts never."""
    replicas = np.array(choices)
    start_up = ceil(situation.profile.start_up_seconds / situation.step_seconds)
    first = np.where(replicas[None, :] > replicas[:, None], start_up, 0)
    first = np.maximum(first, situation.earliest_move_step)
    profile = situation.profile
    useful = useful_replicas(profile.partitions, minimum=profile.min_replicas, maximum=profile.max_replicas)
    first[:, ~np.isin(replicas, useful)] = steps
    return first.astype(np.int64)


def _lag_grid(situation: Situation, demand: FloatArray, capacity: FloatArray, lost: FloatArray) -> FloatArray:
    """0, then LAG_POINTS - 1 backlogs in equal ratios: from what max_lag allows up to twice what can pile up."""
    arriving = float(demand.sum()) * situation.step_seconds
    top = 2.0 * (situation.lag_messages + arriving + float(lost.max())) or float(capacity.max())
    allowed = situation.max_lag_seconds * float(capacity[-1]) / len(capacity)
    bottom = min(0.1 * allowed or top, 1e-4 * top)
    return np.concatenate(([0.0], np.geomspace(bottom, top, LAG_POINTS - 1)))


@lru_cache(maxsize=1024)
def _switches(
    profile: GroupProfile,
    choices: tuple[int, ...],
    *,
    pause_prior_seconds: float | None,
    pause_spread: float,
    max_lag_seconds: float,
) -> Switches:
    """Remembered per profile, since a group's moves stay what they are while its demand and prices change."""
    size = len(choices)
    lost, repeated = np.zeros((size, size)), np.zeros((size, size))
    shares, overruns = np.zeros((size, size, 2)), np.zeros((size, size, 2))
    prior = None if pause_prior_seconds is None else Seconds(pause_prior_seconds)
    limit = Seconds(max_lag_seconds)
    for n, m in permutations(range(size), 2):
        before, after = Replicas(choices[n]), Replicas(choices[m])
        effect = move_effect(profile, from_replicas=before, to_replicas=after, pause_prior_seconds=prior)
        lost[n, m] = effect.lost_partition_seconds / profile.partitions
        repeated[n, m] = repeated_seconds(profile, from_replicas=before, to_replicas=after)
        for position, pause in enumerate(effect.pauses):
            shares[n, m, position] = pause.share
            overruns[n, m, position] = expected_overrun(mean=pause.mean_seconds, spread=pause_spread, limit=limit)
    return Switches(lost_seconds=lost, repeated_seconds=repeated, pause_shares=shares, pause_overruns=overruns)
