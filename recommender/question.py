"""The question: a scene and a forecast, put as what plans are priced on."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from cost_model.learned import Learned
from cost_model.presets import PRESETS
from cost_model.price import Prices
from cost_model.profile import GroupProfile
from cost_model.situation import Situation, Uncertainty
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.history_tier import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.scenarios import scenarios_of
from forecasting.units import FloatArray, Fraction, Messages, Seconds
from recommender.decision import DecisionSettings
from recommender.guards import Scene, rest_seconds

STEP_SECONDS = 60
# A burst that nobody foresaw has lost two thirds of itself after this many minutes.
SURPRISE_STEPS = 8.0
# The busiest minute of a week is exceeded by a fiftieth, that of a day by a seventh.
CEILING_DAYS = 0.15


def _ungraceful_share(profile: GroupProfile, learned: Learned) -> Fraction | None:
    """What was seen of leavers, or else what is configured.

    Nothing is learned of static members: they never send LeaveGroup, however soon their pods are gone from view.
    """
    if profile.static_membership or learned.ungraceful_share is None:
        return profile.ungraceful_share
    return Fraction(learned.ungraceful_share)


def situation_of(scene: Scene, forecast: Forecast, prices: Prices, learned: Learned) -> Situation:
    """The group as it stands, what its moves are believed to do, and the one path that whole plans are made for."""
    settings, profile = scene.settings, scene.profile
    earliest = 0.0
    if scene.last_move_at is not None:
        rested_at = scene.last_move_at + timedelta(seconds=rest_seconds(profile, settings, removing=False))
        earliest = max(0.0, (rested_at - scene.now).total_seconds())
    return Situation(
        profile=replace(profile, ungraceful_share=_ungraceful_share(profile, learned)),
        prices=prices,
        demand_messages_per_second=_demand(forecast, settings, now=scene.now),
        step_seconds=Seconds(STEP_SECONDS),
        replicas=scene.replicas,
        lag_messages=Messages(scene.backlog_messages),
        behind_seconds=scene.behind_seconds,
        max_lag_seconds=Seconds(settings.max_lag_seconds),
        target_utilization=settings.target_utilization
        if learned.target_utilization is None
        else learned.target_utilization,
        # To a tenth of a second, so that what was computed of the group's moves can be used again.
        rebalance_pause_prior_seconds=round(learned.pause_scale_out.value, 1),
        rebalance_pause_prior_scale_in_seconds=round(learned.pause_scale_in.value, 1),
        earliest_move_step=int(np.ceil(earliest / STEP_SECONDS)),
    )


def uncertainty_of(scene: Scene, forecast: Forecast, *, ceiling: float) -> Uncertainty:
    """The paths that produce rates may take from `scene.now` on; their upper tenth stays under `ceiling`."""
    settings = scene.settings
    passed = max(0, int((scene.now - forecast.origin_at).total_seconds() // STEP_SECONDS))
    steps = settings.horizon_seconds // STEP_SECONDS

    def rest(*, removing: bool) -> int:
        return int(np.ceil(rest_seconds(scene.profile, settings, removing=removing) / STEP_SECONDS))

    paths = scenarios_of(forecast, count=settings.scenarios, steps=steps, skip=passed, ceiling=ceiling)
    highest = float(forecast.path(0.95)[min(passed, forecast.steps - 1)])
    return Uncertainty(
        demand_messages_per_second=paths + _surprise(scene.produce_messages_per_second, highest, steps=steps),
        rate_now_messages_per_second=scene.produce_messages_per_second,
        risk_weight=PRESETS[settings.policy].risk_weight if settings.risk_weight is None else settings.risk_weight,
        rest_up_steps=rest(removing=False),
        rest_down_steps=rest(removing=True),
    )


def highest_believed(history: History) -> float:
    """Produce rates that nothing in the last week comes near; tails of bands reach further than loads do."""
    week = history.produce_messages_per_second[-MINUTES_PER_WEEK:]
    known = week[np.isfinite(week)]
    return (1.0 + CEILING_DAYS * MINUTES_PER_DAY / known.size) * float(known.max()) if known.size else np.inf


def _surprise(rate: float, highest: float, *, steps: int) -> FloatArray:
    """What arrives now beyond what was thought possible, fading from step to step."""
    beyond: FloatArray = max(rate - highest, 0.0) * np.exp(-np.arange(steps) / SURPRISE_STEPS)
    return beyond


def _demand(forecast: Forecast, settings: DecisionSettings, *, now: datetime) -> FloatArray:
    """The quantile path that plans must carry, from `now` on; its last value stands for what lies beyond it."""
    path = forecast.path(settings.planning_quantile)
    passed = max(0, int((now - forecast.origin_at).total_seconds() // STEP_SECONDS))
    steps = settings.horizon_seconds // STEP_SECONDS
    ahead = path[min(passed, len(path) - 1) :][:steps]
    return np.concatenate([ahead, np.full(steps - len(ahead), ahead[-1])])
