"""Worlds: values that cannot be simulated are refused in one sentence, and useful replica counts are arithmetic."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.world import PoisonMessage, RollingRestart, World, WorldError

Worlds = Callable[..., World]

REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "no partitions": ({"partitions": 0}, "partitions is 0; it must be at least 1"),
    "no replicas": ({"min_replicas": 0}, "min_replicas is 0; it must be at least 1"),
    "bounds that cross": ({"min_replicas": 9, "max_replicas": 8}, "max_replicas is 8; it must be at least 9"),
    "more replicas than partitions at least": ({"min_replicas": 30}, "max_replicas is 24; it must be at least 30"),
    "no capacity": ({"capacity_messages_per_second_per_replica": 0.0}, "is 0.0; it must be above 0"),
    "unknown capacity": ({"capacity_messages_per_second_per_replica": float("nan")}, "is nan; it must be above 0"),
    "ready before the command": (
        {"start_up_seconds": 4.0, "start_up_spread_seconds": 10.0},
        "start_up_seconds is 4; it must be at least 5",
    ),
    "no heartbeat": ({"heartbeat_interval_seconds": 0.0}, "heartbeat_interval_seconds is 0; it must be at least 0.1"),
    "negative noise": ({"partition_skew": -0.1}, "partition_skew is -0.1; it must be at least 0"),
    "negative time": ({"sync_seconds": -1.0}, "sync_seconds is -1; it must be at least 0"),
    "no session": ({"session_timeout_seconds": 0.0}, "session_timeout_seconds is 0; it must be at least 1"),
    "more than all": ({"new_node_share": 1.5}, "new_node_share is 1.5; it must be from 0 to 1"),
    "unknown share": ({"slow_pod_share": float("nan")}, "slow_pod_share is nan; it must be from 0 to 1"),
    "a sink that takes nothing": (
        {"sink_messages_per_second": 0.0},
        "sink_messages_per_second is 0.0; it must be above 0",
    ),
    "an unknown protocol": (
        {"protocol": "lazy"},
        "protocol is 'lazy'; it must be one of eager, cooperative, kip848",
    ),
    "an unknown client": ({"client": "sarama"}, "client is 'sarama'; it must be one of java, librdkafka"),
    "an unknown commit mode": ({"commit_mode": "never"}, "commit_mode is 'never'; it must be one of interval, batch"),
    "Streams under another protocol": (
        {"restore_seconds": 60.0},
        "protocol is 'eager'; with restore_seconds above 0 it must be cooperative",
    ),
    "an incident before the start": (
        {"incidents": (RollingRestart(at_second=-1, seconds_per_pod=5),)},
        "at_second is -1; it must be at least 0",
    ),
    "a restart of all pods at once": (
        {"incidents": (RollingRestart(at_second=0, seconds_per_pod=0),)},
        "seconds_per_pod is 0; it must be at least 1",
    ),
    "poison that never was": (
        {"incidents": (PoisonMessage(at_second=0, seconds=0, partition=0),)},
        "seconds is 0; it must be at least 1",
    ),
    "poison in a partition that is not there": (
        {"incidents": (PoisonMessage(at_second=0, seconds=60, partition=24),)},
        "partition is 24; it must be from 0 to 23",
    ),
}


@pytest.mark.parametrize(("changes", "complaint"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_cannot_be_simulated_is_refused(
    calm_world: Worlds, changes: dict[str, object], complaint: str
) -> None:
    """The error names the quantity, its value and its limit."""
    with pytest.raises(WorldError) as caught:
        calm_world(**changes)
    assert str(caught.value).endswith(complaint)


@given(partitions=st.integers(1, 300), replicas=st.integers(1, 300), rate=st.floats(0, 50_000))
def test_the_useful_counts_rise_and_the_fewest_that_carry_do(partitions: int, replicas: int, rate: float) -> None:
    """One more replica never carries less, all carry the most, and one below the fewest for a rate is too few."""
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=100)
    assert world.carried(replicas) <= world.carried(replicas + 1) <= 100 * partitions
    fewest = world.smallest_carrying(rate)
    assert 1 <= fewest <= partitions
    assert fewest == partitions or world.carried(fewest) >= rate
    assert fewest == 1 or world.carried(fewest - 1) < rate


@given(partitions=st.integers(1, 300), skew=st.floats(0, 2))
def test_shares_add_up(partitions: int, skew: float) -> None:
    """Every partition has a share, the shares add up to one, and they are the same each time."""
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=100, partition_skew=skew)
    shares = world.partition_weights()
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    assert shares.tolist() == world.partition_weights().tolist()


def test_a_hot_partition_gets_its_share() -> None:
    """The heaviest of ten partitions gets 40 % of all; the others share the rest in their usual proportions."""
    plain = World(partitions=10, capacity_messages_per_second_per_replica=100, partition_skew=0.5)
    hot = replace(plain, hot_partition_share=0.4)
    usual, shares = plain.partition_weights(), hot.partition_weights()
    assert shares.max() == pytest.approx(0.4)
    assert shares.sum() == pytest.approx(1.0)
    assert shares.argmax() == usual.argmax()
    others = np.delete(np.arange(10), usual.argmax())
    assert shares[others] / shares[others].sum() == pytest.approx(usual[others] / usual[others].sum())


def test_contention_and_sink_limit_the_carried_rate() -> None:
    """At a contention of 0.1, eleven members do half of their capacity each; a sink of 300/s is a limit of 300/s."""
    world = World(partitions=22, capacity_messages_per_second_per_replica=100, contention=0.1)
    assert world.carried(11) == pytest.approx(550.0)
    assert replace(world, sink_messages_per_second=300.0).carried(11) == 300.0
