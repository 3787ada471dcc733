"""The gate: the choice of a history tier for a group by the cost of its recent decisions with and without a forecast.

Decisions of the last days are made again, from each history tier and with the data of that time, and the plan that each
chooses is priced on the real produce rates. The highest history tier is used whose plans were not more expensive than
the cheapest, except by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import numpy as np

from cost_model.physics.learned import Learned
from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.physics.skew import carried_by_count, useful_counts
from cost_model.pricing.simulation_inputs import simulation_inputs_of
from cost_model.search.evaluation import evaluate_plans
from forecasting.forecast import Forecast, HistoryTier
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, MINUTES_PER_DAY, WEEKLY_MINUTES, history_tier_of
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray, MessagesPerSecond, Replicas
from recommender.deciding.context import DecisionContext
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.question import STEP_SECONDS, situation_of, uncertainty_of
from recommender.deciding.recommendation import GateStanding
from recommender.following.careful import Caller, ForecasterFailure, checked_forecast

# A forecaster that has become wrong is detected within half a day.
REVIEW_AFTER = timedelta(hours=12)

# Origins 47 minutes apart, prime to 60, meet a job on every tenth minute in all its phases: 60 of them in two days.
_SPACING_MINUTES = 47
_LONGEST_MINUTES = 2 * MINUTES_PER_DAY
_FEWEST_ORIGINS = 10
_REFIT_MINUTES = MINUTES_PER_DAY

# As many as a first round of plans takes: a quarter of the number for decisions.
_SCENARIOS = 16

# A day less than the weekly history tier needs: the most that the daily one may have seen before.
_DAILY_LOOK_BACK_MINUTES = WEEKLY_MINUTES - MINUTES_PER_DAY

# Mean costs that differ by less than two standard errors of their paired differences differ by chance.
_NOISE_ERRORS = 2.0

_HISTORY_TIERS: tuple[HistoryTier, ...] = ("reactive", "daily", "weekly")


def seen_from(history: History, history_tier: HistoryTier) -> History:
    """The part of a history that a history tier uses: all of it, or the last thirteen days."""
    return history.last(_DAILY_LOOK_BACK_MINUTES) if history_tier == "daily" else history


def review(
    history: History,
    forecaster: Forecaster,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    learned: Learned,
    caller: Caller,
) -> GateStanding | None:
    """The history tier to decide from, and the cost of decisions from each; None where too little is known.

    The lowest history tier is persistence. One whose forecaster refuses, fails, gives impossible values or takes
    longer for all its answers than `caller` allows is left out.
    """
    highest = history_tier_of(history)
    if highest in (None, "reactive") or profile.capacity is None or not history.recent:
        return None
    judged = _Judged(
        history=history,
        profile=profile,
        settings=replace(settings, scenarios=_SCENARIOS),
        learned=learned,
        capacity=profile.capacity,
    )
    origins = judged.origins()
    if len(origins) < _FEWEST_ORIGINS:
        return None
    costs: dict[HistoryTier, FloatArray] = {}
    for history_tier in _HISTORY_TIERS[: _HISTORY_TIERS.index(highest) + 1]:
        candidate: Forecaster = PersistenceForecaster() if history_tier == "reactive" else forecaster
        forecasts = caller(partial(judged.forecasts, candidate, history_tier, origins))
        if isinstance(forecasts, list):
            costs[history_tier] = judged.prices(forecasts, origins)
    if len(costs) < 2:
        return None
    return GateStanding(
        reviewed_at=history.end_at,
        decisions=len(origins),
        history_tier=_used(costs),
        costs=tuple((history_tier, float(of_tier.mean())) for history_tier, of_tier in costs.items()),
        currency=settings.currency,
    )


def _used(costs: dict[HistoryTier, FloatArray]) -> HistoryTier:
    """The highest history tier that is as cheap as the cheapest one, except by chance; `costs` has the lowest first.

    >>> prices = np.array([1.0, 2.0, 3.0, 2.0])
    >>> _used({"reactive": prices, "daily": prices + [0.1, -0.1, 0.1, 0.0]})  # 0.025 more, give or take 0.05
    'daily'
    >>> _used({"reactive": prices, "daily": prices + [1.0, 1.1, 0.9, 1.0]})
    'reactive'
    """
    least = min(costs.values(), key=lambda of_tier: float(of_tier.mean()))
    kept = [history_tier for history_tier, of_tier in costs.items() if _as_cheap(of_tier - least)]
    return kept[-1]


def _as_cheap(more: FloatArray) -> bool:
    return bool(more.mean() <= _NOISE_ERRORS * more.std(ddof=1) / np.sqrt(more.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The inputs that all judged decisions share."""

    history: History
    profile: GroupProfile
    settings: DecisionSettings
    learned: Learned
    capacity: Capacity

    @property
    def steps(self) -> int:
        """Minutes that a decision looks ahead."""
        return self.settings.horizon_seconds // STEP_SECONDS

    def origins(self) -> list[int]:
        """Minutes that end a known value and have a wholly known horizon after them, oldest first.

        The first two days are held back: a history tier needs them to be reached.
        """
        known = np.isfinite(self.history.produce_messages_per_second)
        newest = self.history.minutes - 1 - self.steps
        oldest = max(int(np.argmax(known)) + DAILY_MINUTES, self.history.minutes - 1 - _LONGEST_MINUTES)
        every = range(newest, oldest, -_SPACING_MINUTES)
        return [minute for minute in every if known[minute : minute + 1 + self.steps].all()][::-1]

    def forecasts(
        self, forecaster: Forecaster, history_tier: HistoryTier, origins: Sequence[int]
    ) -> list[Forecast] | Refusal | ForecasterFailure:
        """The forecasts from each origin with the history until then, fitted anew each day; or the first failure."""
        fitted: FittedForecaster | None = None
        fitted_origin = origins[0]
        answers = []
        for origin in origins:
            known = seen_from(self.history.until(origin), history_tier)
            if fitted is None or origin - fitted_origin >= _REFIT_MINUTES:
                answer_of_fit = forecaster.fit(known)
                if isinstance(answer_of_fit, Refusal):
                    return answer_of_fit
                fitted, fitted_origin = answer_of_fit, origin
            answer = checked_forecast(fitted, known, steps=self.steps)
            if isinstance(answer, Refusal | ForecasterFailure):
                return answer
            answers.append(answer)
        return answers

    def prices(self, forecasts: Sequence[Forecast], origins: Sequence[int]) -> FloatArray:
        """The price, on the real produce rates, of the plan that each forecast leads to."""
        return np.array([self._price(forecast, origin) for forecast, origin in zip(forecasts, origins, strict=True)])

    def _price(self, forecast: Forecast, origin: int) -> float:
        """The price of the plan chosen on this forecast, for a group that is sized for the present."""
        known = self.history.until(origin)
        rate = MessagesPerSecond(float(known.produce_messages_per_second[-1]))
        context = DecisionContext(
            now=known.end_at,
            history=known,
            forecast=forecast,
            profile=self.profile,
            settings=self.settings,
            learned=self.learned,
            row=self.history.recent[-1],
            replicas=self._sized_for(rate),
            capacity=self.capacity,
            produce_messages_per_second=rate,
            backlog_messages=0.0,
            behind_seconds=0.0,
        )
        situation, uncertainty = situation_of(context), uncertainty_of(context)
        found = evaluate_plans(situation, uncertainty)
        came = self.history.produce_messages_per_second[origin + 1 : origin + 1 + self.steps]
        inputs, _ = simulation_inputs_of(situation, replace(uncertainty, demand_messages_per_second=came[None, :]))
        return float(found.replayed(inputs, [found.best_row]).totals[0, 0])

    def _sized_for(self, rate: MessagesPerSecond) -> int:
        """The fewest replicas that carry this rate, at most the maximum."""
        profile = self.profile
        counts = useful_counts(profile, minimum=profile.min_replicas, maximum=Replicas(profile.replica_ceiling))
        room = (
            self.settings.target_utilization
            if self.learned.target_utilization is None
            else self.learned.target_utilization
        )
        enough = np.flatnonzero(room * carried_by_count(profile, counts, capacity=self.capacity.p50) >= rate)
        return counts[int(enough[0])] if enough.size else counts[-1]
