"""Seasonal naive: the rate at this minute a day ago, or a week ago where two weeks are known and that errs less."""

from dataclasses import dataclass

import numpy as np

from forecasting.around import FittedAround, fit_around
from forecasting.forecast import HistoryTier
from forecasting.history import History
from forecasting.history_tier import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.horizons import KNOTS
from forecasting.refusal import Refusal
from forecasting.series import LogSeries
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "seasonal_naive"
_STRAY_MINUTES = (5, 240)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonBefore:
    """A season of so many minutes, repeated."""

    season_minutes: int

    def centre(self, ahead: Ahead) -> FloatArray:
        """The values whole seasons before each horizon."""
        path: FloatArray = season_before(
            ahead.series, ahead.origin, ahead.horizons, season_minutes=self.season_minutes
        )[0]
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonalNaiveForecaster:
    """The day or the week before, with bands from its past errors; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedAround | Refusal:
        """Choose the season and learn the bands, or refuse."""
        return fit_around(history, model=self.name, learn=_fit_season)


def _fit_season(past: Past, history_tier: HistoryTier) -> tuple[SeasonBefore, FloatArray]:
    """The season with the smaller errors, and its centres (origins, KNOTS), which use nothing of their targets."""
    minutes = best_season(past, history_tier)
    held_out = season_before(past.series, past.origins, KNOTS, season_minutes=minutes)
    return SeasonBefore(season_minutes=minutes), held_out


def season_before(series: LogSeries, origins: IntArray, horizons: IntArray, *, season_minutes: int) -> FloatArray:
    """The value whole seasons before each target, in logarithms, (origins, horizons).

    Gaps are skipped: an unknown minute is replaced by that of a day further back, then by the level now.
    """
    targets = origins[:, None] + horizons[None, :]
    at = targets - season_minutes * -(-horizons // season_minutes)[None, :]
    values = series.value(at)
    for days in (1, 2):
        unknown = np.isnan(values)
        if not unknown.any():
            break
        values = np.where(unknown, series.value(at - days * MINUTES_PER_DAY), values)
    level = series.trailing_mean(origins, minutes=10)[:, None]
    return np.where(np.isnan(values), level, values)


def residuals_from_season(
    series: LogSeries, origins: IntArray, horizons: IntArray, *, season_minutes: int
) -> FloatArray:
    """The difference of the level now from that of the season before, in logarithms, (origins, horizons).

    Over as many minutes as the horizon is long, 5 to 240: a difference that lasted an hour may last another.
    """
    minutes = np.clip(horizons, *_STRAY_MINUTES)[None, :]
    now = origins[:, None] + np.zeros_like(minutes)
    before = now - season_minutes
    residuals = series.trailing_mean(now, minutes=minutes) - series.trailing_mean(before, minutes=minutes)
    return np.where(before >= 0, residuals, 0.0)


def best_season(past: Past, history_tier: HistoryTier) -> int:
    """A day, or a week where the history allows one and repeats it with the smaller mean absolute error."""
    if history_tier != "weekly":
        return MINUTES_PER_DAY
    # The next step's target one season before is enough: within a day the error does not depend on the horizon.
    target = past.targets[:, :1]
    errors = {
        season: float(
            np.nansum(np.abs(target - season_before(past.series, past.origins, KNOTS[:1], season_minutes=season)))
        )
        for season in (MINUTES_PER_WEEK, MINUTES_PER_DAY)
    }
    return min(errors, key=lambda season: errors[season])
