"""Rolling-origin backtest: forecasts from successive origins, each from its past alone, scored on observed rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from forecasting.forecast import QUANTILES, Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import History
from forecasting.horizons import targets_at
from forecasting.refusal import Refusal
from forecasting.scores import coverage, pinball_loss
from forecasting.units import FloatArray, IntArray, read_only

_MINUTES_PER_DAY = 1440


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The forecast at each origin, and the values observed after it.

    Shapes: `origins` indices into the history, each the last minute known to its forecast; `actuals` (origins, steps),
    NaN where unknown; `paths` (origins, len(QUANTILES), steps); messages per second. Column 0 is step 1, the first
    minute not yet seen.
    """

    model: str
    origins: IntArray
    actuals: FloatArray
    paths: FloatArray

    def pinball_losses(self, *, steps: Sequence[int]) -> FloatArray:
        """Mean pinball loss at each of these steps (from 1) and each quantile, (steps, len(QUANTILES))."""
        return np.array(
            [
                [
                    pinball_loss(self.actuals[:, step - 1], self.paths[:, row, step - 1], quantile=quantile)
                    for row, quantile in enumerate(QUANTILES)
                ]
                for step in steps
            ]
        )

    def band_coverages(self, *, steps: Sequence[int]) -> FloatArray:
        """Fraction of actuals inside the 90 % band (p05 to p95) at each of these steps (from 1)."""
        lower, upper = self.paths[:, QUANTILES.index(0.05)], self.paths[:, QUANTILES.index(0.95)]
        return np.array([coverage(self.actuals[:, s - 1], upper[:, s - 1], lower_path=lower[:, s - 1]) for s in steps])


def backtest(
    forecaster: Forecaster,
    history: History,
    *,
    origins: Sequence[int],
    steps: int = 60,
    refit_minutes: int = _MINUTES_PER_DAY,
) -> Backtest | Refusal:
    """Forecast from each origin (an index into the history, ascending), refitting once `refit_minutes` have passed.

    Errors: ValueError on no origin, on origins out of order, or on one with nothing after it. The forecaster's first
    refusal is returned: a score over some of the origins would be too good.

    Alignment, by hand: the rate counts the minutes, 1000, 1001, ..., and the origin is minute 1199. The first value not
    yet seen is 1200 + 1000; step 1 is scored against it.

    >>> from datetime import UTC
    >>> from forecasting.persistence import PersistenceForecaster
    >>> counting = history_of(1000.0 + np.arange(1300.0), end_at=datetime(2026, 1, 5, tzinfo=UTC))
    >>> result = backtest(PersistenceForecaster(), counting, origins=[1199], steps=2)
    >>> result.actuals
    array([[2200., 2201.]])
    """
    at = np.asarray(origins, dtype=np.int64)
    if len(at) == 0 or (np.diff(at) <= 0).any() or at[0] < 0 or at[-1] >= history.minutes - 1:
        message = (
            f"origins must ascend from 0 to {history.minutes - 2}, the last minute with one after it; got {origins}"
        )
        raise ValueError(message)
    paths = []
    fitted: FittedForecaster | None = None
    fitted_origin = int(at[0])
    for origin in at:
        known = history.until(int(origin))
        if fitted is None or origin - fitted_origin >= refit_minutes:
            learnt = forecaster.fit(known)
            if isinstance(learnt, Refusal):
                return learnt
            fitted, fitted_origin = learnt, int(origin)
        answer: Forecast | Refusal = fitted.forecast(known, steps=steps)
        if isinstance(answer, Refusal):
            return answer
        paths.append(answer.paths)
    horizons = np.arange(1, steps + 1, dtype=np.int64)
    actuals = targets_at(history.produce_messages_per_second, at, horizons)
    return Backtest(model=forecaster.name, origins=at, actuals=actuals, paths=np.stack(paths))


def history_of(rates: FloatArray, *, end_at: datetime, cluster: str = "trace", group: str = "trace") -> History:
    """A history of which only the produce rate is known, one value per minute, the last ending at `end_at`."""
    unknown = read_only(np.full(len(rates), np.nan))
    return History(
        cluster=cluster,
        group=group,
        end_at=end_at,
        produce_messages_per_second=read_only(rates),
        consume_messages_per_second=unknown,
        lag_messages=unknown,
        members=unknown,
        in_rebalance=unknown,
        busy_ratio=unknown,
        recent=(),
    )
