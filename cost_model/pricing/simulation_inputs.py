"""The inputs of the simulation of plans: capacities of a group's counts, effects of moves, and the scenarios."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.physics.skew import carried_by_count, load_classes, useful_counts
from cost_model.pricing.move_effects import MoveEffects, move_effects_now
from cost_model.pricing.price import BYTES_PER_GIGABYTE
from cost_model.pricing.rollout import SimulationInputs
from cost_model.pricing.situation import Situation, Uncertainty
from forecasting.units import SECONDS_PER_HOUR, FloatArray, MessagesPerSecond

# A group without replicas carries nothing; a billionth of one replica keeps its waiting time finite.
LEAST_CAPACITY_FRACTION = 1e-9
_SEED = 11
# The slower quarter of equal replicas: at a spread of 5 % it is 6 % slower than the mean.
SLOW_SHARE = 0.25
SLOW_SPEED = 0.94


def simulation_inputs_of(situation: Situation, uncertainty: Uncertainty) -> tuple[SimulationInputs, tuple[int, ...]]:
    """The arrays of the compiled loop, and the replica counts of its choices."""
    profile, prices, step = situation.profile, situation.prices, situation.step_seconds
    choices, known = choices_of(situation), known_capacity(profile)
    each = known.p50
    carried = carried_by_count(profile, choices, capacity=MessagesPerSecond(each))
    # The present count may carry less than a smaller useful one; its classes show it, and levels have to climb.
    levels = np.maximum.accumulate(np.maximum(carried, LEAST_CAPACITY_FRACTION * each))
    capacity = situation.target_utilization * levels
    class_shares, class_replicas = replica_classes(profile, choices)
    keeping_up = move_effects_now(situation, choices, behind=False)
    move_prices = price_moves(situation, choices, keeping_up)
    # A copy, because numba compiles the loop, for 6 s, a second time for a read-only array.
    demand = np.array(uncertainty.demand_messages_per_second, order="C")
    pauses, capacities = _drawn(demand.shape[0], situation.pause_spread, float(np.log(known.p90 / each) / 1.2816))
    lead = keeping_up.lead_seconds / step
    reaction = np.maximum(0.0, keeping_up.lead_seconds + uncertainty.notice_seconds - step) / step
    return (
        SimulationInputs(
            replicas=np.array(choices, dtype=np.float64),
            carried=capacity,
            class_shares=class_shares,
            class_carried=situation.target_utilization * each * class_replicas,
            start_up=_twice(move_prices.start_up),
            risk=_twice(move_prices.risk),
            restore=_twice(move_prices.restore),
            **moves_of(situation, choices)._asdict(),
            demand=demand,
            pause_factor=pauses,
            capacity_factor=capacities,
            price_running=prices.price_per_replica_hour * step / SECONDS_PER_HOUR,
            price_late=prices.price_per_late_message,
            price_held=0.5 * prices.price_per_held_message_second * step,
            price_repeated=prices.price_per_duplicate_message,
            price_backlog=prices.price_per_replica_hour / (SECONDS_PER_HOUR * each),
            step_seconds=float(step),
            max_lag_seconds=float(situation.max_lag_seconds),
            lead=lead,
            reaction=reaction,
            rest_up_steps=uncertainty.rest_up_steps,
            rest_down_steps=uncertainty.rest_down_steps,
            earliest_step=situation.earliest_move_step,
            rate_now=float(uncertainty.rate_now_messages_per_second),
        ),
        choices,
    )


def choices_of(situation: Situation) -> tuple[int, ...]:
    """The counts that a plan may go to, ascending: the useful ones, and the present one."""
    profile = situation.profile
    useful = useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)
    return tuple(sorted({*useful, situation.replicas}))


def known_capacity(profile: GroupProfile) -> Capacity:
    """One replica's capacity.

    Errors: ValueError where it is unknown or 0; nothing can be planned then.
    """
    if profile.capacity is None or not profile.capacity.p20 > 0.0:
        message = f"the capacity of group '{profile.group}' is unknown or 0 messages/s; a plan needs one above 0"
        raise ValueError(message)
    return profile.capacity


class MovePrices(NamedTuple):
    """The cost of a move (n, m) at any produce rate, in currency; each array is (a, a)."""

    start_up: FloatArray
    restore: FloatArray
    risk: FloatArray


def price_moves(situation: Situation, choices: tuple[int, ...], effects: MoveEffects) -> MovePrices:
    """Replica time that gets no work (pods that start or warm up, or that are leaving), state read again, and risk."""
    prices, replicas = situation.prices, np.array(choices, dtype=np.float64)
    more = replicas[None, :] - replicas[:, None]
    idle_seconds = np.where(more > 0.0, effects.lead_seconds, situation.profile.termination_grace_seconds)
    return MovePrices(
        start_up=prices.price_per_replica_hour * np.abs(more) * idle_seconds / SECONDS_PER_HOUR,
        restore=prices.price_per_restored_gigabyte / BYTES_PER_GIGABYTE * effects.restored_bytes,
        risk=prices.price_per_move * (more != 0.0),
    )


class Moves(NamedTuple):
    """The arrays of `SimulationInputs` on stops, repeats and losses of moves, (2a, a, ...): keeping up, then behind."""

    in_flight: FloatArray
    repeated: FloatArray
    dropped: FloatArray
    shares: FloatArray
    pauses: FloatArray


def moves_of(situation: Situation, choices: tuple[int, ...]) -> Moves:
    """The effects of moves between these counts on the group."""
    both = [move_effects_now(situation, choices, behind=behind) for behind in (False, True)]
    return Moves(
        in_flight=np.vstack([moves.in_flight_messages for moves in both]),
        repeated=np.vstack([moves.repeated_seconds for moves in both]),
        dropped=np.vstack([moves.dropped_seconds for moves in both]),
        shares=np.vstack([moves.pause_shares for moves in both]),
        pauses=np.vstack([moves.rebalance_pause_seconds for moves in both]),
    )


def _twice(moves: FloatArray) -> FloatArray:
    """The cost of a move, the same for a group that keeps up and for one that is behind."""
    return np.vstack((moves, moves))


def replica_classes(profile: GroupProfile, choices: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Shares of the load, and the work of how many usual replicas, (a, 3): the busiest slow ones, other busiest, rest.

    Fourteen replicas on 120 partitions: eight hold nine each, 0.6 of all, two of these being slow; six hold eight.
    """
    share, busiest, others = load_classes(profile, choices)
    shares = np.column_stack((SLOW_SHARE * share, (1.0 - SLOW_SHARE) * share, 1.0 - share))
    replicas = np.column_stack((SLOW_SHARE * SLOW_SPEED * busiest, (1.0 - SLOW_SHARE) * busiest, others))
    return shares, replicas


@lru_cache(maxsize=64)
def _drawn(scenarios: int, pause_spread: float, capacity_spread: float) -> tuple[FloatArray, FloatArray]:
    """A pause factor of mean 1 and a capacity factor of median 1 for each scenario, log-normal."""
    random = np.random.default_rng(_SEED)
    pauses = np.exp(pause_spread * random.standard_normal(scenarios) - 0.5 * pause_spread**2)
    return pauses, np.exp(capacity_spread * random.standard_normal(scenarios))
