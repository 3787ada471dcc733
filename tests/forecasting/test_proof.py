"""Proof of a forecaster: only one that beats persistence on minutes that it had not seen is used."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import History
from forecasting.persistence import PersistenceForecaster
from forecasting.proof import held_out_origins, is_proven
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]
DAY = 1440


@dataclass
class Given:
    """Forecasts these rates, whatever the history; its fit sees no more than it may."""

    rates: FloatArray
    latest_fit: int = 0
    name: str = "given"

    def fit(self, history: History) -> "Given":
        """Remember how much was seen."""
        self.latest_fit = max(self.latest_fit, history.minutes)
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """The given rates from the end of the history on, at every quantile."""
        path = self.rates[history.minutes : history.minutes + steps]
        return Forecast(
            cluster=history.cluster,
            group=history.group,
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=60,
            paths=np.tile(path, (len(QUANTILES), 1)),
        )


class Refusing:
    """Refuses to be fitted."""

    name = "refusing"

    def fit(self, history: History) -> Refusal:
        """Too little, whatever there is."""
        return Refusal(
            cluster=history.cluster,
            group=history.group,
            reason="no_data",
            sentence="Too little.",
            evidence=(),
            remedy="Wait.",
            refused_at=history.end_at,
        )


def levels(minutes: int, *, seed: int) -> FloatArray:
    """Random levels of 10 to 240 minutes: nothing of them returns at the same time of day."""
    random = np.random.default_rng(seed)
    rates: FloatArray = np.empty(0)
    while rates.size < minutes:
        rates = np.append(
            rates, np.full(random.integers(10, 240), np.exp(random.uniform(np.log(500.0), np.log(9000.0))))
        )
    return rates[:minutes]


def test_c14_a_daily_load_proves_the_blend(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Seven days of one wave: an hour ahead, the season is known, and persistence is wrong by a ramp."""
    assert is_proven(BlendForecaster(), history(daily_load(minutes=7 * DAY)), steps=60)


@pytest.mark.parametrize("seed", range(4))
def test_c14_two_and_a_half_days_of_random_levels_do_not_prove_the_blend(history: MakeHistory, seed: int) -> None:
    """In so few days a season can be fitted to any load; on the half day held out it is no better than persistence."""
    assert not is_proven(BlendForecaster(), history(levels(5 * DAY // 2, seed=seed)), steps=60)


def test_persistence_does_not_beat_itself(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Equal losses are no proof: nothing would be gained by the longer way to the same forecast."""
    assert not is_proven(PersistenceForecaster(), history(daily_load(minutes=3 * DAY)), steps=60)


def test_what_is_judged_was_not_seen_by_the_fit(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Of four days the last is held out: the fit ends at the first origin, with three days."""
    rates = daily_load(minutes=4 * DAY)
    forecaster = Given(rates)
    assert is_proven(forecaster, history(rates), steps=60)
    assert 3 * DAY <= forecaster.latest_fit <= 3 * DAY + 60


def test_a_forecast_that_is_wrong_by_half_is_not_proven(daily_load: MakeLoad, history: MakeHistory) -> None:
    """What comes, times 1.5: persistence is closer."""
    rates = daily_load(minutes=4 * DAY)
    assert not is_proven(Given(1.5 * rates), history(rates), steps=60)


@pytest.mark.parametrize("minutes", [60, 2 * DAY, 2 * DAY + 200])
def test_too_short_a_past_proves_nothing(daily_load: MakeLoad, history: MakeHistory, minutes: int) -> None:
    """Two days belong to the fit; ten origins with an hour after each have to follow them."""
    rates = daily_load(minutes=minutes)
    assert not is_proven(Given(rates), history(rates), steps=60)


def test_a_forecaster_that_refuses_is_not_proven(daily_load: MakeLoad, history: MakeHistory) -> None:
    """There is nothing to compare."""
    assert not is_proven(Refusing(), history(daily_load(minutes=4 * DAY)), steps=60)


def test_no_origin_lies_before_a_gap_in_its_hour(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Three unknown hours within the last day: the hours that would be judged are known to the minute."""
    rates = daily_load(minutes=4 * DAY)
    rates[-600:-420] = np.nan
    origins = held_out_origins(history(rates), steps=60)
    assert origins
    assert all(np.isfinite(rates[origin : origin + 61]).all() for origin in origins)
    assert min(origins) >= 3 * DAY


def test_c16_bands_cover_what_comes_where_few_days_have_no_season(history: MakeHistory) -> None:
    """Two days of random levels, then a third: 87 to 100 % of it stays under p95, five minutes to an hour ahead.

    With the scatter of errors taken from the days that it was fitted to, 77 % did.
    """
    under = []
    for seed in range(4):
        rates = levels(3 * DAY, seed=seed)
        fitted = BlendForecaster().fit(history(rates[: 2 * DAY]))
        assert not isinstance(fitted, Refusal)
        for minute in range(2 * DAY, 3 * DAY - 60, 37):
            forecast = fitted.forecast(history(rates[:minute]), steps=60)
            assert isinstance(forecast, Forecast)
            under.append(rates[minute + 4 : minute + 60] <= 1.001 * forecast.path(0.95)[4:])
    assert 0.87 <= np.mean(under) <= 1.0
