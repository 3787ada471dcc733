"""The white paper's load as our own twin, and its two published figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions.whitepaper import (
    CARRYING_THE_PEAK,
    PARTITIONS,
    PUBLISHED,
    S1,
    S2,
    capacity_carrying_the_peak,
    in_bursts,
    published_figures,
    twin,
)
from replay.trace import Trace
from replay.world import World

seeds = st.integers(0, 10_000)


def values(trace: Trace, *, scale: float = S1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The list behind the trace: messages/s back to units of `scale` messages a minute."""
    return np.asarray(trace.messages_per_second * 60.0 / scale)


def jumps(trace: Trace) -> int:
    """Minutes that differ from the one before by more than 30 %."""
    listed = values(trace)
    return int((np.abs(listed[1:] / listed[:-1] - 1.0) > 0.3).sum())


@given(seed=seeds, scale=st.sampled_from([S1, S2]))
def test_the_twin_has_the_size_of_the_original(seed: int, scale: float) -> None:
    """144 minutes, mean 62.8, least 24, peak 112.6, each within 1 %; mean over peak is 0.558; at either scale."""
    listed = values(twin(seed=seed, scale=scale), scale=scale)
    assert listed.shape == (144,)
    assert listed.mean() == pytest.approx(62.8, rel=0.01)
    assert listed.min() == pytest.approx(24.3, rel=0.01)
    assert listed.max() == pytest.approx(112.6, rel=0.01)
    assert listed.mean() / listed.max() == pytest.approx(0.558, abs=0.001)


@given(seed=seeds)
def test_the_twin_has_the_shape_of_the_original(seed: int) -> None:
    """Ten minutes high, ten low, on a falling level, with twenty jumps of more than 30 %."""
    trace = twin(seed=seed)
    assert jumps(trace) == 20
    halves = [half.mean() for half in np.split(values(trace)[:140], 14)]
    highs, lows = halves[::2], halves[1::2]
    assert all(high > 1.5 * low for high, low in zip(highs, lows, strict=True))
    assert all(high > 1.5 * low for low, high in zip(lows, highs[1:], strict=False))
    assert highs[-1] < 0.75 * highs[0]
    assert lows[-1] < 0.75 * lows[0]


def test_the_same_seed_gives_the_same_list() -> None:
    """Another seed gives another list of the same size."""
    assert np.array_equal(twin().messages_per_second, twin().messages_per_second)
    assert not np.array_equal(twin().messages_per_second, twin(seed=1).messages_per_second)


@pytest.mark.parametrize("minutes", [1, 60, 144, 164, 300])
def test_a_longer_twin_begins_again(minutes: int) -> None:
    """A shorter twin has the first minutes; the 145th minute equals the first."""
    listed = twin(minutes).messages_per_second
    assert len(listed) == minutes
    assert np.array_equal(listed, np.resize(twin().messages_per_second, minutes))


def test_bursts_bring_the_same_messages() -> None:
    """Six seconds of each minute bring all of it, ten times the rate each; the rates per minute are unchanged."""
    plain, bursts = twin(60), in_bursts(twin(60))
    assert bursts.minute_rates() == pytest.approx(plain.minute_rates())
    assert np.count_nonzero(bursts.messages_per_second) == 6 * 60
    assert bursts.messages_per_second.max() == pytest.approx(10 * plain.messages_per_second.max())


def test_tracking_the_twin_needs_as_many_consumers_as_the_original() -> None:
    """With 40 consumers at the peak: 22.3 on average, 22.8 in whole consumers, 24.8 in the first hour.

    The original needs more than 20, and so all 40 at the useful counts of 40 partitions, in 52 % of its minutes.
    """
    trace = twin()
    needed = trace.messages_per_second / capacity_carrying_the_peak(trace, replicas=40)
    assert needed.mean() == pytest.approx(22.3, abs=0.05)
    assert np.ceil(needed - 1e-9).mean() == pytest.approx(22.8, abs=0.1)
    assert needed[:60].mean() == pytest.approx(24.8, abs=1.5)
    assert needed[:120].mean() == pytest.approx(23.2, abs=0.5)
    assert (needed > 20).mean() == pytest.approx(0.52, abs=0.03)


@pytest.mark.parametrize(("replicas", "mean_replicas"), [(40, 29.5), (20, 13.6), (10, 6.3)])
def test_the_saving_at_useful_counts_depends_on_the_capacity(replicas: int, mean_replicas: float) -> None:
    """The twin differs by at most 5 % from the original, which has these figures."""
    trace = twin()
    capacity = capacity_carrying_the_peak(trace, replicas=replicas)
    world = World(partitions=PARTITIONS, capacity_messages_per_second_per_replica=capacity)
    rates = trace.messages_per_second * (1.0 - 1e-12)
    needed = np.mean([world.smallest_carrying(float(rate)) for rate in rates])
    assert needed == pytest.approx(mean_replicas, rel=0.05)


def test_three_capacities_are_guessed() -> None:
    """40, 20 or 10 consumers just carry the busiest minute."""
    trace = twin(scale=S2)
    peak = trace.messages_per_second.max()
    assert [capacity_carrying_the_peak(trace, replicas=n) * n for n in CARRYING_THE_PEAK] == pytest.approx([peak] * 3)


def test_b26_the_published_figures_follow_from_the_published_means() -> None:
    """22 of 40 consumers are 45 % less; a lag of 13,850 instead of 899,000 is 98.46 % less."""
    figures = published_figures(mean_replicas=22.0, mean_lag_messages=13_850.0, hpa_mean_lag_messages=899_000.0)
    assert figures.replicas_fraction == pytest.approx(PUBLISHED.replicas_fraction)
    assert figures.lag_messages_fraction == pytest.approx(PUBLISHED.lag_messages_fraction, abs=5e-5)


def test_the_rounded_means_do_not_give_the_published_figure() -> None:
    """14,000 of 900,000 is 98.44 % less: the paper's percentage does not follow from the digits that it states."""
    figures = published_figures(mean_replicas=22.0, mean_lag_messages=14_000.0, hpa_mean_lag_messages=900_000.0)
    assert round(figures.lag_messages_fraction, 4) == -0.9844
