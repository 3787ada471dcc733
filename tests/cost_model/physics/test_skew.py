"""The capacity of replicas with unequal partitions, and the partition that limits it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.capacity import group_capacity, useful_replicas
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count, hot_partition, useful_counts
from forecasting.units import MessagesPerSecond, Partitions, Replicas

CAPACITY = MessagesPerSecond(100.0)
EVEN = GroupProfile(cluster="east", group="orders", partitions=Partitions(40), capacity=None)
# One partition with 30 % of the load.
HOT = replace(EVEN, partition_weights=(*(1.0,) * 39, 39.0 * 3.0 / 7.0))
WEIGHTS = st.lists(st.floats(0.01, 10.0), min_size=40, max_size=40).map(tuple)


@given(st.integers(0, 60), st.floats(0.1, 1e6))
def test_even_weights_give_the_useful_counts(count: int, weight: float) -> None:
    """With weights in any unit, an even load is carried as if none were given."""
    even = replace(EVEN, partition_weights=(weight,) * 40)
    carried = group_capacity(Replicas(count), partitions=Partitions(40), capacity=CAPACITY)
    for profile in (EVEN, even, replace(even, protocol="cooperative")):
        assert carried_by_count(profile, [count], capacity=CAPACITY).tolist() == pytest.approx([carried])
    assert useful_counts(even, minimum=Replicas(1)) == useful_replicas(Partitions(40))


def test_a_hot_partition_caps_the_group() -> None:
    """30 % of the load on one replica: 333 messages/s of capacity 100 each, however many replicas there are."""
    carried = carried_by_count(HOT, (4, 8, 14, 40, 50), capacity=CAPACITY)
    assert carried.tolist() == pytest.approx([216.7, 269.0, 314.5, 333.3, 333.3], abs=0.1)
    assert useful_counts(HOT, minimum=Replicas(1))[-1] == 21  # from 21 on, the last replica holds one partition
    found = hot_partition(HOT)
    assert found is not None
    assert (found.partition, found.max_useful_replicas) == (39, 21)
    assert found.share == pytest.approx(0.3)
    assert found.sentence.startswith("partition 39 carries 30% of the load")


def test_there_is_no_hot_partition_where_replicas_help_up_to_the_ceiling() -> None:
    """Even loads, unknown ones, twice the mean on one partition, and a ceiling under what the hot one allows."""
    twice = replace(EVEN, partition_weights=(2.0, *(1.0,) * 39))
    for profile in (EVEN, replace(EVEN, partition_weights=(1.0,) * 40), twice):
        assert hot_partition(profile) is None
    assert hot_partition(replace(HOT, max_replicas=Replicas(10))) is None


def test_neighbours_share_a_replica_under_range_and_not_under_round_robin() -> None:
    """Two hot neighbours of 25 % each: range gives both to one of 4 replicas, round robin to two."""
    pair = replace(EVEN, partition_weights=(*(25.0,) * 2, *(50.0 / 38.0,) * 38))
    ranges = carried_by_count(pair, [4], capacity=CAPACITY)
    turns = carried_by_count(replace(pair, assignor="roundrobin"), [4], capacity=CAPACITY)
    assert ranges.tolist() == pytest.approx([100.0 / (0.5 + 8.0 * 0.5 / 38.0)])
    assert turns.tolist() == pytest.approx([100.0 / (0.25 + 9.0 * 0.5 / 38.0)])


@given(WEIGHTS, st.sampled_from(["eager", "cooperative"]), st.integers(0, 45), st.integers(0, 45))
def test_useful_counts_climb_and_stay_in_bounds(
    weights: tuple[float, ...], protocol: str, least: int, room: int
) -> None:
    """Each useful count carries more than the one below; none is left out that would carry 5 % more than them all."""
    profile = replace(EVEN, partition_weights=weights, protocol="eager" if protocol == "eager" else "cooperative")
    useful = useful_counts(profile, minimum=Replicas(least), maximum=Replicas(least + room))
    legal = range(min(max(least, 1), 40), min(max(least + room, 1), 40) + 1)
    assert set(useful) <= set(legal)
    carried = carried_by_count(profile, useful, capacity=CAPACITY)
    assert (np.diff(carried) > 0.0).all()
    assert carried_by_count(profile, legal, capacity=CAPACITY).max() <= 1.05 * carried.max() + 1e-9


@given(WEIGHTS, st.integers(1, 40))
def test_a_skewed_group_carries_less_than_an_even_one(weights: tuple[float, ...], count: int) -> None:
    """The busiest replica holds at least its even share, and never less than the hottest partition."""
    profile = replace(EVEN, partition_weights=weights)
    (carried,) = carried_by_count(profile, [count], capacity=CAPACITY).tolist()
    assert carried <= count * CAPACITY * (1.0 + 1e-9)
    assert carried <= CAPACITY * sum(weights) / max(weights) * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("weights", "named"),
    [((1.0,) * 39, "40 partitions or tasks and 39 weights"), ((0.0,) * 40, "not all 0"), ((-1.0,) * 40, "negative")],
)
def test_weights_that_cannot_be_are_refused(weights: tuple[float, ...], named: str) -> None:
    """One weight per partition, none negative, not all 0."""
    with pytest.raises(ValueError, match=named):
        replace(EVEN, partition_weights=weights)
