"""The short-term model: one linear regression per horizon on the level now, recent windows and the season ahead.

Every column is relative to the level of the last two minutes, and so is the prediction. A column outside the range
it had in the fit loses its weight: a load three times its season, where no day before deviated by more than a tenth, is
expected to stay there after two minutes, while a residual of a twentieth is still drawn back.
"""

from dataclasses import dataclass

import numpy as np

from forecasting.around import FittedAround, fit_around
from forecasting.history import History
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.horizons import KNOTS
from forecasting.refusal import Refusal
from forecasting.ridge import fit_ridge
from forecasting.season import Season
from forecasting.series import LogSeries, clamp_to_fitted_range
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "short_term"
_LEVEL_MINUTES = 2
_WINDOWS_MINUTES = (1, 5, 10, 20, 60, 240)
_HARMONICS = 3

# A horizon with fewer known targets than this keeps the coefficients of the horizon before it.
_ENOUGH_TARGETS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """`coefficients` (KNOTS, columns), between which horizons interpolate, and the range of each column in the fit."""

    coefficients: FloatArray
    lowest: FloatArray
    highest: FloatArray

    def centre(self, ahead: Ahead) -> FloatArray:
        """The level now, moved by the prediction from the columns.

        Past the last knot, a day and a half, its coefficients hold.
        """
        columns = _columns(ahead.series, ahead.origin, ahead.horizons, ahead.season)[:, 0]
        held = clamp_to_fitted_range(columns, self.lowest, self.highest)
        moves = np.einsum("hc,hc->h", ahead.between.interpolate(self.coefficients), held)
        path: FloatArray = ahead.series.trailing_mean(ahead.origin, minutes=_LEVEL_MINUTES) + moves
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermForecaster:
    """Regressions on level, windows and season, with bands from held-out days; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedAround | Refusal:
        """Learn the regressions and the bands, or refuse."""
        return fit_around(history, model=self.name, learn=lambda past, _: fit_regression(past))


def fit_regression(past: Past) -> tuple[Regression, FloatArray]:
    """The regression, and its held-out centres (origins, KNOTS): each block of days predicted from the others."""
    level = past.series.trailing_mean(past.origins, minutes=_LEVEL_MINUTES)[:, None]
    columns = _columns(past.series, past.origins, KNOTS, past.season)
    fit = fit_ridge(columns, past.targets - level)
    coefficients = fit.coefficients
    for knot in np.flatnonzero(np.isfinite(past.targets).sum(axis=0) < _ENOUGH_TARGETS):
        coefficients[knot] = coefficients[knot - 1]
    regression = Regression(
        coefficients=coefficients, lowest=columns.min(axis=(0, 1)), highest=columns.max(axis=(0, 1))
    )
    return regression, level + fit.held_out


def _columns(series: LogSeries, origins: IntArray, horizons: IntArray, season: Season) -> FloatArray:
    level = series.trailing_mean(origins, minutes=_LEVEL_MINUTES)
    windows = [series.trailing_mean(origins, minutes=minutes) - level for minutes in _WINDOWS_MINUTES]
    residuals = [_or_zero(now - level) for now in (season.profile_now, season.day_now, season.week_now)]
    ramps = [
        _or_zero(season.profile - season.profile_now),
        _or_zero(season.day - season.day_now),
        _or_zero(season.week - season.week_now),
    ]
    minute_of_day = (series.last_minute - series.last + origins[None, :] + horizons[:, None]) % MINUTES_PER_DAY
    angle = 2.0 * np.pi * minute_of_day / MINUTES_PER_DAY
    waves = [wave(order * angle) for order in range(1, _HARMONICS + 1) for wave in (np.sin, np.cos)]
    parts = [np.ones_like(angle), *windows, *residuals, *ramps, _or_zero(season.detail), *waves]
    columns = np.empty((len(horizons), len(origins), len(parts)))
    for number, part in enumerate(parts):
        columns[..., number] = part
    return columns


def _or_zero(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), 0.0, values)
