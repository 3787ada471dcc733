"""Loads with a label: silence, growth and another day, each with the continuation that a person would expect."""

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import Forecast
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440


def forecast_of(forecaster: Forecaster, fitted_on: History, known: History) -> Forecast:
    fitted = forecaster.fit(fitted_on)
    assert not isinstance(fitted, Refusal), fitted
    answer = fitted.forecast(known, steps=60)
    assert isinstance(answer, Forecast), answer
    return answer


@pytest.mark.parametrize(("known_days", "silent_days"), [(15, 8), (6, 22)])
@pytest.mark.parametrize("fitted_before", [True, False])
def test_a_silence_longer_than_the_read_history_gives_finite_paths(
    forecaster: Forecaster,
    known_days: int,
    silent_days: int,
    *,
    fitted_before: bool,
    daily_load: MakeLoad,
    history: MakeHistory,
) -> None:
    """After eight, or twenty-two, unknown days the paths stay finite and under four times the most that was seen."""
    load = daily_load(minutes=known_days * DAY)
    silent = history(np.concatenate([load, np.full(silent_days * DAY, np.nan)]))
    answer = forecast_of(forecaster, history(load) if fitted_before else silent, silent)
    assert np.isfinite(answer.paths).all()
    assert answer.path(0.5).min() > 0.0
    assert answer.paths.max() <= 4.0 * load.max() * (1.0 + 1e-9)
    assert answer.origin_at == silent.end_at


def test_growth_is_carried_on(daily_load: MakeLoad, history: MakeHistory) -> None:
    """A load that grows by 15 % a day is forecast at today's height, not at that of the days before."""
    minutes = 8 * DAY + 60
    grown = daily_load(minutes=minutes) * np.exp(0.15 * np.arange(minutes) / DAY)
    known = history(grown[: 8 * DAY])
    median = forecast_of(BlendForecaster(), known, known).path(0.5)
    yesterday, actual = grown[7 * DAY : 7 * DAY + 60].mean(), grown[8 * DAY :].mean()
    assert abs(median.mean() - actual) < 0.5 * (actual - yesterday)


@pytest.mark.slow
@given(days=st.integers(-4000, 4000))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_load_on_another_date_has_the_same_paths(
    forecaster: Forecaster, days: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Moved by whole days, the same minutes give the same paths: only the time of day counts, never the date."""
    load = daily_load(minutes=3 * DAY)
    here = history(load)
    moved_to: datetime = here.end_at + timedelta(days=days)
    there = history_of(load, end_at=moved_to)
    first, second = (forecast_of(forecaster, known, known) for known in (here, there))
    np.testing.assert_array_equal(first.paths, second.paths)
    assert second.origin_at == moved_to
