"""Laws of candidates beyond the battery: the same at any scale and on any date, and a way back to their season."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace import exponential_smoothing  # type: ignore[import-untyped]  # has no types

from benchmarks.forecasts.boosting import fit_across
from benchmarks.forecasts.fourier import FourierForecaster
from forecasting.backtest import history_of
from forecasting.forecast import Forecast
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.smoothing import Smoothing, SmoothingForecaster
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440
CANDIDATES: tuple[Forecaster, ...] = (FourierForecaster(), SmoothingForecaster())

each_candidate = pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: str(candidate.name))
a_few_examples = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])


def forecast_of(candidate: Forecaster, known: History, *, fitted_on: History | None = None) -> Forecast:
    fitted = candidate.fit(fitted_on or known)
    assert not isinstance(fitted, Refusal), fitted
    answer = fitted.forecast(known, steps=60)
    assert isinstance(answer, Forecast), answer
    return answer


@pytest.mark.slow
@each_candidate
@given(exponent=st.floats(-6.0, 6.0), seed=st.integers(0, 100))
@a_few_examples
def test_a_multiple_of_a_fortnight_gives_that_multiple_of_the_paths(
    candidate: Forecaster, exponent: float, seed: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """From a millionth to a million times the load, weeks included, the paths are that multiple."""
    factor, load = 10.0**exponent, daily_load(minutes=14 * DAY, seed=seed)
    once, scaled = (forecast_of(candidate, history(load * k)) for k in (1.0, factor))
    np.testing.assert_allclose(scaled.paths, factor * once.paths, rtol=1e-6)


@pytest.mark.slow
@each_candidate
@given(weeks=st.integers(-500, 500), seed=st.integers(0, 100))
@a_few_examples
def test_a_fortnight_moved_by_weeks_has_the_same_paths(
    candidate: Forecaster, weeks: int, seed: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Only the time of the week counts, never the date."""
    load = daily_load(minutes=14 * DAY, seed=seed)
    here = history(load)
    there = history_of(load, end_at=here.end_at + timedelta(weeks=weeks))
    first, second = (forecast_of(candidate, known) for known in (here, there))
    np.testing.assert_array_equal(first.paths, second.paths)


@each_candidate
def test_the_wave_of_the_day_is_carried_on(candidate: Forecaster, daily_load: MakeLoad, history: MakeHistory) -> None:
    """On a known wave the medians of an hour have half the error of a constant forecast."""
    load = daily_load(minutes=7 * DAY + 60, noise=0.02)
    median = forecast_of(candidate, history(load[: 7 * DAY])).path(0.5)
    actual, now = load[7 * DAY :], load[7 * DAY - 5 : 7 * DAY].mean()
    assert np.abs(median - actual).mean() < 0.5 * np.abs(now - actual).mean()


@each_candidate
def test_a_level_never_seen_is_believed(candidate: Forecaster, daily_load: MakeLoad, history: MakeHistory) -> None:
    """An hour after the load tripled, with parameters from before it, the median is nearer the new level."""
    load = daily_load(minutes=7 * DAY + 60)
    shifted = load.copy()
    shifted[7 * DAY :] *= 3.0
    later = history_of(shifted, end_at=history(load).end_at + timedelta(hours=1))
    median = forecast_of(candidate, later, fitted_on=history(load[: 7 * DAY])).path(0.5)
    assert median.mean() > 2.0 * load[7 * DAY :].mean()


@given(
    values=st.lists(st.floats(0.0, 10.0), min_size=2, max_size=30),
    level=st.floats(0.01, 0.99),
    damping=st.floats(0.5, 0.97),
)
@settings(max_examples=50)
def test_smoothing_equals_the_textbook_method(values: list[float], level: float, damping: float) -> None:
    """Level, trend and path are those of the damped trend method, computed step by step."""
    smoothing = Smoothing(level=level, trend=0.3 * level, damping=damping, season=(0.0, 0.0))
    at, trend = values[0], 0.0
    for value in values:
        surprise = value - (at + damping * trend)
        at, trend = at + damping * trend + level * surprise, damping * trend + 0.3 * level * surprise
    expected = [at + trend * sum(damping**step for step in range(1, horizon + 1)) for horizon in (1, 2, 10)]
    path = smoothing.ahead(smoothing.states(np.array(values))[:, -1:], np.array([1, 2, 10]))[0]
    np.testing.assert_allclose(path, expected, rtol=1e-9, atol=1e-9)


@given(
    length=st.integers(2, 1500),
    gaps=st.lists(st.tuples(st.integers(1, 1499), st.integers(1, 90)), max_size=3),
    level=st.sampled_from([0.03, 0.1, 0.8]),
    trend=st.sampled_from([(1e-6, 0.5), (0.01, 0.9), (0.01, 0.97)]),
    seed=st.integers(0, 99),
)
@settings(max_examples=50, deadline=None)
def test_smoothing_through_gaps_equals_a_kalman_filter(
    length: int, gaps: list[tuple[int, int]], level: float, trend: tuple[float, float], seed: int
) -> None:
    """A level that ran on through a gap is less sure, and moved by more: as by the filter that knows how much."""
    dice = np.random.default_rng(seed)
    values = 7.0 + np.cumsum(dice.normal(0.0, 0.01, length)) + dice.normal(0.0, 0.05, length)
    for begin, minutes in gaps:
        values[begin : begin + minutes] = np.nan
    filtered = exponential_smoothing.ExponentialSmoothing(
        values,
        trend=True,
        damped_trend=True,
        initialization_method="known",
        initial_level=values[0],
        initial_trend=0.0,
        concentrate_scale=False,
    ).smooth([level, *trend, 1.0])
    smoothing = Smoothing(level=level, trend=trend[0], damping=trend[1], season=(0.0, 0.0))
    np.testing.assert_allclose(smoothing.states(values), filtered.predicted_state[1:, 1:], rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_trees_learnt_on_some_groups_forecast_another(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Of three groups, one too young and one a thousand times as large: a fourth is forecast within a tenth."""
    others = [daily_load(minutes=4 * DAY, seed=1), 1000.0 * daily_load(minutes=4 * DAY, seed=2), np.full(60, 5.0)]
    fitted = fit_across([history(load) for load in others])
    assert not isinstance(fitted, Refusal), fitted
    load = 40.0 * daily_load(minutes=4 * DAY + 60, seed=3)
    answer = fitted.forecast(history(load[:-60]), steps=60)
    assert isinstance(answer, Forecast), answer
    assert np.abs(answer.path(0.5) / load[-60:] - 1.0).mean() < 0.1


def test_groups_that_are_all_too_young_teach_no_trees(history: MakeHistory) -> None:
    """The refusal is the first group's, and has the needed length."""
    refused = fit_across([history(np.full(60, 5.0)), history(np.full(90, 5.0))])
    assert isinstance(refused, Refusal)
    assert refused.sentence == "history of group 'trace' holds 3,600 s of known produce rate; the limit is 172,800 s"
