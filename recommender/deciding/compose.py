"""Composing: the recommendation that is published for the proposal that passed the guards."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from forecasting.history import MINUTE_SECONDS
from recommender.deciding.account import profile_figures
from recommender.deciding.causes import cause_of
from recommender.deciding.context import DecisionContext
from recommender.deciding.planned import explained, price_by_plans
from recommender.deciding.proposal import MovePrice, Proposal
from recommender.deciding.recommendation import Action, ForecastSummary, Observed, Recommendation, SensitivityOf
from recommender.deciding.windows import open_until
from recommender.deciding.zero import price_by_rule


def compose(proposal: Proposal, context: DecisionContext, *, sensitivity: SensitivityOf) -> Recommendation:
    """The recommendation for the proposal that passed the guards, with its price beside every other one.

    For 0 replicas the sentences of the proposal are the only ones.
    """
    choice = proposal.choice
    if choice is None:
        return _named(_draft(proposal, price_by_rule(proposal, context), context))
    draft = _draft(proposal, price_by_plans(proposal, choice, context), context)
    return _named(explained(draft, choice, context, sensitivity=sensitivity))


def compose_waiting(under_way: Recommendation, context: DecisionContext) -> Recommendation:
    """The move that is under way, advised again: it must be over before the next one.

    Under a hold its window is over: what was commanded goes on, and what was not is not carried out any more.
    """
    hold = context.hold
    sentence = (
        f"The move to {under_way.desired_replicas} was due at {under_way.execute_at:%H:%M:%S}; "
        f"{context.replicas} members have joined so far. One move at a time."
    )
    waiting = replace(
        under_way,
        supersedes=under_way.recommendation_id,
        issued_at=context.now,
        valid_until=context.now + timedelta(seconds=context.settings.valid_for_seconds),
        current_replicas=context.replicas,
        observed=_observed(context),
        latest_safe=under_way.latest_safe if hold is None else min(under_way.execute_at, under_way.latest_safe),
        reason="warming_up",
        binding_rule=None if hold is None else "hold",
        sentences=(sentence,) if hold is None else (sentence, hold.sentence),
        ledger=context.track_record.ledger,
        cause=cause_of(context),
    )
    return _named(waiting)


def _draft(proposal: Proposal, price: MovePrice, context: DecisionContext) -> Recommendation:
    """The recommendation without its name, its sentences those of the proposal alone."""
    now, settings = context.now, context.settings
    not_before, latest_safe = _at_once(proposal.target, context) if price.window is None else price.window
    return Recommendation(
        recommendation_id="",
        cluster=context.profile.cluster,
        group=context.profile.group,
        topics=tuple(context.row.topics.split(",")),
        issued_at=now,
        valid_until=now + timedelta(seconds=settings.valid_for_seconds),
        action=_action(proposal.target, context.replicas),
        current_replicas=context.replicas,
        desired_replicas=proposal.target,
        uncapped_replicas=price.uncapped_replicas,
        useful_replicas=price.useful_replicas,
        execute_at=proposal.command_at,
        not_before=not_before,
        latest_safe=latest_safe,
        effective_at=proposal.command_at
        + timedelta(seconds=price.lead_seconds + price.rebalance_impact.rebalance_pause_seconds),
        lead_time_seconds=price.lead_seconds,
        observed=_observed(context),
        history_seconds=float(context.history.minutes * MINUTE_SECONDS),
        data_counts=_counts(context),
        capacity=context.capacity,
        forecast=_summary(context),
        rebalance_impact=price.rebalance_impact,
        horizon_seconds=float(settings.horizon_seconds),
        currency=settings.unit_of_cost,
        chosen=price.chosen,
        stay=price.stay,
        break_even_seconds=price.break_even_seconds,
        alternatives=tuple(sorted(price.alternatives, key=lambda plan: (plan.cost.total, plan.desired_replicas))),
        reason=proposal.reason,
        sentences=proposal.sentences,
        binding_rule=proposal.binding_rule,
        supersedes=context.previous.recommendation_id if context.previous is not None else None,
        desired_replicas_lower=price.lower_replicas,
        desired_replicas_upper=price.upper_replicas,
        confidence=price.confidence,
        act_now=price.act_now,
        fallback_policy=context.track_record.fallback_policy,
        learned=price.learned,
        policy=price.policy,
        ledger=context.track_record.ledger,
        profile=profile_figures(context),
        cause=cause_of(context),
    )


def _at_once(target: int, context: DecisionContext) -> tuple[datetime, datetime]:
    """The window of a move without a timed plan: from now to the end of one step, the shortest window of a plan.

    The advice is read some seconds after it was made. The window ends early where the owner's closed hours begin.
    """
    now = context.now
    if target == context.replicas:
        return now, now
    latest = now + timedelta(seconds=MINUTE_SECONDS)
    return now, open_until(context.settings.windows, now, latest, removing=target < context.replicas)


def _action(target: int, replicas: int) -> Action:
    if target == replicas:
        return "hold"
    return "scale_out" if target > replicas else "scale_in"


def _observed(context: DecisionContext) -> Observed:
    """The group in the newest rows of the context."""
    return Observed(
        # A row may be read before the end of its interval: what it shows is no later than now.
        as_of=min(context.row.interval_end_at, context.now),
        produce_messages_per_second=context.produce_messages_per_second,
        consume_messages_per_second=context.row.consume_messages_per_second,
        lag_messages=context.row.lag_messages or 0.0,
        lag_seconds=context.row.lag_seconds,
    )


def _counts(context: DecisionContext) -> tuple[tuple[str, int], ...]:
    """Oddities of the last 15 minutes, by kind: samples that were not counted as load."""
    rows = context.history.recent
    return (
        ("gap", sum(row.gap_count for row in rows)),
        ("no_commit", sum(row.no_commit_count for row in rows)),
        ("negative_race", sum(row.negative_race_count for row in rows)),
        ("offset_reset", sum(row.offset_reset_count for row in rows)),
        ("in_rebalance", sum(row.in_rebalance_count for row in rows)),
    )


def _summary(context: DecisionContext) -> ForecastSummary:
    """The forecast as it is published; a forecast without steps is published as a constant produce rate."""
    forecast, record = context.forecast, context.track_record
    if not forecast.steps:
        rate = (context.produce_messages_per_second,)
        return ForecastSummary(
            model=forecast.model,
            history_tier=forecast.history_tier,
            step_seconds=forecast.step_seconds,
            p05=rate,
            p50=rate,
            p95=rate,
        )
    return ForecastSummary(
        model=forecast.model,
        history_tier=forecast.history_tier,
        step_seconds=forecast.step_seconds,
        p05=tuple(forecast.path(0.05).tolist()),
        p50=tuple(forecast.path(0.5).tolist()),
        p95=tuple(forecast.path(0.95).tolist()),
        value=record.forecast_value,
        origin_at=forecast.origin_at,
    )


def _named(draft: Recommendation) -> Recommendation:
    """The recommendation with its id, a digest of its content: equal decisions have equal ids.

    The ledger is an account of the past and no part of a decision.
    """
    text = repr(replace(draft, recommendation_id="", ledger=None))
    return replace(draft, recommendation_id=f"r-{sha256(text.encode()).hexdigest()[:20]}")
