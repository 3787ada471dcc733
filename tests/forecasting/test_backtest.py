"""The backtest: each forecast from its past alone, each score against the right minute."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pytest

from forecasting.backtest import Backtest, backtest
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import History
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.scores import coverage
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """A forecaster whose every path repeats the last value that it received; it records what it received."""

    name: str = "copying"
    fitted_on: list[int] = field(default_factory=list)
    forecast_from: list[int] = field(default_factory=list)

    def fit(self, history: History) -> "Copying":
        """Record the number of minutes."""
        self.fitted_on.append(history.minutes)
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """Record the number of minutes, and repeat the last value."""
        self.forecast_from.append(history.minutes)
        last = history.produce_messages_per_second[-1]
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="reactive",
            origin_at=history.end_at,
            step_seconds=60,
            paths=np.full((len(QUANTILES), steps), last),
        )


def test_each_forecast_is_shown_its_past_and_no_more(history: MakeHistory) -> None:
    """From origin i a forecaster receives i + 1 minutes; it is fitted again once the refit interval has passed."""
    copying = Copying()
    backtest(copying, history(np.arange(100.0)), origins=[10, 20, 45, 50], steps=2, refit_minutes=30)
    assert copying.forecast_from == [11, 21, 46, 51]
    assert copying.fitted_on == [11, 46]


def test_step_h_is_scored_against_the_value_h_minutes_on(history: MakeHistory) -> None:
    """On a load that grows by one a minute, the copy of the last value misses step h by exactly h."""
    result = backtest(Copying(), history(np.arange(100.0)), origins=[10, 50], steps=5)
    assert isinstance(result, Backtest)
    losses = result.pinball_losses(steps=[1, 5])
    assert losses[0].tolist() == pytest.approx([quantile * 1.0 for quantile in QUANTILES])
    assert losses[1].tolist() == pytest.approx([quantile * 5.0 for quantile in QUANTILES])


@pytest.mark.slow
def test_a_well_known_load_is_covered_as_promised(daily_load: MakeLoad, history: MakeHistory) -> None:
    """On a noisy daily wave the 90 % band holds 85-95 % of what comes, and p90 and p95 hold theirs, near and far."""
    known = history(daily_load(minutes=12 * DAY))
    result = backtest(BlendForecaster(), known, origins=range(9 * DAY, 12 * DAY - 61, 11))
    assert isinstance(result, Backtest)
    steps = [1, 5, 15, 30, 60]
    assert ((result.band_coverages(steps=steps) > 0.85) & (result.band_coverages(steps=steps) < 0.95)).all()
    at = [step - 1 for step in steps]
    for quantile, slack in ((0.9, 0.03), (0.95, 0.02)):
        upper = result.paths[:, QUANTILES.index(quantile)]
        assert coverage(result.actuals[:, at], upper[:, at]) == pytest.approx(quantile, abs=slack)


def test_a_history_as_it_was_ends_when_its_last_minute_did(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Cut at minute 99 of 200, a history has 100 minutes and ends 100 minutes earlier."""
    known = history(daily_load(minutes=200))
    earlier = known.until(99)
    assert earlier.minutes == 100
    assert known.end_at - earlier.end_at == timedelta(minutes=100)


def test_a_refusal_is_the_answer_of_the_backtest(history: MakeHistory) -> None:
    """A forecaster that refuses at the first origin has no score."""
    assert isinstance(backtest(PersistenceForecaster(), history(np.arange(100.0)), origins=[5, 50]), Refusal)


@pytest.mark.parametrize("origins", [[], [20, 10], [-1], [99]])
def test_origins_out_of_order_or_reach_are_the_callers_mistake(origins: list[int], history: MakeHistory) -> None:
    """Origins ascend and have at least one minute after them."""
    with pytest.raises(ValueError, match="origins must ascend"):
        backtest(Copying(), history(np.arange(100.0)), origins=origins)
