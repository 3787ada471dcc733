"""Bands of the long-term model: how far its past forecasts were off at each horizon, in units of the hour's scatter."""

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import ndtri

from forecasting.forecast import QUANTILES
from forecasting.slots import SLOTS_PER_DAY
from forecasting.units import FloatArray, IntArray

# Slots ahead: dense in the first hours, then by half days and days. 864 and more are whole days: the time of day of
# an error is in its scatter, not in its horizon.
LONG_KNOTS: IntArray = np.array([1, 3, 6, 12, 24, 48, 96, 144, 288, 432, 576, 864, 1152, 1440, 1728, 2016])

# Before any error is known the bands are a normal's: 1.25 is its deviation over its mean distance, the scatter.
_DEVIATION_OF_SCATTER = 1.25
# A knot's own errors have half the weight where this many of them are independent. With 12, the p95 loss on
# `nasa-http-july-flash-crowd` is 1.01 times the better naive rival's instead of 0.94.
_HALF_SURE = 24.0
# An error downwards, mirrored, is limited to twice the rate: a load that fell silent did not rise without end.
_MOST_MIRRORED = log(2.0)
# Scatter is at least this: 0.3 % of a rate.
SCATTER_FLOOR = 0.003


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


def fit_long_bands(errors: FloatArray, scatter: FloatArray, *, drift: float) -> LongBands:
    """Bands from held-out errors, (origins, knots), NaN where unknown, and the scatter at their targets, same shape.

    Each knot starts from the errors of the one before it, wider by the drift, and moves to its own errors and its
    neighbours' by how many of them are independent: errors days ahead from the same few days are nearly one error. By
    the same share it lets up and down differ: one error does not show on which side the next one falls.
    """
    floored = np.maximum(scatter, SCATTER_FLOOR)
    standard, mirrored = errors / floored, np.minimum(-errors, _MOST_MIRRORED) / floored
    quantiles = np.empty((len(LONG_KNOTS), len(QUANTILES)))
    normal = ndtri(QUANTILES)
    expected, drifts = _DEVIATION_OF_SCATTER * normal, drift * normal / float(np.median(floored))
    for knot, ahead in enumerate(LONG_KNOTS):
        independent = _independent(errors[:, knot])
        if independent > 0.0:
            near = slice(max(0, knot - 1), knot + 2)
            known = np.isfinite(errors[:, near])
            seen, other_side = standard[:, near][known], mirrored[:, near][known]
            share = independent / (independent + _HALF_SURE)
            as_seen = _around_centre(np.quantile(seen, QUANTILES))
            either_side = _around_centre(np.quantile(np.concatenate([seen, other_side]), QUANTILES))
            expected = share * (share * as_seen + (1.0 - share) * either_side) + (1.0 - share) * expected
        quantiles[knot] = expected
        further = LONG_KNOTS[min(knot + 1, len(LONG_KNOTS) - 1)]
        moved = drifts * np.sqrt(float(further) ** 2 - float(ahead) ** 2) / SLOTS_PER_DAY
        expected = np.sign(expected) * np.hypot(expected, moved)
    return LongBands(quantiles=quantiles)


def _independent(errors: FloatArray) -> float:
    """The number of independent errors these are worth, in order: the count over 1 + twice the sum of correlations.

    About zero, not about their mean: errors that all lie on one side are worth hardly one. The sum ends where it falls
    to 0.

    >>> [round(_independent(np.array(errors)), 1) for errors in ([1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 1.0, 1.0])]
    [4.0, 1.0]
    """
    known = errors[np.isfinite(errors)]
    square = float(known @ known)
    if square <= 0.0:
        return float(len(known))
    total = 0.0
    for lag in range(1, len(known)):
        correlation = float(known[lag:] @ known[:-lag]) / square
        if correlation <= 0.0:
            break
        total += correlation
    return len(known) / (1.0 + 2.0 * total)


def _around_centre(quantiles: FloatArray) -> FloatArray:
    """Quantiles of which the middle one is 0: the mean error of a few past days is no bias of the days to come."""
    middle = QUANTILES.index(0.5)
    around: FloatArray = np.r_[np.minimum(quantiles[:middle], 0.0), 0.0, np.maximum(quantiles[middle + 1 :], 0.0)]
    return around
