"""One battery for every forecaster: the promises of all of them, for any load."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.long_term import LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.smoothing import SmoothingForecaster
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440
MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)


def step_minutes(forecaster: Forecaster) -> int:
    """The week ahead has steps of five minutes, the hour has minutes."""
    return 5 if isinstance(forecaster, LongTermForecaster) else 1


def forecast_of(
    forecaster: Forecaster, history: History, *, steps: int = 60, fitted_on: History | None = None
) -> Forecast:
    fitted = forecaster.fit(fitted_on or history)
    assert not isinstance(fitted, Refusal), fitted
    answer = fitted.forecast(history, steps=steps)
    assert isinstance(answer, Forecast), answer
    return answer


def assert_sound(forecast: Forecast, *, steps: int) -> None:
    assert forecast.paths.shape == (len(QUANTILES), steps)
    assert np.isfinite(forecast.paths).all()
    assert (forecast.paths >= 0.0).all()
    assert (np.diff(forecast.paths, axis=0) >= 0.0).all()


def with_gap(load: FloatArray) -> FloatArray:
    load[-400:-300] = np.nan
    load[-DAY - 20 : -DAY + 50] = np.nan
    return load


def with_newest_minutes_unknown(load: FloatArray) -> FloatArray:
    load[-45:] = np.nan
    return load


def with_outage(load: FloatArray) -> FloatArray:
    load[-20:] = 0.0
    return load


def with_level_shift(load: FloatArray) -> FloatArray:
    load[-15:] *= 3.0
    return load


def with_flash_crowd(load: FloatArray) -> FloatArray:
    load[-600:-560] *= 8.0
    load[-5:] *= 20.0
    return load


def with_idle_nights(load: FloatArray) -> FloatArray:
    load[np.arange(len(load)) % DAY < DAY // 3] = 0.0
    return load


def with_growth(load: FloatArray) -> FloatArray:
    return load * np.exp(0.15 * np.arange(len(load)) / DAY)


def with_nothing(load: FloatArray) -> FloatArray:
    return load * 0.0


def with_one_value(load: FloatArray) -> FloatArray:
    return np.full_like(load, 250.0)


SHAPES = (
    with_gap,
    with_newest_minutes_unknown,
    with_outage,
    with_level_shift,
    with_flash_crowd,
    with_idle_nights,
    with_growth,
    with_nothing,
    with_one_value,
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("days", [3, pytest.param(15, marks=pytest.mark.slow)])
def test_every_shape_of_load_gives_sound_paths(
    forecaster: Forecaster,
    shape: Callable[[FloatArray], FloatArray],
    days: int,
    daily_load: MakeLoad,
    history: MakeHistory,
) -> None:
    """Gaps, outages, shifts, crowds, idle nights, growth or nothing at all: finite, not negative, ascending."""
    known = history(shape(daily_load(minutes=days * DAY)))
    assert_sound(forecast_of(forecaster, known), steps=60)


@pytest.mark.slow
@given(
    rates=st.lists(st.one_of(st.just(float("nan")), st.floats(0.0, 1e9)), min_size=40, max_size=120),
    steps=st.integers(1, 200),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_minutes_give_sound_paths_or_a_refusal(forecaster: Forecaster, rates: list[float], steps: int) -> None:
    """Two days of odd minutes, repeated: the answer is sound paths or a refusal, not a crash."""
    known = history_of(np.resize(np.array(rates), 2 * DAY + 100), end_at=MIDNIGHT)
    fitted = forecaster.fit(known)
    if isinstance(fitted, Refusal):
        assert np.isfinite(np.array(rates)).mean() < 0.6
        return
    answer = fitted.forecast(known, steps=steps)
    assert isinstance(answer, Forecast)
    assert_sound(answer, steps=steps)


def test_a_forecast_carries_its_origin_and_its_group(
    forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Cluster, group, origin, step and the model's name come with the paths."""
    known = history(daily_load(minutes=3 * DAY))
    forecast = forecast_of(forecaster, known)
    assert (forecast.cluster, forecast.group, forecast.origin_at) == (known.cluster, known.group, known.end_at)
    assert (forecast.step_seconds, forecast.model) == (60 * step_minutes(forecaster), forecaster.name)


def test_the_input_is_left_as_it_was(forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory) -> None:
    """Neither fit nor forecast writes to the history's arrays, and the paths refuse writes."""
    load = with_gap(daily_load(minutes=3 * DAY))
    before = load.copy()
    forecast = forecast_of(forecaster, history(load))
    np.testing.assert_array_equal(load, before)
    assert not forecast.paths.flags.writeable


def test_the_same_history_gives_the_same_paths(
    forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Nothing is drawn at random: two fits on equal histories agree to the last digit."""
    first, second = (forecast_of(forecaster, history(daily_load(minutes=3 * DAY))) for _ in range(2))
    np.testing.assert_array_equal(first.paths, second.paths)


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_a_multiple_of_the_load_gives_that_multiple_of_the_paths(
    forecaster: Forecaster, factor: float, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """A multiple of the history gives that multiple of the forecast, to a millionth, so no threshold in rates hides."""
    load = daily_load(minutes=3 * DAY)
    once, scaled = (forecast_of(forecaster, history(load * k)) for k in (1.0, factor))
    np.testing.assert_allclose(scaled.paths, factor * once.paths, rtol=1e-6, atol=1e-9 * factor)


def test_a_forecast_reads_the_history_it_is_given(forecaster: Forecaster, daily_load: MakeLoad) -> None:
    """Only parameters stay from the fit: a later history has its own origin and its own level."""
    load = daily_load(minutes=4 * DAY)
    early = history_of(load[: 3 * DAY], end_at=MIDNIGHT)
    later = forecast_of(forecaster, history_of(load[: 3 * DAY + 360], end_at=MIDNIGHT), fitted_on=early)
    # At the crest, six hours on, the load is 1,600; at the origin of the fit it was 1,000.
    assert 1400.0 < later.path(0.5)[0] < 1800.0


def test_ten_known_minutes_are_refused_with_the_known_and_the_needed_length(
    forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Too short a history is a refusal, not a crash, at the fit and at the forecast."""
    short = daily_load(minutes=DAY)
    short[:-10] = np.nan
    fitted = forecaster.fit(history(daily_load(minutes=3 * DAY)))
    assert not isinstance(fitted, Refusal)
    for refusal in (forecaster.fit(history(short)), fitted.forecast(history(short), steps=60)):
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "not_enough_history"
        evidence = dict(refusal.evidence)
        assert evidence["history_seconds"] == 600.0
        assert evidence["limit_seconds"] >= 1800.0
        assert "600 s" in refusal.sentence


def test_a_history_without_a_known_minute_is_refused(forecaster: Forecaster, history: MakeHistory) -> None:
    """A day of unknown minutes, and a history without minutes, are refused alike."""
    for rates in (np.full(DAY, np.nan), np.empty(0)):
        assert isinstance(forecaster.fit(history(rates)), Refusal)


def test_no_step_at_all_is_the_callers_mistake(
    forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Zero steps raise a ValueError that names the number."""
    with pytest.raises(ValueError, match="steps is 0"):
        forecast_of(forecaster, history(daily_load(minutes=3 * DAY)), steps=0)


@pytest.mark.parametrize(
    "forecaster",
    [SeasonalNaiveForecaster(), ShortTermForecaster(), BlendForecaster(), SmoothingForecaster(), LongTermForecaster()],
)
@pytest.mark.parametrize("origin", [0, 3, 17, 56, 59])
def test_step_one_is_in_phase_with_the_first_unseen_minute(forecaster: Forecaster, origin: int) -> None:
    """A job on the minute, every hour on the hour, is forecast in its minute by any forecaster that knows a season."""
    load = np.where(np.arange(3 * DAY + 120) % 60 == 0, 900.0, 100.0)
    known = history_of(load[: 3 * DAY + origin], end_at=MIDNIGHT + timedelta(minutes=origin))
    each = step_minutes(forecaster)
    forecast = forecast_of(forecaster, known, steps=60 // each)
    coming = load[3 * DAY + origin :][:60].reshape(-1, each).mean(axis=1)
    np.testing.assert_allclose(forecast.path(0.5), coming, rtol=0.1)


def test_unknown_newest_minutes_count_as_horizon(
    forecaster: Forecaster, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """After twenty unknown minutes step 1 equals the earlier step 21: the origin has moved, the knowledge has not."""
    load = daily_load(minutes=3 * DAY)
    seen = history_of(load[:-20], end_at=MIDNIGHT)
    gapped = load.copy()
    gapped[-20:] = np.nan
    stale = forecast_of(forecaster, history(gapped), fitted_on=seen, steps=10)
    fitted = forecaster.fit(seen)
    assert not isinstance(fitted, Refusal)
    # The same origin in time: twenty minutes before midnight.
    from_then = fitted.forecast(history_of(load[:-20], end_at=datetime(2026, 1, 4, 23, 40, tzinfo=UTC)), steps=30)
    assert isinstance(from_then, Forecast)
    unknown = 20 // step_minutes(forecaster)
    np.testing.assert_allclose(stale.path(0.5), from_then.path(0.5)[unknown:][:10], rtol=0.02)
