"""Autoscalers beside a group: HPA and KEDA step for step, and what they see and pay.

The series of counts are those that a real HPA controller made (Kubernetes 1.36), with pods that are ready at once.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile
from cost_model.shadows.autoscalers import (
    BEHAVIOR,
    BEHAVIOR_SECONDS,
    HELD,
    LEGACY,
    RATE,
    RATE_PASSES,
    STABILISATION_SECONDS,
    USEFUL,
    Autoscalers,
    Commits,
    capped_lag,
    desired_count,
    play_passes,
    visible_lag,
    wanted_for,
)
from cost_model.shadows.playing import COLUMNS, LATE, PODS, Service, Shadows, request, requested, shadows_of
from cost_model.shadows.tables import MoveTables, MoveTimes, of_every_count, tables_of
from forecasting.units import FloatArray, Partitions, Seconds

SERVICE = Service(1000.0, 10.0)
COMMITS = Commits(interval_seconds=5.0, age_seconds=2.5)
# Partitions of a scaler that does not count them.
UNCAPPED = 0


def tables(partitions: int = 100, *, pause_seconds: float = 4.0) -> MoveTables:
    """Any count from 1 to so many partitions, pods ready after 30 s."""
    profile = GroupProfile(
        cluster="c", group="g", partitions=Partitions(partitions), capacity=None, start_up_seconds=Seconds(30.0)
    )
    useful = tables_of(profile, MoveTimes(pause_seconds, pause_seconds, 30.0), max_lag_seconds=10.0)
    return of_every_count(useful, profile)


def one(kind: int, *, lag_target: float = 1.0, partitions: int = UNCAPPED, margin: float = 1.0) -> Autoscalers:
    """One autoscaler; needs are held for as long as its kind holds them by default."""
    holds = {HELD: 0.0, RATE: 300.0, USEFUL: 600.0, LEGACY: STABILISATION_SECONDS, BEHAVIOR: BEHAVIOR_SECONDS}
    return Autoscalers(
        kind=np.array([kind]),
        margin_factor=np.array([margin]),
        drain_seconds=np.array([300.0]),
        lag_target=np.array([lag_target]),
        capped_partitions=np.array([partitions]),
        hold_seconds=np.array([holds[kind]]),
    )


def counts_of(autoscaler: Autoscalers, lags: list[float], *, begin: int) -> list[int]:
    """The count that is requested after each reading of the lag, one each 15 s."""
    any_count = tables()
    group = shadows_of(1, members=begin - 1)
    counts = []
    for lag in lags:
        wanted = desired_count(any_count, autoscaler, group, 0, 0.0, lag, SERVICE, 5.0)
        request(any_count, group, 0, wanted, at_once=True)
        group.now[0] += 15.0
        counts.append(int(any_count.counts[requested(group, 0)]))
    return counts


def test_without_behavior_one_spike_goes_up_in_steps_and_down_after_five_minutes() -> None:
    """G1: 64,000 once at a target of 1,000, then 8,000: doubled three times, 64 held, and back to 8 at 315 s."""
    lags = [64_000.0, *[8000.0] * 22]
    assert counts_of(one(LEGACY, lag_target=1000.0), lags, begin=8) == [16, 32, *[64] * 19, 8, 8]


def test_with_behavior_one_spike_is_one_step() -> None:
    """G2: the same spike goes to 16, and back to 8 at 300 s."""
    lags = [64_000.0, *[8000.0] * 22]
    assert counts_of(one(BEHAVIOR, lag_target=1000.0), lags, begin=8) == [*[16] * 20, 8, 8, 8]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(LEGACY, [4, 8, 16, 32, 64, 100]), (BEHAVIOR, [5, 10, 20, 40, 80, 100])],
    ids=["legacy", "behavior"],
)
def test_growth_is_limited_to_doubling_or_four(kind: int, expected: list[int]) -> None:
    """G3: a hundred are wanted from one on."""
    assert counts_of(one(kind, lag_target=1000.0), [100_000.0] * 6, begin=1) == expected


@pytest.mark.parametrize(("begin", "end"), [(58, 64), (59, 59), (63, 63)])
def test_keda_strands_a_group_just_below_its_partitions(begin: int, end: int) -> None:
    """G4: with 64 partitions the capped metric is within a tenth of 59 to 63 replicas, whatever the lag."""
    keda = one(LEGACY, lag_target=3000.0, partitions=64)
    assert counts_of(keda, [1e12] * 4, begin=begin)[-1] == end


@pytest.mark.parametrize(("lag", "wanted"), [(45.0, 5), (49.0, 5), (50.0, 4)])
def test_a_lag_of_less_than_one_target_above_the_cap_escapes_it(lag: float, wanted: int) -> None:
    """G6: four partitions at a target of 10 are capped at 40, but 45 and 49 are not."""
    assert wanted_for(capped_lag(lag, 10.0, 4), 10.0, 4) == wanted


@pytest.mark.parametrize(("kind", "expected"), [(LEGACY, [40, 41]), (BEHAVIOR, [40, 40])], ids=["legacy", "behavior"])
def test_without_behavior_the_escaped_lag_is_remembered(kind: int, expected: list[int]) -> None:
    """G6: 405 at a target of 10 and 40 partitions from 20 on; of 41 wanted 40 are within the tolerance later."""
    assert counts_of(one(kind, lag_target=10.0, partitions=40), [405.0] * 2, begin=20) == expected


def play(
    autoscaler: Autoscalers, of: MoveTables, rates: list[float], *, begin: int, seconds: float = 15.0
) -> tuple[Shadows, FloatArray]:
    """The group and its account after rows of these rates."""
    group, account, recent = shadows_of(1, members=begin - 1), np.zeros((1, COLUMNS)), np.full(RATE_PASSES, np.nan)
    for rate in rates:
        play_passes(of, autoscaler, group, recent, rate, seconds, SERVICE, COMMITS, account)
    return group, account


def test_every_pod_that_is_asked_for_is_paid_though_it_carries_no_more() -> None:
    """30 of 40 partitions' replicas for a minute are 1,800 pod-seconds, and 20,000/s are as much as 20 carry."""
    _, account = play(one(HELD), tables(40), [19_000.0] * 4, begin=30)
    assert account[0].tolist() == [1800.0, 0.0]


def test_between_two_useful_counts_only_the_busiest_replicas_fall_behind() -> None:
    """22,000/s on 40 partitions: of 30 replicas ten hold two partitions, half of the load; of 20 replicas all do."""
    thirty, twenty = (play(one(HELD), tables(40), [22_000.0] * 60, begin=begin)[0] for begin in (30, 20))
    assert thirty.backlog.sum() == pytest.approx(twenty.backlog.sum() / 2.0, rel=0.05)


def test_a_rate_margin_pays_for_replicas_that_carry_nothing() -> None:
    """1.25 x 20,000/s are 25 replicas, of 40 partitions; they carry what 20 do. Useful counts go on to 40."""
    of = tables(40)
    by_rate, _ = play(one(RATE, margin=1.25), of, [20_000.0] * 8, begin=20)
    by_use, _ = play(one(USEFUL, margin=1.2), of, [20_000.0] * 8, begin=20)
    assert [int(of.counts[requested(group, 0)]) for group in (by_rate, by_use)] == [25, 40]


def test_a_lag_target_sees_what_is_consumed_and_not_committed() -> None:
    """Nothing waits at 8,000/s, and 20,000 messages of the last 2.5 s are not committed: a target of 1,000 wants 20."""
    of = tables(40)
    group, _ = play(one(LEGACY, lag_target=1000.0), of, [8000.0] * 3, begin=16)
    assert visible_lag(of, group, 0, 8000.0, SERVICE, 2.5) == pytest.approx(20_000.0)
    assert int(of.counts[requested(group, 0)]) == 20


def test_while_a_rebalance_stops_the_group_all_of_its_lag_waits() -> None:
    """A stop of 20 s from the row's begin on: after 15 s, 15 s of the rate wait, and nothing was consumed since."""
    of = tables(40, pause_seconds=20.0)
    group = shadows_of(1, members=19)
    request(of, group, 0, 29, at_once=True)
    play_passes(of, one(HELD), group, np.full(RATE_PASSES, np.nan), 1000.0, 15.0, SERVICE, COMMITS, np.zeros((1, 2)))
    assert visible_lag(of, group, 0, 1000.0, SERVICE, 2.5) == pytest.approx(15_000.0)


def test_a_move_between_counts_that_carry_the_same_is_a_rebalance_too() -> None:
    """From 24 to 26 of 40 partitions' replicas nothing more is carried, and all stop for four seconds."""
    group, of = shadows_of(1, members=23), tables(40)
    request(of, group, 0, 25, at_once=True)
    assert group.pause_left_seconds[0] == pytest.approx(4.0)


@given(
    rates=st.lists(st.floats(0.0, 60_000.0), min_size=1, max_size=20),
    kind=st.sampled_from([HELD, RATE, USEFUL, LEGACY, BEHAVIOR]),
    target=st.sampled_from([1.0, 500.0, 10_000.0]),
    begin=st.sampled_from([1, 9, 24]),
)
def test_a_row_of_a_minute_is_four_looks(rates: list[float], kind: int, target: float, begin: int) -> None:
    """Minutes and their quarters cost the same; pods stay within the bounds, lateness is never negative."""
    of, autoscaler = tables(24), one(kind, lag_target=target, margin=1.25)
    _, minutes = play(autoscaler, of, rates, begin=begin, seconds=60.0)
    _, quarters = play(autoscaler, of, [rate for rate in rates for _ in range(4)], begin=begin)
    assert minutes.tolist() == quarters.tolist()
    assert 60.0 * len(rates) <= minutes[0, PODS] <= 24.0 * 60.0 * len(rates)
    assert minutes[0, LATE] >= 0.0
