"""The horizons at which parameters are learnt, and the straight lines in log(horizon) between them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.units import FloatArray, IntArray

# Minutes ahead. Dense where the planner acts (a pod needs minutes), sparse where only the season predicts. None is a
# multiple of 5: for just those horizons the present minute predicts a job on every fifth minute or hour, and parameters
# learnt there would mislead the horizons beside them. Nor is one near a whole day, where the season ahead is the season
# now and its worth cannot be learnt: the last knot lies a day and a half ahead.
KNOTS: IntArray = np.array([1, 2, 3, 4, 7, 11, 19, 29, 43, 61, 127, 359, 719, 2159], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """For each horizon the knot at or under it, the next one, and how far (0 to 1) it lies between them."""

    lower: IntArray
    upper: IntArray
    share: FloatArray

    @classmethod
    def of(cls, horizons: IntArray) -> Self:
        """Horizons past the last knot keep the last knot's parameters.

        >>> between = Between.of(np.array([1, 5, 5000]))
        >>> between.interpolate(KNOTS.astype(float)).round(2).tolist()
        [1.0, 5.2, 2159.0]
        """
        lower = np.clip(np.searchsorted(KNOTS, horizons, side="right") - 1, 0, len(KNOTS) - 1)
        upper = np.minimum(lower + 1, len(KNOTS) - 1)
        logs = np.log(KNOTS)
        width = np.where(upper > lower, logs[upper] - logs[lower], 1.0)
        share = np.where(upper > lower, (np.log(horizons) - logs[lower]) / width, 0.0)
        return cls(lower=lower, upper=upper, share=share)

    def interpolate(self, at_knots: FloatArray) -> FloatArray:
        """One row per horizon from one row per knot."""
        share = self.share.reshape(-1, *([1] * (at_knots.ndim - 1)))
        rows: FloatArray = (1.0 - share) * at_knots[self.lower] + share * at_knots[self.upper]
        return rows


def origins_for(first: int, last: int, *, at_most: int) -> IntArray:
    """Evenly spaced origins from `first` to `last`, at most that many.

    The spacing is prime to 60, so that a job on every tenth minute is met in all its phases, not in one.

    >>> origins_for(0, 20, at_most=5)
    array([ 6, 13, 20])
    """
    spacing = next(
        step for step in (1, 7, 11, 13, 17, 23, 31, 47, 61, 97) if (last - first) // step < at_most or step == 97
    )
    return np.arange(last, first - 1, -spacing, dtype=np.int64)[::-1]


def targets_at(values: FloatArray, origins: IntArray, horizons: IntArray) -> FloatArray:
    """The values `horizons` after `origins`, (origins, horizons); NaN where unknown or not yet seen.

    Step 1 is the first value not yet seen:

    >>> targets_at(np.array([10.0, 11.0, 12.0]), np.array([0, 1]), np.array([1, 2]))
    array([[11., 12.],
           [12., nan]])
    """
    at = origins[:, None] + horizons[None, :]
    return np.where(at < len(values), values[np.minimum(at, len(values) - 1)], np.nan)
