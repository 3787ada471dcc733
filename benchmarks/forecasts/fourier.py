"""Fourier: a smooth curve of the day and the week, and the time for which the load differs from it.

The curve is a ridge on sines and cosines of the time of day (of the week too, where two weeks are known) beside a
straight trend, in logarithms. The forecast is the current level, moved along the curve; the distance of the level from
the curve decreases as it did on held-out days.
"""

from dataclasses import dataclass

import numpy as np

from forecasting.bands import Bands
from forecasting.forecast import Forecast, HistoryTier
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, MINUTES_PER_DAY, MINUTES_PER_WEEK, history_tier_of, refuse_short
from forecasting.horizons import KNOTS
from forecasting.refusal import Refusal
from forecasting.ridge import fit_ridge
from forecasting.series import LogSeries, clamp_to_fitted_range, unit_of
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "fourier"

# Twelve waves a day change within an hour: they fit a ramp at 9 o'clock, and not a job on the minute.
_DAILY_WAVES = 12
# Waves a week that are no waves a day; three distinguish a weekend from a working day.
_WEEKLY_WAVES = (1, 2, 3)
_LEVEL_MINUTES = 2
_WINDOWS_MINUTES = (1, 5, 20, 60)
# The trend is in weeks and ends a day after the fit: it describes the past, and is not extrapolated.
_LONGEST_TREND_MINUTES = MINUTES_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """`coefficients` of trend and waves; `fitted_minute` is the minute of the epoch at which the trend is zero."""

    coefficients: FloatArray
    weekly: bool
    fitted_minute: int

    def at(self, minutes: IntArray, *, known_at: IntArray) -> FloatArray:
        """The curve at these minutes of the epoch, in logarithms, with the trend of the minutes `known_at`."""
        columns = _curve_columns(minutes, known_at - self.fitted_minute, weekly=self.weekly)
        values: FloatArray = columns @ self.coefficients
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFourier:
    """The curve, coefficients (KNOTS, columns) of changes of the level, their columns' ranges, and the bands."""

    unit: float
    history_tier: HistoryTier
    curve: Curve
    coefficients: FloatArray
    lowest: FloatArray
    highest: FloatArray
    bands: Bands

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The current level, moved along the curve; far outside the range of the fit, the level alone."""
        if history_tier_of(history) in (None, "reactive"):
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        ahead = Ahead.of(history, unit=self.unit, steps=steps)
        now = ahead.origin + ahead.series.last_minute - ahead.series.last
        targets = now[None, :] + ahead.horizons[:, None]
        on_curve = self.curve.at(now, known_at=now)
        ahead_on_curve = self.curve.at(targets, known_at=np.broadcast_to(now, targets.shape))
        columns = _move_columns(ahead.series, ahead.origin, on_curve, ahead_on_curve)[:, 0]
        held = clamp_to_fitted_range(columns, self.lowest, self.highest)
        moves = np.einsum("hc,hc->h", ahead.between.interpolate(self.coefficients), held)
        centre = ahead.series.trailing_mean(ahead.origin, minutes=_LEVEL_MINUTES) + moves
        return ahead.forecast(model=_MODEL, history_tier=self.history_tier, centre=centre, bands=self.bands)


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierForecaster:
    """A curve of sines and cosines, and the return to it, with bands from held-out days; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedFourier | Refusal:
        """Learn the curve, the return to it and the bands, or refuse."""
        history_tier = history_tier_of(history)
        if history_tier is None or history_tier == "reactive":
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        past = Past.of(history, unit=unit_of(history), history_tier=history_tier)
        curve, held_out = _fit_curve(past.series, weekly=history_tier == "weekly")
        targets = np.minimum(past.origins[None, :] + KNOTS[:, None], past.series.last)
        columns = _move_columns(past.series, past.origins, held_out[past.origins], held_out[targets])
        level = past.series.trailing_mean(past.origins, minutes=_LEVEL_MINUTES)[:, None]
        fit = fit_ridge(columns, past.targets - level)
        return FittedFourier(
            unit=past.series.unit,
            history_tier=history_tier,
            curve=curve,
            coefficients=fit.coefficients,
            lowest=columns.min(axis=(0, 1)),
            highest=columns.max(axis=(0, 1)),
            bands=past.bands(level + fit.held_out),
        )


def _fit_curve(series: LogSeries, *, weekly: bool) -> tuple[Curve, FloatArray]:
    """The curve, and its value at each minute of the series, each block of days fitted on the others."""
    minutes = np.arange(len(series.values), dtype=np.int64) + series.last_minute - series.last
    columns = _curve_columns(minutes, minutes - series.last_minute, weekly=weekly)
    fit = fit_ridge(columns[None], series.values[:, None])
    curve = Curve(coefficients=fit.coefficients[0], weekly=weekly, fitted_minute=series.last_minute)
    return curve, fit.held_out[:, 0]


def _curve_columns(minutes: IntArray, since_fit: IntArray, *, weekly: bool) -> FloatArray:
    """One, trend and waves at minutes of the epoch, (..., columns)."""
    day = 2.0 * np.pi * (minutes % MINUTES_PER_DAY) / MINUTES_PER_DAY
    week = 2.0 * np.pi * (minutes % MINUTES_PER_WEEK) / MINUTES_PER_WEEK
    trend = np.minimum(since_fit, _LONGEST_TREND_MINUTES) / MINUTES_PER_WEEK
    angles = [order * day for order in range(1, _DAILY_WAVES + 1)]
    if weekly:
        angles += [order * week for order in _WEEKLY_WAVES]
    waves = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    columns: FloatArray = np.stack([np.ones_like(trend), trend, *waves], axis=-1)
    return columns


def _move_columns(series: LogSeries, origins: IntArray, on_curve: FloatArray, ahead_on_curve: FloatArray) -> FloatArray:
    """Inputs for changes of the level, (horizons, origins, columns): curve ahead, distance from it, recent windows."""
    level = series.trailing_mean(origins, minutes=_LEVEL_MINUTES)
    windows = [series.trailing_mean(origins, minutes=minutes) - level for minutes in _WINDOWS_MINUTES]
    parts = [np.ones_like(level), on_curve - level, *windows, ahead_on_curve - on_curve]
    columns = np.empty((*ahead_on_curve.shape, len(parts)))
    for number, part in enumerate(parts):
        columns[..., number] = part
    return columns
