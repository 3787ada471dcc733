"""Smoothing: a level and a trend that fades, followed by statsmodels over the rest after the season.

Exponential smoothing with a damped local trend, on logarithms, on the whole rate or on its distance from the mean of
the last days at the same minute, whichever erred less. Parameters are chosen at the fit; a forecast filters the newest
hours with them.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from forecasting.around import FittedAround, fit_around
from forecasting.history import History
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.horizons import KNOTS
from forecasting.refusal import Refusal
from forecasting.season import Season
from forecasting.series import LogSeries
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "smoothing"

# Share of each minute's surprise that stays in the level: at 0.03 half of it is in the level after 23 minutes.
_LEVELS = (0.03, 0.1, 0.2, 0.4, 0.8)
# The share that stays in the trend, and the share of the trend left a minute later: at 0.9 it moves the level by ten
# minutes' worth in all. A trend that learns nothing has nothing to fade.
_TRENDS = ((1e-6, 0.5), (0.01, 0.9), (0.01, 0.97))
# Share of the smoothed season and of its detail, a job on the minute, that is subtracted before.
_SEASONS = ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.0, 1.0))
# Parameters are judged on the hour ahead; the errors at farther knots depend on the season.
_JUDGED = KNOTS <= 61

# Parameters are chosen on the newest days: on fourteen it would take three times as long, and a load that has changed
# is smoothed as it is now.
_CHOSEN_ON_MINUTES = 4 * MINUTES_PER_DAY

# Where a minute has no season the mean of the hour stands in.
_LEVEL_MINUTES = 60

# Filtering at a forecast starts so far back: with the slowest level 0.97 ** 600 of the first minute is left. So much is
# left of a gap as well, and of what a Kalman filter is unsure of after it.
_FILTER_MINUTES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothing:
    """Decay of a residual in level and trend, decay of the trend, and the share of profile and detail."""

    level: float
    trend: float
    damping: float
    season: tuple[float, float]

    def states(self, values: FloatArray) -> FloatArray:
        """Level and trend expected one minute after each value, (2, values); through unknown values (NaN) both run on.

        After some of these the next values move the level by more, until it is as sure as before. The first value has
        to be known.
        """
        gaps = np.flatnonzero(np.isnan(values))
        first = int(gaps[0]) if gaps.size else len(values)
        settled = min(int(gaps[-1]) + 1 + _FILTER_MINUTES, len(values)) if gaps.size else len(values)
        parts, level, trend = [], float(values[0]), 0.0
        for begin, end in ((0, first), (first, settled), (settled, len(values))):
            if begin < end:
                part = self._recursion(values[begin:end], level, trend)
                parts.append(part)
                trend = float(part[1, -1]) / self.damping
                level = float(part[0, -1]) - self.damping * trend
        return np.concatenate(parts, axis=1)

    def _recursion(self, values: FloatArray, level: float, trend: float) -> FloatArray:
        """The same after values whose last level and trend these are."""
        # Loading it takes a second of processor time, which a process that fits nothing does without.
        from statsmodels.tsa.exponential_smoothing.ets import (  # type: ignore[import-untyped]  # noqa: PLC0415  # has no types
            ETSModel,
        )

        # Of a single value it takes the state before for the one after.
        if len(values) == 1 or np.isnan(values).any():
            return self._filtered(values, level, trend)
        model = ETSModel(
            values,
            trend="add",
            damped_trend=True,
            initialization_method="known",
            initial_level=level,
            initial_trend=trend,
        )
        _, states = model.smooth([self.level, self.trend, self.damping, level, trend], return_raw=True)
        fading = self.damping * states[:, 1]
        return np.stack([states[:, 0] + fading, fading])

    def _filtered(self, values: FloatArray, level: float, trend: float) -> FloatArray:
        """The same, some of the values unknown, in 27 times as long."""
        from statsmodels.tsa.statespace import (  # type: ignore[import-untyped]  # noqa: PLC0415  # as above
            exponential_smoothing,
            kalman_filter,
        )

        model = exponential_smoothing.ExponentialSmoothing(
            values,
            trend=True,
            damped_trend=True,
            initialization_method="known",
            initial_level=level,
            initial_trend=trend,
            concentrate_scale=False,
        )
        # States do not depend on the variance of surprises; 1.0 holds for a load without any, too.
        model.update(np.array([self.level, self.trend, self.damping, 1.0]))
        # State 0 is the surprise of the minute itself, whose expectation is 0.
        # The filter keeps the expected states alone: keeping all its results takes 1.4 to 1.7 times as long.
        kept = kalman_filter.MEMORY_CONSERVE & ~kalman_filter.MEMORY_NO_PREDICTED_MEAN
        states: FloatArray = model.ssm.filter(conserve_memory=kept).predicted_state[1:, 1:]
        return states

    def centre(self, ahead: Ahead) -> FloatArray:
        """Level and trend of the newest ten hours carried on, with the season ahead, one value per horizon."""
        newest = np.arange(max(0, ahead.series.last + 1 - _FILTER_MINUTES), ahead.series.last + 1, dtype=np.int64)
        known = newest[np.argmax(np.isfinite(ahead.series.values[newest])) :]
        season = _part_of(_seasons_at(ahead.series, known), self.season)
        states = self.states(ahead.series.values[known] - season)[:, -1:]
        paths = self.ahead(states, ahead.horizons) + _season_ahead(ahead.season, season[-1:], of=self.season)
        path: FloatArray = paths[0]
        return path

    def ahead(self, states: FloatArray, horizons: IntArray) -> FloatArray:
        """The expected level plus the effect of the fading trend, (origins, horizons), from states (2, origins).

        >>> half = Smoothing(level=0.1, trend=0.1, damping=0.5, season=(0.0, 0.0))
        >>> half.ahead(np.array([[11.0], [1.0]]), np.array([1, 2, 3]))  # 11, + 1/2, + 1/4
        array([[11.  , 11.5 , 11.75]])
        """
        added = (self.damping - self.damping**horizons) / (1.0 - self.damping)
        path: FloatArray = states[0][:, None] + states[1][:, None] * added
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothingForecaster:
    """Exponential smoothing with a damped trend, with bands from its past errors; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedAround | Refusal:
        """Choose season and level, then the trend, by the errors of the hour ahead, and learn the bands; or refuse."""
        return fit_around(history, model=self.name, learn=lambda past, _: fit_smoothing(past))


def fit_smoothing(past: Past) -> tuple[Smoothing, FloatArray]:
    """The parameters that err the least over the hour ahead in the newest days, and all their centres (origins, KNOTS).

    Each centre comes from the values up to its origin; only this choice uses the targets, one of twenty or of three
    from thousands.
    """
    still, damped = _TRENDS[0], _TRENDS[1:]
    newest = _Filtered.since(max(0, len(past.series.values) - _CHOSEN_ON_MINUTES), past)
    chosen = _best(
        newest,
        [
            Smoothing(level=level, trend=still[0], damping=still[1], season=season)
            for season, level in product(_SEASONS, _LEVELS)
        ],
    )
    chosen = _best(newest, [chosen, *(replace(chosen, trend=trend, damping=damping) for trend, damping in damped)])
    return chosen, _Filtered.since(0, past).centres(chosen)


def _best(newest: "_Filtered", smoothings: list[Smoothing]) -> Smoothing:
    """The one with the least mean absolute error over the hour ahead, the first of equals."""
    targets = newest.past.targets[newest.judged]
    errors = [float(np.nansum(np.abs(targets - newest.centres(smoothing))[:, _JUDGED])) for smoothing in smoothings]
    return smoothings[int(np.argmin(errors))]


class _Filtered(NamedTuple):
    """The minutes that are filtered, their seasons, and the places of the judged ones among the past's origins."""

    past: Past
    minutes: IntArray
    seasons: FloatArray
    judged: IntArray

    @classmethod
    def since(cls, minute: int, past: Past) -> "_Filtered":
        """Those from the first known one on."""
        first = minute + int(np.argmax(np.isfinite(past.series.values[minute:])))
        minutes = np.arange(first, len(past.series.values), dtype=np.int64)
        return cls(past, minutes, _seasons_at(past.series, minutes), np.flatnonzero(past.origins >= minute))

    def centres(self, smoothing: Smoothing) -> FloatArray:
        """The centres at the judged origins, (origins, KNOTS)."""
        season = _part_of(self.seasons, smoothing.season)
        at = np.maximum(self.past.origins[self.judged] - self.minutes[0], 0)
        states = smoothing.states(self.past.series.values[self.minutes] - season)[:, at]
        return smoothing.ahead(states, KNOTS) + _season_ahead(
            self.past.season, season[at], of=smoothing.season, of_origins=self.judged
        )


def _seasons_at(series: LogSeries, minutes: IntArray) -> FloatArray:
    """Profile and detail of these minutes' season, from the days before them, (2, minutes).

    Where they are not known, the mean of the hour before and 0.
    """
    season = Season.at(series, minutes, np.zeros(1, dtype=np.int64))
    level = series.trailing_mean(minutes, minutes=_LEVEL_MINUTES)
    profile, detail = season.profile[0], season.detail[0]
    return np.stack([np.where(np.isnan(profile), level, profile), np.where(np.isnan(detail), 0.0, detail)])


def _part_of(seasons: FloatArray, of: tuple[float, float]) -> FloatArray:
    """The part of the season that is subtracted."""
    if of == (0.0, 0.0):
        return np.zeros(seasons.shape[1])
    share, detail = of
    part: FloatArray = share * seasons[0] + detail * seasons[1]
    return part


def _season_ahead(
    season: Season, now: FloatArray, *, of: tuple[float, float], of_origins: IntArray | None = None
) -> FloatArray:
    """The same part of the season ahead, (origins, horizons); where none is known its value at the origin, `now`.

    `of_origins`: places among the origins, all where it is None.
    """
    share, detail = of
    profile, details = (part if of_origins is None else part[:, of_origins] for part in (season.profile, season.detail))
    ahead = share * profile + detail * np.where(np.isnan(details), 0.0, details)
    return np.where(np.isnan(ahead), now, ahead).T
