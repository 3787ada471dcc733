"""The short-term model: one linear regression per horizon on the level now, recent windows and the season ahead.

Everything is told relative to the level of the last five minutes, and so is what is predicted: with all coefficients
at zero the model is persistence, and a level shift moves its answer by just that shift.
"""

from dataclasses import dataclass

import numpy as np

from forecasting.bands import Bands, fit_bands
from forecasting.forecast import Forecast, Rung
from forecasting.history import History
from forecasting.horizons import KNOTS
from forecasting.ladder import DAILY_MINUTES, MINUTES_PER_DAY, refuse_short, rung_of
from forecasting.refusal import Refusal
from forecasting.ridge import fit_ridge
from forecasting.season import Season
from forecasting.series import LogSeries, unit_of
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "short_term"
_LEVEL_MINUTES = 5
_WINDOWS_MINUTES = (1, 2, 10, 20, 60, 240)
_HARMONICS = 3

# A horizon with fewer known targets than this keeps the coefficients of the horizon before it.
_ENOUGH_TARGETS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """`coefficients` (KNOTS, columns), between which horizons interpolate."""

    coefficients: FloatArray

    def centre(self, ahead: Ahead) -> FloatArray:
        """The centre path from the last known minute, in logarithms, one value per horizon."""
        columns = _columns(ahead.series, ahead.origin, ahead.horizons, ahead.season)[:, 0]
        moves = np.einsum("hc,hc->h", ahead.between.interpolate(self.coefficients), columns)
        path: FloatArray = ahead.series.trailing_mean(ahead.origin, minutes=_LEVEL_MINUTES) + moves
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedShortTerm:
    """The regression, and the bands around it."""

    unit: float
    rung: Rung
    regression: Regression
    bands: Bands

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The regression's path; past its last horizon, a day, that horizon's coefficients hold."""
        if rung_of(history) in (None, "reactive"):
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        ahead = Ahead.of(history, unit=self.unit, steps=steps)
        return ahead.forecast(model=_MODEL, rung=self.rung, centre=self.regression.centre(ahead), bands=self.bands)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermForecaster:
    """Regressions on level, windows and season, with bands from held-out days; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedShortTerm | Refusal:
        """Learn the regressions and the bands, or refuse."""
        rung = rung_of(history)
        if rung is None or rung == "reactive":
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        past = Past.of(history, unit=unit_of(history), rung=rung)
        regression, centre = fit_regression(past)
        bands = fit_bands(past.targets - centre, past.scatter_columns(centre))
        return FittedShortTerm(unit=past.series.unit, rung=rung, regression=regression, bands=bands)


def fit_regression(past: Past) -> tuple[Regression, FloatArray]:
    """The regression, and its held-out centres (origins, KNOTS): each block of days predicted from the others."""
    level = past.series.trailing_mean(past.origins, minutes=_LEVEL_MINUTES)[:, None]
    fit = fit_ridge(_columns(past.series, past.origins, KNOTS, past.season), past.targets - level)
    coefficients = fit.coefficients
    for knot in np.flatnonzero(np.isfinite(past.targets).sum(axis=0) < _ENOUGH_TARGETS):
        coefficients[knot] = coefficients[knot - 1]
    return Regression(coefficients=coefficients), level + fit.held_out


def _columns(series: LogSeries, origins: IntArray, horizons: IntArray, season: Season) -> FloatArray:
    level = series.trailing_mean(origins, minutes=_LEVEL_MINUTES)
    windows = [series.trailing_mean(origins, minutes=minutes) - level for minutes in _WINDOWS_MINUTES]
    seasons = (season.profile, season.profile_now, season.day, season.day_now, season.week, season.week_now)
    relative = [_or_zero(values - level) for values in seasons]
    minute_of_day = (series.last_minute - series.last + origins[None, :] + horizons[:, None]) % MINUTES_PER_DAY
    angle = 2.0 * np.pi * minute_of_day / MINUTES_PER_DAY
    waves = [wave(order * angle) for order in range(1, _HARMONICS + 1) for wave in (np.sin, np.cos)]
    parts = [np.ones_like(angle), *windows, *relative, _or_zero(season.detail), *waves]
    columns = np.empty((len(horizons), len(origins), len(parts)))
    for number, part in enumerate(parts):
        columns[..., number] = part
    return columns


def _or_zero(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), 0.0, values)
