"""The decision: one group's history and forecast in, a priced recommendation or a refusal out.

Pure: the live loop, a notebook and the replay call the same `recommend`, so what is judged is what runs.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise

import numpy as np

from cost_model.backlog import backlog_from_visible_lag
from cost_model.capacity import useful_replicas
from cost_model.duplicates import expected_duplicates
from cost_model.optimise import PlannedMove, PlanSearch, Situation, search
from cost_model.price import Prices
from cost_model.profile import Capacity, GroupProfile
from cost_model.rebalance import move_effect
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import SECONDS_PER_HOUR, FloatArray, Messages, MessagesPerSecond, Replicas, Seconds
from recommender.decision import DecisionSettings
from recommender.explain import explain
from recommender.facts import Facts, read_facts
from recommender.guards import Proposal, Scene, pass_guards, rest_seconds
from recommender.recommendation import (
    Action,
    Decision,
    ForecastSummary,
    Observed,
    PricedPlan,
    ReasonCode,
    Recommendation,
    Switch,
)

STEP_SECONDS = 60
# Plans within a tenth of a move's risk price of the best one are as good: they make the window in which to act.
WINDOW_TOLERANCE_IN_MOVES = 0.1


def recommend(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
) -> Decision:
    """How many replicas, and when, at the least expected price; or why nothing can be said.

    `previous` is the recommendation in force until now: it tells whether a move is still under way. `now` is
    timezone-aware. Bad states of the world come back as a `Refusal`; a `ValueError` is the caller's bug.
    """
    facts = read_facts(history, profile, settings, now=now)
    if isinstance(facts, Refusal):
        return facts
    if isinstance(forecast, Refusal):
        return replace(forecast, hold_replicas=facts.replicas)
    if previous is not None and _under_way(previous, facts, profile, now=now):
        return _still_under_way(previous, facts, settings, now=now)
    scene = _scene(history, facts, previous, profile, settings, now=now)
    prices = prices_for(settings, facts.capacity)
    found = search(_situation(scene, forecast, prices))
    best = found.best()
    case = _Case(
        history=history,
        forecast=forecast,
        facts=facts,
        scene=scene,
        prices=prices,
        found=found,
        best=best,
        previous=previous,
    )
    return _published(pass_guards(_proposed(best, scene), scene), case)


def prices_for(settings: DecisionSettings, capacity: Capacity) -> Prices:
    """The settings' prices, the missing ones scaled by what one replica of this group consumes."""
    return Prices.from_replica_hour(
        settings.replica_hour,
        capacity=capacity.p50,
        currency=settings.currency,
        late_message=settings.late_message,
        duplicate_message=settings.duplicate_message,
        move=settings.move,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """All that a published recommendation is written from."""

    history: History
    forecast: Forecast
    facts: Facts
    scene: Scene
    prices: Prices
    found: PlanSearch
    best: PlannedMove | None
    previous: Recommendation | None


def _under_way(previous: Recommendation, facts: Facts, profile: GroupProfile, *, now: datetime) -> bool:
    """Whether the previous move was due, has not shown in the members yet, and may still be starting."""
    if previous.action == "hold" or previous.execute_at > now or facts.replicas == previous.desired_replicas:
        return False
    # Start-up times differ between pods: the last of several is ready about twice the mean after the command.
    patience = 2 * profile.start_up_seconds + profile.termination_grace_seconds
    return now < previous.execute_at + timedelta(seconds=patience)


def _still_under_way(
    previous: Recommendation, facts: Facts, settings: DecisionSettings, *, now: datetime
) -> Recommendation:
    sentence = (
        f"The move to {previous.desired_replicas} was due at {previous.execute_at:%H:%M:%S}; "
        f"{facts.replicas} members have joined so far. One move at a time."
    )
    waiting = replace(
        previous,
        supersedes=previous.recommendation_id,
        issued_at=now,
        valid_until=now + timedelta(seconds=settings.valid_for_seconds),
        current_replicas=facts.replicas,
        observed=_observed(facts),
        reason="warming_up",
        sentences=(sentence,),
    )
    return _named(waiting)


def _scene(
    history: History,
    facts: Facts,
    previous: Recommendation | None,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    now: datetime,
) -> Scene:
    rate = MessagesPerSecond(facts.produce_messages_per_second)
    backlog = backlog_from_visible_lag(
        Messages(facts.lag_messages), consume=rate, commit_interval=profile.commit_interval_seconds
    )
    return Scene(
        now=now,
        replicas=facts.replicas,
        backlog_messages=backlog,
        produce_messages_per_second=rate,
        latest=facts.row,
        last_move_at=_last_move_at(history, previous, now=now),
        profile=profile,
        settings=settings,
    )


def _last_move_at(history: History, previous: Recommendation | None, *, now: datetime) -> datetime | None:
    """When the group last changed size, as its own member counts tell, or was last asked to."""
    members = [(row.interval_end_at, row.members) for row in history.recent if row.members is not None]
    changes = [at for (_, before), (at, after) in pairwise(members) if before != after]
    if previous is not None and previous.action != "hold" and previous.execute_at <= now:
        changes.append(previous.execute_at)
    return max(changes, default=None)


def _situation(scene: Scene, forecast: Forecast, prices: Prices) -> Situation:
    settings, profile = scene.settings, scene.profile
    earliest = 0.0
    if scene.last_move_at is not None:
        rested_at = scene.last_move_at + timedelta(seconds=rest_seconds(profile, settings, removing=False))
        earliest = max(0.0, (rested_at - scene.now).total_seconds())
    return Situation(
        profile=profile,
        prices=prices,
        demand_messages_per_second=_demand(forecast, settings, now=scene.now),
        step_seconds=Seconds(STEP_SECONDS),
        replicas=scene.replicas,
        lag_messages=Messages(scene.backlog_messages),
        max_lag_seconds=Seconds(settings.max_lag_seconds),
        head_room=settings.head_room,
        pause_prior_seconds=Seconds(settings.pause_prior_seconds),
        earliest_move_step=int(np.ceil(earliest / STEP_SECONDS)),
    )


def _demand(forecast: Forecast, settings: DecisionSettings, *, now: datetime) -> FloatArray:
    """The quantile path that plans must carry, from `now` on; its last value stands for what lies beyond it."""
    path = forecast.path(settings.planning_quantile)
    passed = max(0, int((now - forecast.origin_at).total_seconds() // STEP_SECONDS))
    steps = settings.horizon_seconds // STEP_SECONDS
    ahead = path[min(passed, len(path) - 1) :][:steps]
    return np.concatenate([ahead, np.full(steps - len(ahead), ahead[-1])])


def _proposed(best: PlannedMove | None, scene: Scene) -> Proposal:
    if best is None:
        return Proposal(target=scene.replicas, command_at=scene.now)
    command_at = scene.now + timedelta(seconds=best.command_step * STEP_SECONDS)
    return Proposal(target=best.target, command_at=command_at)


def _published(proposal: Proposal, case: _Case) -> Recommendation:
    scene, facts, found, best = case.scene, case.facts, case.found, case.best
    now, profile, settings = scene.now, scene.profile, scene.settings
    moves = best is not None and proposal.target != scene.replicas
    chosen = found.itemised(best.target, best.effective_step) if best is not None and moves else found.stay
    lead = profile.start_up_seconds if proposal.target > scene.replicas else 0.0
    not_before, latest_safe = _window(case, best) if best is not None and moves else (now, now)
    switch = _switch(proposal.target, scene)
    useful = useful_replicas(
        profile.partitions, minimum=profile.min_replicas, maximum=Replicas(profile.replica_ceiling)
    )
    draft = Recommendation(
        recommendation_id="",
        cluster=profile.cluster,
        group=profile.group,
        topics=tuple(facts.row.topics.split(",")),
        issued_at=now,
        valid_until=now + timedelta(seconds=settings.valid_for_seconds),
        action=_action(proposal.target, scene.replicas),
        current_replicas=scene.replicas,
        desired_replicas=proposal.target,
        uncapped_replicas=best.target if best is not None else scene.replicas,
        useful_replicas=useful,
        execute_at=proposal.command_at,
        not_before=not_before,
        latest_safe=latest_safe,
        effective_at=proposal.command_at + timedelta(seconds=lead + switch.pause_seconds),
        lead_time_seconds=lead,
        observed=_observed(facts),
        history_seconds=float(case.history.minutes * STEP_SECONDS),
        data_counts=_counts(case.history),
        capacity=facts.capacity,
        forecast=_summary(case.forecast),
        switch=switch,
        horizon_seconds=float(settings.horizon_seconds),
        currency=settings.currency,
        chosen=chosen,
        stay=found.stay,
        break_even_seconds=_break_even_seconds(case, best) if best is not None and moves else None,
        alternatives=_priced_plans(found, scene),
        reason=_reason(proposal, scene, useful),
        sentences=(),
        binding_rule=proposal.binding_rule,
        supersedes=case.previous.recommendation_id if case.previous is not None else None,
    )
    return _named(replace(draft, sentences=(*explain(draft), *proposal.sentences)))


def _priced_plans(found: PlanSearch, scene: Scene) -> tuple[PricedPlan, ...]:
    plans = [PricedPlan(desired_replicas=scene.replicas, execute_at=None, cost=found.stay)]
    for curve in found.single_moves:
        move = curve.best()
        if move is not None:
            at = scene.now + timedelta(seconds=move.command_step * STEP_SECONDS)
            cost = found.itemised(move.target, move.effective_step)
            plans.append(PricedPlan(desired_replicas=move.target, execute_at=at, cost=cost))
    return tuple(sorted(plans, key=lambda plan: (plan.cost.total, plan.desired_replicas)))


def _window(case: _Case, best: PlannedMove) -> tuple[datetime, datetime]:
    """The instants between which the command may be given for a price that is as good as the best.

    A plan cannot tell the seconds of one step apart, so the window lasts to the end of its last step.
    """
    first, last = case.found.window(best.target, WINDOW_TOLERANCE_IN_MOVES * case.prices.move)
    lead_steps = best.effective_step - best.command_step
    now = case.scene.now
    return (
        now + timedelta(seconds=max(0, first - lead_steps) * STEP_SECONDS),
        now + timedelta(seconds=max(0, last - lead_steps + 1) * STEP_SECONDS),
    )


def _switch(target: int, scene: Scene) -> Switch:
    profile = scene.profile
    if target == scene.replicas:
        return Switch(
            protocol_profile=profile.protocol,
            pause_seconds=0.0,
            moved_partition_fraction=0.0,
            expected_rebalances=0.0,
            duplicate_messages=0.0,
        )
    effect = move_effect(
        profile,
        from_replicas=Replicas(scene.replicas),
        to_replicas=Replicas(target),
        pause_prior_seconds=Seconds(scene.settings.pause_prior_seconds),
    )
    duplicates = expected_duplicates(
        profile,
        from_replicas=Replicas(scene.replicas),
        to_replicas=Replicas(target),
        consume=MessagesPerSecond(scene.produce_messages_per_second),
    )
    return Switch(
        protocol_profile=profile.protocol,
        pause_seconds=effect.pause_seconds,
        moved_partition_fraction=effect.moved_fraction,
        expected_rebalances=effect.expected_rebalances,
        duplicate_messages=duplicates,
    )


def _break_even_seconds(case: _Case, best: PlannedMove) -> float | None:
    """How long a smaller group has to stay smaller before it has paid for the move; None where nothing is removed."""
    removed = case.scene.replicas - best.target
    if removed <= 0:
        return None
    price = case.found.switch_price(best.target, best.effective_step)
    return price / (case.prices.replica_hour * removed) * SECONDS_PER_HOUR


def _reason(proposal: Proposal, scene: Scene, useful: tuple[int, ...]) -> ReasonCode:
    if proposal.binding_rule == "min_interval":
        return "min_interval"
    if proposal.binding_rule is not None:
        return "guarded"
    if scene.replicas > scene.profile.partitions and proposal.target < scene.replicas:
        return "idle_members"
    if proposal.target > scene.replicas:
        behind = scene.backlog_messages > scene.settings.max_lag_seconds * scene.produce_messages_per_second
        return "backlog_drain" if behind else "ramp_ahead"
    if proposal.target < scene.replicas:
        return "peak_ending"
    return "at_useful_maximum" if scene.replicas >= useful[-1] else "cheaper_to_stay"


def _action(target: int, replicas: int) -> Action:
    if target == replicas:
        return "hold"
    return "scale_out" if target > replicas else "scale_in"


def _observed(facts: Facts) -> Observed:
    return Observed(
        as_of=facts.row.interval_end_at,
        produce_messages_per_second=facts.produce_messages_per_second,
        consume_messages_per_second=facts.row.consume_messages_per_second,
        lag_messages=facts.lag_messages,
        lag_seconds=facts.row.lag_seconds,
    )


def _counts(history: History) -> tuple[tuple[str, int], ...]:
    """Oddities of the last 15 minutes, by kind: what was seen and not counted as load."""
    rows = history.recent
    return (
        ("gap", sum(row.gap_count for row in rows)),
        ("no_commit", sum(row.no_commit_count for row in rows)),
        ("negative_race", sum(row.negative_race_count for row in rows)),
        ("offset_reset", sum(row.offset_reset_count for row in rows)),
        ("in_rebalance", sum(row.in_rebalance_count for row in rows)),
    )


def _summary(forecast: Forecast) -> ForecastSummary:
    return ForecastSummary(
        model=forecast.model,
        rung=forecast.rung,
        step_seconds=forecast.step_seconds,
        p05=tuple(forecast.path(0.05).tolist()),
        p50=tuple(forecast.path(0.5).tolist()),
        p95=tuple(forecast.path(0.95).tolist()),
    )


def _named(draft: Recommendation) -> Recommendation:
    """The recommendation under its name, a digest of all that it says: the same decision has the same name."""
    text = repr(replace(draft, recommendation_id=""))
    return replace(draft, recommendation_id=f"r-{sha256(text.encode()).hexdigest()[:20]}")
