"""The value of a change of the group's settings: its saving on moves, at the group's frequency of moves."""

from dataclasses import replace

import numpy as np

from cost_model.physics.calibrate import MovesPerDay
from cost_model.physics.profile import GroupProfile
from cost_model.pricing.rollout import expected_move_cost
from cost_model.pricing.simulation_inputs import moves_of
from cost_model.pricing.situation import Situation
from cost_model.search.evaluation import PlanEvaluation
from cost_model.search.remedies import Remedy, other_ways, remedies
from forecasting.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

# The saving of a change has to reach one replica-day in a week before it is recommended.
LEAST_REPLICA_DAYS_PER_DAY = 1.0 / 7.0


def best_remedy(found: PlanEvaluation, situation: Situation, moves: MovesPerDay) -> tuple[Remedy, float] | None:
    """The change of settings that saves most, and its saving per day in currency; None: none is worth a sentence.

    Moves to the next counts are compared, at the present rate and in every scenario of pause and capacity, by the
    formulas: learned values hold for the present settings only.
    """
    if moves.up + moves.down <= 0.0:
        return None
    present = _price_per_day(found, situation, situation.profile, moves)
    ways = (*remedies(situation.profile), *other_ways(situation.profile))
    worth = [(present - _price_per_day(found, situation, way.profile, moves), way) for way in ways]
    most, best = max(worth, key=lambda pair: pair[0], default=(0.0, None))
    replica_day = situation.prices.price_per_replica_hour * SECONDS_PER_DAY / SECONDS_PER_HOUR
    if best is None or most < LEAST_REPLICA_DAYS_PER_DAY * replica_day:
        return None
    return best, most


def _price_per_day(found: PlanEvaluation, situation: Situation, profile: GroupProfile, moves: MovesPerDay) -> float:
    """Cost of a day's pauses, repeats and losses by moves under a profile; costs equal under all are left out."""
    place, last = found.start.choice, len(found.choices) - 1
    near = sorted({max(place - 1, 0), place, min(place + 1, last)})
    formulas = replace(situation, profile=profile, rebalance_pause_prior_seconds=None, quiet_seconds=None)
    effects = moves_of(formulas, tuple(found.choices[choice] for choice in near))
    nothing = np.zeros((2 * len(near), len(near)))
    inputs = found.inputs._replace(
        replicas=found.inputs.replicas[near],
        carried=found.inputs.carried[near],
        start_up=nothing,
        risk=nothing,
        restore=nothing,
        **effects._asdict(),
    )
    row = near.index(place)

    rates = np.full(inputs.demand.shape[0], inputs.rate_now)
    up = moves.up * expected_move_cost(inputs, row, row + 1, rates) if row + 1 < len(near) else 0.0
    down = moves.down * expected_move_cost(inputs, row, row - 1, rates) if row > 0 else 0.0
    return up + down
