"""HPA and KEDA step by step: the counts of the real controllers, on a grid of 15 s with pods that are ready at once."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plant import Observation
from replay.policies.hpa import (
    BehaviorRules,
    Hpa,
    LegacyRules,
    Rules,
    Tolerance,
    is_near,
    is_near_before_1_33,
    reconcile,
    wanted_for,
)
from replay.policies.keda import Fallback, Keda, capped_lag, even_lag


def steps(rules: Rules, lags: Iterator[int], *, target: int, replicas: int, seconds: int) -> list[tuple[int, int]]:
    """Each change as (second, new count)."""
    changes = []
    for now in range(0, seconds + 1, 15):
        wanted = wanted_for(next(lags), target=target, replicas=replicas)
        requested = rules.reconcile(wanted, replicas=replicas, now_seconds=now)
        if requested != replicas:
            changes.append((now, requested))
        replicas = requested
    return changes


def always(lag: int) -> Iterator[int]:
    while True:
        yield lag


def spike_then(spike: int, lag: int) -> Iterator[int]:
    yield spike
    yield from always(lag)


def settles_at(lag: int, *, target: int, partitions: int, replicas: int) -> int:
    """The count of a group under KEDA's capped metric after ten minutes of the same lag."""
    metric = capped_lag(lag, threshold_messages=target, partitions=partitions)
    changes = steps(LegacyRules(), always(metric), target=target, replicas=replicas, seconds=600)
    return changes[-1][1] if changes else replicas


def test_b2_one_spike_goes_up_in_steps_without_behavior() -> None:
    """G1: the wanted count of one instant drives growth for five minutes; then everything goes in one step."""
    changes = steps(LegacyRules(), spike_then(64_000, 8_000), target=1_000, replicas=8, seconds=900)
    assert changes == [(0, 16), (15, 32), (30, 64), (315, 8)]


def test_b2_one_spike_is_one_step_with_behavior() -> None:
    """G2: growth follows only the present wanted count; one of exactly 300 s ago no longer counts."""
    changes = steps(BehaviorRules(), spike_then(64_000, 8_000), target=1_000, replicas=8, seconds=900)
    assert changes == [(0, 16), (300, 8)]


@pytest.mark.parametrize(
    ("rules", "counts"),
    [(LegacyRules, [4, 8, 16, 32, 64, 100]), (BehaviorRules, [5, 10, 20, 40, 80, 100])],
)
def test_b2_growth_from_one_is_limited_per_step(rules: Callable[[], Rules], counts: list[int]) -> None:
    """G3: from 1 to 100 wanted replicas, growth doubles from 4, or adds the greater of 4 and the present count."""
    changes = steps(rules(), always(100_000), target=1_000, replicas=1, seconds=300)
    assert changes == [(15 * step, count) for step, count in enumerate(counts)]


@pytest.mark.parametrize("replicas", [59, 60, 61, 62, 63])
@pytest.mark.parametrize("lag", [10**6, 10**12])
def test_g4_a_capped_lag_leaves_the_group_just_below_its_partitions(replicas: int, lag: int) -> None:
    """G4: 64 partitions cap the metric at 192,000; a ratio of 64/63 = 1.016 stays within the tolerance for ever."""
    assert capped_lag(lag, threshold_messages=3_000, partitions=64) == 192_000
    assert settles_at(lag, target=3_000, partitions=64, replicas=replicas) == replicas


def test_g4_a_capped_lag_moves_a_group_further_below() -> None:
    """G4: 64/58 = 1.103 is outside the tolerance."""
    assert settles_at(10**9, target=3_000, partitions=64, replicas=58) == 64


@pytest.mark.parametrize(
    ("partitions", "stuck"),
    [(24, {22, 23}), (40, {37, 38, 39}), (12, {11}), (10, set())],
)
@pytest.mark.parametrize("target", [10, 3_000, 10_000])
def test_g5_counts_that_stay_are_those_within_the_tolerance(partitions: int, stuck: set[int], target: int) -> None:
    """G5: below P, a count stays if and only if P/n is within the tolerance, at any threshold."""
    counts = range(1, partitions)
    settled = {n: settles_at(10**9, target=target, partitions=partitions, replicas=n) for n in counts}
    assert {n for n in counts if settled[n] == n} == stuck
    assert all(settled[n] == partitions for n in counts if n not in stuck)


@pytest.mark.parametrize(("lag", "settled"), [(45, 5), (49, 5), (50, 4)])
def test_g6_up_to_one_threshold_above_the_cap_escapes(lag: int, settled: int) -> None:
    """G6: four partitions at a threshold of 10 cap at 40, but by integer division, so 45 and 49 are not capped."""
    assert settles_at(lag, target=10, partitions=4, replicas=4) == settled


@pytest.mark.parametrize(("rules", "last"), [(LegacyRules, [(0, 40), (15, 41)]), (BehaviorRules, [(0, 40)])])
def test_g6_without_behavior_the_unclamped_want_is_remembered(
    rules: Callable[[], Rules], last: list[tuple[int, int]]
) -> None:
    """G6: 405 over 10 wants 41 from 20, limited to 40; only the old rules go to 41 later, as 405 is within 10 %."""
    metric = capped_lag(405, threshold_messages=10, partitions=40)
    assert metric == 405
    assert steps(rules(), always(metric), target=10, replicas=20, seconds=600) == last


def test_g6_at_forty_replicas_405_is_near_enough() -> None:
    """G6: 405 at 40 x 10 is 1.2 % above the target, within the tolerance."""
    for rules in (LegacyRules(), BehaviorRules()):
        assert steps(rules, always(405), target=10, replicas=40, seconds=600) == []


@pytest.mark.parametrize(
    ("lag", "counts"), [(0, 1), (10, 1), (11, 2), (20, 2), (21, 5), (50, 5), (51, 10), (10**6, 10)]
)
def test_g7_even_distribution_gives_divisors_only(lag: int, counts: int) -> None:
    """G7: ten partitions at a threshold of 10 give 1, 2, 5 or 10 replicas."""
    assert even_lag(lag, threshold_messages=10, partitions=10) == 10 * counts


@pytest.mark.parametrize(
    ("near", "difference", "first_ignored"),
    [
        (is_near, 1, 10),
        (is_near_before_1_33, 1, 11),
        (is_near, -1, 10),
        (is_near_before_1_33, -1, 10),
        (is_near, 2, 20),
        (is_near_before_1_33, 2, 21),
        (is_near, -2, 20),
        (is_near_before_1_33, -2, 20),
    ],
)
def test_g8_small_steps_are_ignored_from_a_count_on(near: Tolerance, difference: int, first_ignored: int) -> None:
    """G8: with a metric of n +/- 1 and a target of 1, a tolerance of 10 % ignores steps from 10 on, +/- 2 from 20.

    Up to Kubernetes 1.32 steps up were ignored from 11 and from 21 on.
    """
    wants = {n: wanted_for(n + difference, target=1, replicas=n, near=near) for n in range(3, 61)}
    assert [n for n, want in wants.items() if want == n] == list(range(first_ignored, 61))
    assert all(wants[n] == n + difference for n in range(3, first_ignored))


@pytest.mark.parametrize("make", [LegacyRules, BehaviorRules])
def test_g9_a_lost_metric_blocks_the_way_down_only(make: Callable[[], Rules]) -> None:
    """G9: with one of two metrics in error, 3 fewer are not followed, 3 more are; with both the count stays."""

    def after(*wants: int | None) -> int:
        return reconcile(wants, rules=make(), replicas=8, now_seconds=0)

    assert after(5, None) == after(None, 5) == 8
    assert after(11, None) == after(None, 11) == 11
    assert after(None, None) == after(None) == after() == 8


@pytest.mark.parametrize("make", [LegacyRules, BehaviorRules])
def test_a_lost_metric_leaves_no_memory(make: Callable[[], Rules]) -> None:
    """A count held because a metric is missing is not remembered as wanted: later only earlier wanted counts hold."""
    rules = make()
    assert reconcile([3], rules=rules, replicas=8, now_seconds=0) == 8
    assert reconcile([9, None], rules=rules, replicas=8, now_seconds=15) == 9
    assert [reconcile([None], rules=rules, replicas=9, now_seconds=now) for now in range(30, 600, 15)] == [9] * 38
    assert reconcile([3], rules=rules, replicas=9, now_seconds=600) == 3


@pytest.mark.parametrize(("replicas", "bounded"), [(1, 2), (2, 2), (10, 10), (14, 10)])
def test_a_count_out_of_bounds_is_moved_to_the_bound_without_metrics(replicas: int, bounded: int) -> None:
    """The bounds are 2 and 10, and all metrics are lost."""
    assert reconcile([None], rules=LegacyRules(least=2, most=10), replicas=replicas, now_seconds=0) == bounded


def test_g10_a_fallback_answers_from_the_fourth_failure_on() -> None:
    """G10: three failed reads are errors and hold; from the fourth the metric is 60, which gives 6 at 10 each."""
    fallback = Fallback(replicas=6, failure_threshold=3)
    assert [fallback.reading(None, threshold_messages=10) for _ in range(5)] == [None, None, None, 60, 60]
    keda = Keda(threshold_messages=10, rules=LegacyRules(), fallback=Fallback(replicas=6, failure_threshold=3))
    counts = [keda.reconcile(None, partitions=40, replicas=4, now_seconds=15 * read) for read in range(5)]
    assert counts == [4, 4, 4, 6, 6]


def test_one_good_read_forgets_the_failures() -> None:
    """Three failures, a lag of 45 and three failures are never four in a row."""
    fallback = Fallback(replicas=6)
    reads = [None, None, None, 45, None, None, None]
    assert [fallback.reading(lag, threshold_messages=10) for lag in reads] == reads


def test_without_a_fallback_a_lost_lag_holds() -> None:
    """The count stays for as long as the metric is lost."""
    keda = Keda(threshold_messages=10, rules=LegacyRules())
    assert {keda.reconcile(None, partitions=40, replicas=7, now_seconds=15 * read) for read in range(100)} == {7}


@pytest.mark.parametrize(
    ("rules", "changes"), [(LegacyRules, [16, 32, 64, 8]), (BehaviorRules, [16, 8])], ids=["without", "with behavior"]
)
def test_p22_shadows_are_faithful_to_the_hpa(rules: Callable[[], Rules], changes: list[int]) -> None:
    """At eight replicas one sample that wants 64 is four rescales without `behavior` and two with it."""
    taken = steps(rules(), spike_then(64_000, 8_000), target=1_000, replicas=8, seconds=900)
    assert [count for _, count in taken] == changes


def test_p22_shadows_are_faithful_to_keda() -> None:
    """KEDA keeps an idle member just above the cap, stays at 63 of 64 and 22-23 of 24, and gives 1, 2, 5, 10 of ten."""
    assert settles_at(45, target=10, partitions=4, replicas=4) == 5
    assert settles_at(10**9, target=50, partitions=64, replicas=63) == 63
    assert [settles_at(10**9, target=50, partitions=24, replicas=n) for n in (21, 22, 23)] == [24, 22, 23]
    requested = {even_lag(lag, threshold_messages=50, partitions=10) // 50 for lag in range(0, 1_000, 5)}
    assert requested == {1, 2, 5, 10}


@pytest.mark.parametrize(("rules", "falls_at"), [(LegacyRules, 315), (BehaviorRules, 300)])
def test_a_metric_that_falls_to_nothing_holds_for_five_minutes(rules: Callable[..., Rules], falls_at: int) -> None:
    """A lag of 0 wants 0; for five minutes the wanted count before it holds, then the least is reached in one step."""
    changes = steps(rules(least=2), spike_then(5_000, 0), target=1_000, replicas=5, seconds=900)
    assert changes == [(falls_at, 2)]


def seen(*lags: int, replicas: int, time_seconds: int = 15) -> Observation:
    """A group that has committed nothing yet, so that its lags are its end offsets."""
    return Observation(
        at=datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=time_seconds),
        time_seconds=time_seconds,
        replicas=replicas,
        ready_members=replicas,
        group_state="STABLE",
        end_offsets=np.array(lags, dtype=np.int64),
        committed_offsets=np.zeros(len(lags), dtype=np.int64),
    )


def test_hpa_scales_on_the_sum_of_all_lags() -> None:
    """30,000 and 25,000 at a target of 10,000 want six."""
    for rules in (LegacyRules(), BehaviorRules()):
        assert Hpa(target_messages=10_000, rules=rules).decide(seen(30_000, 25_000, replicas=3)) == 6


def test_keda_scales_on_the_sum_of_all_lags_but_not_beyond_the_partitions() -> None:
    """30,000 and 5,000 want four of two partitions: two, which are there already; uncapped lags are followed."""
    assert Keda(threshold_messages=10_000, rules=LegacyRules()).decide(seen(30_000, 5_000, replicas=2)) == 2
    assert Keda(threshold_messages=10_000, rules=LegacyRules()).decide(seen(15_000, 3_000, replicas=1)) == 2


lags = st.lists(st.integers(0, 10**7), min_size=1, max_size=60)
bounds = st.tuples(st.integers(1, 40), st.integers(0, 80)).map(lambda pair: (pair[0], sum(pair)))


@given(series=lags, bounds=bounds, make=st.sampled_from([LegacyRules, BehaviorRules]), data=st.data())
def test_no_lag_leaves_the_bounds(
    series: list[int], bounds: tuple[int, int], make: Callable[..., Rules], data: st.DataObject
) -> None:
    """At any lag and any first count within the bounds, the count stays within them."""
    least, most = bounds
    replicas = data.draw(st.integers(least, most), label="replicas")
    rules = make(least=least, most=most)
    changes = steps(rules, iter(series), target=1_000, replicas=replicas, seconds=15 * (len(series) - 1))
    assert all(least <= count <= most for _, count in changes)


@given(lag=st.integers(0, 10**12), threshold=st.integers(1, 10**6), partitions=st.integers(1, 2_000))
def test_the_cap_holds_but_for_one_threshold(lag: int, threshold: int, partitions: int) -> None:
    """The reported lag is never above the true one, and under one threshold more than each partition's own."""
    reported = capped_lag(lag, threshold_messages=threshold, partitions=partitions)
    assert 0 <= reported <= lag
    assert reported < (partitions + 1) * threshold
