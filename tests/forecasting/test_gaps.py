"""Histories that reach their tier without known held-out targets: values that cannot be learned are assumed."""

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.forecasts.fourier import FourierForecaster
from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import Forecast
from forecasting.forecaster import Forecaster
from forecasting.refusal import Refusal
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.smoothing import SmoothingForecaster
from forecasting.units import FloatArray

DAY = 1440


def wave(minutes: int) -> FloatArray:
    random = np.random.default_rng(1)
    shape = 1000.0 * (1.0 + 0.6 * np.sin(2.0 * np.pi * np.arange(minutes) / DAY))
    return np.asarray(shape * np.exp(random.normal(0.0, 0.05, minutes)))


def gapped(days: int, *, known_days: int) -> FloatArray:
    """`known_days` of the wave, nothing, and the last minute."""
    rates = wave(days * DAY)
    rates[known_days * DAY : -1] = np.nan
    return rates


@pytest.mark.parametrize(("days", "known_days"), [(2, 1), (15, 8), (28, 8)])
@pytest.mark.parametrize(
    "forecaster",
    [BlendForecaster(), SeasonalNaiveForecaster(), ShortTermForecaster(), FourierForecaster(), SmoothingForecaster()],
)
def test_after_a_gap_that_hides_every_target_the_present_load_is_used(
    forecaster: Forecaster, days: int, known_days: int
) -> None:
    """The median stays within the known load and p95 lies over it; uninitialized memory affects neither."""
    rates = gapped(days, known_days=known_days)
    junk = [np.full((14, columns), 1e30) for columns in (2, 3, 8, 12) for _ in range(40)]
    del junk
    history = history_of(rates, end_at=datetime(2026, 1, 5, tzinfo=UTC))
    fitted = forecaster.fit(history)
    assert not isinstance(fitted, Refusal)
    forecast = fitted.forecast(history, steps=60)
    assert isinstance(forecast, Forecast)
    median, upper = forecast.path(0.5), forecast.path(0.95)
    assert median.max() <= np.nanmax(rates)
    assert median.min() >= np.nanmin(rates)
    assert (upper > median).all()
