"""The naive long-term forecasts, the minimum for others to beat: the level now, the day and the week before.

They forecast in steps of five minutes, as long-term forecasters do, and give empirical bands: the quantiles of the
errors of the same rule in the history, in logarithms, at each distance ahead.
"""

from dataclasses import dataclass

import numpy as np

from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, known_minutes, refuse_short
from forecasting.refusal import Refusal
from forecasting.series import rates_of, unit_of
from forecasting.units import FloatArray, IntArray

STEP_MINUTES = 5
DAY_STEPS = 288
WEEK_STEPS = 7 * DAY_STEPS
# The level is the mean of the last hour.
_LEVEL_STEPS = 12
# Persistence learns its errors at each hour ahead: the error of the level depends on the time of day between.
_KNOTS: IntArray = np.concatenate([[1, 3, 6], np.arange(12, WEEK_STEPS + 1, 12)]).astype(np.int64)
# With errors of less than half a day a distance takes the quantiles of the one before, widened as a random walk widens.
_ENOUGH_ERRORS = DAY_STEPS // 2
# Used where not even the first distance has enough errors.
_UNSEEN = 0.5 * np.array([-1.64, -1.28, -0.67, 0.0, 0.67, 1.28, 1.64, 2.33])


def means_of(rates: FloatArray, minutes: int) -> FloatArray:
    """Means over whole steps of so many minutes, the last of which ends where the rates end.

    >>> means_of(np.array([9.0, 1.0, 3.0, 5.0, 7.0]), 2)
    array([2., 6.])
    """
    kept = len(rates) // minutes * minutes
    means: FloatArray = rates[len(rates) - kept :].reshape(-1, minutes).mean(axis=1)
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLongNaive:
    """Quantiles of errors in logarithms, (distances, len(QUANTILES)), at these distances ahead, in steps."""

    name: str
    season_steps: int | None
    unit: float
    distances: IntArray
    errors: FloatArray

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """The level or the season before, and the quantiles of errors around it."""
        series = _series(history, self.unit)
        ahead = np.arange(1, steps + 1, dtype=np.int64)
        if self.season_steps is None:
            centre = np.full(steps, series[-_LEVEL_STEPS:].mean())
        else:
            back = self.season_steps * -(-ahead // self.season_steps)
            centre = series[np.maximum(len(series) - 1 + ahead - back, 0)]
        at = np.log(ahead)
        offsets = np.stack([np.interp(at, np.log(self.distances), column) for column in self.errors.T])
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=60 * STEP_MINUTES,
            paths=rates_of(centre + offsets, unit=self.unit),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LongNaiveForecaster:
    """The season before (`season_steps`), or the level now where that is None; needs two days."""

    name: str
    season_steps: int | None

    def fit(self, history: History) -> FittedLongNaive | Refusal:
        """Learn the past errors of the rule."""
        if known_minutes(history) < DAILY_MINUTES:
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        unit = unit_of(history)
        series = _series(history, unit)
        season = self.season_steps
        distances = _KNOTS if season is None else np.arange(season, WEEK_STEPS + 1, season, dtype=np.int64)
        errors = np.empty((len(distances), len(QUANTILES)))
        for row, distance in enumerate(distances):
            if season is None:
                level = np.convolve(series, np.full(_LEVEL_STEPS, 1.0 / _LEVEL_STEPS), mode="valid")
                missed = series[_LEVEL_STEPS - 1 + distance :] - level[: max(0, len(level) - distance)]
            else:
                missed = series[distance:] - series[:-distance]
            if len(missed) >= _ENOUGH_ERRORS:
                errors[row] = np.quantile(missed, QUANTILES)
            elif row == 0:
                errors[row] = _UNSEEN
            else:
                errors[row] = errors[row - 1] * np.sqrt(distance / distances[row - 1])
        return FittedLongNaive(name=self.name, season_steps=season, unit=unit, distances=distances, errors=errors)


def _series(history: History, unit: float) -> FloatArray:
    """Five-minute means in logarithms."""
    series: FloatArray = np.log1p(means_of(history.produce_messages_per_second, STEP_MINUTES) / unit)
    return series
