"""Generated loads whose next hour is known, and the forecasters that are tested on them."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.forecasts.boosting import BoostingForecaster
from benchmarks.forecasts.fourier import FourierForecaster
from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.long_term import LongTermForecaster
from forecasting.persistence import PersistenceForecaster
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.smoothing import SmoothingForecaster
from forecasting.units import FloatArray

# A Monday, 00:00 UTC: a history that ends here and holds whole days begins at midnight.
END_AT = datetime(2026, 1, 5, tzinfo=UTC)

FORECASTERS: tuple[Forecaster, ...] = (
    PersistenceForecaster(),
    SeasonalNaiveForecaster(),
    ShortTermForecaster(),
    BlendForecaster(),
    FourierForecaster(),
    SmoothingForecaster(),
    LongTermForecaster(),
)

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]


# Its fit takes two seconds, the others' a tenth.
SLOW = pytest.param(BoostingForecaster(), marks=pytest.mark.slow)


@pytest.fixture(params=(*FORECASTERS, SLOW), ids=lambda forecaster: str(forecaster.name))
def forecaster(request: pytest.FixtureRequest) -> Forecaster:
    """Each forecaster in turn."""
    chosen: Forecaster = request.param
    return chosen


@pytest.fixture
def daily_load() -> MakeLoad:
    """A daily wave around 1,000 messages/s, from 400 to 1,600, with 5 % of noise; same arguments, same load."""

    def make(*, minutes: int, noise: float = 0.05, seed: int = 1) -> FloatArray:
        time = np.arange(minutes)
        wave = 1000.0 * (1.0 + 0.6 * np.sin(2.0 * np.pi * time / 1440.0))
        load: FloatArray = wave * np.exp(np.random.default_rng(seed).normal(0.0, noise, minutes))
        return load

    return make


@pytest.fixture
def history() -> MakeHistory:
    """A history of the given rates, one a minute, that ends on a Monday at midnight UTC."""

    def make(rates: FloatArray) -> History:
        return history_of(rates, end_at=END_AT)

    return make
