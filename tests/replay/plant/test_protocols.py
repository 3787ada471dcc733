"""The protocols of the Java client with long batches, compared with measurements on a real broker."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plant import Plant
from replay.plant.kip848 import next_beat
from replay.trace import Trace
from replay.world import World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
BATCHES = (1.0, 2.0, 5.0)
# Seconds that a moved partition stood still (Kafka 4.3, Java client 4.3, members behind and so on full batches).
MEASURED: dict[tuple[str, int, int], tuple[float, float, float]] = {
    ("cooperative", 10, 20): (2.9, 4.9, 11.9),
    ("cooperative", 20, 10): (9.2, 14.6, 34.6),
    ("kip848", 10, 20): (7.6, 10.5, 23.7),
    ("kip848", 20, 10): (8.8, 16.0, 36.0),
}
# The shortest batches are played in half a second for each protocol, all of them in ten.
CASES = [
    pytest.param(case, batch, marks=() if batch == BATCHES[0] else pytest.mark.slow)
    for case in MEASURED
    for batch in BATCHES
]


def pause_of_a_moved_partition(world: World, trace: Trace, replicas: int, command: int) -> float:
    """The mean seconds over 30 seeds; half of the partitions move from 10 to 20 and back."""
    pauses = []
    for seed in range(30):
        plant = Plant(world=world, trace=trace, seed=seed, replicas=replicas)
        # At different distances from the heartbeat.
        plant.advance(180 + seed % 6)
        plant.scale(command)
        plant.advance(plant.remaining_seconds)
        pauses.append(plant.day_totals()[0].paused_partition_seconds)
    return float(np.mean(pauses)) / (world.partitions / 2)


@pytest.mark.parametrize(("case", "batch"), CASES)
def test_long_batches_stretch_the_pause_as_measured(
    calm_world: Worlds, load: Loads, case: tuple[str, int, int], batch: float
) -> None:
    """With one protocol step per poll, pauses are within 35 % of those measured at batches of 1, 2 and 5 s."""
    protocol, replicas, command = case
    world = calm_world(partitions=40, protocol=protocol, batch_seconds=batch, heartbeat_drift=0.0045, sync_seconds=0.02)
    found = pause_of_a_moved_partition(world, load(*[3_000.0] * 10), replicas, command)
    assert found == pytest.approx(MEASURED[case][BATCHES.index(batch)], rel=0.35)


@pytest.mark.parametrize(("protocol", "limit"), [("cooperative", 8.5), ("kip848", 6.0)])
def test_a_client_with_a_thread_of_its_own_waits_for_no_polls(
    calm_world: Worlds, load: Loads, protocol: str, limit: float
) -> None:
    """Batches of 5 s under librdkafka cost a heartbeat and the batch in hand (up to 3 and 5 s); Java waits 32 s."""
    world = calm_world(partitions=40, protocol=protocol, client="librdkafka", batch_seconds=5.0, sync_seconds=0.02)
    for replicas, command in ((10, 20), (20, 10)):
        assert pause_of_a_moved_partition(world, load(*[3_000.0] * 10), replicas, command) < limit


@given(phase=st.floats(0, 100_000), beats=st.integers(1, 50))
def test_a_member_never_beats_twice_at_once(phase: float, beats: int) -> None:
    """With any rounding of instants the next beat is one interval away; otherwise time would stand still."""
    world = World(partitions=1, capacity_messages_per_second_per_replica=1.0, protocol="kip848")
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    trace = Trace(name="ungraceful", start_at=start_at, step_seconds=60, messages_per_second=np.zeros(2))
    plant = Plant(world=world, trace=trace, seed=1, replicas=1)
    plant._state.pods.beat_phase[0] = phase
    now = phase
    for _ in range(beats):
        following = next_beat(plant._state, plant._physics, 0, now)
        assert following - now == pytest.approx(5.0, abs=1e-5)
        now = following
