"""The source of forecasts: a model while it works and is proven, beside it that the produce rate stays as it is."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.backtest import history_of
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import History
from forecasting.units import FloatArray
from recommender.adapters.time_limit import TimeLimit
from recommender.deciding.decision import DecisionSettings
from recommender.following.careful import Caller, call
from recommender.following.experts import PLANNERS, WITHOUT_FORECAST
from recommender.following.forecast_source import PROVE_AFTER, ForecastSource
from recommender.following.kept_account import Proof

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
DAY = 1440
MINUTES = 4 * DAY


def jumps() -> FloatArray:
    """Six minutes of every half hour bring 16,000/s, the others 3,000/s."""
    return np.where(np.arange(MINUTES + DAY) % 30 < 6, 16_000.0, 3_000.0)


@dataclass
class Given:
    """Forecasts these rates times a factor, from the end of the history on, a few seconds late if it is slow.

    `fits` counts its fits, proofs included.
    """

    factor: float = 1.0
    seconds: float = 0.0
    fails: bool = False
    rates: FloatArray = field(default_factory=jumps)
    name: str = "given"
    fits: int = 0

    def fit(self, history: History) -> "Given":
        """Nothing is left to learn."""
        assert history.minutes > 0
        self.fits += 1
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """What comes, times the factor."""
        if self.fails:
            message = "broken"
            raise RuntimeError(message)
        time.sleep(self.seconds)
        first = MINUTES + round((history.end_at - NOW).total_seconds() / 60)
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=60,
            paths=np.tile(self.factor * self.rates[first : first + steps], (len(QUANTILES), 1)),
        )


def until(minutes: int) -> History:
    """The load, up to so many minutes after NOW."""
    return history_of(jumps()[: MINUTES + minutes], end_at=NOW + timedelta(minutes=minutes))


def source(forecaster: Given, caller: Caller = call) -> ForecastSource:
    return ForecastSource(forecaster, DecisionSettings(), caller=caller)


def models(beside: ForecastSource, history: History) -> list[str]:
    """The models of the forecasts of a history, by who plans with them."""
    forecasts = beside.forecasts(history)
    found = [forecasts.of(planner, history) for planner in PLANNERS]
    return [each.model if isinstance(each, Forecast) else each.reason for each in found]


def test_c17_a_forecast_that_knows_the_jumps_is_used() -> None:
    """It beats persistence on the day before; what persistence says stays beside it."""
    beside = source(Given())
    assert not beside.proven  # nothing was compared yet
    assert models(beside, until(0)) == ["given", "persistence"]
    assert beside.proven


def test_rows_within_a_minute_cost_no_forecast() -> None:
    """Of a history that ends with the same minute the forecasts are the same; the next minute has its own."""
    beside = source(Given())
    first = beside.forecasts(until(0))
    again = replace(until(0), recent=())
    assert beside.forecasts(again) is first
    assert first.of(WITHOUT_FORECAST, again) is first.of(WITHOUT_FORECAST, again)
    assert beside.forecasts(until(1)) is not first


def test_a_fit_that_is_put_off_is_made_when_it_is_asked_for() -> None:
    """However long it waits; the first one, and its proof, are never put off."""
    forecaster = Given()
    beside = source(forecaster)
    assert beside.refit_due_at is None
    made = []
    for minutes in (0, 60, 120):
        beside.forecasts(until(minutes), may_refit=False)
        assert beside.refit_due_at == NOW + timedelta(hours=1)
        made.append(forecaster.fits)
    assert made[0] > 1
    assert made == [made[0]] * 3
    put_off = beside.forecasts(until(120), may_refit=False)
    beside.refit(until(120))
    beside.refit(until(120))  # nothing is due any longer
    assert forecaster.fits == made[0] + 1
    assert beside.refit_due_at == NOW + timedelta(hours=3)
    assert beside.forecasts(until(120), may_refit=False) is not put_off


def test_a_proof_is_due_before_a_fit_where_it_is_older() -> None:
    """The kept one of a restart may be five hours and a half old; what cannot be proven is never due for it."""
    beside = source(Given())
    beside.resume(Proof(NOW + timedelta(minutes=30) - PROVE_AFTER, is_proven=True))
    beside.refit(until(0))
    assert beside.refit_due_at == NOW + timedelta(minutes=30)
    short = source(Given())
    short.resume(Proof(NOW + timedelta(minutes=30) - PROVE_AFTER, is_proven=True))
    short.refit(until(0).last(600))
    assert short.refit_due_at == NOW + timedelta(hours=1)


def test_c17_a_forecast_that_is_far_off_is_not_used() -> None:
    """Three times what comes: persistence is closer, and both kinds of plans get it."""
    beside = source(Given(factor=3.0))
    assert models(beside, until(0)) == ["persistence", "persistence"]
    assert not beside.proven


def test_a_proof_that_was_kept_is_as_old_as_before() -> None:
    """Whoever goes on with it makes the next one six hours after it, not at once; what it says holds until then."""
    before, beside = source(Given(factor=3.0)), source(Given())
    before.forecasts(until(0))
    assert before.proof == Proof(NOW, is_proven=False)
    beside.resume(before.proof)
    hours = int(PROVE_AFTER.total_seconds()) // 3600
    for minutes, model in ((1, "persistence"), (60 * hours - 1, "persistence"), (60 * hours, "given")):
        assert models(beside, until(minutes))[0] == model
    assert beside.proof == Proof(NOW + PROVE_AFTER, is_proven=True)


def test_c17_a_forecast_that_has_become_wrong_is_left_at_the_next_proof() -> None:
    """Right for four days, then three times too high: six hours later it is proven on a day that it got wrong."""
    forecaster = Given()
    beside = source(forecaster)
    assert models(beside, until(0))[0] == "given"
    forecaster.factor = 3.0
    hours = int(PROVE_AFTER.total_seconds()) // 3600
    assert models(beside, until(60 * hours - 1))[0] == "given"
    assert models(beside, until(60 * hours))[0] == "persistence"


def test_a_young_history_proves_nothing_and_its_forecast_is_used() -> None:
    """Below two days there is no season to learn: the production forecaster is persistence there."""
    beside = source(Given())
    young = history_of(jumps()[MINUTES - 600 : MINUTES], end_at=NOW)
    assert models(beside, young)[0] == "given"


@pytest.mark.parametrize(
    "forecaster", [Given(fails=True), Given(factor=np.nan), Given(factor=-1.0), Given(factor=1e12)]
)
def test_p8_a_broken_forecaster_leaves_persistence_in_the_same_cycle(forecaster: Given) -> None:
    """An exception, no number, less than nothing or far too much: plans of both kinds have a forecast at once."""
    beside = source(forecaster)
    assert models(beside, until(0)) == ["persistence", "persistence"]
    assert not beside.proven


def test_p8_a_slow_forecaster_does_not_hold_up_the_proof() -> None:
    """Each answer takes 0.1 s, and 60 of them would take six: after half a second persistence is used."""
    began = time.monotonic()
    assert models(source(Given(seconds=0.1), TimeLimit(0.5)), until(0))[0] == "persistence"
    assert time.monotonic() - began < 5.0
