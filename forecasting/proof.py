"""Proof of a forecaster: it is better than persistence on minutes that it had not seen, or it is not used.

Two days of a load without a season still have the best of 35 mixtures, and regressions that fit it: out of sample their
pinball losses were up to four times those of persistence on level shifts, flash crowds and random walks.
"""

from collections.abc import Sequence

import numpy as np

from forecasting.backtest import Backtest, backtest
from forecasting.forecast import QUANTILES
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, MINUTES_PER_DAY
from forecasting.persistence import PersistenceForecaster
from forecasting.units import FloatArray

# Half a day is held out, or as much of it as lies beyond the first two days.
_LEAST_HELD_OUT_MINUTES = MINUTES_PER_DAY // 2
# Origins 23 minutes apart, prime to 60, meet a job on every tenth minute in all its phases: 31 of them in half a day.
_SPACING_MINUTES = 23
_FEWEST_ORIGINS = 10
# Replicas are planned on the middle and the upper quantiles, soon and at the end of the hour.
_JUDGED = [QUANTILES.index(quantile) for quantile in (0.5, 0.9, 0.95, 0.99)]
_STEPS = (1, 5, 15, 30, 60)


def is_proven(forecaster: Forecaster, history: History, *, steps: int) -> bool:
    """True if the forecaster, fitted before it, beats persistence in the last part of the history, a day at most.

    False too where it refuses, and where fewer than ten origins, each with a horizon after it, lie beyond the first two
    days: that takes four and a half hours.
    """
    origins = held_out_origins(history, steps=steps)
    if len(origins) < _FEWEST_ORIGINS:
        return False
    judged = [backtest(each, history, origins=origins, steps=steps) for each in (forecaster, PersistenceForecaster())]
    losses = [_loss(result) for result in judged if isinstance(result, Backtest)]
    return len(losses) == len(judged) and losses[0] < losses[1]


def held_out_origins(history: History, *, steps: int) -> Sequence[int]:
    """Minutes after which a horizon is wholly known, oldest first, in the last part of the history.

    The part is a quarter of the history, half a day at least and a day at most, without the first two days.
    """
    known = np.isfinite(history.produce_messages_per_second)
    first = int(np.argmax(known))
    held_out = min(max((history.minutes - first) // 4, _LEAST_HELD_OUT_MINUTES), MINUTES_PER_DAY)
    oldest = max(first + DAILY_MINUTES, history.minutes - held_out)
    every = range(history.minutes - 1 - steps, oldest - 1, -_SPACING_MINUTES)
    return [minute for minute in every if known[minute : minute + 1 + steps].all()][::-1]


def _loss(result: Backtest) -> float:
    """Pinball loss, summed over the judged quantiles and horizons."""
    steps = [step for step in _STEPS if step <= result.actuals.shape[1]]
    losses: FloatArray = result.pinball_losses(steps=steps)[:, _JUDGED]
    return float(losses.sum())
