"""Candidates: the plans that are priced, from a grid of single moves and from searches on single quantile paths."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from cost_model.physics.skew import useful_counts
from cost_model.pricing.rollout import DRAIN_SECONDS, NO_MOVE, SimulationInputs
from cost_model.pricing.situation import Situation
from cost_model.search.optimise import search
from forecasting.units import FloatArray, IntArray

# Pairs (step, choice) that a plan may hold.
MOST_MOVES = 5
# Plans of several moves are proposals, priced like all others: a coarse grid proposes them in a third of the time.
PATH_LAG_POINTS = 20
# A path within two levels needs no more than a move up and one back, which are candidates anyway, unless it is a
# valley: only the path shows when the move back is due.
LEVELS_FOR_A_PATH = 3
# Steps between a move up and the one back.
STAYS_UP = (5, 10, 20, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Intended moves as (effective step, replicas); empty: react only.

    The last one is at the end of the horizon and keeps the present count: until then nothing is removed.
    """

    moves: tuple[tuple[int, int], ...]

    @property
    def single(self) -> bool:
        """True if the plan is one move that is kept."""
        return len(self.moves) == 2


@lru_cache(maxsize=1024)
def _times(first: int, steps: int) -> tuple[int, ...]:
    """Every useful time of a move: each of the next minutes, then every second one, later every fifth."""
    times = [step for step in range(first, steps) if step - first <= 10 or (step - first) % 5 == 0]
    return tuple(times)


def fixed_candidates(situation: Situation, inputs: SimulationInputs, choices: tuple[int, ...]) -> list[Plan]:
    """Candidates among the counts that any scenario needs, one more on either side."""
    calls = inputs.demand / inputs.capacity_factor[:, None]
    backlog = situation.lag_messages / DRAIN_SECONDS
    least, most = float(calls.min()), float(calls.max()) + backlog
    useful = np.flatnonzero(np.isin(inputs.replicas, _legal(situation)))
    carried = inputs.carried[useful]
    first = max(int(np.searchsorted(carried, least)) - 1, 0)
    last = min(int(np.searchsorted(carried, most)) + 1, len(useful) - 1)
    leads = inputs.lead[choices.index(situation.replicas)].astype(np.int64).tolist()
    targets = tuple(choices[place] for place in useful[first : last + 1])
    plans = _grid(
        targets,
        situation.replicas,
        leads=tuple(leads[choices.index(target)] for target in targets),
        steps=inputs.demand.shape[1],
        earliest=inputs.earliest_step,
        least_now=least_count_now(inputs, choices, backlog),
    )
    return list(plans)


def least_count_now(inputs: SimulationInputs, choices: tuple[int, ...], backlog: float) -> int:
    """The smallest count that carries the present arrivals: a move to fewer is only possible later."""
    place = int(np.searchsorted(inputs.carried, inputs.rate_now + backlog))
    return choices[min(place, len(choices) - 1)]


@lru_cache(maxsize=1024)
def _grid(
    targets: tuple[int, ...], present: int, *, leads: tuple[int, ...], steps: int, earliest: int, least_now: int
) -> tuple[Plan, ...]:
    """Hold and react first, then single moves, then up and back."""
    plans = [Plan(moves=((steps, present),)), Plan(moves=())]
    for target, lead in zip(targets, leads, strict=True):
        if target == present:
            continue
        first = max(earliest, lead if target > present else int(target < least_now))
        # A count needed now cannot be announced for later: a reaction would come before it, and the plan would only
        # come down from there.
        times = (first,) if least_now > present and target > present else _times(first, steps)
        plans += [Plan(moves=((at, target), (steps, target))) for at in times]
        if target > present:
            plans += [
                Plan(moves=((first, target), (first + up, present), (steps, present)))
                for up in STAYS_UP
                if first + up < steps
            ]
    return tuple(plans)


def peak_plans(
    situation: Situation, paths: FloatArray, inputs: SimulationInputs, choices: tuple[int, ...]
) -> list[Plan]:
    """Up when a path exceeds the rate that the present count carries, or a step before; back when it no longer does.

    `paths` (n, T) are quantiles of the scenarios. Each move is proposed with every useful count up to the one above the
    need of the peak. A step before, because a stop is cheaper there.
    """
    present, steps = choices.index(situation.replicas), inputs.demand.shape[1]
    leads, legal = inputs.lead[present].astype(np.int64).tolist(), _legal(situation)
    plans: dict[Plan, None] = {}
    for path in paths:
        above = path > inputs.carried[present]
        begins = int(above.argmax())
        ends = begins + int((~above[begins:]).argmax())
        if ends == begins:
            continue  # it stays below, or above to the end
        highest = int(np.searchsorted(inputs.carried, path[begins:ends].max())) + 1
        for target in range(present + 1, min(highest + 1, len(choices))):
            if choices[target] in legal:
                first = max(inputs.earliest_step, leads[target])
                plans |= {
                    Plan(moves=((at, choices[target]), (ends, situation.replicas), (steps, situation.replicas))): None
                    for at in (begins - 1, begins)
                    if first <= at
                }
    return list(plans)


def _legal(situation: Situation) -> tuple[int, ...]:
    profile = situation.profile
    return useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)


def path_plans(
    situation: Situation, paths: FloatArray, inputs: SimulationInputs, choices: tuple[int, ...], least_now: int
) -> Iterator[Plan]:
    """The best plans on each of `paths` (n, T) alone: quantiles of the scenarios."""
    leads = inputs.lead[choices.index(situation.replicas)].astype(np.int64).tolist()
    for path in paths:
        levels = np.minimum(np.searchsorted(inputs.carried, path), inputs.replicas.size - 1)
        valley = inputs.replicas[levels.min()] < situation.replicas and levels.min() < levels[-1]
        if len(np.unique(levels)) < LEVELS_FOR_A_PATH and not valley:
            continue
        found = search(replace(situation, demand_messages_per_second=path, lag_points=PATH_LAG_POINTS))
        best = found.best()
        if best is None:
            continue
        replicas = (situation.replicas, *found.path(best.target, best.effective_step))
        moves = [(step, after) for step, (before, after) in enumerate(pairwise(replicas)) if before != after]
        shifted = [
            (max(step, leads[choices.index(after)] if after > situation.replicas else int(after < least_now)), after)
            for step, after in moves
        ]
        kept = shifted[: MOST_MOVES - 1]
        yield Plan(moves=(*kept, (len(path), kept[-1][1])))


def encoded(plans: list[Plan], choices: tuple[int, ...]) -> IntArray:
    """(plans, 2 * MOST_MOVES): each plan as pairs (effective step, place among the choices), NO_MOVE after its last."""
    place = {count: position for position, count in enumerate(choices)}
    rows = np.full((len(plans), 2 * MOST_MOVES), NO_MOVE, dtype=np.int64)
    for row, plan in enumerate(plans):
        for position, (step, target) in enumerate(plan.moves):
            rows[row, 2 * position] = step
            rows[row, 2 * position + 1] = place[target]
    return rows
