"""Composing: a decided case written down as the recommendation that is published."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from cost_model.calibrate import moves_per_day
from cost_model.candidates import Plan
from cost_model.evaluation import PlanEvaluation
from cost_model.learned import Learned
from cost_model.plan import PlannedMove
from cost_model.situation import Situation
from cost_model.skew import useful_counts
from cost_model.streams import lead_seconds
from cost_model.verdict import begun_at_once, best_moves, cheapest_counts, confidence, valley
from forecasting.forecast import Forecast
from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import SECONDS_PER_HOUR, Replicas
from recommender.account import learned_moves, policy_figures, rebalance_impact_of, sensitivity
from recommender.explain import Leaving, explain
from recommender.facts import Facts
from recommender.guards import Proposal, Scene
from recommender.limits import Finding
from recommender.recommendation import (
    Action,
    ForecastSummary,
    Observed,
    PricedPlan,
    ReasonCode,
    RebalanceImpact,
    Recommendation,
    TrackRecord,
)
from recommender.remarks import remedy_remark, risk_remark, skew_remark
from recommender.windows import open_until

# Plans within a tenth of a move's risk price of the best one are as good: they make the window in which to act.
WINDOW_TOLERANCE_IN_MOVES = 0.1
RULES_THAT_ARE_REASONS: dict[str, ReasonCode] = {
    "scale_in_cooldown": "scale_in_cooldown",
    "move_interval": "move_interval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a published recommendation is written from; `with_sensitivity` asks for what would reverse it."""

    history: History
    forecast: Forecast
    facts: Facts
    scene: Scene
    situation: Situation
    learned: Learned
    found: PlanEvaluation
    best: PlannedMove | None
    previous: Recommendation | None
    finding: Finding | None
    track_record: TrackRecord
    with_sensitivity: bool


def compose(proposal: Proposal, case: Case) -> Recommendation:
    """The recommendation for what came through the guards, every plan that was priced beside it."""
    scene, facts, found, best = case.scene, case.facts, case.found, case.best
    now, profile, settings = scene.now, scene.profile, scene.settings
    planned = best is not None and proposal.target == best.target != scene.replicas and proposal.binding_rule is None
    plan = _carried_out(proposal, case, planned=planned)
    stay = found.cost(found.stay_row)
    lead = lead_seconds(profile, from_replicas=Replicas(scene.replicas), to_replicas=Replicas(proposal.target))
    window = _window(case, best) if best is not None and planned else at_once(scene, proposal.target)
    not_before, latest_safe = window
    rebalance_impact = rebalance_impact_of(case.situation, proposal.target, rate=scene.produce_messages_per_second)
    lower, upper = cheapest_counts(found)
    useful = useful_counts(profile, minimum=profile.min_replicas, maximum=Replicas(profile.replica_ceiling))
    draft = Recommendation(
        recommendation_id="",
        cluster=profile.cluster,
        group=profile.group,
        topics=tuple(facts.row.topics.split(",")),
        issued_at=now,
        valid_until=now + timedelta(seconds=settings.valid_for_seconds),
        action=action_of(proposal.target, scene.replicas),
        current_replicas=scene.replicas,
        desired_replicas=proposal.target,
        uncapped_replicas=best.target if best is not None else scene.replicas,
        useful_replicas=useful,
        execute_at=proposal.command_at,
        not_before=not_before,
        latest_safe=latest_safe,
        effective_at=proposal.command_at + timedelta(seconds=lead + rebalance_impact.rebalance_pause_seconds),
        lead_time_seconds=lead,
        observed=observed(facts),
        history_seconds=float(case.history.minutes * MINUTE_SECONDS),
        data_counts=counts_of(case.history),
        capacity=facts.capacity,
        forecast=summary_of(case.forecast, case.track_record),
        rebalance_impact=rebalance_impact,
        horizon_seconds=float(settings.horizon_seconds),
        currency=settings.currency,
        chosen=found.cost_of(plan) if plan is not None else stay,
        stay=stay,
        break_even_seconds=_break_even_seconds(case, best) if best is not None and planned else None,
        alternatives=_priced_plans(found, scene),
        reason=_reason(proposal, case, useful),
        sentences=(),
        binding_rule=proposal.binding_rule,
        supersedes=case.previous.recommendation_id if case.previous is not None else None,
        desired_replicas_lower=lower,
        desired_replicas_upper=upper,
        confidence=confidence(found, plan),
        # A move down waits for the load to fall in every plan, so what it would cost before is not known.
        act_now=found.cost_of(begun_at_once(found, plan))
        if plan is not None and now < proposal.command_at and scene.replicas < proposal.target
        else None,
        fallback_policy=case.track_record.fallback_policy,
        learned=learned_moves(settings, case.learned, case.situation),
        policy=policy_figures(settings, case.learned, case.situation, found),
    )
    if case.with_sensitivity and proposal.binding_rule is None:
        price_per_late_message, rebalance_pause_seconds = (
            case.situation.prices.price_per_late_message,
            _rebalance_pause_seconds(case, rebalance_impact),
        )
        turning_points = sensitivity(
            draft, found, price_per_late_message=price_per_late_message, rebalance_pause_seconds=rebalance_pause_seconds
        )
        draft = replace(draft, sensitivity=turning_points)
    leaving = _leaving(case) if draft.action == "hold" and proposal.binding_rule is None else None
    told = explain(draft, case.situation.profile, leaving=leaving)
    trouble = () if case.track_record.forecaster_failure is None else (case.track_record.forecaster_failure,)
    return named(replace(draft, sentences=(*told, *trouble, *_remarks(case, draft, told), *proposal.sentences)))


def _remarks(case: Case, draft: Recommendation, told: tuple[str, ...]) -> tuple[str, ...]:
    """Why a cheaper mean was passed over, what stands in the way of more replicas, what would make moves cheaper."""
    risky = risk_remark(case.found, currency=draft.currency) if draft.binding_rule is None else None
    name = case.facts.row.busiest_partition
    skewed = skew_remark(case.scene.profile, replicas=draft.desired_replicas, busiest_partition=name)
    in_the_way = skewed if case.finding is None else case.finding.sentence
    cheaper = remedy_remark(case.found, case.situation, moves_per_day(case.history), told=told)
    return tuple(sentence for sentence in (risky, in_the_way, cheaper) if sentence is not None)


def _carried_out(proposal: Proposal, case: Case, *, planned: bool) -> Plan | None:
    """The plan that is followed: the cheapest one, or the move at once to what a guard put in its place; None: stay."""
    if planned:
        return case.found.plans[case.found.best_row]
    if proposal.target == case.scene.replicas or proposal.target not in case.found.choices:
        return None
    return case.found.at_once(proposal.target)


def _rebalance_pause_seconds(case: Case, rebalance_impact: RebalanceImpact) -> float:
    """The stop of the move that is made, or of the one that is nearest to being made."""
    rivals = best_moves(case.found)
    if rebalance_impact.rebalance_pause_seconds > 0.0 or not rivals:
        return rebalance_impact.rebalance_pause_seconds
    rival = case.found.move_of(rivals[0])
    return rebalance_impact_of(
        case.situation, rival.target, rate=case.scene.produce_messages_per_second
    ).rebalance_pause_seconds


def _leaving(case: Case) -> Leaving | None:
    """What going down would have saved, where a valley is too short for it to pay; None where none is."""
    found, low = case.found, valley(case.found)
    if low is None:
        return None
    target, steps = low
    move = PlannedMove(
        target=target, effective_step=0, command_step=0, total=found.cost_of(found.at_once(target)).total
    )
    pays_after = _break_even_seconds(case, move)
    if pays_after is None or pays_after <= steps * MINUTE_SECONDS:
        return None
    duplicates = found.duplicates_price(move)
    return Leaving(
        replicas=target,
        saving_per_hour=case.situation.prices.price_per_replica_hour * (case.scene.replicas - target),
        rebalance=found.move_price(move) - duplicates,
        duplicates=duplicates,
        pays_after_seconds=pays_after,
        valley_seconds=float(steps * MINUTE_SECONDS),
    )


def _priced_plans(found: PlanEvaluation, scene: Scene) -> tuple[PricedPlan, ...]:
    plans = [PricedPlan(desired_replicas=scene.replicas, execute_at=None, cost=found.cost(found.stay_row))]
    for row in best_moves(found):
        move = found.move_of(row)
        at = scene.now + timedelta(seconds=move.command_step * MINUTE_SECONDS)
        plans.append(PricedPlan(desired_replicas=move.target, execute_at=at, cost=found.cost(row)))
    return tuple(sorted(plans, key=lambda plan: (plan.cost.total, plan.desired_replicas)))


def _window(case: Case, best: PlannedMove) -> tuple[datetime, datetime]:
    """The instants between which the command may be given for a price that is as good as the best.

    A plan cannot tell the seconds of one step apart, so the window lasts to the end of its last step.
    """
    first, last = case.found.window(best, WINDOW_TOLERANCE_IN_MOVES * case.situation.prices.price_per_move)
    lead_steps = best.effective_step - best.command_step
    scene = case.scene
    command_at = scene.now + timedelta(seconds=best.command_step * MINUTE_SECONDS)
    latest = scene.now + timedelta(seconds=max(0, last - lead_steps + 1) * MINUTE_SECONDS)
    return (
        scene.now + timedelta(seconds=max(0, first - lead_steps) * MINUTE_SECONDS),
        open_until(scene.settings.windows, command_at, latest, removing=best.target < scene.replicas),
    )


def at_once(scene: Scene, target: int) -> tuple[datetime, datetime]:
    """The window of a move that no plan has timed: from now to the end of one step, as that of a plan is at least.

    Whoever acts reads the advice some seconds after it was made. Hours that the owner has closed end it before.
    """
    if target == scene.replicas:
        return scene.now, scene.now
    latest = scene.now + timedelta(seconds=MINUTE_SECONDS)
    return scene.now, open_until(scene.settings.windows, scene.now, latest, removing=target < scene.replicas)


def _break_even_seconds(case: Case, best: PlannedMove) -> float | None:
    """How long a smaller group has to stay smaller before it has paid for the move; None where nothing is removed."""
    removed = case.scene.replicas - best.target
    if removed <= 0:
        return None
    price = case.found.move_price(best)
    return price / (case.situation.prices.price_per_replica_hour * removed) * SECONDS_PER_HOUR


def _reason(proposal: Proposal, case: Case, useful: tuple[int, ...]) -> ReasonCode:
    scene = case.scene
    if proposal.binding_rule in RULES_THAT_ARE_REASONS:
        return RULES_THAT_ARE_REASONS[proposal.binding_rule]
    if proposal.binding_rule is not None:
        # A backlog that drains slowly or not at all waits for what was found out.
        draining = proposal.binding_rule == "backlog_draining"
        return case.finding.reason if draining and case.finding is not None else "guarded"
    if scene.replicas > scene.profile.work_units and proposal.target < scene.replicas:
        return "idle_members"
    if proposal.target > scene.replicas:
        behind = scene.backlog_messages > scene.settings.max_lag_seconds * scene.produce_messages_per_second
        return "backlog_drain" if behind else "ramp_ahead"
    if proposal.target < scene.replicas:
        return "peak_ending"
    return _reason_to_stay(case, at_most=scene.replicas >= useful[-1])


def _reason_to_stay(case: Case, *, at_most: bool) -> ReasonCode:
    if not at_most:
        return "cheaper_to_stay"
    return "at_useful_maximum" if case.finding is None else case.finding.reason


def action_of(target: int, replicas: int) -> Action:
    """What going from `replicas` to `target` is called."""
    if target == replicas:
        return "hold"
    return "scale_out" if target > replicas else "scale_in"


def observed(facts: Facts) -> Observed:
    """The group as the decision saw it."""
    return Observed(
        as_of=facts.row.interval_end_at,
        produce_messages_per_second=facts.produce_messages_per_second,
        consume_messages_per_second=facts.row.consume_messages_per_second,
        lag_messages=facts.row.lag_messages or 0.0,
        lag_seconds=facts.row.lag_seconds,
    )


def counts_of(history: History) -> tuple[tuple[str, int], ...]:
    """Oddities of the last 15 minutes, by kind: what was seen and not counted as load."""
    rows = history.recent
    return (
        ("gap", sum(row.gap_count for row in rows)),
        ("no_commit", sum(row.no_commit_count for row in rows)),
        ("negative_race", sum(row.negative_race_count for row in rows)),
        ("offset_reset", sum(row.offset_reset_count for row in rows)),
        ("in_rebalance", sum(row.in_rebalance_count for row in rows)),
    )


def summary_of(forecast: Forecast, record: TrackRecord) -> ForecastSummary:
    """The forecast as it is published."""
    return ForecastSummary(
        model=forecast.model,
        history_tier=forecast.history_tier,
        step_seconds=forecast.step_seconds,
        p05=tuple(forecast.path(0.05).tolist()),
        p50=tuple(forecast.path(0.5).tolist()),
        p95=tuple(forecast.path(0.95).tolist()),
        skill_vs_persistence=record.forecast_skill,
        trusted=record.forecast_trusted,
        gate=record.gate,
        origin_at=forecast.origin_at,
    )


def named(draft: Recommendation) -> Recommendation:
    """The recommendation under its name, a digest of all that it says: the same decision has the same name."""
    text = repr(replace(draft, recommendation_id=""))
    return replace(draft, recommendation_id=f"r-{sha256(text.encode()).hexdigest()[:20]}")
