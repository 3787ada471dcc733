"""C14, C16, C18: forecasts beat the naive ones, bands have their coverage, and consumption teaches nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from forecasting.backtest import Backtest, backtest, history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.units import FloatArray, read_only
from replay.workload import orders_workload

DAY = 1440
SCORED = [QUANTILES.index(quantile) for quantile in (0.5, 0.9, 0.95)]
EACH_STEP = range(1, 61)
NEAR, NEXT, FAR = range(1, 6), range(6, 21), range(21, 61)
MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]


@pytest.fixture(scope="module")
def orders() -> History:
    """Three weeks of the default workload, minute by minute."""
    trace = orders_workload(days=21)
    return history_of(trace.minute_rates(), end_at=datetime(2026, 1, 26, tzinfo=UTC))


def backtested(forecaster: Forecaster, history: History) -> Backtest:
    """From 97 origins of the last week, an hour and three quarters apart, fitted anew at each."""
    origins = range(14 * DAY - 1, 21 * DAY - 61, 104)
    result = backtest(forecaster, history, origins=origins, refit_minutes=60)
    assert isinstance(result, Backtest)
    return result


@pytest.fixture(scope="module")
def blend_of_orders(orders: History) -> Backtest:
    """The forecast that production would have made in that week."""
    return backtested(BlendForecaster(), orders)


@pytest.mark.slow
def test_c14_a_week_of_hours_is_forecast_better_than_by_persistence_and_by_last_week(
    orders: History, blend_of_orders: Backtest
) -> None:
    """Pinball loss of p50, p90 and p95 over 60 steps and 97 origins, each forecaster from the same past."""
    naive = [backtested(forecaster, orders) for forecaster in (PersistenceForecaster(), SeasonalNaiveForecaster())]
    ours, *others = (
        float(result.pinball_losses(steps=EACH_STEP)[:, SCORED].mean()) for result in (blend_of_orders, *naive)
    )
    assert ours < 0.8 * min(others)


@pytest.mark.slow
def test_c16_nine_tenths_of_minutes_fall_into_the_band_near_and_far(blend_of_orders: Backtest) -> None:
    """Over a week of the default workload, whose bursts cannot be foreseen, coverage is 85 to 95 % at each range."""
    for steps in (NEAR, NEXT, FAR):
        assert 0.85 <= float(blend_of_orders.band_coverages(steps=steps).mean()) <= 0.95


def test_c18_consumption_teaches_nothing(forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory) -> None:
    """A group limited to 500/s of up to 1,600 for three days has the same paths as one that consumed everything."""
    arrivals = history(daily_load(minutes=3 * DAY))
    kept_up = replace(arrivals, consume_messages_per_second=arrivals.produce_messages_per_second)
    limited = replace(
        arrivals,
        consume_messages_per_second=read_only(np.minimum(arrivals.produce_messages_per_second, 500.0)),
        lag_messages=read_only(np.cumsum(np.maximum(arrivals.produce_messages_per_second - 500.0, 0.0)) * 60.0),
    )
    one, other = (paths(forecaster, known) for known in (kept_up, limited))
    np.testing.assert_array_equal(one, other)


def paths(forecaster: Forecaster, history: History) -> FloatArray:
    fitted = forecaster.fit(history)
    assert not isinstance(fitted, Refusal)
    answer = fitted.forecast(history, steps=60)
    assert isinstance(answer, Forecast)
    return answer.paths
