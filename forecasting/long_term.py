"""The long-term model: a week ahead in slots of five minutes, from level, growth, day, week and holidays.

The season and the weeks before are read anew from each history; the fit learns how much of today's residual from them
lasts how long, and how far forecasts from past origins were off.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from forecasting.forecast import Forecast, HistoryTier
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, history_tier_of, refuse_short
from forecasting.long_bands import LONG_KNOTS, LongBands, at_horizons, fit_long_bands
from forecasting.long_centre import LongCentre
from forecasting.long_season import LongSeason
from forecasting.refusal import Refusal
from forecasting.ridge import fit_ridge
from forecasting.series import clamp_to_fitted_range, rates_of, unit_of
from forecasting.slots import SLOT_SECONDS, SLOTS_PER_DAY, SLOTS_PER_WEEK, SlotSeries
from forecasting.units import SECONDS_PER_DAY, FloatArray, read_only

WEEK_STEPS = SLOTS_PER_WEEK

_MODEL = "long_term"

# A hundredth of the median rate: with a tenth, the hour's unit, the shape of a day bends when its level falls by half.
_UNIT_OF_UNIT = 0.1

# The residual from the season is averaged over the last 15 minutes, hour, six hours and day.
_RESIDUAL_SLOTS = (3, 12, 72, 288)

# Origins are 65 minutes apart, or a multiple: prime to the day, so that all its times are met.
_ORIGIN_SPACING = 13
_MOST_ORIGINS = 240

# A horizon learns from residuals where its known origins span four times as long: else chance looks like memory.
_SPANS = 4

# No quantile is above so many times the greatest rate of the history it is forecast from.
_CEILING_OF_HIGHEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLongTerm:
    """Weights of the residuals by horizon, (knots, residuals), their range (residuals,) in the fit, and the bands."""

    unit: float
    history_tier: HistoryTier
    holidays: frozenset[int]
    residual_weights: FloatArray
    lowest: FloatArray
    highest: FloatArray
    bands: LongBands

    def forecast(self, history: History, *, steps: int = WEEK_STEPS) -> Forecast | Refusal:
        """Quantile paths for the `steps` slots of five minutes after the history's end."""
        if history_tier_of(history) in (None, "reactive"):
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        if steps < 1:
            message = f"steps is {steps}; a forecast has at least 1"
            raise ValueError(message)
        series = SlotSeries.from_history(history, unit=self.unit)
        before = LongCentre.at(series, series.last, weekly=self.history_tier == "weekly", holidays=self.holidays)
        horizons = np.arange(1, steps + 1, dtype=np.int64) + series.stale_slots
        residuals = clamp_to_fitted_range(_residuals(before), self.lowest, self.highest)
        centre = before.path(horizons) + at_horizons(self.residual_weights, horizons) @ residuals
        ceiling = _CEILING_OF_HIGHEST * max(series.highest, self.unit / _UNIT_OF_UNIT)
        paths = self.bands.paths(centre, before.season.scatter_at(horizons), horizons)
        logarithms = np.minimum(paths, np.log1p(ceiling / self.unit))
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=_MODEL,
            history_tier=self.history_tier,
            origin_at=history.end_at,
            step_seconds=SLOT_SECONDS,
            paths=read_only(rates_of(logarithms, unit=self.unit)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTermForecaster:
    """A week in slots of five minutes; needs two days, uses weeks from fourteen.

    `holidays` are days (UTC) that run like the holidays seen so far, or like Sundays where none was seen.
    """

    name: str = _MODEL
    holidays: tuple[date, ...] = ()

    def fit(self, history: History) -> FittedLongTerm | Refusal:
        """Learn the weights of residuals and the bands, or refuse."""
        history_tier = history_tier_of(history)
        if history_tier is None or history_tier == "reactive":
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        series = SlotSeries.from_history(history, unit=_UNIT_OF_UNIT * unit_of(history))
        holidays = frozenset(_epoch_days(self.holidays))
        past = _Past.of(series, weekly=history_tier == "weekly", holidays=holidays)
        weights, held_out = _residual_weights(past)
        return FittedLongTerm(
            unit=series.unit,
            history_tier=history_tier,
            holidays=holidays,
            residual_weights=weights,
            lowest=past.residuals.min(axis=0),
            highest=past.residuals.max(axis=0),
            bands=fit_long_bands(past.errors - held_out, past.scatter, drift=past.drift),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """Forecasts of the centre alone, without residuals, from past origins.

    Shapes: `errors` and `scatter` (origins, knots), NaN where the target is unknown; `residuals` (origins, residuals).
    """

    errors: FloatArray
    scatter: FloatArray
    residuals: FloatArray
    spacing: int
    drift: float

    @classmethod
    def of(cls, series: SlotSeries, *, weekly: bool, holidays: frozenset[int]) -> "_Past":
        """Origins with the past that the history tier requires: a day for daily, eight for weekly, at least half known.

        With a day's past errors are larger than with two weeks', and bands made of them would be too wide.
        """
        first_known = int(np.argmax(np.isfinite(series.values)))
        first = first_known + max(SLOTS_PER_DAY * (8 if weekly else 1), (series.last - first_known) // 2)
        spacing = _ORIGIN_SPACING * max(1, -(-(series.last - first) // (_ORIGIN_SPACING * _MOST_ORIGINS)))
        origins = np.arange(series.last - 1, first - 1, -spacing)[::-1]
        origins = origins[np.isfinite(series.values[origins])]
        if len(origins) == 0:
            origins = np.array([series.last])
        errors = np.full((len(origins), len(LONG_KNOTS)), np.nan)
        scatter = np.empty_like(errors)
        residuals = np.empty((len(origins), len(_RESIDUAL_SLOTS)))
        for row, origin in enumerate(int(origin) for origin in origins):
            before = LongCentre.at(series, origin, weekly=weekly, holidays=holidays)
            at = origin + LONG_KNOTS
            seen = at <= series.last
            errors[row, seen] = series.values[at[seen]] - before.path(LONG_KNOTS[seen])
            scatter[row] = before.season.scatter_at(LONG_KNOTS)
            residuals[row] = _residuals(before)
        drift = LongSeason.at(series, series.last, weekly=weekly, holidays=holidays).drift
        return cls(errors=errors, scatter=scatter, residuals=residuals, spacing=spacing, drift=drift)


def _residual_weights(past: _Past) -> tuple[FloatArray, FloatArray]:
    """The weight of each residual at each knot, (knots, residuals), with its effect on held-out forecasts.

    A knot whose held-out errors do not get smaller by it, or whose origins span too short a time, does not use
    residuals.
    """
    # No constant: the mean error of past days is no bias of the days to come, so its column is empty.
    columns = np.concatenate([np.zeros((len(past.residuals), 1)), past.residuals], axis=1)
    shared = np.broadcast_to(columns, (len(LONG_KNOTS), *columns.shape))
    fit = fit_ridge(shared, past.errors)
    known = np.isfinite(past.errors)
    spans = known.sum(axis=0) * past.spacing
    without = np.where(known, np.abs(past.errors), 0.0).sum(axis=0)
    with_residuals = np.where(known, np.abs(past.errors - fit.held_out), 0.0).sum(axis=0)
    used = (spans >= _SPANS * LONG_KNOTS) & (with_residuals < without)
    weights = np.where(used[:, None], fit.coefficients[:, 1:], 0.0)
    return weights, np.where(used, fit.held_out, 0.0)


def _residuals(centre: LongCentre) -> FloatArray:
    """Mean distance of the newest slots from their centre, over each window; 0 where none is known."""
    steps = np.arange(1 - min(_RESIDUAL_SLOTS[-1], centre.origin + 1), 1, dtype=np.int64)
    distances = centre.series.values[centre.origin + steps] - centre.path(steps)
    return np.array([_mean_known(distances[-slots:]) for slots in _RESIDUAL_SLOTS])


def _mean_known(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else 0.0


def _epoch_days(days: Iterable[date]) -> list[int]:
    return [int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) // SECONDS_PER_DAY for day in days]
