"""Forecasters that are wrong on purpose, and one that is never wrong: they measure the fallback policy and forecasts.

The wrong ones have narrow bands: their quantiles lie within a few percent of their path under every history.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from scipy.stats import norm

from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import MINUTES_PER_DAY, refuse_short
from forecasting.refusal import Refusal
from forecasting.units import FloatArray, IntArray, read_only

# Standard deviation of ln(rate) in their bands: the p90 lies 6.6 % above the median.
CLAIMED_DEVIATION = 0.05
LEAST_MINUTES = 30

# The past day's minutes (the last one newest, all known), which minutes ahead, the origin's minute: rates.
Pattern = Callable[[FloatArray, IntArray, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternForecaster:
    """Answers every horizon by a pattern of the last day; there is nothing to fit."""

    name: str
    pattern: Pattern

    def fit(self, history: History) -> "PatternForecaster | Refusal":
        """Itself, or a refusal of less than half an hour."""
        if history.minutes < LEAST_MINUTES:
            return refuse_short(history, needed_minutes=LEAST_MINUTES)
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The pattern, with narrow bands around it."""
        newest = history.produce_messages_per_second[-MINUTES_PER_DAY:]
        known = ~np.isnan(newest)
        if not known.any():
            return refuse_short(history, needed_minutes=LEAST_MINUTES)
        minutes = np.arange(newest.size)
        day = np.interp(minutes, minutes[known], newest[known])
        origin = int(history.end_at.timestamp()) // MINUTE_SECONDS
        path = self.pattern(day, np.arange(1, steps + 1, dtype=np.int64), origin)
        bands = np.exp(CLAIMED_DEVIATION * norm.ppf(QUANTILES))
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=MINUTE_SECONDS,
            paths=read_only(np.outer(bands, path)),
        )


def mirrored(day: FloatArray, ahead: IntArray, _: int) -> FloatArray:
    """The rate of the same minute a day before, mirrored: least plus greatest minus that rate.

    >>> mirrored(np.array([1.0, 2.0, 5.0]), np.array([1, 2, 3, 4]), 0)
    array([5., 4., 1., 5.])
    """
    path: FloatArray = day.min() + day.max() - day[(ahead - 1) % day.size]
    return path


def backwards(day: FloatArray, ahead: IntArray, _: int) -> FloatArray:
    """The last day backwards: the rate a minute ahead is the rate of a minute ago.

    >>> backwards(np.array([1.0, 2.0, 5.0]), np.array([1, 2, 3, 4]), 0)
    array([5., 2., 1., 5.])
    """
    return day[-1 - (ahead - 1) % day.size]


def constant(day: FloatArray, ahead: IntArray, _: int) -> FloatArray:
    """The last day's mean for all minutes ahead."""
    return np.full(ahead.size, day.mean())


def anything(day: FloatArray, ahead: IntArray, origin: int) -> FloatArray:
    """Any rate between the last day's least and greatest, anew each minute; an origin always gives the same."""
    return np.random.default_rng([6, origin]).uniform(day.min(), day.max(), ahead.size)


ADVERSARIAL = PatternForecaster(name="adversarial", pattern=mirrored)
REVERSED = PatternForecaster(name="reversed", pattern=backwards)
CONSTANT = PatternForecaster(name="constant", pattern=constant)
RANDOM = PatternForecaster(name="random", pattern=anything)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """Knows the produce rate of every future minute, but not the random number of messages that are produced.

    `rates` has one value per minute from `start_at` on; after the last one it stays constant.
    """

    rates: FloatArray
    start_at: datetime
    name: str = "foresight"

    def fit(self, _: History) -> "Foresight":
        """Itself: there is nothing to learn."""
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """The rates after the history's end, for every quantile."""
        first = round((history.end_at - self.start_at).total_seconds()) // MINUTE_SECONDS
        minutes = np.clip(np.arange(first, first + steps), 0, len(self.rates) - 1)
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="weekly",
            origin_at=history.end_at,
            step_seconds=MINUTE_SECONDS,
            paths=read_only(np.tile(self.rates[minutes], (len(QUANTILES), 1))),
        )
