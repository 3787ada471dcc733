"""The plan search's problem as arrays: costs and effects of every replica count and every move, at every step."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cost_model.physics.backlog import HIGHEST_LOAD, spare
from cost_model.physics.capacity import BoolArray
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count, useful_counts
from cost_model.pricing.move_effects import MoveEffects, move_effects_now
from cost_model.pricing.price import Prices
from cost_model.pricing.simulation_inputs import (
    LEAST_CAPACITY_FRACTION,
    MovePrices,
    choices_of,
    known_capacity,
    price_moves,
)
from cost_model.pricing.situation import Situation
from cost_model.search.ending import Ending
from forecasting.units import SECONDS_PER_HOUR, FloatArray, MessagesPerSecond


class Problem(NamedTuple):
    """A `Situation` as compiled loops read it. Choice i is `choices[i]` replicas; (n, m) is the move from n to m.

    Shapes: H steps, a choices, G grid points. `fixed` (H, a, a) is the price of a move and of running its target for a
    step, infinite where the move cannot take effect; its diagonal is the price of staying. `change` (H, a, a) is the
    gain of the backlog, the stop of the move included, and `transient` (H, a, a) the messages that this stop makes
    late, all in messages; `arriving` (H,) too. `on_time` (a,) is the backlog that a choice consumes within the promised
    time. `held_price` is per message of backlog at each end of a step.
    """

    fixed: FloatArray
    change: FloatArray
    transient: FloatArray
    arriving: FloatArray
    on_time: FloatArray
    lag_grid: FloatArray
    late_price: float
    held_price: float


class RatePrices(NamedTuple):
    """The cost of replicas (a,) for one step, and of a move (n, m) by the produce rate, without its lateness.

    Per message/s of demand: `repeat` is work done twice and `drop` work that is never done, which counts as late.
    `in_flight` is repeated at any rate.
    """

    running: FloatArray
    repeat: FloatArray
    in_flight: FloatArray
    drop: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """One situation, tabulated: the problem to solve, its prices item by item, and the price of the end.

    `lead_seconds` (a, a) pass from the command of a move up to its effect.
    """

    choices: tuple[int, ...]
    problem: Problem
    rate_prices: RatePrices
    move_prices: MovePrices
    lead_seconds: FloatArray
    demand: FloatArray
    ending: Ending


def tabulate(situation: Situation) -> Tables:
    """The arrays of a situation.

    Errors: ValueError on unknown capacity, an empty path or a promise of no time; nothing can be planned then.
    """
    profile, prices, step = situation.profile, situation.prices, situation.step_seconds
    demand = _demand(situation)
    useful = useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)
    choices = choices_of(situation)
    replicas = np.array(choices, dtype=np.float64)
    carried = _carried(profile, choices)
    capacity = situation.target_utilization * carried
    # Plans of this search are proposals: the evaluation computes their cost while the group is behind.
    effects = move_effects_now(situation, choices, behind=False)
    rate_prices = _rate_prices(prices, replicas, effects, step=step)
    move_prices = price_moves(situation, choices, effects)
    lost = np.minimum(capacity[:, None], capacity[None, :]) * effects.lost_seconds
    moving = move_prices.start_up + rate_prices.in_flight + move_prices.restore + move_prices.risk + rate_prices.running
    per_rate = rate_prices.repeat + rate_prices.drop
    allowed = _allowed(situation, effects.lead_seconds, np.isin(replicas, useful), steps=demand.size)
    home = _home(capacity, float(demand[-1]))
    on_time, on_time_at_end = situation.max_lag_seconds * capacity, situation.max_lag_seconds * carried[home]
    problem = Problem(
        fixed=np.where(allowed, moving + per_rate * demand[:, None, None], np.inf),
        change=((demand[:, None] - capacity) * step)[:, None, :] + lost,
        transient=_transient(demand, capacity, effects, step=step),
        arriving=demand * step,
        on_time=on_time,
        lag_grid=_lag_grid(
            situation.lag_messages + float(demand.sum()) * step,
            float(lost.max()),
            np.append(on_time, on_time_at_end),
            points=situation.lag_points,
        ),
        late_price=float(prices.price_per_late_message),
        held_price=0.5 * prices.price_per_held_message_second * step,
    )
    ending = _ending(situation, problem, (rate_prices, move_prices), carried, home)
    return Tables(
        choices=choices,
        problem=problem,
        rate_prices=rate_prices,
        move_prices=move_prices,
        lead_seconds=effects.lead_seconds,
        demand=demand,
        ending=ending,
    )


def _demand(situation: Situation) -> FloatArray:
    group, demand = situation.profile.group, np.asarray(situation.demand_messages_per_second, dtype=np.float64)
    if demand.size == 0:
        message = f"the demand path of group '{group}' has 0 steps; a plan needs at least 1"
        raise ValueError(message)
    if not situation.max_lag_seconds > 0.0:
        message = f"max_lag_seconds of group '{group}' is {situation.max_lag_seconds}; a promise needs more than 0 s"
        raise ValueError(message)
    return demand


def _carried(profile: GroupProfile, choices: tuple[int, ...]) -> FloatArray:
    each = known_capacity(profile).p20
    carried = carried_by_count(profile, choices, capacity=each)
    floored: FloatArray = np.maximum(carried, LEAST_CAPACITY_FRACTION * each)
    return floored


def _rate_prices(prices: Prices, replicas: FloatArray, effects: MoveEffects, *, step: float) -> RatePrices:
    return RatePrices(
        running=prices.price_per_replica_hour * replicas * step / SECONDS_PER_HOUR,
        repeat=prices.price_per_duplicate_message * effects.repeated_seconds,
        in_flight=prices.price_per_duplicate_message * effects.in_flight_messages,
        drop=prices.price_per_late_message * effects.dropped_seconds,
    )


def _allowed(situation: Situation, lead_seconds: FloatArray, useful: BoolArray, *, steps: int) -> BoolArray:
    """(H, a, a): staying always; up once new replicas can carry something, down at once, and only to useful counts."""
    first = np.ceil(lead_seconds / situation.step_seconds).astype(np.int64)
    first = np.where(useful[None, :], np.maximum(first, situation.earliest_move_step), steps)
    np.fill_diagonal(first, 0)
    allowed: BoolArray = np.arange(steps)[:, None, None] >= first
    return allowed


def _transient(demand: FloatArray, capacity: FloatArray, effects: MoveEffects, *, step: float) -> FloatArray:
    """(H, a, a): messages that the stop of a move makes late within its step.

    Formula: demand * sum over classes of share * min(E[(pause - max_lag)+] / (1 - load), step).
    """
    catching_up = 1.0 / (1.0 - np.minimum(demand[:, None] / capacity, HIGHEST_LOAD))
    late = np.zeros((demand.size, capacity.size, capacity.size))
    for kind in range(effects.pause_shares.shape[2]):
        lasting = np.minimum(effects.pause_overruns[:, :, kind] * catching_up[:, None, :], step)
        late += effects.pause_shares[:, :, kind] * lasting
    late *= demand[:, None, None]
    return late


def _lag_grid(arriving: float, lost: float, on_time: FloatArray, *, points: int) -> FloatArray:
    """0, equal ratios from well under the backlog that is on time up to twice the greatest, and where lateness begins.

    Least prices bend at those last backlogs; with them on the grid totals of ordinary plans are right to 1 %.
    """
    most = float(on_time.max())
    top = max(2.0 * (arriving + lost), most)
    bottom = min(0.1 * most / len(on_time), 1e-4 * top)
    return np.unique(np.concatenate(([0.0], np.geomspace(bottom, top, points), on_time)))


def _home(capacity: FloatArray, demand: float) -> int:
    """The cheapest choice that carries a demand, or the one that carries most."""
    enough = np.flatnonzero(capacity >= demand)
    return int(enough[0]) if enough.size else int(np.argmax(capacity))


def _ending(
    situation: Situation, problem: Problem, moving: tuple[RatePrices, MovePrices], carried: FloatArray, home: int
) -> Ending:
    """The cost from each state at the end of the horizon on, the last step's demand continuing.

    The whole capacity consumes the backlog there: the target utilization is for plans, and this is after them.
    """
    last, (rate_prices, move_prices) = float(situation.demand_messages_per_second[-1]), moving
    moves = (
        problem.late_price * problem.transient[-1, :, home] + rate_prices.drop[:, home] * last,
        rate_prices.repeat[:, home] * last + rate_prices.in_flight[:, home],
        move_prices.start_up[:, home],
        move_prices.restore[:, home],
        move_prices.risk[:, home],
    )
    whole = MessagesPerSecond(float(carried[home]))
    return Ending(
        moves=np.column_stack(moves),
        backlog_price=situation.prices.price_per_replica_hour
        / (SECONDS_PER_HOUR * known_capacity(situation.profile).p20),
        late_price=problem.late_price * last / spare(produce=MessagesPerSecond(last), capacity=whole),
        on_time_messages=situation.max_lag_seconds * float(whole),
    )
