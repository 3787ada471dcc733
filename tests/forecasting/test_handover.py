"""The hour and the week in one forecast, without a jump where they meet."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.handover import FADE_SECONDS, joined
from forecasting.long_term import LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

ORIGIN_AT = datetime(2026, 1, 5, tzinfo=UTC)
FADE_STEPS = FADE_SECONDS // 300


def forecast_with(medians: FloatArray, *, step_seconds: int, width: float = 0.2) -> Forecast:
    spread = np.exp(width * np.linspace(-1.0, 1.2, len(QUANTILES)))[:, None]
    return Forecast(
        cluster="c",
        group="g",
        model="made",
        history_tier="weekly",
        origin_at=ORIGIN_AT,
        step_seconds=step_seconds,
        paths=spread * medians,
    )


def test_the_hour_is_the_shorts_and_the_later_days_are_the_longs() -> None:
    """Twelve steps are means of five minutes each; two hours later the week is as it was."""
    short = forecast_with(np.linspace(100.0, 160.0, 60), step_seconds=60)
    long = forecast_with(np.linspace(300.0, 500.0, 288), step_seconds=300)
    both = joined(short, long)
    assert (both.steps, both.step_seconds, both.origin_at) == (288, 300, ORIGIN_AT)
    np.testing.assert_allclose(both.paths[:, :12], short.paths.reshape(8, 12, 5).mean(axis=2))
    np.testing.assert_array_equal(both.paths[:, 12 + FADE_STEPS :], long.paths[:, 12 + FADE_STEPS :])


def test_two_forecasts_that_agree_are_left_as_they_are() -> None:
    """A week with the same rates as the hour is not moved."""
    long = forecast_with(np.full(100, 250.0), step_seconds=300)
    both = joined(forecast_with(np.full(60, 250.0), step_seconds=60), long)
    np.testing.assert_allclose(both.paths, long.paths)


@given(
    near=st.lists(st.floats(10.0, 1e4), min_size=60, max_size=60),
    far=st.lists(st.floats(10.0, 1e4), min_size=60, max_size=60),
    widths=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
)
@settings(max_examples=60)
def test_no_step_is_larger_than_the_weeks_own_and_its_share_of_the_gap(
    near: list[float], far: list[float], widths: tuple[float, float]
) -> None:
    """From the border on, in logarithms: at most the long's own step and one 24th of the gap that fades."""
    short = forecast_with(np.array(near), step_seconds=60, width=widths[0])
    long = forecast_with(np.array(far), step_seconds=300, width=widths[1])
    both = joined(short, long)
    steps = np.abs(np.diff(np.log(both.paths[:, 11:]), axis=1))
    own = np.abs(np.diff(np.log(long.paths[:, 11:]), axis=1)).max(axis=0)
    gap = np.abs(np.log(both.paths[:, 11]) - np.log(long.paths[:, 11])).max()
    # A hundredth for the floor that keeps zero rates finite: a millionth of the mean, here half a percent of a rate.
    assert (steps <= own + gap / FADE_STEPS + 0.01 * (1.0 + own + gap)).all()
    assert (np.diff(both.paths, axis=0) >= 0.0).all()
    assert np.isfinite(both.paths).all()
    assert (both.paths >= 0.0).all()


@pytest.mark.parametrize("zero", ["short", "long", "both"])
def test_silence_on_either_side_stays_finite(zero: str) -> None:
    """Rates of zero have no logarithm, and the path is finite."""
    short = forecast_with(np.full(60, 0.0 if zero in {"short", "both"} else 80.0), step_seconds=60)
    long = forecast_with(np.full(60, 0.0 if zero in {"long", "both"} else 80.0), step_seconds=300)
    both = joined(short, long)
    assert np.isfinite(both.paths).all()
    assert (both.paths >= 0.0).all()
    np.testing.assert_array_equal(both.paths[:, -1], long.paths[:, -1])


def test_real_forecasts_meet_without_a_jump() -> None:
    """After a doubled load the blend's hour is high, the week's is not, and the median moves from one to the other."""
    minutes = np.arange(15 * 1440)
    load = 1000.0 * (1.0 + 0.5 * np.sin(2.0 * np.pi * minutes / 1440.0))
    load[-90:] *= 2.0
    known = history_of(load, end_at=ORIGIN_AT)
    short, long = BlendForecaster().fit(known), LongTermForecaster().fit(known)
    assert not isinstance(short, Refusal)
    assert not isinstance(long, Refusal)
    hour, week = short.forecast(known, steps=60), long.forecast(known)
    assert isinstance(hour, Forecast)
    assert isinstance(week, Forecast)
    median = joined(hour, week).path(0.5)
    assert np.abs(np.diff(np.log(median[11:60]))).max() < 0.06


def test_forecasts_that_do_not_belong_together_are_the_callers_mistake() -> None:
    """Another origin, another group, or steps that do not fit raise a ValueError that names them."""
    short = forecast_with(np.full(60, 5.0), step_seconds=60)
    long = forecast_with(np.full(60, 5.0), step_seconds=300)
    for other in (replace(short, origin_at=ORIGIN_AT + timedelta(minutes=1)), replace(short, group="other")):
        with pytest.raises(ValueError, match="both need the same origin"):
            joined(other, long)
    for paths in (short.paths[:, :4], np.tile(short.paths, 6)):
        with pytest.raises(ValueError, match="short needs at least one whole step"):
            joined(replace(short, paths=paths), long)
    with pytest.raises(ValueError, match="steps of 7 s"):
        joined(replace(short, step_seconds=7), long)
