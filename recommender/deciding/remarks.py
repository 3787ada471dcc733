"""Remarks: further findings on the group beside the move, one sentence each, with figures."""

from dataclasses import replace
from math import ceil

from cost_model.physics.calibrate import MovesPerDay
from cost_model.physics.capacity import useful_replicas
from cost_model.physics.skew import carried_by_count
from cost_model.pricing.situation import Situation
from cost_model.search.evaluation import PlanEvaluation
from cost_model.search.verdict import outweighed
from cost_model.search.worth import best_remedy
from forecasting.units import Replicas
from recommender.deciding.context import DecisionContext
from recommender.deciding.recommendation import LagCause

# A group that carries 5 % less than its even twin needs no sentence: capacity is known no better.
LEAST_LOSS_FRACTION = 0.05


def skew_remark(context: DecisionContext, *, replicas: int) -> str | None:
    """The limiting partition and its produce rate at so many replicas; None where it costs next to no capacity.

    It has the name that rows give it; otherwise it is the heaviest in the profile's weights.
    """
    profile, weights, capacity = context.profile, context.profile.partition_weights, context.capacity.p50
    if weights is None:
        return None
    (carried,) = carried_by_count(profile, (replicas,), capacity=capacity)
    (even,) = carried_by_count(replace(profile, partition_weights=None), (replicas,), capacity=capacity)
    if carried > (1.0 - LEAST_LOSS_FRACTION) * even:
        return None
    busiest = context.row.busiest_partition
    name = busiest if busiest is not None else str(weights.index(max(weights)))
    return (
        f"Partition {name} carries {max(weights) / sum(weights):.0%} of the load, and its replica falls behind first: "
        f"{_count(replicas)} {carried:,.0f}/s here, where even partitions would let them carry "
        f"{even:,.0f}/s."
    )


def wasted_remark(context: DecisionContext) -> str | None:
    """The replicas that carry nothing beyond what fewer carry; None where each of them helps, or partitions differ.

    They have no partition, or one so busy replica remains that the others wait for it: 24 partitions are 3 on the
    busiest of 9 replicas, as of 8.
    """
    profile, replicas = context.profile, context.replicas
    if profile.partition_weights is not None or replicas < 1:
        return None
    units = "partitions" if profile.streams is None else "tasks"
    helping = useful_replicas(profile.work_units, maximum=Replicas(replicas))[-1]
    if helping == replicas:
        return None
    wasted = replicas - helping
    if replicas > profile.work_units:
        have = "1 replica has none" if wasted == 1 else f"{wasted} replicas have none"
        return f"{profile.work_units} {units} are fewer than {replicas} replicas: {have}."
    pods = "1 pod is" if wasted == 1 else f"{wasted} pods are"
    most = ceil(profile.work_units / replicas)
    return (
        f"{replicas} replicas carry no more than {helping}, and {pods} wasted: the busiest has {most} of "
        f"{profile.work_units} {units} either way."
    )


def cause_remark(cause: LagCause | None) -> str | None:
    """What the owner can do about the messages that wait; None where none do, or replicas are what is missing."""
    if cause == "restart_backlog":
        return "Messages wait since the group stood still, as in a restart: the backlog drains by itself."
    if cause == "capacity_drop":
        return "Messages wait since replicas do less than they did: look at them, and at what they write to."
    return None


def risk_remark(found: PlanEvaluation, *, currency: str) -> str | None:
    """The reason why a plan with a cheaper mean was not chosen; None where the choice has the cheapest mean too."""
    passed_over = outweighed(found)
    if passed_over is None:
        return None
    row, less, more = passed_over
    other = "Staying" if row == found.stay_row else f"Going to {found.plans[row].moves[0][1]}"
    return (
        f"{other} would cost {less:.3f} {currency} less on average, but {more:.3f} more in its worst tenth of "
        f"scenarios, which this policy gives a weight of {found.risk_weight:g}."
    )


def remedy_remark(
    found: PlanEvaluation, situation: Situation, moves: MovesPerDay, *, sentences: tuple[str, ...]
) -> str | None:
    """The change of settings that makes moves cheaper by most, with its saving; None where the saving is too small.

    None as well where `sentences`, those that are published already, contain it.
    """
    best = best_remedy(found, situation, moves)
    if best is None or any(best[0].sentence in sentence for sentence in sentences):
        return None
    remedy, saving = best
    return (
        f"Saves about {saving:.2f} {situation.prices.currency} a day, at {moves.up + moves.down:.1f} moves a day: "
        f"{remedy.sentence}."
    )


def _count(replicas: int) -> str:
    return "1 replica carries" if replicas == 1 else f"{replicas} replicas carry"
