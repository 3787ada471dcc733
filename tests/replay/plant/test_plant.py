"""The simulated group: laws that hold for every command, and figures computed by hand from the group protocol."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.plant import Plant
from replay.trace import Trace
from replay.world import World, WorldProtocol
from tests.replay.plant.by_hand import commanded, totals

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
START_AT = datetime(2026, 1, 5, tzinfo=UTC)
PROTOCOLS: tuple[WorldProtocol, ...] = ("eager", "cooperative")


@settings(max_examples=40)
@given(
    commands=st.lists(st.tuples(st.integers(1, 90), st.integers(0, 30)), max_size=12),
    protocol=st.sampled_from(PROTOCOLS),
    rates=st.lists(st.floats(0, 4_000), min_size=10, max_size=20),
    drift=st.sampled_from([0.0045, 10.0]),
)
def test_no_message_is_lost_under_any_commands(
    commands: list[tuple[int, int]], protocol: WorldProtocol, rates: list[float], drift: float
) -> None:
    """Each message that arrived has been served or waits; commits never pass the end and never go back."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=150, protocol=protocol, heartbeat_drift=drift)
    trace = Trace(name="any", start_at=START_AT, step_seconds=60, messages_per_second=np.array(rates, dtype=np.float64))
    plant = Plant(world=world, trace=trace, seed=3, replicas=6)
    committed = np.zeros(24, dtype=np.int64)
    for seconds, replicas in commands:
        plant.advance(seconds)
        plant.scale(replicas)
        seen = plant.observation()
        assert (seen.lag_messages >= 0).all()
        assert (seen.committed_offsets >= committed).all()
        assert 1 <= seen.replicas <= 24
        assert seen.ready_members <= 3 * 24
        committed = seen.committed_offsets
        day = totals(plant)
        assert day.arrivals == int(seen.end_offsets.sum()) == day.served + plant.backlog_messages
        assert plant.backlog_messages <= int(seen.lag_messages.sum())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_left_in_peace_settles(calm_world: Worlds, load: Loads, protocol: WorldProtocol) -> None:
    """After many commands the members are as commanded, the group is stable, and lag is the uncommitted messages."""
    world = calm_world(protocol=protocol, start_up_spread_seconds=20.0, heartbeat_drift=10.0, shutdown_seconds=5.0)
    storm = [(15 * turn, count) for turn, count in enumerate((3, 24, 1, 9, 24, 2, 17, 5, 24, 12), start=1)]
    plant = commanded(world, load(*[500.0] * 30), *storm, replicas=12)
    seen = plant.observation()
    assert (seen.replicas, seen.ready_members, seen.group_state) == (12, 12, "STABLE")
    # 500 messages/s wait for the commit of their 5 s, at most: 2,500, and half a per cent for the noise of arrivals.
    assert plant.backlog_messages == 0
    assert int(seen.lag_messages.sum()) < 2_700


def test_pods_that_close_slowly_do_not_block_new_ones(calm_world: Worlds, load: Loads) -> None:
    """Pods that take minutes to close do not count: after ten changes all 24 requested pods are there."""
    world = calm_world(start_up_seconds=5.0, shutdown_seconds=200.0, termination_grace_seconds=200.0)
    turns = [(15 * turn, 24 if turn % 2 else 1) for turn in range(1, 22)]
    seen = commanded(world, load(*[500.0] * 15), *turns, replicas=1).observation()
    assert (seen.replicas, seen.ready_members) == (24, 24)


@pytest.mark.parametrize("step", [1, 7, 15, 60, 1_000])
def test_how_time_is_cut_does_not_matter(load: Loads, step: int) -> None:
    """Steps of any length give the same group, because arrivals are drawn at fixed borders."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=150)
    trace = load(*np.linspace(500, 2_500, 40))

    def end(step: int) -> tuple[object, ...]:
        plant = Plant(world=world, trace=trace, seed=5, replicas=10)
        for replicas in (14, 8):
            until = plant.time_seconds + 900
            while plant.time_seconds < until:
                plant.advance(min(step, until - plant.time_seconds))
            plant.scale(replicas)
        plant.advance(plant.remaining_seconds)
        seen = plant.observation()
        return (plant.day_totals(), seen.end_offsets.tolist(), seen.committed_offsets.tolist(), seen.group_state)

    assert end(step) == end(900)


def test_arrivals_do_not_depend_on_the_commands(load: Loads) -> None:
    """End offsets of the same seed are the same under any commands; those of another seed differ."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=150)
    trace = load(*[2_000.0] * 30)
    quiet = commanded(world, trace, replicas=16).observation()
    restless = commanded(world, trace, (300, 4), (600, 24), (900, 1), replicas=16).observation()
    other = commanded(world, trace, replicas=16, seed=2).observation()
    assert quiet.end_offsets.tolist() == restless.end_offsets.tolist()
    assert quiet.committed_offsets.tolist() != restless.committed_offsets.tolist()
    assert quiet.end_offsets.tolist() != other.end_offsets.tolist()


def test_arrivals_follow_trace_and_weights(calm_world: Worlds, load: Loads) -> None:
    """An hour at 1,000 messages/s brings 3.6 million, each partition its share; with skew the shares differ."""
    world = calm_world(partition_skew=0.5, capacity_messages_per_second_per_replica=1_000.0)
    ends = commanded(world, load(*[1_000.0] * 60), replicas=12).observation().end_offsets
    expected = world.partition_weights() * 3.6e6
    # Poisson: each within five standard deviations of its mean.
    assert (np.abs(ends - expected) < 5 * np.sqrt(expected)).all()
    assert ends.max() > 2 * ends.min()


class Rebalance(NamedTuple):
    """The effect of one command `(second, replicas)` on a group of `members`."""

    protocol: WorldProtocol
    members: int
    command: tuple[int, int]
    paused_partition_seconds: float
    rebalances: int
    rebalancing_seconds: float


# One member more joins at 60 + 31 = 91 s; all members beat at 93 s, and 0.3 s later the partitions are assigned. One
# member less leaves at 61 s; all members beat at 63 s. 24 partitions on 12 members are 2 each.
REBALANCES = {
    # All 24 stop from 93 to 93.3 s.
    "eager, one more": Rebalance("eager", 12, (60, 13), 24 * 0.3, 1, 2.3),
    # The 2 of the member that leaves stop from 61 to 63.3 s, the other 22 from 63 s.
    "eager, one less": Rebalance("eager", 12, (61, 11), 2 * 2.3 + 22 * 0.3, 1, 2.3),
    # Four members of 6 each release 4 in all at 93.3 s; the new one gets the second round at 96.3 s: 96.6 s.
    "cooperative, one more": Rebalance("cooperative", 4, (60, 5), 4 * 3.3, 2, 2.3 + 3.3),
    # No member has to release any: the 2 of the member that leaves stop from 61 to 63.3 s, and that is all.
    "cooperative, one less": Rebalance("cooperative", 12, (61, 11), 2 * 2.3, 1, 2.3),
}


@pytest.mark.parametrize("expected", REBALANCES.values(), ids=REBALANCES)
def test_pauses_are_those_of_the_protocol(calm_world: Worlds, load: Loads, expected: Rebalance) -> None:
    """With heartbeats in step, eager stops all members for the sync, cooperative what moves, to the second round."""
    world = calm_world(protocol=expected.protocol)
    day = totals(commanded(world, load(*[200.0] * 5), expected.command, replicas=expected.members))
    assert day.paused_partition_seconds == pytest.approx(expected.paused_partition_seconds)
    assert day.rebalances == expected.rebalances
    assert day.rebalancing_seconds == pytest.approx(expected.rebalancing_seconds)


def mean_pause(world: World, trace: Trace, command: int) -> float:
    """The mean partition-seconds that a move from 10 members to `command` costs, over 150 seeds."""
    pauses = [
        totals(commanded(world, trace, (60, command), replicas=10, seed=seed)).paused_partition_seconds
        for seed in range(150)
    ]
    return float(np.mean(pauses))


# The time until a member beats is uniform over h = 3 s. Of N such times the greatest is 3N/(N+1) on average, and a
# member stops when it beats: it stands still for 3N/(N+1) - 3/2 + 0.3 s. 40 partitions on 10 members are 4 each.
INDEPENDENT: dict[str, tuple[WorldProtocol, int, float]] = {
    "eager, one more": ("eager", 11, 40 * (3 * 10 / 11 - 1.5 + 0.3)),
    # Nine remain. The 4 partitions of the member that leaves wait for all of them, 3 x 9/10 + 0.3 s; the other 36 for
    # the slowest.
    "eager, one less": ("eager", 9, 4 * (2.7 + 0.3) + 36 * (2.7 - 1.5 + 0.3)),
    # 11 members hold 4 or 3: three partitions move, and wait a whole interval after the first sync, in step again.
    "cooperative, one more": ("cooperative", 11, 3 * 3.3),
    # The 4 of the member that leaves wait for all nine.
    "cooperative, one less": ("cooperative", 9, 4 * (2.7 + 0.3)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "command", "expected"), INDEPENDENT.values(), ids=INDEPENDENT)
def test_independent_heartbeats_stop_the_group_for_longer(
    calm_world: Worlds, load: Loads, protocol: WorldProtocol, command: int, expected: float
) -> None:
    """If heartbeats have drifted apart, the first member to stop waits for the last: the means equal the integrals."""
    world = calm_world(partitions=40, protocol=protocol, heartbeat_drift=10.0)
    # 150 runs: the standard error is about 2 % of the mean.
    assert mean_pause(world, load(*[200.0] * 3), command) == pytest.approx(expected, rel=0.08)


def test_no_member_waits_longer_than_a_heartbeat(calm_world: Worlds, load: Loads) -> None:
    """With any drift of the heartbeats, every member has rejoined one interval after the join."""
    for seed in range(40):
        world = calm_world(heartbeat_drift=10.0, start_up_seconds=5.0)
        day = totals(commanded(world, load(*[200.0] * 3), (20, 13), replicas=12, seed=seed))
        assert day.rebalancing_seconds <= 3.0 + 0.3 + 1e-9


def test_a_batch_in_hand_is_finished_first(calm_world: Worlds, load: Loads) -> None:
    """A group that is behind works on full batches: the slowest of 12 members delays the others."""
    seconds = {}
    for batch in (0.0, 4.0):
        world = calm_world(batch_seconds=batch)
        runs = [commanded(world, load(*[3_000.0] * 4), (60, 13), replicas=12, seed=seed) for seed in range(40)]
        seconds[batch] = float(np.mean([totals(run).paused_partition_seconds for run in runs])) / 24
    # Batches of 4 s leave uniform rests of up to 4 s; the greatest of 12 is 4 x 12/13 on average, the mean one 2.
    assert seconds[0.0] == pytest.approx(0.3)
    assert seconds[4.0] == pytest.approx(0.3 + 4 * 12 / 13 - 2, rel=0.1)


def test_a_join_in_the_join_phase_merges(calm_world: Worlds, load: Loads) -> None:
    """A member that joins a second later joins the same rebalance: members that have rejoined need not do so again."""
    world = calm_world(heartbeat_drift=10.0)
    for seed in range(40):
        day = totals(commanded(world, load(*[200.0] * 3), (60, 13), (61, 14), replicas=12, seed=seed))
        assert day.rebalances == 1
        assert day.rebalancing_seconds <= 3.0 + 0.3 + 1e-9


def test_a_join_during_the_sync_starts_it_anew(calm_world: Worlds, load: Loads) -> None:
    """One joins at 91 s, all beat at 93 s and await the sync at 95 s; another joins at 94 s, and all rejoin at once."""
    world = calm_world(sync_seconds=2.0)
    day = totals(commanded(world, load(*[200.0] * 3), (60, 13), (63, 14), replicas=12))
    assert day.rebalances == 2
    # The second sync is answered at 96 s.
    assert day.paused_partition_seconds == pytest.approx(24 * 3.0)
    assert day.rebalancing_seconds == pytest.approx(5.0)


def test_the_youngest_leaves_and_commits(calm_world: Worlds, load: Loads) -> None:
    """The last of twelve has the last two partitions; it commits all that it consumed, between its regular commits."""
    plant = Plant(world=calm_world(), trace=load(*[600.0] * 3), seed=1, replicas=12)
    plant.advance(63)
    plant.scale(11)
    ends = plant.observation().end_offsets
    plant.advance(1)
    committed = plant.observation().committed_offsets
    assert committed[22:].tolist() == ends[22:].tolist()
    plant.advance(15)
    assert plant.observation().ready_members == 11


def test_pods_that_start_apart_cost_several_rebalances(calm_world: Worlds, load: Loads) -> None:
    """Ten new pods at one instant cause one rebalance; spread over a minute they cause about seven."""
    counts = {}
    for spread in (0.0, 60.0):
        world = calm_world(heartbeat_drift=10.0, start_up_spread_seconds=spread, partitions=40)
        runs = [commanded(world, load(*[200.0] * 4), (60, 20), replicas=10, seed=seed) for seed in range(40)]
        counts[spread] = float(np.mean([totals(run).rebalances for run in runs]))
    assert counts[0.0] == 1.0
    # A join merges with the last one if it comes in the join phase of about 3 s: 1 + 9/(1 + 10 x 3/60) = 7.
    assert counts[60.0] == pytest.approx(7.0, rel=0.15)


def test_members_that_leave_gracefully_cause_no_duplicates(load: Loads) -> None:
    """Under eager, commits come before every change of owner, so that no message is processed twice, up or down."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=150)
    day = totals(commanded(world, load(*[1_000.0] * 30), *[(60 * t, 8 + t % 9) for t in range(1, 29)], replicas=12))
    assert day.rebalances > 20
    assert day.duplicates == 0


def test_a_cooperative_scale_out_causes_some_duplicates(calm_world: Worlds, load: Loads) -> None:
    """Messages of a moved partition that are consumed between rejoin and sync, 2 s here, are consumed twice."""
    world = calm_world(protocol="cooperative", sync_seconds=2.0)
    trace = load(*[240.0] * 3)
    days = [totals(commanded(world, trace, (60, 5), replicas=4, seed=seed)) for seed in range(40)]
    # Four partitions of 10 messages/s for 2 s are 80 messages a move; no member commits in between.
    assert float(np.mean([day.duplicates for day in days])) == pytest.approx(80.0, rel=0.05)
    down = [totals(commanded(world, trace, (61, 3), replicas=4, seed=seed)) for seed in range(5)]
    assert sum(day.duplicates for day in down) == 0


def test_pods_are_charged_from_the_command_to_the_exit(calm_world: Worlds, load: Loads) -> None:
    """A pod is charged from the second of the command, while it starts, and until it has closed; not after."""
    trace = load(*[100.0] * 10)
    assert totals(commanded(calm_world(), trace, replicas=4)).pod_seconds == pytest.approx(4 * 600)
    up = totals(commanded(calm_world(), trace, (60, 6), replicas=4))
    assert up.pod_seconds == pytest.approx(4 * 600 + 2 * 540)
    changed_mind = totals(commanded(calm_world(), trace, (60, 6), (75, 4), replicas=4))
    assert changed_mind.pod_seconds == pytest.approx(4 * 600 + 2 * 15)
    assert changed_mind.rebalances == 0
    at_once = totals(commanded(calm_world(), trace, (60, 3), replicas=4))
    assert at_once.pod_seconds == pytest.approx(3 * 600 + 60)
    closing = [
        totals(commanded(calm_world(shutdown_seconds=20.0), trace, (60, 3), replicas=4, seed=seed)).pod_seconds
        for seed in range(40)
    ]
    # Closing takes 0 to 20 s, 10 on average.
    assert all(1_860 <= seconds <= 1_880 for seconds in closing)
    assert float(np.mean(closing)) == pytest.approx(1_870, abs=3)


def test_a_command_of_the_present_count_is_no_move(calm_world: Worlds, load: Loads) -> None:
    """Only a change counts as a move, of however many replicas."""
    day = totals(commanded(calm_world(), load(*[100.0] * 10), (60, 4), (120, 9), (300, 9), (400, 4), replicas=4))
    assert day.moves == 2


@pytest.mark.parametrize("replicas", [8, 9, 11])
def test_useful_counts(calm_world: Worlds, load: Loads, replicas: int) -> None:
    """24 partitions on 9 to 11 members are 3 on the busiest: no more than 8 carry, and the busiest falls behind."""
    carried = commanded(calm_world(), load(*[760.0] * 20), replicas=replicas)
    assert carried.backlog_messages < 400
    # At 840 messages/s a partition gets 35; three of them are 5 more than a member can do, for 1,200 s. Members with
    # three are 24 - 2 x replicas: all of 8, six of 9, two of 11.
    beyond = commanded(calm_world(), load(*[840.0] * 20), replicas=replicas)
    assert beyond.backlog_messages == pytest.approx((24 - 2 * replicas) * 5 * 1_200, rel=0.15)


def test_twelve_carry_what_nine_cannot(calm_world: Worlds, load: Loads) -> None:
    """Twelve is the next useful replica count, with two partitions each."""
    assert commanded(calm_world(), load(*[1_100.0] * 20), replicas=12).backlog_messages < 400


def test_replicas_beyond_the_partitions_sit_idle(calm_world: Worlds, load: Loads) -> None:
    """30 replicas on 24 partitions consume no more than 24 do."""
    trace = load(*[3_000.0] * 10)
    many = totals(commanded(calm_world(max_replicas=30), trace, replicas=30))
    assert many.served == totals(commanded(calm_world(), trace, replicas=24)).served


def test_constant_overload_gives_the_waits_of_arithmetic(calm_world: Worlds, load: Loads) -> None:
    """200 messages/s come, 100 are served in order: a message served at second t came at, and has waited, t/2."""
    world = calm_world(partitions=4)
    plant = commanded(world, load(*[200.0] * 10), replicas=1)
    day = totals(plant)
    assert day.served == pytest.approx(60_000, rel=0.001)
    # Waits grow from 0 to 300 s evenly.
    assert plant.wait_quantile(0.5) == pytest.approx(150, rel=0.06)
    assert plant.wait_quantile(0.99) == pytest.approx(297, rel=0.06)
    # Served after 20 s have waited more than 10 s: 58,000. Of the 60,000 that wait, those of the last 10 s have not.
    assert day.late == pytest.approx(58_000 + 58_000, rel=0.01)
    assert plant.late_in_backlog == pytest.approx(58_000, rel=0.01)


def test_a_backlog_of_hours_is_remembered_and_worked_off(calm_world: Worlds, load: Loads) -> None:
    """After three hours at ten times the capacity no message is lost, and the last one has waited the longest."""
    trace = load(*[1_000.0] * 180, *[0.0] * 60)
    plant = commanded(calm_world(), trace, (10_800, 24), replicas=1)
    day = totals(plant)
    # 10.8 million came, 100 messages/s were served; then 2,400 messages/s for an hour less start-up.
    assert day.served == pytest.approx(10_800 * 100 + (3_600 - 31) * 2_400, rel=0.01)
    assert day.arrivals == day.served + plant.backlog_messages
    assert plant.wait_quantile(1.0) == pytest.approx(10_800, rel=0.1)


def test_without_noise_no_message_waits(calm_world: Worlds, load: Loads) -> None:
    """With enough replicas messages are consumed within the second, and none is late."""
    plant = commanded(calm_world(), load(*[600.0] * 10), replicas=12)
    assert plant.wait_quantile(0.999) <= 1.0
    assert totals(plant).late == 0


def test_capacity_varies_between_pods_and_over_time(calm_world: Worlds, load: Loads) -> None:
    """Pods of an overloaded group differ by the spread in the settings; without a spread they are alike."""
    trace = load(*[6_000.0] * 30)

    def served(**spreads: float) -> float:
        world = calm_world(partitions=24, **spreads)
        per_pod = commanded(world, trace, replicas=24).observation().committed_offsets / 1_800
        return float(np.std(np.log(per_pod)))

    assert served() < 0.003
    assert served(pod_speed_spread=0.1) == pytest.approx(0.1, rel=0.4)
    # Half an hour holds about ten independent minutes and a half.
    assert 0.01 < served(minute_speed_spread=0.2) < 0.12


def test_commanded_counts_are_kept_within_the_bounds(calm_world: Worlds, load: Loads) -> None:
    """The ceiling is the partition count or the world's maximum; no count is below one replica."""
    trace = load(*[100.0] * 10)
    assert commanded(calm_world(), trace, (60, 1_000), replicas=4).observation().ready_members == 24
    assert commanded(calm_world(max_replicas=7), trace, (60, 1_000), replicas=4).observation().ready_members == 7
    assert commanded(calm_world(), trace, (60, 0), replicas=4).observation().ready_members == 1


def test_a_rebalance_can_be_seen(calm_world: Worlds, load: Loads) -> None:
    """The join phase, the sync and the stable state have Kafka's names; members and requested replicas differ."""
    plant = Plant(world=calm_world(sync_seconds=2.0), trace=load(*[100.0] * 10), seed=1, replicas=12)
    plant.advance(60)
    plant.scale(13)
    seen = {}
    for second in (70, 92, 94, 96):
        plant.advance(second - plant.time_seconds)
        seen[second] = plant.observation()
    states = [seen[second].group_state for second in seen]
    assert states == ["STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING", "STABLE"]
    assert (seen[70].replicas, seen[70].ready_members, seen[92].ready_members) == (13, 12, 13)


def test_commits_come_once_an_interval(calm_world: Worlds, load: Loads) -> None:
    """Consumed messages count as lag until they are committed: half an interval of the rate on average."""
    plant = Plant(world=calm_world(partitions=12), trace=load(*[600.0] * 30), seed=1, replicas=12)
    lags = []
    while plant.remaining_seconds > 0:
        plant.advance(1)
        lags.append(int(plant.observation().lag_messages.sum()))
    # Members commit at the end of their own second of the five: 0, 1, 2, 3 or 4 s ago, so 2 s of 600 messages/s.
    assert float(np.mean(lags[60:])) == pytest.approx(2 * 600, rel=0.05)


def test_each_day_has_its_own_totals(calm_world: Worlds, load: Loads) -> None:
    """Days are counted separately, and messages that still wait at the end are late on the last day."""
    trace = load(*[100.0] * 24, *[200.0] * 24, *[3_000.0], step_seconds=3_600)
    plant = commanded(calm_world(), trace, (90_000, 13), replicas=12)
    one, two, rest = plant.day_totals()
    assert one.arrivals == pytest.approx(8.64e6, rel=0.01)
    assert two.arrivals == pytest.approx(2 * 8.64e6, rel=0.01)
    assert (one.moves, two.moves, rest.moves) == (0, 1, 0)
    assert one.pod_seconds == pytest.approx(12 * 86_400)
    assert (one.late, two.late) == (0, 0)
    assert rest.late > plant.late_in_backlog > 0
