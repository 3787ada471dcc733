"""Rivals of statsforecast, as a careful user would configure them, at the sizes in which they can be fitted.

All are fitted again at each origin, more often than our own models, and on rates without a transform: on logarithms
intervals become far too wide upwards (p95 loss 0.151 against 0.078 for AutoETS, 0.084 against 0.048 for MSTL, on a load
that ours were tuned on). Their prediction intervals at 50, 80, 90 and 98 % are the quantiles; the point forecast is the
median. Minutes have a season of 1,440, which neither exponential smoothing (24 at most) nor CES supports: MSTL removes
it and AutoETS forecasts the rest, as is usually advised. For days ahead the load is averaged: over five minutes for
MSTL and the seasonal naive, over an hour for MSTL again and the two models with a season of their own. An hour's
forecast is used for all of its steps, so its bands are those of hourly means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from statsforecast.models import (  # type: ignore[import-untyped]  # ships no types
    MSTL,
    AutoCES,
    AutoETS,
    SeasonalNaive,
)

from benchmarks.forecasts.naive import DAY_STEPS, STEP_MINUTES, WEEK_STEPS, means_of
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.units import FloatArray

DAY_MINUTES = 1440
# The interval end for each of QUANTILES; 98 % ends at p01 and p99.
_ENDS = ("lo-90", "lo-80", "lo-50", "mean", "hi-50", "hi-80", "hi-90", "hi-98")
_LEVELS = [50, 80, 90, 98]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRival:
    """A fitted model of statsforecast; it forecasts only from the end of the series that it was fitted on."""

    name: str
    model: Any
    grain_minutes: int
    step_minutes: int

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """Its intervals as quantile paths, each value repeated for the steps that it covers."""
        repeats = self.grain_minutes // self.step_minutes
        answer = self.model.predict(-(-steps // repeats), level=_LEVELS)
        ends: FloatArray = np.stack([np.asarray(answer[end], dtype=np.float64) for end in _ENDS])
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=60 * self.step_minutes,
            paths=np.maximum(np.repeat(ends, repeats, axis=1)[:, :steps], 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A model of statsforecast, fitted on the newest `newest` means over `grain_minutes`.

    `model` makes it for a series of that many values: the series has to contain a season twice.
    """

    name: str
    model: Callable[[int], Any]
    grain_minutes: int
    step_minutes: int
    newest: int

    def fit(self, history: History) -> FittedRival:
        """Fit it on means of the newest rates."""
        series = means_of(history.produce_messages_per_second, self.grain_minutes)[-self.newest :]
        return FittedRival(
            name=self.name,
            model=self.model(len(series)).fit(series),
            grain_minutes=self.grain_minutes,
            step_minutes=self.step_minutes,
        )


def _mstl(*seasons: int) -> Callable[[int], Any]:
    """MSTL with the seasons that the series contains twice, AutoETS for the remainder."""
    return lambda values: MSTL(
        season_length=[season for season in seasons if values >= 2 * season],
        trend_forecaster=AutoETS(model="ZZN"),
    )


SHORT_RIVALS = (
    Rival(
        name="sf_auto_ets",
        model=lambda _: AutoETS(season_length=1),
        grain_minutes=1,
        step_minutes=1,
        newest=DAY_MINUTES,
    ),
    Rival(name="sf_mstl", model=_mstl(DAY_MINUTES), grain_minutes=1, step_minutes=1, newest=7 * DAY_MINUTES),
    Rival(
        name="sf_auto_ces",
        model=lambda _: AutoCES(season_length=1),
        grain_minutes=1,
        step_minutes=1,
        newest=DAY_MINUTES,
    ),
    Rival(
        name="sf_seasonal_naive",
        model=lambda _: SeasonalNaive(season_length=DAY_MINUTES),
        grain_minutes=1,
        step_minutes=1,
        newest=14 * DAY_MINUTES,
    ),
)
LONG_RIVALS = (
    Rival(
        name="sf_mstl_long",
        model=_mstl(DAY_STEPS, WEEK_STEPS),
        grain_minutes=STEP_MINUTES,
        step_minutes=STEP_MINUTES,
        newest=5 * WEEK_STEPS,
    ),
    # An hour's mean is a more stable level for a week than the mean of five minutes, at a hundredth of the time.
    Rival(
        name="sf_mstl_hours",
        model=_mstl(24, 168),
        grain_minutes=60,
        step_minutes=STEP_MINUTES,
        newest=5 * 168,
    ),
    Rival(
        name="sf_auto_ets_long",
        model=lambda _: AutoETS(season_length=24),
        grain_minutes=60,
        step_minutes=STEP_MINUTES,
        newest=5 * 168,
    ),
    Rival(
        name="sf_auto_ces_long",
        model=lambda _: AutoCES(season_length=24),
        grain_minutes=60,
        step_minutes=STEP_MINUTES,
        newest=5 * 168,
    ),
    Rival(
        name="sf_seasonal_naive_long",
        model=lambda _: SeasonalNaive(season_length=WEEK_STEPS),
        grain_minutes=STEP_MINUTES,
        step_minutes=STEP_MINUTES,
        newest=5 * WEEK_STEPS,
    ),
)
