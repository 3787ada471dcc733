"""Scenarios: whole paths of the produce rate that are possible under a forecast, equally likely.

Backlog depends on how long a surprise lasts, so that drawing each minute by itself would be wrong: an error of one
minute is most of the next one's error too. Ranks are drawn as correlated paths and read from the forecast's quantiles.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from forecasting.forecast import QUANTILES, Forecast
from forecasting.memory import NORMAL_SCORES, ErrorMemory
from forecasting.units import FloatArray, read_only

_DEVIATES: FloatArray = np.asarray(ndtri(QUANTILES), dtype=np.float64)
_P50, _P75 = QUANTILES.index(0.5), QUANTILES.index(0.75)
# p95 of a normal distribution lies so many times as far from its median as p75: 1.645 / 0.674.
_P95_IN_QUARTILES = 2.44
_SEED = 20_26
# Beyond p99 (2.33) nothing was scored: the last slope is followed only so far.
_OUTERMOST = 2.6


def scenarios_of(forecast: Forecast, *, count: int, steps: int, skip: int = 0, ceiling: float = np.inf) -> FloatArray:
    """`count` paths of `steps` values in messages/s, (count, steps), from step `skip` of the forecast on.

    Beyond the forecast, its last step is repeated. The same forecast gives the same scenarios. Outside the
    outermost quantiles values follow the last slope, as a normal tail would; never negative. They stay under `ceiling`,
    a rate that the load has never come near, unless quartiles as they are would put p95 of a normal load above it: a
    jump that multiplied the rate by 40 from next to nothing says nothing of jumps from the highest rate.
    """
    first = min(skip, forecast.steps - 1)
    columns = np.minimum(np.arange(first, first + steps), forecast.steps - 1)
    table = forecast.paths[:, columns]
    deviates = _deviates(forecast, count, steps)
    cell = np.clip(np.searchsorted(_DEVIATES, deviates) - 1, 0, len(QUANTILES) - 2)
    each = np.arange(steps)
    lower, upper = table[cell, each], table[cell + 1, each]
    deviates = np.clip(deviates, -_OUTERMOST, _OUTERMOST)
    share = (deviates - _DEVIATES[cell]) / (_DEVIATES[cell + 1] - _DEVIATES[cell])
    highest = np.maximum(table[_P50] + _P95_IN_QUARTILES * (table[_P75] - table[_P50]), ceiling)
    paths: FloatArray = np.clip(lower + share * (upper - lower), 0.0, highest)
    return paths


def _deviates(forecast: Forecast, count: int, steps: int) -> FloatArray:
    """Standard normal paths (count, steps): past error paths, or drawn from their memory where no hour is known."""
    known = forecast.error_ranks
    if known is None or count > known.shape[0]:
        return _correlated_deviates(count, steps, forecast.memory)
    rows = np.linspace(0, known.shape[0] - 1, count).astype(np.int64)
    columns = np.minimum(np.arange(steps), known.shape[1] - 1)
    deviates: FloatArray = NORMAL_SCORES[known[np.ix_(rows, columns)]]
    return deviates


@lru_cache(maxsize=64)
def _correlated_deviates(count: int, steps: int, memory: ErrorMemory) -> FloatArray:
    """Standard normal paths (count, steps); each second one mirrors the one before, so that means are exact."""
    lasting, shocks, noise = _normal_draws(-(-count // 2), steps)
    kept = np.exp(-1.0 / memory.fading_steps)
    fading = np.empty_like(shocks)
    fading[:, 0] = shocks[:, 0]
    for step in range(1, steps):
        fading[:, step] = kept * fading[:, step - 1] + np.sqrt(1.0 - kept**2) * shocks[:, step]
    rest = max(0.0, 1.0 - memory.lasting - memory.fading)
    paths = np.sqrt(memory.lasting) * lasting + np.sqrt(memory.fading) * fading + np.sqrt(rest) * noise
    return read_only(np.stack([paths, -paths], axis=1).reshape(2 * len(paths), steps)[:count])


@lru_cache(maxsize=8)
def _normal_draws(rows: int, steps: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    random = np.random.default_rng(_SEED)
    return (
        random.standard_normal((rows, 1)),
        random.standard_normal((rows, steps)),
        random.standard_normal((rows, steps)),
    )
