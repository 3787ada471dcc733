"""C14 and C16 on recorded loads of two weeks and more; without a folder of traces they are skipped."""

from statistics import fmean

import pytest

from forecasting.backtest import Backtest, backtest, history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.persistence import PersistenceForecaster
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from replay.trace import read_trace
from tests.recorded_loads import TRACES, WITHOUT

DAY = 1440
LEAST_DAYS = 15
SCORED = [QUANTILES.index(quantile) for quantile in (0.5, 0.9, 0.95)]
EACH_STEP = range(1, 61)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRACES.is_dir(), reason=WITHOUT),
]


@pytest.fixture(scope="module")
def recorded() -> dict[str, History]:
    """Each load of the folder that lasts fifteen days, minute by minute."""
    traces = [read_trace(path) for path in sorted(TRACES.glob("*.csv"))]
    minutes = {trace.name: history_of(trace.minute_rates(), end_at=trace.end_at) for trace in traces}
    return {name: history for name, history in minutes.items() if history.minutes >= LEAST_DAYS * DAY}


def backtested(forecaster: Forecaster, history: History) -> Backtest:
    """From 24 origins after the fourteenth day, fitted anew each day."""
    first, last = 14 * DAY, history.minutes - 61
    result = backtest(forecaster, history, origins=range(first, last, max(1, (last - first) // 23)))
    assert isinstance(result, Backtest)
    return result


def test_c14_and_c16_recorded_loads_are_forecast_no_worse_than_by_the_naive_rules_and_covered(
    recorded: dict[str, History],
) -> None:
    """C14: loss at most 1.02 of the better naive rule's on each load, 0.95 on average; C16: 86 to 94 % on average."""
    losses, covered = {}, {}
    for name, history in recorded.items():
        ours, *naive = (
            backtested(forecaster, history)
            for forecaster in (BlendForecaster(), PersistenceForecaster(), SeasonalNaiveForecaster())
        )
        mean, *others = (float(each.pinball_losses(steps=EACH_STEP)[:, SCORED].mean()) for each in (ours, *naive))
        losses[name] = mean / min(others)
        covered[name] = float(ours.band_coverages(steps=EACH_STEP).mean())
    assert max(losses.values()) <= 1.02, losses
    assert fmean(losses.values()) <= 0.95, losses
    assert 0.86 <= fmean(covered.values()) <= 0.94, covered
    assert all(0.8 <= share <= 0.98 for share in covered.values()), covered
