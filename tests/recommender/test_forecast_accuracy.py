"""Forecasts against what came: errors by horizon, skill against a constant rate, and coverage of the bands."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recommender.deciding.recommendation import Recommendation
from recommender.forecast_accuracy import HORIZONS_SECONDS, ForecastAccuracy

MakeAdvice = Callable[..., Recommendation]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
Rate = Callable[[int], float]


@pytest.fixture
def published(advice: MakeAdvice) -> Callable[..., Recommendation]:
    """`published(minute, rate, forecast)`: the advice of a minute after noon, whose forecast is a rate by minute."""

    def make(minute: int, rate: float, forecast: Rate, *, second: int = 0, band: float = 50.0) -> Recommendation:
        as_of = NOON + timedelta(minutes=minute, seconds=second)
        given = advice()
        p50 = tuple(forecast(minute + ahead) for ahead in range(1, 61))
        return replace(
            given,
            issued_at=as_of + timedelta(seconds=2),
            observed=replace(given.observed, as_of=as_of, produce_messages_per_second=rate),
            forecast=replace(
                given.forecast,
                origin_at=NOON + timedelta(minutes=minute),
                p05=tuple(each - band for each in p50),
                p50=p50,
                p95=tuple(each + band for each in p50),
            ),
        )

    return make


def judged(all_advice: Iterable[Recommendation]) -> ForecastAccuracy:
    """The accuracy after all of these."""
    accuracy = ForecastAccuracy()
    for each in all_advice:
        accuracy.add(each)
    return accuracy


def test_nothing_is_known_before_the_first_minute_that_was_forecast(published: MakeAdvice) -> None:
    """Five minutes after the first forecast is the first; the next advice closes that minute."""
    before = judged(published(minute, 100.0, lambda _: 100.0) for minute in range(6))
    assert (before.error_ratio, before.skill_ratio, before.coverage_ratio) == ({}, None, None)
    after = judged(published(minute, 100.0, lambda _: 100.0) for minute in range(7))
    assert (after.error_ratio, after.coverage_ratio) == ({300: 0.0}, 1.0)


def test_a_forecast_of_a_ramp_that_comes_has_no_error_and_full_skill(published: MakeAdvice) -> None:
    """10 more each minute, as forecast: a constant rate is 50 to 600 too low."""
    accuracy = judged(published(minute, 1000.0 + 10.0 * minute, lambda at: 1000.0 + 10.0 * at) for minute in range(130))
    assert accuracy.error_ratio == dict.fromkeys(HORIZONS_SECONDS, 0.0)
    assert (accuracy.skill_ratio, accuracy.coverage_ratio) == (1.0, 1.0)


def test_the_error_is_that_against_what_came_and_not_against_the_rate_of_then(published: MakeAdvice) -> None:
    """A constant forecast under that ramp is 50 too low after five minutes and 600 after an hour, as a constant is."""
    accuracy = judged(
        published(minute, 1000.0 + 10.0 * minute, lambda _, rate=1000.0 + 10.0 * minute: rate) for minute in range(72)
    )
    assert accuracy.skill_ratio == 0.0
    # Judged at an hour: the forecasts of minutes 0, 5 and 10, with 1,600 to 1,700 in their minutes.
    assert accuracy.error_ratio[3600] == pytest.approx(600.0 / 1650.0, rel=0.001)
    # The band of 50 has the errors of five minutes ahead alone: 14 of 14 + 12 + 9 + 3 minutes.
    assert accuracy.coverage_ratio == pytest.approx(14 / 38, abs=0.01)


def test_a_minute_is_the_mean_of_what_was_observed_in_it(published: MakeAdvice) -> None:
    """Advice every 15 s: the minute until 12:05 has 80, 90, 110 and 120, and not the 500 of the next one."""
    first = [published(0, 100.0, lambda _: 110.0)]
    minute = [
        published(4, rate, lambda _: 0.0, second=second) for second, rate in ((15, 80.0), (30, 90.0), (45, 110.0))
    ]
    rest = [published(5, 120.0, lambda _: 110.0), published(5, 500.0, lambda _: 110.0, second=15)]
    assert judged([*first, *minute, *rest]).error_ratio == {300: pytest.approx(0.1)}


def test_minutes_that_were_not_observed_are_not_judged(published: MakeAdvice) -> None:
    """A group that was refused for an hour: nothing was forecast for what is observed afterwards."""
    accuracy = judged([published(0, 100.0, lambda _: 900.0), published(70, 100.0, lambda _: 100.0)])
    accuracy.add(published(71, 100.0, lambda _: 100.0))
    assert accuracy.error_ratio == {}


def test_a_forecast_that_is_published_again_counts_once(published: MakeAdvice) -> None:
    """Advice on a move under way has the forecast of when it was made."""
    again = [published(0, 100.0, lambda _: 200.0)] * 3
    accuracy = judged([*again, published(5, 100.0, lambda _: 100.0), published(6, 100.0, lambda _: 100.0)])
    accuracy.add(published(7, 100.0, lambda _: 100.0))
    assert accuracy.coverage_ratio == 0.0
    assert accuracy.error_ratio == {300: 1.0}


def test_old_errors_fade(published: MakeAdvice) -> None:
    """After twelve hours of right forecasts, two half-lives, the wrong ones of an hour count for less than a tenth."""
    wrong = [published(minute, 100.0, lambda _: 200.0) for minute in range(60)]
    right = [published(minute, 100.0, lambda _: 100.0) for minute in range(60, 60 + 12 * 60)]
    assert judged(wrong).error_ratio[300] == pytest.approx(1.0)
    assert 0.0 < judged([*wrong, *right]).error_ratio[300] < 0.1


def test_where_nothing_is_produced_there_is_no_ratio(published: MakeAdvice) -> None:
    """An error over 0 messages is no number."""
    accuracy = judged(published(minute, 0.0, lambda _: 0.0) for minute in range(20))
    assert (accuracy.error_ratio, accuracy.skill_ratio, accuracy.coverage_ratio) == ({}, None, 1.0)
