"""Families of loads: each draw can be repeated and played, and has the properties of its family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.decisions.load_families import LOAD_FAMILIES, Draw, daily_shape, drawn
from benchmarks.decisions.tournament import judged_day, rescaled
from forecasting.units import FloatArray
from replay.trace import Trace

seeds = st.integers(0, 10_000)
draws = st.builds(Draw, family=st.sampled_from(list(LOAD_FAMILIES)), with_daily=st.booleans(), seed=seeds)


def plain(family: str, seed: int) -> Trace:
    """The family's draw without a daily shape."""
    return drawn(Draw(family=family, with_daily=False, seed=seed))


def holds(rates: FloatArray, step_seconds: int) -> FloatArray:
    """Seconds between one change of the rate and the next: neither the first stretch nor the last one."""
    return np.diff(np.flatnonzero(np.diff(rates))) * float(step_seconds)


# All families


@settings(max_examples=25)
@given(draw=draws)
def test_the_same_draw_gives_the_same_load(draw: Draw) -> None:
    """Name, start, step and every rate are equal; another seed gives other rates."""
    first, again = drawn(draw), drawn(draw)
    assert (first.name, first.start_at, first.step_seconds) == (again.name, again.start_at, again.step_seconds)
    np.testing.assert_array_equal(first.messages_per_second, again.messages_per_second)
    other = drawn(Draw(family=draw.family, with_daily=draw.with_daily, seed=draw.seed + 1))
    assert not np.array_equal(first.messages_per_second, other.messages_per_second)


@settings(max_examples=25)
@given(draw=draws)
def test_a_load_can_be_played(draw: Draw) -> None:
    """Three days of finite rates, not negative and not all 0, two before the judged one, at any scale."""
    trace = drawn(draw)
    assert trace.days == 3.0
    for rates in (trace.messages_per_second, rescaled(trace).messages_per_second):
        assert np.isfinite(rates).all()
        assert rates.min() >= 0.0
        assert rates.mean() > 0.0
    past, judged = judged_day(trace, draw.seed)
    assert past is not None
    assert (past.days, judged.days, judged.end_at) == (2.0, 1.0, trace.end_at)


@settings(max_examples=25)
@given(family=st.sampled_from(list(LOAD_FAMILIES)), seed=seeds)
def test_a_daily_shape_multiplies_the_same_changes(family: str, seed: int) -> None:
    """The load with it over the load without it is the same every day, at most 1 and at least a tenth."""
    without = plain(family, seed).messages_per_second
    with_daily = drawn(Draw(family=family, with_daily=True, seed=seed)).messages_per_second
    assert (with_daily[without == 0.0] == 0.0).all()
    shape = np.where(without > 0.0, with_daily / np.where(without > 0.0, without, 1.0), np.nan).reshape(3, -1)
    assert np.nanmax(shape) <= 1.0 + 1e-12
    assert np.nanmin(shape) >= 0.1 - 1e-12
    for day in shape[1:]:
        assert np.nanmax(np.abs(day - shape[0]), initial=0.0) < 1e-9


@given(seed=seeds)
def test_a_daily_shape_is_one_smooth_peak(seed: int) -> None:
    """From half to a tenth of the peak and back, without a jump: it rises once and falls once."""
    shape = daily_shape(1440, 60, np.random.default_rng(seed))
    assert shape.max() == pytest.approx(1.0, abs=1e-4)
    assert 0.1 - 1e-4 <= shape.min() <= 0.5 + 1e-4
    rises = np.diff(shape, append=shape[0]) > 0.0
    assert np.count_nonzero(rises != np.roll(rises, 1)) == 2
    assert np.abs(np.diff(shape)).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("family", LOAD_FAMILIES)
def test_the_day_shows_in_the_spectrum_where_there_is_one(family: str) -> None:
    """Power at once a day, over the mean of that at 2/3 and at 4/3 a day: above 5 with a daily shape, near 1 without.

    Each is a mean of 60 draws' shares in the power of the six slowest frequencies.
    """

    def day_over_neighbours(*, with_daily: bool) -> float:
        shares = np.zeros(6)
        for seed in range(60):
            rates = drawn(Draw(family=family, with_daily=with_daily, seed=seed)).messages_per_second
            power = np.abs(np.fft.rfft(rates)[1:7]) ** 2
            shares += power / power.sum()
        # Three days: a frequency of once a day is the third.
        return float(shares[2] / ((shares[1] + shares[3]) / 2.0))

    assert day_over_neighbours(with_daily=True) > 5.0
    assert 0.5 < day_over_neighbours(with_daily=False) < 1.5


# One family each


@settings(max_examples=25)
@given(seed=seeds)
def test_bursts_last_from_five_seconds_to_ten_minutes(seed: int) -> None:
    """Bursts stand above a level of 1, up to ten times as high, and a step at least lies between two."""
    trace = plain("bursts", seed)
    is_burst = np.concatenate([[False], trace.messages_per_second > 1.0, [False]])
    begins, ends = (np.flatnonzero(is_burst[1:] & ~is_burst[:-1]), np.flatnonzero(~is_burst[1:] & is_burst[:-1]))
    lengths = (ends - begins) * trace.step_seconds
    if ends.size and ends[-1] == trace.messages_per_second.size:
        lengths = lengths[:-1]  # the end of the load may cut the last one
    assert ((lengths >= 5) & (lengths <= 600)).all()
    assert set(np.unique(trace.messages_per_second[~is_burst[1:-1]])) <= {1.0}
    assert trace.messages_per_second.max() <= 10.0


@pytest.mark.slow
def test_bursts_are_of_all_lengths() -> None:
    """Over 200 draws a third of the loads each has its mean burst below 40 s, and some above 4 min."""
    means = []
    for seed in range(200):
        rates = plain("bursts", seed).messages_per_second
        begins = np.count_nonzero(np.diff(rates) > 0.0)
        means.append(5.0 * np.count_nonzero(rates > 1.0) / begins)
    assert np.quantile(means, 0.2) < 40.0
    assert np.quantile(means, 0.9) > 240.0


@settings(max_examples=25)
@given(seed=seeds)
def test_flash_crowds_rise_from_a_level(seed: int) -> None:
    """No rate falls below 1, and a rise takes at most two minutes, faster than the decay."""
    rates = plain("flash-crowds", seed).messages_per_second
    assert rates.min() >= 1.0
    assert rates.max() > 1.0
    changes = np.diff(rates)
    assert np.count_nonzero(changes > 0.0) <= np.count_nonzero(changes < 0.0) + 8  # one may begin at the very end


@pytest.mark.slow
def test_flash_crowds_are_heavy_tailed() -> None:
    """Of 200 loads the greatest crowd of most is below ten times the level, of some above twenty times."""
    greatest = np.array([plain("flash-crowds", seed).messages_per_second.max() - 1.0 for seed in range(200)])
    assert np.median(greatest) < 10.0
    assert 0.03 < np.mean(greatest > 20.0) < 0.3


@given(seed=seeds)
def test_a_random_walk_stays_between_its_bounds(seed: int) -> None:
    """The greatest rate is at most twenty times the least, and no step of 15 s is a jump."""
    rates = plain("random-walk", seed).messages_per_second
    assert rates.max() / rates.min() <= 20.0 + 1e-9
    assert np.abs(np.diff(np.log(rates))).max() < 6.0 * 1.5 * np.sqrt(15.0 / 3_600.0)


@given(seed=seeds)
def test_levels_hold_from_ten_minutes_to_four_hours(seed: int) -> None:
    """The levels lie within a range of at most one to twenty."""
    trace = plain("level-shifts", seed)
    held = holds(trace.messages_per_second, trace.step_seconds)
    assert held.min() >= 10 * 60
    assert held.max() <= 4 * 3_600
    assert trace.messages_per_second.max() / trace.messages_per_second.min() <= 20.0 + 1e-9


@given(seed=seeds)
def test_on_off_has_two_states(seed: int) -> None:
    """High is 1, low at most a tenth of it, and it begins high."""
    rates = plain("on-off", seed).messages_per_second
    assert rates[0] == 1.0
    states = set(np.unique(rates).tolist()) - {1.0}
    assert len(states) <= 1
    assert all(0.0 <= low <= 0.1 for low in states)


@pytest.mark.slow
def test_on_off_lasts_for_minutes_to_hours_and_may_be_silent() -> None:
    """Of 200 loads the mean state lasts from 5 min to 6 h, and about a quarter have nothing in the low one."""
    means, silent = [], 0
    for seed in range(200):
        rates = plain("on-off", seed).messages_per_second
        means.append(rates.size * 15.0 / (1 + np.count_nonzero(np.diff(rates))))
        silent += bool(rates.min() == 0.0)
    assert np.quantile(means, 0.05) > 300.0
    assert np.quantile(means, 0.9) < 6 * 3_600.0
    assert 30 <= silent <= 70


@pytest.mark.slow
def test_coloured_noise_is_of_all_colours() -> None:
    """Correlation between two steps of 15 s, over 100 loads: next to none in some, nearly 1 in others."""
    correlations = []
    for seed in range(100):
        noise = np.log(plain("coloured-noise", seed).messages_per_second)
        correlations.append(np.corrcoef(noise[1:], noise[:-1])[0, 1])
        assert 0.1 - 1e-9 <= noise.std() <= 0.8 + 1e-9
    assert np.quantile(correlations, 0.1) < 0.3
    assert np.quantile(correlations, 0.8) > 0.95
