"""Partitions with unequal loads: the load that so many replicas carry, and a partition that limits the group."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cost_model.physics.assignors import owners
from cost_model.physics.capacity import group_capacity, useful_replicas
from cost_model.physics.profile import Assignor, GroupProfile
from forecasting.units import FloatArray, Fraction, MessagesPerSecond, Replicas, read_only

# A level that carries less than 5 % more than the one below is worth neither a search nor a replica.
LEAST_GAIN_FRACTION = 0.05


def carried_by_count(profile: GroupProfile, counts: Sequence[int], *, capacity: MessagesPerSecond) -> FloatArray:
    """Messages/s that so many replicas carry, each with this `capacity`, before the busiest of them falls behind.

    Formula: capacity / (largest share of the load that one replica holds), which is C * P / ceil(P / N) where all
    partitions carry the same.
    Shapes: one value per count, 0 for 0 replicas.

    >>> from forecasting.units import Partitions
    >>> weights = (3.0, 1.0, 1.0, 1.0)
    >>> hot = GroupProfile(cluster="c", group="g", partitions=Partitions(4), capacity=None, partition_weights=weights)
    >>> carried_by_count(hot, (1, 2, 3, 4), capacity=MessagesPerSecond(100.0)).tolist()
    [100.0, 150.0, 150.0, 200.0]
    """
    if profile.partition_weights is None:
        carried = [group_capacity(Replicas(n), partitions=profile.work_units, capacity=capacity) for n in counts]
        return np.array(carried, dtype=np.float64)
    shares = _busiest_shares(profile.partition_weights, profile.deals_by)
    rates = [capacity / float(shares[min(n, profile.work_units) - 1]) if n > 0 else 0.0 for n in counts]
    return np.array(rates, dtype=np.float64)


class LoadClasses(NamedTuple):
    """The busiest replicas and the others, by count: their shares of the load, and their capacities.

    `busiest` and `others` are in replicas' worth of capacity.
    """

    busiest_share: FloatArray
    busiest: FloatArray
    others: FloatArray


def load_classes(profile: GroupProfile, counts: Sequence[int]) -> LoadClasses:
    """The busiest among so many replicas; replicas without work belong to neither class.

    Those within 5 % of the busiest one count as busiest. Fourteen replicas on 120 even partitions: eight hold nine
    each, 0.6 of all, and six hold eight.
    Shapes: one value per count, counts from 1 on.

    >>> from forecasting.units import Partitions
    >>> even = GroupProfile(cluster="c", group="g", partitions=Partitions(120), capacity=None)
    >>> [round(float(values[0]), 3) for values in load_classes(even, (14,))]
    [0.6, 8.0, 6.0]
    """
    working = np.minimum(np.array(counts), profile.work_units)
    if profile.partition_weights is None:
        each, longer = np.divmod(int(profile.work_units), working)
        busiest = np.where(longer == 0, working, longer).astype(np.float64)
        share = np.where(longer == 0, 1.0, longer * (each + 1) / profile.work_units)
    else:
        busiest, share = _busiest_replicas(profile.partition_weights, profile.deals_by, tuple(working.tolist()))
    return LoadClasses(busiest_share=share, busiest=busiest, others=working - busiest)


@lru_cache(maxsize=256)
def _busiest_replicas(
    weights: tuple[float, ...], assignor: Assignor, counts: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """The number of replicas within 5 % of the busiest one, and the share of the load that they hold together."""
    load = np.array(weights, dtype=np.float64) / sum(weights)
    deals = [np.bincount(owners(load.size, count, assignor), weights=load) for count in counts]
    near = [deal[deal * (1.0 + LEAST_GAIN_FRACTION) >= deal.max()] for deal in deals]
    busiest = np.array([held.size for held in near], dtype=np.float64)
    return read_only(busiest), read_only(np.array([min(1.0, float(held.sum())) for held in near]))


@lru_cache(maxsize=256)
def _busiest_shares(weights: tuple[float, ...], assignor: Assignor) -> FloatArray:
    """Largest share of the load on one of N members, for N = 1 .. P."""
    load = np.array(weights, dtype=np.float64) / sum(weights)
    deals = (owners(load.size, members, assignor) for members in range(1, load.size + 1))
    return read_only(np.array([np.bincount(deal, weights=load).max() for deal in deals]))


def useful_counts(profile: GroupProfile, *, minimum: Replicas, maximum: Replicas | None = None) -> tuple[int, ...]:
    """The useful replica counts within the bounds: each carries more than every smaller one.

    Even partitions: the useful counts of `useful_replicas`. Otherwise the counts at which the group carries more, in
    steps of at least 5 %.
    Errors: ValueError on a maximum under the minimum.
    """
    even = useful_replicas(profile.work_units, minimum=minimum, maximum=maximum)
    if profile.partition_weights is None:
        return even
    most = profile.work_units if maximum is None else min(max(maximum, 1), profile.work_units)
    counts = range(even[0], most + 1)
    carried = carried_by_count(profile, counts, capacity=MessagesPerSecond(1.0))
    useful = [counts[0]]
    best = float(carried[0])
    for count, rate in zip(counts[1:], carried[1:].tolist(), strict=True):
        if rate >= (1.0 + LEAST_GAIN_FRACTION) * best:
            useful.append(count)
            best = rate
    return tuple(useful)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotPartition:
    """A finding: one partition carries so much that replicas beyond `max_useful_replicas` cannot help."""

    partition: int
    share: Fraction
    max_useful_replicas: Replicas

    @property
    def sentence(self) -> str:
        """The problem, and its remedy."""
        return (
            f"partition {self.partition} carries {self.share:.0%} of the load, and one replica consumes all of it: "
            f"more than {self.max_useful_replicas} replicas carry no more; spread its keys"
        )


def hot_partition(profile: GroupProfile) -> HotPartition | None:
    """The partition that limits the whole group at less than its ceiling, or None.

    >>> from forecasting.units import Partitions
    >>> weights = (90.0, *(2.0,) * 7)
    >>> hot = GroupProfile(cluster="c", group="g", partitions=Partitions(8), capacity=None, partition_weights=weights)
    >>> hot_partition(hot)
    HotPartition(partition=0, share=0.87, max_useful_replicas=3)
    """
    weights = profile.partition_weights
    if weights is None:
        return None
    share = max(weights) / sum(weights)
    reached = _busiest_shares(weights, profile.deals_by)
    enough = 1 + int(np.flatnonzero(reached <= share * (1.0 + LEAST_GAIN_FRACTION))[0])
    if enough >= profile.replica_ceiling:
        return None
    return HotPartition(
        partition=weights.index(max(weights)), share=Fraction(share), max_useful_replicas=Replicas(enough)
    )
