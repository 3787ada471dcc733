"""Careful calls: a forecaster that fails, hangs or gives impossible values costs a history tier, never the decision.

Forecasters may be foreign code. An exception, a missed time limit or an impossible value is returned as
`ForecasterFailure`, a value with a sentence that is published. The running process sets the time limit by passing a
`Caller`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from forecasting.forecast import QUANTILES, Forecast
from forecasting.forecaster import FittedForecaster
from forecasting.history import History
from forecasting.refusal import Refusal

# The steepest launch that we know of multiplied a load by 30; 100 times the highest rate seen is impossible.
ABSURD_FACTOR = 100.0
# An idle group has no rate to multiply.
LEAST_HIGHEST_MESSAGES_PER_SECOND = 1.0

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ForecasterFailure:
    """The reason why a forecaster is not used, as the end of a sentence."""

    why: str


class Caller(Protocol):
    """A way to call code that may fail: `call`, which has no time limit, or one with a limit."""

    def __call__(self, question: Callable[[], Answer], /) -> Answer | ForecasterFailure:
        """The answer, or the failure; exceptions of the call are not raised."""
        ...


def call(question: Callable[[], Answer], /) -> Answer | ForecasterFailure:
    """The answer of foreign code, or the failure.

    >>> call(lambda: 6 * 7), call(lambda: 1 // 0)
    (42, ForecasterFailure(why='it failed with ZeroDivisionError: integer division or modulo by zero'))
    """
    try:
        return question()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure of this forecaster alone
        return ForecasterFailure(f"it failed with {type(error).__name__}: {error}")


def checked_forecast(
    fitted: FittedForecaster, history: History, *, steps: int
) -> Forecast | Refusal | ForecasterFailure:
    """The forecast of `fitted.forecast`, or a failure where its values are impossible."""
    answer = fitted.forecast(history, steps=steps)
    return answer if isinstance(answer, Refusal) else nonsense(answer, history) or answer


def nonsense(forecast: Forecast, history: History) -> ForecasterFailure | None:
    """A failure for impossible values: not a number, negative, or far beyond the history; None where none is."""
    paths = forecast.paths
    if paths.ndim != 2 or paths.shape[0] != len(QUANTILES) or paths.shape[1] == 0:
        return ForecasterFailure(
            f"it gave paths of shape {paths.shape} instead of {len(QUANTILES)} quantiles and a value a minute"
        )
    if not np.isfinite(paths).all():
        return ForecasterFailure("it forecast values that are no number")
    lowest, highest = float(paths.min()), float(paths.max())
    if lowest < 0.0:
        return ForecasterFailure(f"it forecast {lowest:,.0f} messages/s, less than none")
    rates = history.produce_messages_per_second
    seen = max(LEAST_HIGHEST_MESSAGES_PER_SECOND, float(rates[np.isfinite(rates)].max(initial=0.0)))
    if highest > ABSURD_FACTOR * seen:
        return ForecasterFailure(
            f"it forecast {highest:,.0f} messages/s where {seen:,.0f} is the most that was ever seen"
        )
    return None
