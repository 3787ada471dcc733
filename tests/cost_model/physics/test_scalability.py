"""Throughput by replicas: contention between them, and the case that a sink behind them is the limit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.capacity import group_capacity
from cost_model.physics.downstream import downstream_limit, scale_out_gain
from cost_model.physics.profile import GroupProfile
from cost_model.physics.scalability import Scalability, fit_scalability
from forecasting.units import FloatArray, IntArray, MessagesPerSecond, Partitions, Replicas

PROFILE = GroupProfile(cluster="east", group="orders", partitions=Partitions(40), capacity=None)
COUNTS = np.array([2, 4, 8, 10, 20, 40])


def _throughput(counts: IntArray, contention: float, coherence: float) -> FloatArray:
    """The consume rate of so many replicas of 100 messages/s each together."""
    law = Scalability(contention=contention, coherence=coherence)
    return np.array([100.0 * n * law.kept_fraction(Replicas(int(n))) for n in counts])


@given(st.floats(0.0, 0.3), st.floats(0.0, 0.02))
def test_a_clean_curve_is_found_again(contention: float, coherence: float) -> None:
    """Six counts at their limit, without noise: throughput at every count comes back to 2 %."""
    rates = _throughput(COUNTS, contention, coherence)
    fit = fit_scalability(COUNTS, rates, np.ones(6, dtype=bool))
    assert fit is not None
    again = [fit.capacity * n * fit.scalability.kept_fraction(Replicas(int(n))) for n in COUNTS]
    assert again == pytest.approx(rates.tolist(), rel=0.02)


def test_noise_of_eight_percent_leaves_the_coefficients_recognisable() -> None:
    """Thirty windows per count: contention 0.05 and coherence 0.002 within a third, capacity within 10 %."""
    counts = np.repeat(COUNTS, 30)
    rates = _throughput(counts, 0.05, 0.002) * np.exp(np.random.default_rng(7).normal(0.0, 0.08, counts.size))
    fit = fit_scalability(counts, rates, np.ones(counts.size, dtype=bool))
    assert fit is not None
    assert fit.capacity == pytest.approx(100.0, rel=0.1)
    assert fit.scalability.contention == pytest.approx(0.05, rel=0.34)
    assert fit.scalability.coherence == pytest.approx(0.002, rel=0.34)


def test_windows_without_backlog_only_bound_the_curve() -> None:
    """A quiet day on 20 replicas does not look like contention; a rate above the curve lifts it."""
    counts, shown = np.array([2, 8, 20]), np.array([True, True, False])
    quiet = fit_scalability(counts, np.array([200.0, 800.0, 300.0]), shown)
    assert quiet is not None
    assert (quiet.scalability.contention, quiet.scalability.coherence) == (0.0, 0.0)
    assert quiet.distinct_counts == 2
    below = fit_scalability(np.array([2, 8]), np.array([200.0, 600.0]), np.array([True, True]))
    above = fit_scalability(counts, np.array([200.0, 600.0, 1800.0]), shown)
    assert below is not None
    assert above is not None
    assert above.scalability.contention < 0.5 * below.scalability.contention


def test_one_count_gives_no_curve() -> None:
    """A group that was at its limit at one count only has no curve; windows without a rate are no windows."""
    full = np.ones(3, dtype=bool)
    assert fit_scalability(np.array([8, 8, 8]), np.array([800.0, 790.0, 810.0]), full) is None
    assert fit_scalability(np.array([4, 8, 20]), np.array([np.nan, 800.0, 0.0]), full) is None


def test_contention_lowers_what_the_group_carries() -> None:
    """10 replicas of 100 messages/s with contention 0.05 carry 690 instead of 1,000; one alone keeps all."""
    shared = Scalability(contention=0.05, coherence=0.0)
    carried = [
        group_capacity(Replicas(n), partitions=Partitions(40), capacity=MessagesPerSecond(100.0), contention=shared)
        for n in (1, 10)
    ]
    assert carried == pytest.approx([100.0, 1000.0 / 1.45])


def test_coefficients_below_nothing_are_refused() -> None:
    """Replicas cannot add capacity to each other."""
    with pytest.raises(ValueError, match="cannot be negative"):
        Scalability(contention=-0.1, coherence=0.0)


def test_b23_a_capped_sink_is_found_after_one_scale_out_in_vain() -> None:
    """8 replicas and then 14 consume 820 messages/s with a backlog: a limit behind the group, and no third try."""
    counts, rates = np.array([8, 8, 14, 14]), np.array([815.0, 825.0, 822.0, 826.0])
    found = downstream_limit(PROFILE, replicas=counts, rates=rates, saturated=np.ones(4, dtype=bool))
    assert found is not None
    assert found.replicas_seen == (8, 14)
    assert found.limit_messages_per_second == pytest.approx(822.0)
    assert "8 and 14 replicas all consumed about 822 messages/s" in found.sentence
    assert "brought 1% of what it should have" in found.sentence


@pytest.mark.parametrize(
    ("counts", "rates", "saturated", "why"),
    [
        ([8, 14], [800.0, 1300.0], [True, True], "the scale-out helped"),
        ([8, 14], [800.0, 810.0], [True, False], "nothing was left to consume"),
        ([20, 30], [2000.0, 2000.0], [True, True], "30 replicas are on the same useful count as 20"),
        ([8], [800.0], [True], "one count is no scale-out"),
        ([8, 14, 20], [400.0, 410.0, 1900.0], [True, True, True], "the last scale-out helped: the limit has moved"),
    ],
)
def test_no_limit_is_claimed_without_a_scale_out_in_vain(
    counts: list[int], rates: list[float], saturated: list[bool], why: str
) -> None:
    """Only a backlog at two counts that should differ, and did not, is evidence."""
    found = downstream_limit(
        PROFILE, replicas=np.array(counts), rates=np.array(rates), saturated=np.array(saturated, dtype=bool)
    )
    assert found is None, why


def test_a_hot_partition_is_not_mistaken_for_a_sink() -> None:
    """Unchanged throughput is no surprise if the weights give 14 replicas the capacity of 8."""
    hot = replace(PROFILE, partition_weights=(1000.0, *(0.01,) * 39))
    counts, rates, full = np.array([8, 14]), np.array([100.0, 100.0]), np.ones(2, dtype=bool)
    assert downstream_limit(hot, replicas=counts, rates=rates, saturated=full) is None
    assert downstream_limit(PROFILE, replicas=counts, rates=rates, saturated=full) is not None
    assert scale_out_gain(MessagesPerSecond(100.0), MessagesPerSecond(100.0), expected=MessagesPerSecond(100.0)) is None
