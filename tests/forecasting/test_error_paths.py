"""The past course of errors: scenarios follow it, and keep the quantiles of the forecast."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.memory import NORMAL_SCORES, RankArray, error_ranks_of
from forecasting.refusal import Refusal
from forecasting.scenarios import scenarios_of
from forecasting.units import FloatArray

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
DAY_MINUTES = 1440
HOURS = 400
PATHS, STEPS = 64, 60
# The highest eighth of 64 paths.
HIGHEST = 8


def white(seed: int) -> FloatArray:
    """(400, 60): errors of 5 % in each minute by itself."""
    errors: FloatArray = np.random.default_rng(seed).normal(0.0, 0.05, (HOURS, STEPS))
    return errors


def jumping(seed: int) -> FloatArray:
    """The same, and in half of the hours a jump at any minute, of any size, that stays."""
    random = np.random.default_rng(seed)
    begins, sizes = random.integers(0, 2 * STEPS, HOURS), random.uniform(0.5, 1.5, HOURS)
    return white(seed) + np.where(np.arange(STEPS) >= begins[:, None], sizes[:, None], 0.0)


def still_high(paths: RankArray, *, later: int) -> float:
    """Of the paths that are in the highest eighth at a step, the share that still are so many steps later."""
    high = paths >= np.sort(paths, axis=0)[-HIGHEST]
    return float((high[:, :-later] & high[:, later:]).sum() / high[:, :-later].sum())


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from([white, jumping]))
def test_error_paths_have_the_normal_scores_at_each_step(seed: int, errors: Callable[[int], FloatArray]) -> None:
    """For any errors, each of 60 steps holds the ranks of the 64 normal scores once, in the order of the errors."""
    ranks = error_ranks_of(errors(seed))
    assert ranks is not None
    assert ranks.shape == (PATHS, STEPS)
    assert (np.sort(ranks, axis=0) == np.arange(PATHS)[:, None]).all()
    assert norm.cdf(NORMAL_SCORES) == pytest.approx((np.arange(PATHS) + 0.5) / PATHS)


def test_a_jump_stays_where_it_was_and_noise_does_not() -> None:
    """Twenty minutes later paths that were high after a jump are still high; with noise an eighth is, by chance."""
    together, apart = error_ranks_of(jumping(1)), error_ranks_of(white(1))
    assert together is not None
    assert apart is not None
    assert still_high(together, later=20) > 0.3
    assert still_high(apart, later=20) == pytest.approx(0.125, abs=0.05)


def test_hours_with_an_unknown_minute_are_left_out() -> None:
    """64 whole hours are enough, 63 are not; an unknown minute is no error of 0."""
    errors = white(1)
    errors[64:, 30] = np.nan
    assert error_ranks_of(errors) is not None
    errors[63, 59] = np.nan
    assert error_ranks_of(errors) is None


def levels(seed: int) -> FloatArray:
    """Eight days of levels between 200 and 1,500/s, each held for some three hours, with noise of 5 %."""
    random = np.random.default_rng(seed)
    rates = np.empty(0)
    while rates.size < 8 * DAY_MINUTES:
        level = np.exp(random.uniform(np.log(200.0), np.log(1500.0)))
        rates = np.r_[rates, np.full(20 + int(random.exponential(180.0)), level)]
    noisy: FloatArray = rates[: 8 * DAY_MINUTES] * np.exp(random.normal(0.0, 0.05, 8 * DAY_MINUTES))
    return noisy


@pytest.mark.slow
def test_the_highest_minute_of_an_hour_is_as_high_as_in_scenarios() -> None:
    """A load of levels jumps once and stays: a fifth of hours should stay under the maxima of a fifth of scenarios.

    Of 768 hours 32 % do, and 19 % lie over four fifths. Of scenarios drawn from the memory of errors alone, which leave
    a level and come back to it, 64 % do, and 8 %.
    """
    under: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(16):
        rates = levels(seed)
        fitted = BlendForecaster().fit(history_of(rates[: 7 * DAY_MINUTES], end_at=MONDAY))
        assert not isinstance(fitted, Refusal)
        for minute in range(7 * DAY_MINUTES, 8 * DAY_MINUTES - STEPS, 29):
            history = history_of(rates[:minute], end_at=MONDAY + timedelta(minutes=minute - 7 * DAY_MINUTES))
            forecast = fitted.forecast(history, steps=STEPS)
            assert isinstance(forecast, Forecast)
            for known, paths in ((True, forecast.error_ranks), (False, None)):
                drawn = scenarios_of(replace(forecast, error_ranks=paths), count=PATHS, steps=STEPS, ceiling=1650.0)
                under[known].append(float(np.mean(drawn.max(axis=1) < rates[minute : minute + STEPS].max())))
    followed, memory_alone = np.array(under[True]), np.array(under[False])
    assert np.mean(followed < 0.2) < 0.4 < np.mean(memory_alone < 0.2)
    assert 0.08 < np.mean(followed > 0.8) < 0.2


def quantiles_at_each_step(quantiles: FloatArray) -> Forecast:
    """A forecast of these quantiles at every step."""
    return Forecast(
        cluster="c",
        group="g",
        model="given",
        history_tier="daily",
        origin_at=MONDAY,
        step_seconds=60,
        paths=np.tile(quantiles[:, None], (1, STEPS)),
    )


@settings(max_examples=20)
@given(st.sampled_from([white, jumping]), st.integers(0, 1000))
def test_scenarios_that_run_as_errors_ran_keep_the_forecasts_quantiles(
    errors: Callable[[int], FloatArray], seed: int
) -> None:
    """At each step 10, 50 and 90 % of 64 paths lie under p10, p50 and p90, within three deviations of so many draws."""
    bands = 1000.0 * np.exp(0.2 * norm.ppf(QUANTILES))
    forecast = replace(quantiles_at_each_step(bands), error_ranks=error_ranks_of(errors(seed)))
    paths = scenarios_of(forecast, count=PATHS, steps=STEPS)
    for quantile in (0.1, 0.5, 0.9):
        under = (paths <= forecast.path(quantile)).mean(axis=0)
        error = np.sqrt(quantile * (1.0 - quantile) / PATHS)
        assert np.abs(under - quantile).max() <= 3.0 * error


def test_a_jump_from_next_to_nothing_says_nothing_of_jumps_from_the_highest_rate() -> None:
    """Upper quantiles at 40 times the rate, learnt where it was low, end at the ceiling; a growing load's do not.

    Of 1,000/s with quartiles of 10 %, p95 of a normal load is 1,244/s, and 1,200/s is the ceiling: 1,244 holds.
    """
    forecast = quantiles_at_each_step(np.array([800.0, 850.0, 900.0, 1000.0, 1100.0, 9000.0, 20_000.0, 40_000.0]))
    assert scenarios_of(forecast, count=PATHS, steps=STEPS, ceiling=1200.0).max() == pytest.approx(1244.0)
    assert scenarios_of(forecast, count=PATHS, steps=STEPS, ceiling=5000.0).max() == pytest.approx(5000.0)
