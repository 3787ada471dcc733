"""The persistence of a forecast's errors: it turns quantiles of single minutes into scenarios of whole paths.

An error has three parts: one that lasts for the whole hour (a wrong level), one that fades (a burst), and one that is
new in every minute (noise). Their shares differ between loads: on three recorded ones errors 10 minutes apart correlate
0.07, 0.42 and 0.67. Where whole hours of errors are known, these are used directly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from forecasting.units import FloatArray, IntArray, read_only

# Errors further ahead do not matter to any plan.
MOST_STEPS = 61
_ENOUGH_ERRORS = 100
# As many hours as there are scenarios of plans, each followed minute by minute.
ERROR_PATHS, ERROR_PATH_STEPS = 64, 60
NORMAL_SCORES: FloatArray = read_only(np.asarray(ndtri((np.arange(ERROR_PATHS) + 0.5) / ERROR_PATHS)))
RankArray = NDArray[np.uint8]
_FADING_STEPS = (1.5, 3.0, 6.0, 12.0, 24.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMemory:
    """Shares of the variance of errors: `lasting`, `fading` (by e within `fading_steps`), the rest new each step.

    >>> memory = ErrorMemory(lasting=0.4, fading=0.4, fading_steps=10.0)
    >>> round(memory.correlation(10), 2)
    0.55
    """

    lasting: float
    fading: float
    fading_steps: float

    def correlation(self, steps: int) -> float:
        """Correlation of two errors so many steps apart."""
        return self.lasting + self.fading * float(np.exp(-steps / self.fading_steps))


# Between the three recorded loads; used until a group has enough errors of its own.
USUAL_MEMORY = ErrorMemory(lasting=0.3, fading=0.45, fading_steps=12.0)


def memory_of(errors: FloatArray, horizons: IntArray) -> ErrorMemory:
    """The memory that explains the correlations of errors best, by least squares.

    Shapes: `errors` (origins, horizons), NaN where unknown; `horizons` in steps, ascending.
    """
    near = horizons <= MOST_STEPS
    columns, steps = errors[:, near], horizons[near]
    known = columns[np.isfinite(columns).all(axis=1)]
    if len(known) < _ENOUGH_ERRORS:
        return USUAL_MEMORY
    if np.ptp(known, axis=0).min() == 0.0:
        return USUAL_MEMORY  # a load without errors has no correlation of errors
    # Loading it takes half a second of processor time, which a process without errors of its own does without.
    from scipy.stats import rankdata  # noqa: PLC0415

    ranks = ndtri((rankdata(known, axis=0) - 0.5) / len(known))
    correlations = np.atleast_2d(np.corrcoef(ranks.T))
    first, second = np.triu_indices(len(steps), k=1)
    apart, seen = (steps[second] - steps[first]).astype(np.float64), correlations[first, second]
    best, least = USUAL_MEMORY, np.inf
    for fading_steps in _FADING_STEPS:
        shape = np.exp(-apart / fading_steps)
        slope, level = np.polyfit(shape, seen, 1)
        lasting = float(np.clip(level, 0.0, 0.95))
        fading = float(np.clip(slope, 0.0, 0.999 - lasting))
        misfit = float(np.sum((lasting + fading * shape - seen) ** 2))
        if misfit < least:
            best, least = ErrorMemory(lasting=lasting, fading=fading, fading_steps=fading_steps), misfit
    return best


def error_ranks_of(errors: FloatArray) -> RankArray | None:
    """Past errors of whole hours as paths of ranks (64, 60); None where fewer than 64 are known.

    Shapes: `errors` (origins, 60), one column a minute, in units of the expected scatter, NaN where unknown. A jump
    that stays keeps its minutes together in these, as it did when it came; at each step the values are 0 to 63, which
    stand for the 64 NORMAL_SCORES. Source: the Schaake shuffle (Clark et al. 2004), with errors in place of weather.
    """
    known = errors[np.isfinite(errors).all(axis=1)]
    if len(known) < ERROR_PATHS:
        return None
    chosen = known[np.linspace(0, len(known) - 1, ERROR_PATHS).astype(np.int64)]
    order = np.argsort(np.argsort(chosen, axis=0, kind="stable"), axis=0, kind="stable")
    ranks = order.astype(np.uint8)
    ranks.setflags(write=False)
    return ranks
