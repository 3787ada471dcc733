"""Worlds: what cannot be simulated is refused in one sentence, and the stairs are plain arithmetic."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.world import World, WorldError

Worlds = Callable[..., World]

REFUSED: dict[str, tuple[dict[str, float], str]] = {
    "no partitions": ({"partitions": 0}, "partitions is 0; it must be at least 1"),
    "no replicas": ({"min_replicas": 0}, "min_replicas is 0; it must be at least 1"),
    "bounds that cross": ({"min_replicas": 9, "max_replicas": 8}, "max_replicas is 8; it must be at least 9"),
    "more replicas than partitions at least": ({"min_replicas": 30}, "max_replicas is 24; it must be at least 30"),
    "no capacity": ({"capacity_messages_per_second_per_replica": 0.0}, "is 0.0; it must be above 0"),
    "unknown capacity": ({"capacity_messages_per_second_per_replica": float("nan")}, "is nan; it must be above 0"),
    "ready before asked for": (
        {"start_up_seconds": 4.0, "start_up_spread_seconds": 10.0},
        "start_up_seconds is 4; it must be at least 5",
    ),
    "a batch that outlasts the grace": (
        {"batch_seconds": 31.0},
        "termination_grace_seconds is 30; it must be at least 31",
    ),
    "no heartbeat": ({"heartbeat_interval_seconds": 0.0}, "heartbeat_interval_seconds is 0; it must be at least 0.1"),
    "negative noise": ({"partition_skew": -0.1}, "partition_skew is -0.1; it must be at least 0"),
    "negative time": ({"sync_seconds": -1.0}, "sync_seconds is -1; it must be at least 0"),
}


@pytest.mark.parametrize(("changes", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_simulated_is_refused(calm_world: Worlds, changes: dict[str, float], complaint: str) -> None:
    """Which quantity, its value, and its limit."""
    with pytest.raises(WorldError) as caught:
        calm_world(**changes)
    assert str(caught.value).endswith(complaint)


@given(partitions=st.integers(1, 300), replicas=st.integers(1, 300), rate=st.floats(0, 50_000))
def test_the_stairs_rise_and_the_fewest_that_carry_do(partitions: int, replicas: int, rate: float) -> None:
    """One more never carries less, all carry all, and one fewer than the fewest that carry a rate do not carry it."""
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=100)
    assert world.carried(replicas) <= world.carried(replicas + 1) <= 100 * partitions
    fewest = world.smallest_carrying(rate)
    assert 1 <= fewest <= partitions
    assert fewest == partitions or world.carried(fewest) >= rate
    assert fewest == 1 or world.carried(fewest - 1) < rate


@given(partitions=st.integers(1, 300), skew=st.floats(0, 2))
def test_shares_add_up(partitions: int, skew: float) -> None:
    """Every partition has a share, all shares are one, and they are the same each time."""
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=100, partition_skew=skew)
    shares = world.partition_weights()
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    assert shares.tolist() == world.partition_weights().tolist()
