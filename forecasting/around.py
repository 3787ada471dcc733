"""Bands around a centre: they make a forecaster of any model that predicts the middle of the load."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from forecasting.bands import Bands
from forecasting.forecast import Forecast, HistoryTier
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, history_tier_of, refuse_short
from forecasting.refusal import Refusal
from forecasting.series import unit_of
from forecasting.units import FloatArray
from forecasting.view import Ahead, Past


class Centre(Protocol):
    """A fitted model of the middle."""

    def centre(self, ahead: Ahead) -> FloatArray:
        """The centre path from the last known minute, in logarithms, one value per horizon."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedAround:
    """A fitted centre under the model's name, and the bands around it; needs two days."""

    model: str
    unit: float
    history_tier: HistoryTier
    centre: Centre
    bands: Bands

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The centre's path, and the bands around it."""
        if history_tier_of(history) in (None, "reactive"):
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        ahead = Ahead.of(history, unit=self.unit, steps=steps)
        return ahead.forecast(
            model=self.model, history_tier=self.history_tier, centre=self.centre.centre(ahead), bands=self.bands
        )


def fit_around(
    history: History, *, model: str, learn: Callable[[Past, HistoryTier], tuple[Centre, FloatArray]]
) -> FittedAround | Refusal:
    """The centre that `learn` makes of the past, and bands from its held-out centres (origins, KNOTS); or a refusal."""
    history_tier = history_tier_of(history)
    if history_tier is None or history_tier == "reactive":
        return refuse_short(history, needed_minutes=DAILY_MINUTES)
    past = Past.of(history, unit=unit_of(history), history_tier=history_tier)
    centre, held_out = learn(past, history_tier)
    return FittedAround(
        model=model, unit=past.series.unit, history_tier=history_tier, centre=centre, bands=past.bands(held_out)
    )
