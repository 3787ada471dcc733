"""The useful replica counts, and the capacity of one replica as windows show it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.capacity import CapacityBelief, group_capacity, useful_replicas
from forecasting.units import FloatArray, MessagesPerSecond, Partitions, Replicas, Seconds

CAPACITY = MessagesPerSecond(100.0)


@pytest.mark.parametrize(
    ("partitions", "useful"),
    [
        (1, (1,)),
        (24, (1, 2, 3, 4, 5, 6, 8, 12, 24)),
        (40, (1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 20, 40)),
        (100, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20, 25, 34, 50, 100)),
    ],
)
def test_useful_counts_are_known_by_heart(partitions: int, useful: tuple[int, ...]) -> None:
    """The useful counts of common partition counts are the ones computed by hand."""
    assert useful_replicas(Partitions(partitions)) == useful


@pytest.mark.parametrize(("partitions", "count"), [(24, 9), (40, 12), (100, 19), (120, 21), (1000, 63)])
def test_about_two_square_roots_of_the_partitions_are_useful(partitions: int, count: int) -> None:
    """Few counts are worth searching: 63 of 1,000."""
    assert len(useful_replicas(Partitions(partitions))) == count


@given(st.integers(1, 200), st.integers(0, 220), st.integers(0, 220))
def test_every_legal_count_has_a_useful_one_that_carries_as_much(partitions: int, least: int, room: int) -> None:
    """Within any bounds: never empty, never above the partitions, and no legal count beats the useful ones under it."""
    of = Partitions(partitions)
    useful = useful_replicas(of, minimum=Replicas(least), maximum=Replicas(least + room))
    assert useful
    assert max(useful) <= partitions
    for count in range(min(max(least, 1), partitions), min(max(least + room, 1), partitions) + 1):
        level = max(n for n in useful if n <= count)
        carried = group_capacity(Replicas(count), partitions=of, capacity=CAPACITY)
        assert group_capacity(Replicas(level), partitions=of, capacity=CAPACITY) == carried


def test_bounds_that_exclude_each_other_are_refused() -> None:
    """A maximum under the minimum is named with both numbers."""
    with pytest.raises(ValueError, match="at most 3 replicas and at least 5"):
        useful_replicas(Partitions(40), minimum=Replicas(5), maximum=Replicas(3))
    with pytest.raises(ValueError, match="at least 1 partition"):
        useful_replicas(Partitions(0))


@given(st.integers(1, 300))
def test_capacity_climbs_with_replicas_until_each_partition_has_its_own(partitions: int) -> None:
    """More replicas never carry less; beyond the partition count they carry nothing more."""
    of = Partitions(partitions)
    levels = [group_capacity(Replicas(n), partitions=of, capacity=CAPACITY) for n in range(partitions + 20)]
    assert levels == sorted(levels)
    assert levels[partitions:] == [partitions * CAPACITY] * 20


def test_seven_replicas_do_not_carry_seven_times_the_capacity() -> None:
    """40 partitions over 7 replicas leave one with 6: they carry 667 messages/s, 8 replicas 800."""
    carried = [group_capacity(Replicas(n), partitions=Partitions(40), capacity=CAPACITY) for n in (7, 8)]
    assert carried == pytest.approx([666.67, 800.0], abs=0.01)


def _windows(saturated_share: float, *, seed: int) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """600 windows of a replica that could do 100 messages/s, mostly gets 60, and sometimes falls behind."""
    random = np.random.default_rng(seed)
    saturated = random.random(600) < saturated_share
    arriving = np.clip(random.normal(60.0, 10.0, 600), 1.0, 100.0)
    return np.where(saturated, 100.0 * np.exp(random.normal(0.0, 0.05, 600)), arriving), saturated


@pytest.mark.parametrize(("share", "band"), [(0.02, (95.0, 98.5, 102.0)), (0.1, (97.0, 99.0, 100.5))])
def test_a_few_saturated_windows_find_the_capacity(share: float, band: tuple[float, float, float]) -> None:
    """Of a replica with capacity 100 at 60, 2 % of saturated windows give 95..102; the naive mean gives 60."""
    belief = CapacityBelief.around(MessagesPerSecond(50.0)).observed(*_windows(share, seed=3))
    assert [belief.quantile(q) for q in (0.1, 0.5, 0.9)] == pytest.approx(band, rel=0.01)
    found = belief.capacity(Seconds(90.0))
    assert found is not None
    assert found.p20 < found.p50 < found.p90
    assert (found.source, found.age_seconds) == ("saturated_windows", 90.0)


def test_capacity_stays_unknown_while_nothing_was_saturated() -> None:
    """Windows without backlog only bound capacity from below: 99, 215, 649, and no figure to plan with."""
    belief = CapacityBelief.around(MessagesPerSecond(50.0)).observed(*_windows(0.0, seed=3))
    assert [belief.quantile(q) for q in (0.1, 0.5, 0.9)] == pytest.approx((99.0, 215.0, 649.0), rel=0.01)
    assert belief.capacity(None) is None


@pytest.mark.parametrize("full_minutes", [0, 100, 1200])
def test_a_day_of_nearly_full_windows_does_not_raise_a_capacity_that_saturated_ones_show(full_minutes: int) -> None:
    """Twenty saturated windows show 97 of 100; those of 90 to 99 that kept up agree, and be they a thousand."""
    random = np.random.default_rng(0)
    rates = np.concatenate([random.uniform(90.0, 99.0, full_minutes), random.normal(97.0, 3.0, 20)])
    saturated = np.arange(rates.size) >= full_minutes
    belief = CapacityBelief.around(MessagesPerSecond(99.0)).observed(rates, saturated)
    assert belief.quantile(0.5) == pytest.approx(97.0, rel=0.02)


def test_windows_that_did_more_and_kept_up_raise_a_capacity_that_saturated_ones_have_shown() -> None:
    """A faster version does 130 where the one before was behind at 100: two hours of it count."""
    rates = np.concatenate([np.full(20, 100.0), np.full(120, 130.0)])
    belief = CapacityBelief.around(MessagesPerSecond(100.0)).observed(rates, np.arange(rates.size) < 20)
    assert belief.quantile(0.5) >= 120.0


def test_evidence_fades_until_capacity_is_unknown_again() -> None:
    """Observations from some days ago no longer count, because the replica may run other code now."""
    rates, saturated = _windows(0.1, seed=3)
    seen = CapacityBelief.around(MessagesPerSecond(50.0)).observed(rates, saturated)
    assert seen.capacity(Seconds(0.0)) is not None
    for _ in range(30):
        seen = seen.observed(np.full(600, 30.0), np.zeros(600, dtype=np.bool_))
    assert seen.capacity(Seconds(9e4)) is None


def test_windows_can_be_fed_one_by_one_or_together() -> None:
    """The result does not depend on how windows are split into calls; unusable rates change nothing."""
    rates, saturated = _windows(0.05, seed=5)
    prior = CapacityBelief.around(MessagesPerSecond(80.0))
    together, cut = prior.observed(rates, saturated), prior
    for start in range(0, 600, 37):
        cut = cut.observed(rates[start : start + 37], saturated[start : start + 37])
    cut = cut.observed(np.array([np.nan, 0.0]), np.array([True, True]))
    assert cut.log_weights == pytest.approx(together.log_weights, abs=1e-6)
    assert cut.saturated_windows == together.saturated_windows


def test_a_wide_band_is_not_planned_with() -> None:
    """One saturated window that may be an outlier is not enough where its band spans more than half its value."""
    prior = CapacityBelief.around(MessagesPerSecond(100.0))
    assert replace(prior, saturated_windows=1).capacity(None) is None


def test_a_guess_of_nothing_is_refused() -> None:
    """Without any rate there is no range to search."""
    with pytest.raises(ValueError, match="above 0 messages/s, not 0"):
        CapacityBelief.around(MessagesPerSecond(0.0))
