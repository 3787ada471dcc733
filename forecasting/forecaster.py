"""The port every forecaster implements: fit on a history, then forecast from any later one."""

from typing import Protocol

from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal


class FittedForecaster(Protocol):
    """Parameters learnt once, used at many origins: fitting is hourly, forecasting is once a minute."""

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """Quantile paths for the `steps` minutes after `history.end_at`, from that history alone."""
        ...


class Forecaster(Protocol):
    """A model before it has seen data. Same history, same seed, same parameters."""

    @property
    def name(self) -> str:
        """The model's name on the wire and in tables, in snake case."""
        ...

    def fit(self, history: History) -> FittedForecaster | Refusal:
        """Learn from `history`, or refuse, with the length that it has and the length that is needed."""
        ...
