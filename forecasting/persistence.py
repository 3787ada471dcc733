"""Persistence: the next rate is the rate now, with bands from the errors of that rule at each horizon.

The reactive history tier: usable from thirty known minutes, and the floor under every other model.
"""

from dataclasses import dataclass

import numpy as np

from forecasting.bands import Bands
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.history_tier import REACTIVE_MINUTES, history_tier_of, known_minutes, refuse_short
from forecasting.horizons import KNOTS
from forecasting.refusal import Refusal
from forecasting.series import LogSeries, unit_of
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

# The level now is a mean over one of these; the history's own errors choose. One minute suits a smooth load, twenty a
# load that is all noise.
_LEVEL_MINUTES = (1, 3, 5, 10, 20)

# From 30 known minutes the tails cannot be seen: bands are twice as wide; from a day, 2 % wider.
_WIDEN_MINUTES = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPersistence:
    """The level window, and the bands around it."""

    unit: float
    level_minutes: int
    bands: Bands

    def levels(self, series: LogSeries, origins: IntArray) -> FloatArray:
        """The level now at each origin, in logarithms: a mean of logarithms that a single spike hardly changes."""
        return series.trailing_mean(origins, minutes=self.level_minutes)

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The level now, carried forward."""
        if known_minutes(history) < REACTIVE_MINUTES:
            return refuse_short(history, needed_minutes=REACTIVE_MINUTES)
        ahead = Ahead.of(history, unit=self.unit, steps=steps)
        centre = np.repeat(self.levels(ahead.series, ahead.origin), steps)
        return ahead.forecast(model="persistence", history_tier="reactive", centre=centre, bands=self.bands)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistenceForecaster:
    """The level now, with bands by horizon; needs thirty known minutes."""

    name: str = "persistence"

    def fit(self, history: History) -> FittedPersistence | Refusal:
        """Choose the level window and learn the bands, or refuse."""
        if history_tier_of(history) is None:
            return refuse_short(history, needed_minutes=REACTIVE_MINUTES)
        return fit_persistence(Past.of(history, unit=unit_of(history), history_tier="reactive"))


def fit_persistence(past: Past) -> FittedPersistence:
    """The window with the least mean absolute error over all horizons that have errors, and its bands."""
    levels = {minutes: past.series.trailing_mean(past.origins, minutes=minutes)[:, None] for minutes in _LEVEL_MINUTES}
    best = min(levels, key=lambda minutes: float(np.nansum(np.abs(past.targets - levels[minutes]))))
    widen = 1.0 + _WIDEN_MINUTES / float(past.series.counts[-1])
    bands = past.bands(np.repeat(levels[best], len(KNOTS), axis=1), widen=widen)
    return FittedPersistence(unit=past.series.unit, level_minutes=best, bands=bands)
