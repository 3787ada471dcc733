"""The partitions that a move stops, by protocol, direction and kind of leave, by formulas and measurements."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile, GroupProtocol
from cost_model.physics.rebalance import MoveEffect, move_effect
from cost_model.physics.rounds import rebalance_round
from forecasting.units import Partitions, Replicas, Seconds

KAFKA = GroupProfile(
    cluster="east", group="orders", partitions=Partitions(40), capacity=None, poll_batch_seconds=Seconds(0.0)
)
MANY = 100_000


def _effect(profile: GroupProfile, before: int, after: int, prior: float | None = None) -> MoveEffect:
    return move_effect(
        profile,
        from_replicas=Replicas(before),
        to_replicas=Replicas(after),
        rebalance_pause_prior_seconds=None if prior is None else Seconds(prior),
    )


@pytest.mark.parametrize(("members", "stop"), [(2, 0.5), (5, 1.0), (MANY, 1.5)])
def test_oracle_14_mean_stop_with_short_batches(members: int, stop: float) -> None:
    """With a heartbeat of 3 s a member stops 0.5, 1.0, 1.5 s on top of the sync, for 2, 5 and very many members."""
    mean_stop = rebalance_round(KAFKA, members=members).mean_pause_seconds
    assert mean_stop - KAFKA.sync_seconds == pytest.approx(stop, abs=2e-3)


@pytest.mark.parametrize(("members", "mean", "whole"), [(10, 4.7, 11.2), (40, 5.7, 12.2), (200, 6.3, 12.8)])
def test_long_batches_make_a_rebalance_long(members: int, mean: float, whole: float) -> None:
    """With batches of up to 10 s the slowest member sets the pace: 12.2 s for 40 members."""
    found = rebalance_round(replace(KAFKA, poll_batch_seconds=Seconds(10.0)), members=members)
    assert (found.mean_pause_seconds, found.whole_seconds) == pytest.approx((mean, whole), abs=0.05)


@pytest.mark.parametrize(("members", "measured"), [(4, 0.83), (10, 1.30)])
def test_mean_stop_is_near_the_measured_one(members: int, measured: float) -> None:
    """Kafka 4.3 on loopback (sync 0.02 s) stopped its members 0.83 and 1.30 s; the formula is within 12 %."""
    found = rebalance_round(replace(KAFKA, sync_seconds=Seconds(0.02)), members=members)
    assert found.mean_pause_seconds == pytest.approx(measured, rel=0.12)


@pytest.mark.parametrize(("spread", "rebalances"), [(5.0, 2.3), (20.0, 4.6), (60.0, 7.0)])
def test_replicas_that_start_apart_rebalance_again_and_again(spread: float, rebalances: float) -> None:
    """Ten replicas that become ready over 5, 20 or 60 s cause 2.3, 4.6 or 7.0 rebalances of about 3 s."""
    profile = replace(KAFKA, start_up_seconds=Seconds(3.0 * spread))
    assert _effect(profile, 10, 20).expected_rebalances == pytest.approx(rebalances, abs=0.1)
    assert _effect(replace(KAFKA, start_up_seconds=Seconds(0.0)), 10, 20).expected_rebalances == 1.0


def test_later_rebalances_of_a_burst_stop_eager_members_for_little() -> None:
    """The first rebalance puts heartbeats in step: 4.6 rebalances stop 2.6 s each partition, not 4.6 times 1.5 s."""
    burst = _effect(replace(KAFKA, start_up_seconds=Seconds(60.0)), 10, 20)
    once = _effect(replace(KAFKA, start_up_seconds=Seconds(0.0)), 10, 20)
    assert burst.rebalance_pause_seconds == pytest.approx(
        once.rebalance_pause_seconds + (burst.expected_rebalances - 1.0) * 0.3
    )
    assert burst.rebalance_pause_seconds < 0.5 * burst.expected_rebalances * once.rebalance_pause_seconds


def test_eager_scale_out_stops_all_partitions() -> None:
    """Under eager the whole group stops, however few partitions move."""
    effect = _effect(KAFKA, 10, 11)
    (pause,) = effect.pauses
    assert pause.share == 1.0
    assert effect.moved_fraction == pytest.approx(0.40, abs=0.005)  # by range; a sticky deal moves 0.075
    assert effect.lost_partition_seconds == pytest.approx(40 * pause.mean_seconds)


def test_eager_scale_in_makes_leavers_partitions_wait_from_the_start() -> None:
    """Of 10 replicas 2 leave: 80 % of the partitions stop for the mean stop, 20 % for the whole rebalance."""
    effect = _effect(KAFKA, 10, 8)
    found = rebalance_round(KAFKA, members=8)
    assert [pause.share for pause in effect.pauses] == pytest.approx([0.8, 0.2])
    seconds = [pause.mean_seconds for pause in effect.pauses]
    assert seconds == pytest.approx([found.mean_pause_seconds, found.whole_seconds])


@pytest.mark.parametrize(("batch", "up", "down"), [(1.0, 2.9, 9.2), (2.0, 4.9, 14.6), (5.0, 11.9, 34.6)])
def test_cooperative_long_batches_are_near_the_measurement(batch: float, up: float, down: float) -> None:
    """The Java client takes one protocol step per batch: 11.9 s up and 34.6 s down at batches of 5 s, within 15 %."""
    profile = replace(
        KAFKA,
        protocol="cooperative",
        poll_batch_seconds=Seconds(batch),
        sync_seconds=Seconds(0.02),
        start_up_seconds=Seconds(0.0),
    )
    assert _effect(profile, 4, 8).rebalance_pause_seconds == pytest.approx(up, rel=0.15)
    assert _effect(profile, 8, 4).rebalance_pause_seconds == pytest.approx(down, rel=0.15)


def test_cooperative_stops_only_what_moves() -> None:
    """Of 40 partitions 20 move when 4 replicas become 8, and those stop a heartbeat and a sync: 3.3 s."""
    profile = replace(KAFKA, protocol="cooperative", start_up_seconds=Seconds(0.0))
    effect = _effect(profile, 4, 8)
    (pause,) = effect.pauses
    assert (pause.share, pause.mean_seconds) == pytest.approx((0.5, 3.3))
    assert effect.lost_partition_seconds == pytest.approx(66.0)


def test_replicas_that_join_apart_move_some_partitions_twice() -> None:
    """4 to 20 replicas one by one move 1.375 of the group's partitions, some of them twice, instead of 0.80."""
    together = replace(KAFKA, protocol="cooperative", start_up_seconds=Seconds(0.0))
    apart = replace(together, start_up_seconds=Seconds(1e6))
    moves = [_effect(profile, 4, 20).lost_partition_seconds / (40 * 3.3) for profile in (together, apart)]
    assert moves == pytest.approx([0.8, 1.375], abs=0.001)


def test_with_batches_of_two_seconds_eager_loses_less_than_cooperative_on_a_big_scale_in() -> None:
    """8 to 4 replicas at batches of 2 s: measured 2.4 s lost per partition under eager and 7.3 s under cooperative."""
    eager = replace(KAFKA, poll_batch_seconds=Seconds(2.0))
    lost = [_effect(p, 8, 4).lost_partition_seconds / 40 for p in (eager, replace(eager, protocol="cooperative"))]
    assert lost[0] < 0.5 * lost[1]


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_oracle_11_a_silent_end_orphans_partitions_for_the_session(protocol: GroupProtocol) -> None:
    """A grace period under the p99 batch kills replicas: partitions wait the session out, less half a heartbeat."""
    graceful = replace(KAFKA, protocol=protocol)
    ungraceful = replace(graceful, processing_p99_seconds=Seconds(40.0))
    more = _effect(ungraceful, 10, 8).lost_partition_seconds - _effect(graceful, 10, 8).lost_partition_seconds
    assert more == pytest.approx(0.2 * 40 * (45.0 - 1.5))


def test_a_pause_prior_is_a_floor_of_every_eager_stop() -> None:
    """Assumed pauses of 12 s count for all partitions; a higher result of the formula takes precedence."""
    assert {pause.mean_seconds for pause in _effect(KAFKA, 10, 8, prior=12.0).pauses} == {12.0}
    assert _effect(KAFKA, 10, 8, prior=0.1) == _effect(KAFKA, 10, 8)


def test_a_pause_prior_counts_by_the_moved_share_under_cooperative() -> None:
    """A move of half the partitions is assumed to stop them for half the prior, and never for less than one round."""
    profile = replace(KAFKA, protocol="cooperative", start_up_seconds=Seconds(0.0))
    assert _effect(profile, 4, 8, prior=12.0).rebalance_pause_seconds == pytest.approx(6.0)
    assert _effect(profile, 10, 11, prior=12.0).rebalance_pause_seconds == pytest.approx(3.3)


@pytest.mark.parametrize(("before", "after"), [(0, 5), (5, 0), (7, 7)])
def test_nothing_stops_in_an_empty_or_unchanged_group(before: int, after: int) -> None:
    """An empty group, an emptied one and a held one have no rebalance to price."""
    effect = _effect(KAFKA, before, after, prior=12.0)
    assert (effect.pauses, effect.lost_partition_seconds, effect.expected_rebalances) == ((), 0.0, 0.0)


def test_idle_replicas_leave_without_moving_a_partition() -> None:
    """From 50 to 40 replicas on 40 partitions no partition changes owner, so no stop is assumed."""
    effect = _effect(replace(KAFKA, protocol="cooperative"), 50, 40)
    assert (effect.moved_fraction, effect.lost_partition_seconds) == (0.0, 0.0)


def test_idle_replicas_that_leave_still_stop_an_eager_group() -> None:
    """Any leave rebalances an eager group: all 40 stop once, and no partition waits for a member that leaves."""
    (pause,) = _effect(KAFKA, 50, 40).pauses
    assert pause.share == 1.0
    assert pause.mean_seconds == pytest.approx(rebalance_round(KAFKA, members=40).mean_pause_seconds)


@given(
    st.sampled_from(["eager", "cooperative"]),
    st.integers(1, 60),
    st.integers(1, 60),
    st.floats(0.0, 20.0),
    st.floats(0.0, 60.0),
)
def test_moves_are_lawful(protocol: GroupProtocol, before: int, after: int, batch: float, p99: float) -> None:
    """Shares stay within the group, stops are not negative and sum to the lost time; ungraceful leaves lose no less."""
    profile = replace(KAFKA, protocol=protocol, poll_batch_seconds=Seconds(batch))
    effect = _effect(profile, before, after)
    assert sum(pause.share for pause in effect.pauses) <= 1.0 + 1e-9
    assert all(pause.mean_seconds >= 0.0 for pause in effect.pauses)
    lost = 40 * sum(pause.share * pause.mean_seconds for pause in effect.pauses)
    assert effect.lost_partition_seconds == pytest.approx(lost)
    ungraceful = _effect(replace(profile, processing_p99_seconds=Seconds(p99)), before, after)
    assert ungraceful.lost_partition_seconds >= effect.lost_partition_seconds - 1e-9
