"""The week ahead: generated loads whose next week is known."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from forecasting.backtest import history_of
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.long_term import WEEK_STEPS, LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440
WEEK = 7 * DAY


def weekly_load(days: int) -> FloatArray:
    """A daily wave that is half as high on the last two days of each week and later on the last one."""
    time = np.arange(days * DAY)
    weekday = time // DAY % 7
    wave = 1.0 + 0.5 * np.sin(2.0 * np.pi * (time - 60.0 * (weekday == 6)) / DAY)
    load: FloatArray = 1000.0 * wave * np.where(weekday >= 5, 0.5, 1.0)
    return load


def forecast_of(known: History, *, forecaster: LongTermForecaster | None = None) -> Forecast:
    fitted = (forecaster or LongTermForecaster()).fit(known)
    assert not isinstance(fitted, Refusal), fitted
    answer = fitted.forecast(known)
    assert isinstance(answer, Forecast), answer
    return answer


def slots(load: FloatArray) -> FloatArray:
    means: FloatArray = load.reshape(-1, 5).mean(axis=1)
    return means


def wape(median: FloatArray, actual: FloatArray) -> float:
    return float(np.abs(median - actual).sum() / actual.sum())


def test_a_week_is_forecast_in_steps_of_five_minutes(history: MakeHistory) -> None:
    """Seven days are 2,016 steps of 300 s, on the weekly history tier from fourteen days, on the daily one before."""
    for days, history_tier in ((14, "weekly"), (13, "daily")):
        forecast = forecast_of(history(weekly_load(days)))
        assert (forecast.steps, forecast.step_seconds, forecast.history_tier) == (WEEK_STEPS, 300, history_tier)


@pytest.mark.parametrize("days", [14, pytest.param(17, marks=pytest.mark.slow), 21])
def test_a_pure_week_is_forecast_to_a_hundredth(days: int, history: MakeHistory) -> None:
    """If all weeks are alike, the next week is forecast like the one before."""
    load = weekly_load(days + 7)
    median = forecast_of(history(load[: days * DAY])).path(0.5)
    assert wape(median, slots(load[days * DAY :])) < 0.01


def test_growth_of_a_hundredth_a_day_goes_on(history: MakeHistory) -> None:
    """After three weeks of 1 % a day the seventh day ahead is another 7 % higher."""
    load = weekly_load(28) * np.exp(0.01 * np.arange(28 * DAY) / DAY)
    median = forecast_of(history(load[: 21 * DAY])).path(0.5)
    actual = slots(load[21 * DAY :])
    assert wape(median, actual) < 0.02
    assert abs(median[-288:].sum() / actual[-288:].sum() - 1.0) < 0.02


@pytest.mark.parametrize("silence", [0.0, np.nan])
@pytest.mark.parametrize("days_ago", [1, pytest.param(5, marks=pytest.mark.slow), 7])
def test_an_outage_does_not_come_back_a_week_later(silence: float, days_ago: int, history: MakeHistory) -> None:
    """A day without messages, or without samples, is not expected on the same weekday."""
    load = weekly_load(28)
    actual = slots(load[21 * DAY :])
    load[(21 - days_ago) * DAY : (22 - days_ago) * DAY] = silence
    median = forecast_of(history(load[: 21 * DAY])).path(0.5)
    day = slice(288 * ((7 - days_ago) % 7), 288 * ((7 - days_ago) % 7) + 288)
    assert wape(median[day], actual[day]) < 0.1
    assert wape(median, actual) < 0.1


@pytest.mark.parametrize("factor", [0.4, 2.5])
@pytest.mark.parametrize("days_ago", [3, 7, pytest.param(9, marks=pytest.mark.slow)])
def test_a_shift_of_level_is_taken_as_the_level(factor: float, days_ago: int, history: MakeHistory) -> None:
    """Days after the load has risen or fallen for good, the new level is expected to stay, without further growth."""
    load = weekly_load(28)
    load[(21 - days_ago) * DAY :] *= factor
    median = forecast_of(history(load[: 21 * DAY])).path(0.5)
    assert wape(median, slots(load[21 * DAY :])) < 0.05


def test_a_holiday_runs_like_a_sunday(history: MakeHistory) -> None:
    """A Wednesday that is named a holiday is forecast like a Sunday, its neighbours like themselves."""
    # The history ends on Monday, 5 January 2026, at midnight; it begins on a Monday too.
    load = weekly_load(28)
    known = history(load[: 21 * DAY])
    plain = forecast_of(known).path(0.5)
    with_holidays = forecast_of(known, forecaster=LongTermForecaster(holidays=(date(2026, 1, 7),))).path(0.5)
    sunday = slots(load[27 * DAY :])
    assert wape(with_holidays[576:864], sunday) < 0.02
    assert wape(plain[576:864], sunday) > 0.5
    np.testing.assert_allclose(np.delete(with_holidays, np.s_[576:864]), np.delete(plain, np.s_[576:864]), rtol=0.01)


def test_an_earlier_holiday_teaches_the_next_one(history: MakeHistory) -> None:
    """The next holiday is forecast like the earlier one, and does not change its weekday."""
    load = weekly_load(28)
    wednesday = slice(16 * DAY, 17 * DAY)  # 31 December 2025
    load[wednesday] *= 0.2
    holidays = (date(2025, 12, 31), date(2026, 1, 8))
    with_holidays = forecast_of(history(load[: 21 * DAY]), forecaster=LongTermForecaster(holidays=holidays)).path(0.5)
    assert wape(with_holidays[864:1152], slots(load[wednesday])) < 0.05
    assert wape(with_holidays[576:864], slots(load[23 * DAY : 24 * DAY])) < 0.05


def noisy(load: FloatArray) -> FloatArray:
    """The load with a tenth of noise in each slot."""
    slot_noise = np.random.default_rng(1).lognormal(0.0, 0.1, load.size // 5)
    disturbed: FloatArray = load * np.repeat(slot_noise, 5)
    return disturbed


@pytest.mark.parametrize(("growth", "next_growth"), [(0.4, 0.8), (0.4, 0.0), (-0.4, -0.8)])
def test_the_band_holds_a_growth_that_stops_or_doubles(growth: float, next_growth: float, history: MakeHistory) -> None:
    """After two weeks of growth by a half in each, the next week's factor may be 2.2 or 1."""
    weeks = np.arange(21 * DAY) / WEEK
    load = noisy(weekly_load(21) * np.exp(growth * weeks + (next_growth - growth) * np.maximum(weeks - 2.0, 0.0)))
    forecast = forecast_of(history(load[: 14 * DAY]))
    actual = slots(load[14 * DAY :])
    assert ((actual >= forecast.path(0.05)) & (actual <= forecast.path(0.95))).mean() > 0.86


@pytest.mark.parametrize(("factor", "most"), [(1.0, 1.2), (2.5, 1.6)])
def test_a_load_that_does_not_grow_has_no_wider_band_for_it(factor: float, most: float, history: MakeHistory) -> None:
    """A week like the one before, and a level that has shifted once, are no growth that may double."""
    load = noisy(weekly_load(14))
    load[7 * DAY :] *= factor
    forecast = forecast_of(history(load))
    assert (forecast.path(0.95) / forecast.path(0.5)).mean() < most


@pytest.mark.slow
def test_the_band_holds_nine_slots_in_ten(daily_load: MakeLoad) -> None:
    """Of noise that never changes the 90 % band holds 0.86 to 0.94, near and far."""
    weeks = 8
    load = daily_load(minutes=(3 + weeks) * WEEK, noise=0.3, seed=3)
    inside = []
    for week in range(weeks):
        end = (3 + week) * WEEK
        at = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(weeks=week)
        forecast = forecast_of(history_of(load[end - 3 * WEEK : end], end_at=at))
        actual = slots(load[end : end + WEEK])
        inside.append((actual >= forecast.path(0.05)) & (actual <= forecast.path(0.95)))
    for part in np.split(np.mean(inside, axis=0), 7):
        assert 0.86 < part.mean() < 0.94
