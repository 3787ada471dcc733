"""How a load itself moves: what scenarios take from it, and what they keep of the forecast."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from forecasting.backtest import history_of
from forecasting.forecast import QUANTILES, Forecast
from forecasting.memory import ErrorMemory, motion_of
from forecasting.scenarios import scenarios_of
from forecasting.series import LogSeries, unit_of
from forecasting.units import FloatArray

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
DAY_MINUTES, WEEK_MINUTES = 1440, 7 * 1440
PATHS, STEPS = 64, 60
# The highest eighth of 64 paths.
HIGHEST = 8


def motion(rates: FloatArray) -> FloatArray | None:
    """The motion of a load of one value a minute."""
    history = history_of(rates, end_at=MONDAY)
    return motion_of(LogSeries.from_history(history, unit=unit_of(history), newest_minutes=5 * WEEK_MINUTES))


def white(minutes: int, *, seed: int = 1) -> FloatArray:
    """1,000/s, give or take 5 % in each minute by itself."""
    load: FloatArray = 1000.0 * np.exp(np.random.default_rng(seed).normal(0.0, 0.05, minutes))
    return load


def bursty(minutes: int, *, seed: int = 1) -> FloatArray:
    """The same with twice as much in five minutes of about every thirty."""
    random = np.random.default_rng(seed)
    begins = np.cumsum(random.integers(20, 40, minutes // 20))
    burst = np.zeros(minutes)
    for minute in begins[begins < minutes]:
        burst[minute : minute + 5] = 1.0
    return white(minutes, seed=seed) * (1.0 + burst)


def still_high(paths: FloatArray, *, later: int) -> float:
    """Of the paths that are in the highest eighth at a step, the share that still are so many steps later."""
    high = paths >= np.sort(paths, axis=0)[-HIGHEST]
    return float((high[:, :-later] & high[:, later:]).sum() / high[:, :-later].sum())


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([white, bursty]))
def test_a_motion_has_the_normal_scores_at_each_step(seed: int, load: Callable[..., FloatArray]) -> None:
    """Whatever the load, each of 60 steps holds the 64 normal scores once, in the order of the load's own strays."""
    paths = motion(load(2 * DAY_MINUTES, seed=seed))
    assert paths is not None
    assert paths.shape == (PATHS, STEPS)
    scores = norm.ppf((np.arange(PATHS) + 0.5) / PATHS)
    assert np.sort(paths, axis=0) == pytest.approx(np.tile(scores[:, None], (1, STEPS)))


def test_bursts_stay_together_and_noise_does_not() -> None:
    """Two minutes on, three of five minutes of a burst are still in it; of noise an eighth is high again by chance."""
    together, apart = motion(bursty(WEEK_MINUTES)), motion(white(WEEK_MINUTES))
    assert together is not None
    assert apart is not None
    assert still_high(together, later=2) == pytest.approx(0.6, abs=0.15)
    assert still_high(apart, later=2) == pytest.approx(0.125, abs=0.05)
    assert still_high(together, later=8) < 0.2


@pytest.mark.parametrize(("minutes", "known"), [(DAY_MINUTES + 59, False), (DAY_MINUTES + 60, True)])
def test_a_motion_takes_a_day_with_half_an_hour_at_either_end(minutes: int, *, known: bool) -> None:
    """A level is the mean of the hour around a minute, so 25 hours hold the day of strays that is asked for."""
    assert (motion(white(minutes)) is not None) is known


def test_a_history_without_whole_hours_has_no_motion() -> None:
    """A minute missing in every fifty leaves no sixty in a row; one missing day in a week leaves six."""
    gappy, day_less = white(WEEK_MINUTES), white(WEEK_MINUTES)
    gappy[::50] = np.nan
    day_less[2 * DAY_MINUTES : 3 * DAY_MINUTES] = np.nan
    assert motion(gappy) is None
    assert motion(day_less) is not None


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 0.9), st.sampled_from([white, bursty]), st.integers(0, 1000))
def test_scenarios_that_move_as_the_load_keep_the_forecasts_quantiles(
    lasting: float, load: Callable[..., FloatArray], seed: int
) -> None:
    """At each step 10, 50 and 90 % of 64 paths lie under p10, p50 and p90, within three deviations of so many draws."""
    moving = motion(load(2 * DAY_MINUTES, seed=seed))
    assert moving is not None
    bands = 1000.0 * np.exp(0.2 * norm.ppf(QUANTILES))
    forecast = Forecast(
        cluster="c",
        group="g",
        model="given",
        rung="daily",
        origin_at=MONDAY,
        step_seconds=60,
        paths=np.tile(bands[:, None], (1, STEPS)),
        memory=ErrorMemory(lasting=lasting, fading=0.9 - lasting, fading_steps=12.0),
        motion=moving,
    )
    paths = scenarios_of(forecast, count=PATHS, steps=STEPS)
    for quantile in (0.1, 0.5, 0.9):
        under = (paths <= forecast.path(quantile)).mean(axis=0)
        error = np.sqrt(quantile * (1.0 - quantile) / PATHS)
        assert np.abs(under - quantile).max() <= 3.0 * error
