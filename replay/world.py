"""World: the simulated cluster and group that every policy is judged in."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm

from forecasting.units import FloatArray

WorldProtocol = Literal["eager", "cooperative"]


class WorldError(ValueError):
    """A world that cannot be simulated: which quantity, its value and its limit in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How the group behaves, in figures that a broker and a cluster would show.

    Times are those of Kafka's defaults and short batches. Pods become ready uniformly within
    `start_up_seconds` +/- half of `start_up_spread_seconds`. Every rebalance puts the members' heartbeats in step; they
    drift apart by `heartbeat_drift * sqrt(seconds)` (measured on Kafka 4.3: 0.0045, so 0.2 s after 35 min; 10 makes
    them independent at once). `pod_speed_spread` and `minute_speed_spread` are standard deviations of ln(capacity)
    between pods and over time; `partition_skew` is the one of ln(partition weight). `max_lag_seconds`: later is late.
    """

    partitions: int
    capacity_messages_per_second_per_replica: float
    protocol: WorldProtocol = "eager"
    min_replicas: int = 1
    max_replicas: int | None = None  # None: the partition count; replicas beyond it sit idle
    start_up_seconds: float = 30.0
    start_up_spread_seconds: float = 10.0
    heartbeat_interval_seconds: float = 3.0
    heartbeat_drift: float = 0.0045
    sync_seconds: float = 0.3
    batch_seconds: float = 0.1
    commit_interval_seconds: int = 5
    shutdown_seconds: float = 1.0  # from SIGTERM to the end of the poll loop, at most; the batch in hand comes on top
    termination_grace_seconds: float = 30.0
    pod_speed_spread: float = 0.03
    minute_speed_spread: float = 0.04
    partition_skew: float = 0.05
    max_lag_seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated.

        Errors: WorldError, for a size or a rate that is not positive, bounds that cross, a negative time, and a batch
        that outlasts the termination grace: this world knows graceful exits only.
        """
        self._require("partitions", self.partitions, at_least=1)
        self._require("min_replicas", self.min_replicas, at_least=1)
        self._require("max_replicas", self.replica_ceiling, at_least=self.min_replicas)
        self._require("commit_interval_seconds", self.commit_interval_seconds, at_least=1)
        self._require("heartbeat_interval_seconds", self.heartbeat_interval_seconds, at_least=0.1)
        if not self.capacity_messages_per_second_per_replica > 0:
            value = self.capacity_messages_per_second_per_replica
            message = f"capacity_messages_per_second_per_replica is {value}; it must be above 0"
            raise WorldError(message)
        self._require("start_up_spread_seconds", self.start_up_spread_seconds, at_least=0.0)
        self._require("start_up_seconds", self.start_up_seconds, at_least=self.start_up_spread_seconds / 2)
        for name in ("sync_seconds", "batch_seconds", "shutdown_seconds", "heartbeat_drift", "pod_speed_spread"):
            self._require(name, getattr(self, name), at_least=0.0)
        for name in ("minute_speed_spread", "partition_skew", "max_lag_seconds"):
            self._require(name, getattr(self, name), at_least=0.0)
        self._require(
            "termination_grace_seconds",
            self.termination_grace_seconds,
            at_least=self.shutdown_seconds + self.batch_seconds,
        )

    @staticmethod
    def _require(name: str, value: float, *, at_least: float) -> None:
        if not value >= at_least:
            message = f"{name} is {value:g}; it must be at least {at_least:g}"
            raise WorldError(message)

    @property
    def replica_ceiling(self) -> int:
        """The most replicas that may be asked for."""
        return self.partitions if self.max_replicas is None else self.max_replicas

    def partition_weights(self) -> FloatArray:
        """Each partition's share of the arrivals; they add up to 1, and are the same in every run.

        The weights are the log-normal's own quantiles, dealt in a fixed shuffled order.

        >>> World(partitions=4, capacity_messages_per_second_per_replica=100, partition_skew=0).partition_weights()
        array([0.25, 0.25, 0.25, 0.25])
        """
        levels = (np.arange(self.partitions) + 0.5) / self.partitions
        weights = np.exp(self.partition_skew * norm.ppf(levels))
        dealt = np.random.default_rng(self.partitions).permutation(weights)
        shares: FloatArray = dealt / dealt.sum()
        return shares

    def carried(self, replicas: int) -> float:
        """Messages per second that `replicas` keep up with while partitions are evenly loaded.

        The replica with the most partitions falls behind first: 24 partitions over 9 replicas are 3 on the busiest,
        so 9 carry no more than 8 do.

        >>> world = World(partitions=24, capacity_messages_per_second_per_replica=100)
        >>> world.carried(8), world.carried(9), world.carried(12), world.carried(30)
        (800.0, 800.0, 1200.0, 2400.0)
        """
        busiest = -(-self.partitions // replicas)
        return self.capacity_messages_per_second_per_replica * self.partitions / busiest

    def smallest_carrying(self, messages_per_second: float) -> int:
        """The fewest replicas within bounds that keep up with a rate, or the ceiling if none do.

        >>> world = World(partitions=24, capacity_messages_per_second_per_replica=100)
        >>> world.smallest_carrying(790.0), world.smallest_carrying(1190.0), world.smallest_carrying(1e9)
        (8, 12, 24)
        """
        counts = range(self.min_replicas, self.replica_ceiling + 1)
        return next((count for count in counts if self.carried(count) >= messages_per_second), self.replica_ceiling)
