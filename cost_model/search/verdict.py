"""The results of the priced scenarios beyond the choice: its certainty, the counts of each tail, its sensitivity."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from cost_model.pricing.rollout import SimulationInputs
from cost_model.search.candidates import Plan
from cost_model.search.evaluation import TIE_FRACTION, PlanEvaluation, worst_tenth
from forecasting.units import FloatArray

Quantity = Literal["price_per_late_message", "rebalance_pause_seconds", "capacity", "forecast"]

QUANTITIES: tuple[Quantity, ...] = ("price_per_late_message", "rebalance_pause_seconds", "capacity", "forecast")
LOW_SHARE, HIGH_SHARE = 0.1, 0.9
MADE_SHARE = 0.5
# A decision that is the same at a sixteenth and at sixteen times a quantity does not depend on it.
MOST_OCTAVES = 4.0
# Six halvings of four octaves leave a sixteenth of an octave, 4 %.
HALVINGS = 6
# Repeated evaluations use the cheapest plans only: ten moves and staying in both ways, 0.7 ms a time.
CONTENDERS = 12


def confidence(found: PlanEvaluation, chosen: Plan | None) -> float:
    """Share of scenarios in which the choice costs no more: a move than staying, staying (None) than the best move."""
    stays = found.totals[found.stay_row]
    if chosen is not None:
        return _share_no_more_expensive(found.totals_of(chosen), stays)
    made = _made(found)
    if not made:
        return 1.0
    return _share_no_more_expensive(stays, found.totals[min(made, key=lambda row: float(found.objective[row]))])


def _share_no_more_expensive(own: FloatArray, other: FloatArray) -> float:
    return float((own <= other + TIE_FRACTION * np.abs(other)).mean())


def best_moves(found: PlanEvaluation) -> tuple[int, ...]:
    """Rows of the cheapest single move to each other count, cheapest first, of those that are really made.

    A move down waits until the load allows it, so that one planned for a moment that never comes has the price of
    staying; it is no continuation.
    """
    best: dict[int, int] = {}
    for row in sorted(_made(found), key=lambda row: float(found.objective[row])):
        if found.plans[row].single:
            best.setdefault(found.plans[row].moves[0][1], row)
    return tuple(best.values())


def outweighed(found: PlanEvaluation) -> tuple[int, float, float] | None:
    """The plan that is cheapest on average and was not chosen for its worst tenth of scenarios; None: there is none.

    Its row, how much less it costs on average, and how much more in its worst tenth, in currency.
    """
    best = found.best_row
    means, tails = found.totals.mean(axis=1), worst_tenth(found.totals)
    row = min((found.stay_row, *best_moves(found)), key=lambda row: float(means[row]))
    less, more = float(means[best] - means[row]), float(tails[row] - tails[best])
    rejected = less > TIE_FRACTION * abs(float(means[best])) and found.objective[row] > found.objective[best]
    return (row, less, more) if rejected else None


def _made(found: PlanEvaluation) -> list[int]:
    """Rows of plans that differ from holding in at least half of the scenarios."""
    held = found.totals[0]
    differs = (np.abs(found.totals - held) > TIE_FRACTION * np.abs(held)).mean(axis=1)
    return [row for row in range(2, len(found.plans)) if differs[row] >= MADE_SHARE]


def cheapest_counts(found: PlanEvaluation) -> tuple[int, int]:
    """The cheapest first counts if the scenario were known: those of the lowest and the highest tenth."""
    counts = np.array([found.replicas if row < 2 else plan.moves[0][1] for row, plan in enumerate(found.plans)])
    cheapest = counts[found.totals.argmin(axis=0)]
    lower = np.quantile(cheapest, LOW_SHARE, method="lower")
    upper = np.quantile(cheapest, HIGH_SHARE, method="higher")
    return int(lower), int(upper)


def begun_at_once(found: PlanEvaluation, plan: Plan) -> Plan:
    """The same plan with its first move made as early as possible."""
    first = found.at_once(plan.moves[0][1]).moves[0]
    return Plan(moves=(first, *plan.moves[1:]))


def valley(found: PlanEvaluation) -> tuple[int, int] | None:
    """The smallest count that carries the median scenario now, and for how many steps; None: none smaller than now's.

    To the end of the horizon where it is not outgrown.
    """
    demand = np.median(found.inputs.demand, axis=0)
    place = int(np.searchsorted(found.inputs.carried, max(float(demand[0]), found.inputs.rate_now)))
    if place >= len(found.choices) or found.choices[place] >= found.replicas:
        return None
    outgrown = np.flatnonzero(demand > found.inputs.carried[place])
    return found.choices[place], int(outgrown[0]) if outgrown.size else len(demand)


def turning_factor(found: PlanEvaluation, quantity: Quantity) -> float | None:
    """The factor nearest to 1 at which `quantity`, all else equal, reverses the decision between up, stay and down.

    Searched between a sixteenth and sixteen times, by halving, among the cheapest plans; None where neither end
    reverses it. The factor does reverse it; one that is 4 % nearer to 1 may not. More and less are halved together,
    because only the nearer is told: a way that turns later is not searched to its end.
    """
    rows = _contenders(found)
    present = _direction(found)

    def turns(octaves: float) -> bool:
        return _direction(found.replayed(_changed(found.inputs, quantity, 2.0**octaves), rows)) != present

    signs = [sign for sign in (1.0, -1.0) if turns(sign * MOST_OCTAVES)]
    return float(2.0 ** _nearest(turns, signs)) if signs else None


def _nearest(turns: Callable[[float], bool], signs: list[float]) -> float:
    """The octaves nearest to 0 at which the decision has turned, given the signs with which it does at the outermost.

    Of two that turn within the same half of a step it is the first.
    """
    stands, turned = 0.0, MOST_OCTAVES
    for _ in range(HALVINGS):
        middle = (stands + turned) / 2.0
        sooner = [sign for sign in signs if turns(sign * middle)]
        if sooner:
            signs, turned = sooner, middle
        else:
            stands = middle
    return signs[0] * turned


def _contenders(found: PlanEvaluation) -> list[int]:
    """Both ways of staying, the best plan, the best move to each of the cheapest targets, and the next cheapest."""
    cheapest = np.argsort(found.objective[2:], kind="stable") + 2
    rows = [0, 1, found.best_row, *found.best_of_each_target()[: CONTENDERS // 2], *cheapest.tolist()]
    return list(dict.fromkeys(rows))[:CONTENDERS]


def _direction(found: PlanEvaluation) -> int:
    """1: more replicas, -1: fewer, 0: stay."""
    best = found.best()
    return 0 if best is None else int(np.sign(best.target - found.replicas))


def _changed(inputs: SimulationInputs, quantity: Quantity, factor: float) -> SimulationInputs:
    """The inputs with one quantity multiplied by a factor."""
    if quantity == "price_per_late_message":
        return inputs._replace(price_late=factor * inputs.price_late, price_held=factor * inputs.price_held)
    if quantity == "rebalance_pause_seconds":
        return inputs._replace(pauses=factor * inputs.pauses)
    if quantity == "forecast":
        return inputs._replace(demand=factor * inputs.demand)
    return inputs._replace(
        carried=factor * inputs.carried,
        class_carried=factor * inputs.class_carried,
        price_backlog=inputs.price_backlog / factor,
    )
