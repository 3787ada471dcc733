"""Bands of the long-term model: how far its past forecasts were off at each horizon, in units of the hour's scatter."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from forecasting.forecast import QUANTILES
from forecasting.units import FloatArray, IntArray

# Slots ahead: dense in the first hours, then by half days and days. 864 and more are whole days: the time of day of
# an error is in its scatter, not in its horizon.
LONG_KNOTS: IntArray = np.array([1, 3, 6, 12, 24, 48, 96, 144, 288, 432, 576, 864, 1152, 1440, 1728, 2016])

# Under this many errors at a knot and its neighbours the knot takes those of the one before it.
_ENOUGH_ERRORS = 60
# Where not even the first knot has errors enough, this deviation of ln rate is believed: p95 is 2.3 times p50.
_UNSEEN_SPREAD = 0.5
# Scatter is never read as less than this: 0.3 % of a rate.
SCATTER_FLOOR = 0.003
# The power of the horizon by which errors that were not seen yet are taken to grow: from 3 to 7 days, 1.24 times.
_UNSEEN_POWER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class LongBands:
    """Quantiles of errors in units of the scatter, (knots, len(QUANTILES))."""

    quantiles: FloatArray

    def paths(self, centre: FloatArray, scatter: FloatArray, horizons: IntArray) -> FloatArray:
        """Quantile paths in logarithms, (len(QUANTILES), horizons), ascending down each column."""
        offsets = at_horizons(self.quantiles, horizons) * np.maximum(scatter, SCATTER_FLOOR)[:, None]
        paths: FloatArray = np.maximum.accumulate((centre[:, None] + offsets).T, axis=0)
        return paths


def at_horizons(at_knots: FloatArray, horizons: IntArray) -> FloatArray:
    """One row per horizon from one row per knot, on straight lines in log(horizon); held beyond the last knot.

    >>> at_horizons(np.arange(16.0)[:, None], np.array([1, 24, 4000])).ravel()
    array([ 0.,  4., 15.])
    """
    knots, wanted = np.log(LONG_KNOTS), np.log(horizons)
    return np.stack([np.interp(wanted, knots, column) for column in at_knots.T], axis=1)


def fit_long_bands(errors: FloatArray, scatter: FloatArray) -> LongBands:
    """Bands from held-out errors, (origins, knots), NaN where unknown, and the scatter at their targets, same shape.

    The errors of a knot are judged together with its neighbours': origins are few where days are.
    """
    standard = errors / np.maximum(scatter, SCATTER_FLOOR)
    quantiles = np.empty((len(LONG_KNOTS), len(QUANTILES)))
    for knot in range(len(LONG_KNOTS)):
        near = standard[:, max(0, knot - 1) : knot + 2]
        known = near[np.isfinite(near)]
        own = np.isfinite(standard[:, knot]).sum()
        if len(known) >= _ENOUGH_ERRORS and 3 * own >= _ENOUGH_ERRORS:
            quantiles[knot] = _around_centre(np.quantile(known, QUANTILES))
        elif knot == 0:
            quantiles[knot] = _UNSEEN_SPREAD * norm.ppf(QUANTILES) / np.maximum(np.nanmedian(scatter), SCATTER_FLOOR)
        else:
            longer = float(LONG_KNOTS[knot] / LONG_KNOTS[knot - 1]) ** _UNSEEN_POWER
            quantiles[knot] = longer * quantiles[knot - 1]
    return LongBands(quantiles=quantiles)


def _around_centre(quantiles: FloatArray) -> FloatArray:
    """Quantiles of which the middle one is 0: the mean error of a few past days is no bias of the days to come."""
    middle = QUANTILES.index(0.5)
    around: FloatArray = np.r_[np.minimum(quantiles[:middle], 0.0), 0.0, np.maximum(quantiles[middle + 1 :], 0.0)]
    return around
