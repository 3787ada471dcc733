"""The week ahead of loads with a label: silence, a change of clocks, calendars, another unit, another date."""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.backtest import history_of
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.long_term import LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

# A fit of weeks for each series.
pytestmark = pytest.mark.slow

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440
DAY_SLOTS = 288


def week_ahead(known: History, *, holidays: tuple[date, ...] = ()) -> Forecast:
    fitted = LongTermForecaster(holidays=holidays).fit(known)
    assert not isinstance(fitted, Refusal), fitted
    answer = fitted.forecast(known)
    assert isinstance(answer, Forecast), answer
    return answer


def slots(load: FloatArray) -> FloatArray:
    means: FloatArray = load.reshape(-1, 5).mean(axis=1)
    return means


def wave(minutes: FloatArray) -> FloatArray:
    """From 400 to 1,600 messages/s and back in a day."""
    load: FloatArray = 1000.0 * (1.0 + 0.6 * np.sin(2.0 * np.pi * minutes / DAY))
    return load


@pytest.mark.parametrize("days", [4, 10, 21])
def test_idle_nights_stay_idle_and_days_stay_busy(days: int, daily_load: MakeLoad, history: MakeHistory) -> None:
    """Eight hours without a message each night: no median there above 1 % of the day's, the days to a tenth."""
    load = daily_load(minutes=(days + 7) * DAY)
    night = np.arange(len(load)) % DAY < DAY // 3
    load[night] = 0.0
    median = week_ahead(history(load[: days * DAY])).path(0.5)
    actual, is_night = slots(load[days * DAY :]), night[days * DAY :: 5]
    assert median[is_night].max() < 0.01 * actual.max()
    assert np.abs(median - actual)[~is_night].sum() < 0.1 * actual.sum()


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("days_ago", [1, 4, 8, 11])
def test_after_a_change_of_clocks_the_week_lies_between_the_old_and_the_new_hours(
    hours: int, days_ago: int, history: MakeHistory
) -> None:
    """Users get up an hour earlier or later in UTC: outside of the two hours is under 2 % of the week's load.

    No slot is off by more than 15 %: a residual of minutes with a steep slope is carried into minutes with less of one.
    """
    minutes = np.arange(28 * DAY, dtype=np.float64)
    old, new = wave(minutes), wave(minutes + 60.0 * hours)
    load = np.where(minutes < (21 - days_ago) * DAY, old, new)
    median = week_ahead(history(load[: 21 * DAY])).path(0.5)
    both = np.stack([slots(old[21 * DAY :]), slots(new[21 * DAY :])])
    outside = np.maximum(both.min(axis=0) - median, 0.0) + np.maximum(median - both.max(axis=0), 0.0)
    assert outside.sum() < 0.02 * both[1].sum()
    assert (outside < 0.15 * both.mean(axis=0)).all()


@pytest.mark.parametrize("hours", [-1, 1])
def test_half_of_the_days_after_a_change_of_clocks_make_the_new_hours_the_expected_ones(
    hours: int, history: MakeHistory
) -> None:
    """Fifteen days after the change the week ahead runs by the new clock, to 2 %."""
    minutes = np.arange(35 * DAY, dtype=np.float64)
    load = np.where(minutes < 13 * DAY, wave(minutes), wave(minutes + 60.0 * hours))
    median = week_ahead(history(load[: 28 * DAY])).path(0.5)
    actual = slots(load[28 * DAY :])
    assert np.abs(median - actual).sum() < 0.02 * actual.sum()


def test_growth_is_carried_on_before_two_weeks_are_known(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Of 3 % a day after ten days at least two thirds are forecast a week ahead, from three pairs of days."""
    load = daily_load(minutes=17 * DAY) * np.exp(0.03 * np.arange(17 * DAY) / DAY)
    median = week_ahead(history(load[: 10 * DAY])).path(0.5)
    last, actual = load[9 * DAY : 10 * DAY].mean(), load[16 * DAY :].mean()
    foretold = median[-DAY_SLOTS:].mean()
    assert last + (actual - last) / 1.5 < foretold < 1.02 * actual


@pytest.mark.parametrize("days", [3, 10, 21])
def test_a_calendar_without_a_day_of_these_weeks_changes_nothing(
    days: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Holidays of another year give the same paths as no calendar."""
    known = history(daily_load(minutes=days * DAY))
    np.testing.assert_array_equal(week_ahead(known, holidays=(date(2024, 12, 25),)).paths, week_ahead(known).paths)


@pytest.mark.parametrize("days", [3, 10, 21])
def test_a_holiday_is_foreseen_from_an_earlier_one_and_its_weekday_is_left_alone(
    days: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """A holiday in two days is forecast like the one of the day before yesterday, which had a fifth of the load."""
    load = daily_load(minutes=days * DAY)
    load[(days - 2) * DAY : (days - 1) * DAY] *= 0.2
    # The history ends on Monday, 5 January 2026, at midnight: that holiday was Saturday, the next is Wednesday.
    foreseen = week_ahead(history(load), holidays=(date(2026, 1, 3), date(2026, 1, 7))).path(0.5)
    by_day = foreseen.reshape(7, DAY_SLOTS).mean(axis=1)
    assert 150.0 < by_day[2] < 250.0
    assert (np.delete(by_day, 2) > 900.0).all()
    assert (np.delete(by_day, 2) < 1100.0).all()


@pytest.mark.parametrize("days", [3, 15])
def test_a_calendar_of_only_holidays_gives_finite_paths(days: int, daily_load: MakeLoad, history: MakeHistory) -> None:
    """The paths are finite and near the load if every day is a holiday and no other day is there to compare with."""
    every_day = tuple(date(2025, 12, 1) + timedelta(days=day) for day in range(60))
    paths = week_ahead(history(daily_load(minutes=days * DAY)), holidays=every_day).paths
    assert np.isfinite(paths).all()
    assert paths.min() > 100.0
    assert paths.max() < 4000.0


WEEKLY = np.exp(np.random.default_rng(5).normal(0.0, 0.2, 15 * DAY)) * wave(np.arange(15.0 * DAY))


@pytest.mark.slow
@given(factor=st.floats(1e-3, 1e5))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rates_in_another_unit_give_the_week_in_that_unit(factor: float, history: MakeHistory) -> None:
    """A multiple of two weeks' rates gives that multiple of every quantile, to a millionth."""
    once, scaled = (week_ahead(history(WEEKLY * times)) for times in (1.0, factor))
    np.testing.assert_allclose(scaled.paths, factor * once.paths, rtol=1e-6, atol=1e-9 * factor)


@pytest.mark.slow
@given(weeks=st.integers(-500, 500))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_weeks_and_their_holiday_moved_by_whole_weeks_give_the_same_week(weeks: int, history: MakeHistory) -> None:
    """Load and calendar moved together: only weekdays and holidays count, never the date."""
    here, moved = history(WEEKLY), timedelta(weeks=weeks)
    there = history_of(WEEKLY, end_at=here.end_at + moved)
    holiday = date(2026, 1, 8)
    first = week_ahead(here, holidays=(holiday,))
    second = week_ahead(there, holidays=(holiday + moved,))
    np.testing.assert_array_equal(first.paths, second.paths)
