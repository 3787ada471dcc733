"""The additions of Kafka Streams to a move: tasks, warm-ups, ungraceful leaves and state that is restored."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile, StreamsProfile
from cost_model.physics.rebalance import MoveEffect, move_effect
from cost_model.physics.rounds import rebalance_round
from cost_model.physics.streams import capacity_lead_seconds, moved_tasks, restore_seconds, restored_bytes
from forecasting.units import Fraction, Partitions, Replicas, Seconds

STATELESS = StreamsProfile(stateful=False, tasks=40)
# 4 GB in 40 tasks at 10 MB/s: 10 s per task.
STATEFUL = StreamsProfile(stateful=True, tasks=40, restore_bytes=4e9, restore_bytes_per_second=1e7)
KAFKA = GroupProfile(
    cluster="east", group="orders", partitions=Partitions(40), capacity=None, start_up_seconds=Seconds(0.0)
)


def _effect(streams: StreamsProfile | None, before: int, after: int) -> MoveEffect:
    profile = replace(KAFKA, streams=streams)
    return move_effect(profile, from_replicas=Replicas(before), to_replicas=Replicas(after))


def _lead_seconds(streams: StreamsProfile | None, before: int, after: int) -> float:
    profile = replace(KAFKA, streams=streams)
    return capacity_lead_seconds(profile, from_replicas=Replicas(before), to_replicas=Replicas(after))


def test_oracle_15_twenty_moves_bring_no_capacity_before_a_hundred_minutes() -> None:
    """Oracle 15: 4 to 8 replicas move 20 of 40 tasks, two warm-ups at a time, one probe of 600 s each: 6,000 s."""
    profile = replace(KAFKA, streams=STATEFUL)
    assert moved_tasks(profile, from_replicas=Replicas(4), to_replicas=Replicas(8)) == 20
    assert _lead_seconds(STATEFUL, 4, 8) == 6_000.0
    assert _lead_seconds(replace(STATEFUL, max_warmup_replicas=20), 4, 8) == 600.0


def test_capacity_comes_at_once_without_state_or_when_nothing_is_added() -> None:
    """A stateless application, a plain consumer group and a scale-in have nothing to warm."""
    assert [_lead_seconds(None, 4, 8), _lead_seconds(STATELESS, 4, 8), _lead_seconds(STATEFUL, 8, 4)] == [0.0] * 3
    assert _lead_seconds(STATEFUL, 40, 50) == 0.0


def test_streams_rebalances_cooperatively_with_any_setting_of_its_consumers() -> None:
    """A group that grows stops only the tasks that move, as a cooperative group does."""
    cooperative = move_effect(
        replace(KAFKA, protocol="cooperative"), from_replicas=Replicas(4), to_replicas=Replicas(8)
    )
    assert _effect(STATELESS, 4, 8) == cooperative


def test_warm_ups_are_promoted_in_rounds_and_move_each_task_once() -> None:
    """20 tasks, two at a time: 10 rebalances after the first, and no task stops twice."""
    effect = _effect(STATEFUL, 4, 8)
    assert effect.expected_rebalances == 11.0
    assert effect.lost_partition_seconds == _effect(STATELESS, 4, 8).lost_partition_seconds


def test_a_closed_instance_is_missed_only_when_its_session_ends() -> None:
    """Streams sends no LeaveGroup on close: a fifth of the tasks waits 45 s and a rebalance, with short batches."""
    profile = replace(KAFKA, streams=STATELESS, poll_batch_seconds=Seconds(0.0))
    effect = move_effect(profile, from_replicas=Replicas(10), to_replicas=Replicas(8))
    (pause,) = effect.pauses
    whole = rebalance_round(profile, members=8).whole_seconds
    assert (pause.share, pause.mean_seconds) == pytest.approx((0.2, 45.0 + whole))
    graceful = replace(profile, ungraceful_share=Fraction(0.0))
    assert move_effect(
        graceful, from_replicas=Replicas(10), to_replicas=Replicas(8)
    ).rebalance_pause_seconds == pytest.approx(whole)


def test_b14_a_kept_volume_restores_the_rest_and_a_lost_one_everything() -> None:
    """8 tasks that come back to a volume read what it has missed; without it, or to a replica without one, all."""
    kept = replace(STATEFUL, volume_kept=True, behind_bytes=4e7)
    profiles = [replace(KAFKA, streams=streams) for streams in (STATEFUL, kept, replace(kept, volume_kept=False))]
    read = [restored_bytes(profile, from_replicas=Replicas(8), to_replicas=Replicas(10)) for profile in profiles]
    assert read == pytest.approx([8e8, 8e6, 8e8])


def test_a_leaving_volume_leaves_its_tasks_without_state() -> None:
    """8 moved tasks on 8 replicas are one each: 10 s for a full changelog, 0.1 s for what a standby has missed."""
    kept = replace(STATEFUL, volume_kept=True, behind_bytes=4e7)
    standby = replace(STATEFUL, standbys=1, behind_bytes=4e7)
    base = _effect(STATELESS, 10, 8).rebalance_pause_seconds
    pauses = [_effect(streams, 10, 8).rebalance_pause_seconds - base for streams in (STATEFUL, kept, standby)]
    assert pauses == pytest.approx([10.0, 10.0, 0.1])
    assert restored_bytes(
        replace(KAFKA, streams=STATEFUL), from_replicas=Replicas(10), to_replicas=Replicas(8)
    ) == pytest.approx(8e8)


def test_few_replicas_restore_many_tasks() -> None:
    """From 40 to 3 replicas 37 tasks come to 3: 13 on one of them, 130 s."""
    profile = replace(KAFKA, streams=STATEFUL)
    assert restore_seconds(profile, from_replicas=Replicas(40), to_replicas=Replicas(3)) == pytest.approx(130.0)


def test_tasks_are_the_ceiling() -> None:
    """Two topics of 4 partitions joined in one sub-topology are 4 tasks: the fifth replica sits idle and moves none."""
    joined = replace(KAFKA, partitions=Partitions(8), streams=replace(STATELESS, tasks=4))
    apart = replace(joined, streams=replace(STATELESS, tasks=8))
    assert [joined.replica_ceiling, apart.replica_ceiling] == [4, 8]
    effect = move_effect(joined, from_replicas=Replicas(4), to_replicas=Replicas(5))
    assert effect.lost_partition_seconds == 0.0


def test_impossible_figures_are_refused() -> None:
    """Nothing is restored at no rate, and an application has a task."""
    with pytest.raises(ValueError, match="restore_bytes_per_second is 0"):
        StreamsProfile(stateful=True, tasks=40, restore_bytes_per_second=0.0)
    with pytest.raises(ValueError, match="0 tasks with 2 warm-ups"):
        StreamsProfile(stateful=True, tasks=0)


@given(st.integers(1, 45), st.integers(1, 45), st.floats(0.0, 1e10))
def test_more_state_never_loses_less(before: int, after: int, more: float) -> None:
    """Growing, state delays capacity; shrinking, it lengthens the stop; a copy never makes it longer."""
    bigger = replace(STATEFUL, restore_bytes=STATEFUL.restore_bytes + more)
    lost = [_effect(s, before, after).lost_partition_seconds for s in (replace(bigger, standbys=1), STATEFUL, bigger)]
    assert lost == pytest.approx(sorted(lost))
    assert _lead_seconds(STATEFUL, before, after) >= 0.0
