"""Effects that a world adds to the plain group: ungraceful leaves, limits, incidents, noise, checked by arithmetic."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.plant import Plant, draw_arrivals
from replay.trace import Trace
from replay.world import Incident, OffsetsReset, PoisonMessage, RollingRestart, World
from tests.replay.plant.by_hand import commanded, totals

Worlds = Callable[..., World]
Loads = Callable[..., Trace]


incidents = st.one_of(
    st.builds(RollingRestart, at_second=st.integers(0, 900), seconds_per_pod=st.integers(5, 60)),
    st.builds(PoisonMessage, at_second=st.integers(0, 900), seconds=st.integers(1, 300), partition=st.integers(0, 11)),
    st.builds(OffsetsReset, at_second=st.integers(0, 900), seconds=st.integers(-300, 300)),
)
worlds = st.builds(
    World,
    partitions=st.just(12),
    capacity_messages_per_second_per_replica=st.just(100.0),
    protocol=st.sampled_from(["eager", "cooperative", "kip848"]),
    client=st.sampled_from(["java", "librdkafka"]),
    batch_seconds=st.sampled_from([0.1, 2.0, 40.0]),
    commit_mode=st.sampled_from(["interval", "batch"]),
    static_membership=st.booleans(),
    start_up_log_spread=st.sampled_from([0.0, 0.5]),
    new_node_share=st.sampled_from([0.0, 0.3]),
    slow_pod_share=st.sampled_from([0.0, 0.3]),
    contention=st.sampled_from([0.0, 0.05]),
    sink_messages_per_second=st.sampled_from([None, 333.3]),
    hot_partition_share=st.sampled_from([None, 0.3]),
    burst_per_day=st.sampled_from([0.0, 200.0]),
    missing_sample_share=st.sampled_from([0.0, 0.5]),
    incidents=st.lists(incidents, max_size=3).map(tuple),
)


@settings(max_examples=60)
@given(
    world=worlds,
    commands=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 12)), max_size=10),
    rate=st.floats(0, 1_500),
)
def test_no_message_is_lost_in_any_world(world: World, commands: list[tuple[int, int]], rate: float) -> None:
    """Each message that arrived was served, was skipped by a reset, or waits; commits never pass the end."""
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    trace = Trace(name="any", start_at=start_at, step_seconds=60, messages_per_second=np.full(16, rate))
    plant = Plant(world=world, trace=trace, seed=3, replicas=6)
    for seconds, replicas in [*commands, (960, 6)]:
        plant.advance(seconds)
        plant.scale(replicas)
        seen, day = plant.observation(), totals(plant)
        assert (seen.lag_messages >= 0).all()
        assert 0.0 <= seen.busy_share <= 1.0
        assert day.arrivals == day.served + day.skipped + plant.backlog_messages
        assert plant.backlog_messages >= 0


@pytest.mark.parametrize("protocol", ["eager", "cooperative", "kip848"])
@pytest.mark.parametrize("static", [False, True])
def test_any_group_left_in_peace_settles(calm_world: Worlds, load: Loads, protocol: str, *, static: bool) -> None:
    """Under each protocol, also after ungraceful leaves, the members are the requested ones, and no message waits."""
    world = calm_world(protocol=protocol, static_membership=static, batch_seconds=1.0)
    storm = [(15 * turn, count) for turn, count in enumerate((3, 24, 1, 9, 24, 2, 17, 12), start=1)]
    plant = commanded(world, load(*[500.0] * 30), *storm, replicas=12)
    seen = plant.observation()
    assert (seen.replicas, seen.ready_members, seen.group_state) == (12, 12, "STABLE")
    assert plant.backlog_messages < 500


@pytest.mark.slow
def test_the_newer_protocol_stops_only_what_moves(calm_world: Worlds, load: Loads) -> None:
    """Up: what moves waits for the new owner's next heartbeat, 5 s/2 on average, and 0.3 s for its first fetch."""
    world = calm_world(protocol="kip848", start_up_spread_seconds=4.0)
    trace = load(*[200.0] * 5)
    pauses = [
        totals(commanded(world, trace, (60, 8), replicas=4, seed=seed)).paused_partition_seconds for seed in range(100)
    ]
    # 4 members to 8: half of the 24 partitions move, each within an interval of the owner's heartbeat. Several
    # assignments are possible, but no partition moves twice.
    assert float(np.mean(pauses)) == pytest.approx(12 * 2.8, rel=0.15)
    down = [
        totals(commanded(world, trace, (60, 3), replicas=4, seed=seed)).paused_partition_seconds for seed in range(100)
    ]
    # The six partitions of the member that leaves wait for the heartbeats of three.
    assert float(np.mean(down)) == pytest.approx(6 * 2.8, rel=0.15)


def test_a_static_member_is_missed_only_when_its_session_ends(calm_world: Worlds, load: Loads) -> None:
    """One of 12 closes at 61 s ungracefully: its two partitions wait 45 s, to 106 s, then for the beat at 108 s."""
    day = totals(commanded(calm_world(static_membership=True), load(*[200.0] * 5), (61, 11), replicas=12))
    assert day.paused_partition_seconds == pytest.approx(2 * (45 + 2.3) + 22 * 0.3)
    assert day.duplicates == 0


@pytest.mark.parametrize("mode", ["interval", "batch"])
def test_a_pod_that_cannot_close_in_time_is_killed(calm_world: Worlds, load: Loads, mode: str) -> None:
    """A pod is killed 5 s after the command in a batch of 20 s: the processed part, half on average, is repeated."""
    world = calm_world(batch_seconds=20.0, termination_grace_seconds=5.0, commit_mode=mode)
    runs = [commanded(world, load(*[2_400.0] * 8), (240, 11), replicas=12, seed=seed) for seed in range(100)]
    duplicates = np.array([totals(run).duplicates for run in runs])
    # Three of four cannot close within 5 s of a batch of 20 s. 100 messages/s x 10 s of the batch are 1,000.
    assert np.mean(duplicates > 0) == pytest.approx(0.75, abs=0.12)
    assert float(duplicates[duplicates > 0].mean()) == pytest.approx(1_000, rel=0.25)


def test_some_pods_start_late(calm_world: Worlds, load: Loads) -> None:
    """Half of the pods need a new node, 100 s more: half of 8 are there after 40 s, all after 140 s."""
    world = calm_world(new_node_share=0.5, new_node_seconds=100.0)
    at_once, later = [], []
    for seed in range(40):
        plant = Plant(world=world, trace=load(*[200.0] * 5), seed=seed, replicas=4)
        plant.scale(12)
        plant.advance(40)
        at_once.append(plant.observation().ready_members - 4)
        plant.advance(100)
        later.append(plant.observation().ready_members - 4)
    assert float(np.mean(at_once)) == pytest.approx(4.0, rel=0.15)
    assert set(later) == {8}


def test_some_pods_are_slow(calm_world: Worlds, load: Loads) -> None:
    """With a quarter of the pods at 0.6 of the speed, an overloaded group serves 0.9 of its usual rate."""
    trace = load(*[6_000.0] * 10)
    served = [
        totals(commanded(calm_world(slow_pod_share=0.25), trace, replicas=24, seed=seed)).served for seed in range(30)
    ]
    assert float(np.mean(served)) == pytest.approx(0.9 * 24 * 100 * 600, rel=0.03)


def test_the_sink_takes_no_more(calm_world: Worlds, load: Loads) -> None:
    """An overloaded group of any size does 777.7 messages/s, all partitions alike; a lower rate is not limited."""
    world = calm_world(sink_messages_per_second=777.7)
    plant = commanded(world, load(*[3_000.0] * 10), replicas=24)
    assert totals(plant).served == pytest.approx(777.7 * 600, rel=0.001)
    committed = plant.observation().committed_offsets
    assert committed.min() > 0.95 * committed.max()
    assert commanded(world, load(*[600.0] * 10), replicas=12).backlog_messages < 200


def test_members_stand_in_each_others_way(calm_world: Worlds, load: Loads) -> None:
    """At a contention of 0.1, eleven members in an overloaded group do half of their capacity each."""
    world = calm_world(partitions=22, contention=0.1)
    assert totals(commanded(world, load(*[6_000.0] * 10), replicas=11)).served == pytest.approx(550 * 600, rel=0.01)


def test_bursts_are_part_of_the_arrivals(calm_world: Worlds, load: Loads) -> None:
    """24 bursts a day of ten minutes at four times the rate add half of the load, and are the same for every policy."""
    world, trace = calm_world(burst_per_day=24.0, burst_gain=4.0, burst_seconds=600), load(*[10.0] * 1_440)
    mean = np.mean([draw_arrivals(world, trace, seed).messages.sum() for seed in range(10)])
    # Some overlap, and then count once: a second is in one with probability 1 - exp(-1/6).
    assert mean == pytest.approx(864_000 * (1 + 3 * (1 - np.exp(-1 / 6))), rel=0.06)
    shared = draw_arrivals(world, trace, 1)
    runs = [Plant(world=world, trace=trace, seed=1, replicas=4, arrivals=drawn) for drawn in (shared, None)]
    for run in runs:
        run.advance(1_000)
    assert runs[0].day_totals() == runs[1].day_totals()


def test_a_rolling_restart_replaces_every_pod(calm_world: Worlds, load: Loads) -> None:
    """Each of six pods, one every 40 s, leaves (a rebalance) and its substitute joins 31 s later (another)."""
    restart: Incident = RollingRestart(at_second=61, seconds_per_pod=40)
    plant = commanded(calm_world(incidents=(restart,)), load(*[200.0] * 8), replicas=6)
    assert totals(plant).rebalances == 12
    assert totals(plant).moves == 0
    assert plant.observation().ready_members == 6
    assert totals(plant).pod_seconds == pytest.approx(6 * 480)


def test_poison_stops_one_partition(calm_world: Worlds, load: Loads) -> None:
    """One of 24 partitions stops for a minute: 10 messages/s x 60 s wait; then they are consumed."""
    poison: Incident = PoisonMessage(at_second=60, seconds=60, partition=7)
    plant = Plant(world=calm_world(incidents=(poison,)), trace=load(*[240.0] * 5), seed=1, replicas=12)
    plant.advance(120)
    lag = plant.observation().lag_messages
    assert lag.argmax() == 7
    assert lag[7] == pytest.approx(600, rel=0.2)
    assert plant.backlog_messages == pytest.approx(600, rel=0.2)
    plant.advance(60)
    assert plant.backlog_messages == 0


def test_a_reset_back_runs_again(calm_world: Worlds, load: Loads) -> None:
    """A reset by 100 s of 240 messages/s gives 24,000 duplicates and the uncommitted messages, served a second time."""
    reset: Incident = OffsetsReset(at_second=200, seconds=100)
    plant = commanded(calm_world(incidents=(reset,)), load(*[240.0] * 8), replicas=12)
    assert totals(plant).duplicates == pytest.approx(24_000, rel=0.03)
    assert totals(plant).served + plant.backlog_messages == totals(plant).arrivals


def test_a_reset_forward_skips_the_oldest(calm_world: Worlds, load: Loads) -> None:
    """One member of 100 messages/s under 600: a reset forward by 60 s skips the messages of 60 s, 36,000."""
    reset: Incident = OffsetsReset(at_second=300, seconds=-60)
    day = totals(commanded(calm_world(incidents=(reset,)), load(*[600.0] * 6), replicas=1))
    assert day.skipped == pytest.approx(36_000, rel=0.02)


def test_busy_share_and_mean_lag_are_arithmetic(calm_world: Worlds, load: Loads) -> None:
    """600 messages/s on 12 members of 100 are half of their capacity; lag is the 2 s that are not committed."""
    plant = commanded(calm_world(partitions=12), load(*[600.0] * 10), replicas=12)
    assert plant.observation().busy_share == pytest.approx(0.5, abs=0.03)
    # Commits come in the second: at the end of each second 0, 1, 2, 3 or 4 s are uncommitted, 2 s of 600 on average.
    assert totals(plant).lag_message_seconds / 600 == pytest.approx(1_200, rel=0.03)


def test_a_stateful_group_moves_two_partitions_at_a_time(calm_world: Worlds, load: Loads) -> None:
    """From 4 members to 6, 8 of 24 move: two at each probing rebalance, every 100 s, after 30 s of restoring."""
    world = calm_world(protocol="cooperative", restore_seconds=30.0, probing_seconds=100.0)
    plant = Plant(world=world, trace=load(*[200.0] * 15), seed=1, replicas=4)
    plant.advance(60)
    plant.scale(6)
    owned = []
    for _ in range(7):
        plant.advance(110)
        owned.append(int(np.isin(plant._state.partitions.owner, [4, 5]).sum()))
    assert owned[0] == 0
    assert owned[-1] == 8
    assert all(later - earlier in {0, 2} for earlier, later in pairwise(owned))
    assert totals(plant).paused_partition_seconds == pytest.approx(8 * 3.3, rel=0.1)
