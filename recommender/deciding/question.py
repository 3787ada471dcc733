"""The inputs of plan pricing, derived from the context of a decision."""

from dataclasses import replace
from datetime import timedelta

import numpy as np

from cost_model.physics.calibrate import quiet_seconds
from cost_model.pricing.presets import PRESETS
from cost_model.pricing.situation import Situation, Uncertainty
from forecasting.history_tier import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.scenarios import scenarios_of
from forecasting.units import FloatArray, Fraction, Messages, Seconds
from recommender.deciding.context import DecisionContext
from recommender.deciding.pace import rest_seconds

STEP_SECONDS = 60
# An unexpected burst has lost two thirds of itself after this many minutes.
SURPRISE_STEPS = 8.0
# The busiest minute of a week is exceeded by a fiftieth, that of a day by a seventh.
CEILING_DAYS = 0.15


def _ungraceful_share(context: DecisionContext) -> Fraction | None:
    """The measured share of ungraceful leaves, or else the configured one.

    Nothing is learned of static members: they never send LeaveGroup, however soon their pods disappear. Rounded to a
    thousandth, so that cached results for the group's moves can be used again.
    """
    learned = context.learned.ungraceful_share
    if context.profile.static_membership or learned is None:
        return context.profile.ungraceful_share
    return Fraction(round(learned, 3))


def situation_of(context: DecisionContext) -> Situation:
    """The group as it stands, what its moves are believed to do, and the one path that whole plans are made for."""
    settings, profile, learned = context.settings, context.profile, context.learned
    earliest = 0.0
    if context.last_move_at is not None:
        rested_at = context.last_move_at + timedelta(seconds=rest_seconds(profile, settings, removing=False))
        earliest = max(0.0, (rested_at - context.now).total_seconds())
    return Situation(
        profile=replace(profile, ungraceful_share=_ungraceful_share(context)),
        prices=replace(settings.prices(context.capacity.p50), price_per_move=learned.risk),
        demand_messages_per_second=_demand(context),
        step_seconds=Seconds(STEP_SECONDS),
        replicas=context.replicas,
        lag_messages=Messages(context.backlog_messages),
        behind_seconds=context.behind_seconds,
        max_lag_seconds=Seconds(settings.max_lag_seconds),
        target_utilization=settings.target_utilization
        if learned.target_utilization is None
        else learned.target_utilization,
        # Rounded to a tenth of a second, so that cached results for the group's moves can be used again.
        rebalance_pause_prior_seconds=round(learned.pause_scale_out.value, 1),
        rebalance_pause_prior_scale_in_seconds=round(learned.pause_scale_in.value, 1),
        quiet_seconds=quiet_seconds(context.history),
        earliest_move_step=int(np.ceil(earliest / STEP_SECONDS)),
    )


def uncertainty_of(context: DecisionContext) -> Uncertainty:
    """The paths that the produce rate may take; their upper tenth stays under a bound from the last week."""
    settings, forecast, passed = context.settings, context.forecast, context.passed_minutes
    steps = settings.horizon_seconds // STEP_SECONDS

    def rest(*, removing: bool) -> int:
        return int(np.ceil(rest_seconds(context.profile, settings, removing=removing) / STEP_SECONDS))

    ceiling = _highest_believed(context)
    paths = scenarios_of(forecast, count=settings.scenarios, steps=steps, skip=passed, ceiling=ceiling)
    highest = float(forecast.path(0.95)[min(passed, forecast.steps - 1)])
    return Uncertainty(
        demand_messages_per_second=paths + _surprise(context.produce_messages_per_second, highest, steps=steps),
        rate_now_messages_per_second=context.produce_messages_per_second,
        risk_weight=PRESETS[settings.policy].risk_weight if settings.risk_weight is None else settings.risk_weight,
        rest_up_steps=rest(removing=False),
        rest_down_steps=rest(removing=True),
    )


def _highest_believed(context: DecisionContext) -> float:
    """Upper bound of credible produce rates, from the last week; tails of forecast bands reach further than loads."""
    week = context.history.produce_messages_per_second[-MINUTES_PER_WEEK:]
    known = week[np.isfinite(week)]
    return (1.0 + CEILING_DAYS * MINUTES_PER_DAY / known.size) * float(known.max()) if known.size else np.inf


def _surprise(rate: float, highest: float, *, steps: int) -> FloatArray:
    """The part of the produce rate above the highest expected one, fading from step to step."""
    beyond: FloatArray = max(rate - highest, 0.0) * np.exp(-np.arange(steps) / SURPRISE_STEPS)
    return beyond


def _demand(context: DecisionContext) -> FloatArray:
    """The quantile path that plans must carry, from now on; its last value also holds for all later steps."""
    path = context.forecast.path(context.settings.planning_quantile)
    steps = context.settings.horizon_seconds // STEP_SECONDS
    ahead = path[min(context.passed_minutes, len(path) - 1) :][:steps]
    return np.concatenate([ahead, np.full(steps - len(ahead), ahead[-1])])
