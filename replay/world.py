"""World: the simulated cluster and group that every policy is judged in."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from forecasting.units import FloatArray

WorldProtocol = Literal["eager", "cooperative", "kip848"]
WorldClient = Literal["java", "librdkafka"]
CommitMode = Literal["interval", "batch"]


class WorldError(ValueError):
    """A world that cannot be simulated; the sentence has the quantity, its value and its limit."""


# The least value of each quantity.
LEAST: dict[str, float] = {
    "partitions": 1,
    "min_replicas": 1,
    "commit_interval_seconds": 1,
    "heartbeat_interval_seconds": 0.1,
    "consumer_heartbeat_seconds": 0.1,
    "session_timeout_seconds": 1,
    "burst_seconds": 1,
    "warmup_slots": 1,
    "probing_seconds": 1,
    **dict.fromkeys(
        (
            *("start_up_spread_seconds", "sync_seconds", "batch_seconds", "shutdown_seconds", "heartbeat_drift"),
            *("termination_grace_seconds", "pod_speed_spread", "minute_speed_spread", "partition_skew"),
            *("max_lag_seconds", "start_up_log_spread", "new_node_seconds", "contention", "burst_per_day"),
            *("burst_gain", "restore_seconds"),
        ),
        0.0,
    ),
}
ABOVE_ZERO = ("capacity_messages_per_second_per_replica", "slow_pod_speed", "sink_messages_per_second")
SHARES = ("new_node_share", "slow_pod_share", "missing_sample_share", "hot_partition_share")
WORDS = {
    "protocol": get_args(WorldProtocol),
    "client": get_args(WorldClient),
    "commit_mode": get_args(CommitMode),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """From `at_second` on every pod is replaced, the oldest first, one each `seconds_per_pod`."""

    at_second: int
    seconds_per_pod: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonMessage:
    """One partition makes no progress for some seconds."""

    at_second: int
    seconds: int
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsReset:
    """Back (positive): as many messages as came in the last `seconds` run again. Forward: the oldest ones are skipped.

    -300 skips the messages that arrived in the 300 seconds from the oldest waiting one on.
    """

    at_second: int
    seconds: int


Incident = RollingRestart | PoisonMessage | OffsetsReset


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The behaviour of the group, in figures that a broker and a cluster would show.

    Times are those of Kafka's defaults and short batches. Pods become ready uniformly within
    `start_up_seconds` +/- half of `start_up_spread_seconds`. Every rebalance puts the members' heartbeats in step; they
    drift apart by `heartbeat_drift * sqrt(seconds)` (measured on Kafka 4.3: 0.0045, so 0.2 s after 35 min; 10 makes
    them independent at once). `pod_speed_spread` and `minute_speed_spread` are standard deviations of ln(capacity)
    between pods and over time; `partition_skew` is the one of ln(partition weight). `max_lag_seconds`: later is late.

    Under `static_membership` a pod that closes stays a member until its session ends, as does one that is killed
    because it cannot close within the grace. `restore_seconds` above 0 makes it a stateful Streams application: moving
    partitions continue at their old owner until they are restored at the new one, `warmup_slots` at a time; the group
    rebalances again each `probing_seconds`.
    N members do 1 / (1 + `contention` x (N - 1)) of their capacity each, `sink_messages_per_second` at most together.
    Bursts multiply the produce rate unannounced; `missing_sample_share` of samples lack a quarter of the partitions.
    """

    partitions: int
    capacity_messages_per_second_per_replica: float
    protocol: WorldProtocol = "eager"
    min_replicas: int = 1
    max_replicas: int | None = None  # None: the partition count; replicas beyond it sit idle
    to_zero: bool = False  # whether there may be no replica at all while nothing comes
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
    client: WorldClient = "java"
    consumer_heartbeat_seconds: float = 5.0  # the heartbeat interval under kip848, set on the broker
    session_timeout_seconds: float = 45.0
    static_membership: bool = False
    commit_mode: CommitMode = "interval"
    start_up_log_spread: float = 0.0  # standard deviation of ln(start-up time)
    new_node_share: float = 0.0
    new_node_seconds: float = 240.0
    slow_pod_share: float = 0.0
    slow_pod_speed: float = 0.6
    contention: float = 0.0
    sink_messages_per_second: float | None = None
    hot_partition_share: float | None = None
    burst_per_day: float = 0.0
    burst_gain: float = 2.0
    burst_seconds: int = 300
    missing_sample_share: float = 0.0
    restore_seconds: float = 0.0
    warmup_slots: int = 2
    probing_seconds: float = 600.0
    incidents: tuple[Incident, ...] = ()

    def __post_init__(self) -> None:
        """Reject a world that cannot be simulated.

        Errors: WorldError, for a size or a rate that is not positive, bounds that cross, a negative time, a share
        outside of 0 to 1, an unknown word, and settings that contradict each other.
        """
        for name, least in LEAST.items():
            self._require(name, getattr(self, name), at_least=least)
        self._require("max_replicas", self.replica_ceiling, at_least=self.min_replicas)
        self._require("start_up_seconds", self.start_up_seconds, at_least=self.start_up_spread_seconds / 2)
        for name in ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and not value > 0:
                message = f"{name} is {value}; it must be above 0"
                raise WorldError(message)
        for name in SHARES:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                message = f"{name} is {value:g}; it must be from 0 to 1"
                raise WorldError(message)
        for name, words in WORDS.items():
            if getattr(self, name) not in words:
                message = f"{name} is '{getattr(self, name)}'; it must be one of {', '.join(words)}"
                raise WorldError(message)
        if self.restore_seconds > 0 and self.protocol != "cooperative":
            message = f"protocol is '{self.protocol}'; with restore_seconds above 0 it must be cooperative"
            raise WorldError(message)
        for incident in self.incidents:
            self._check(incident)

    def _check(self, incident: Incident) -> None:
        self._require("at_second", incident.at_second, at_least=0)
        if isinstance(incident, RollingRestart):
            self._require("seconds_per_pod", incident.seconds_per_pod, at_least=1)
        elif isinstance(incident, PoisonMessage):
            self._require("seconds", incident.seconds, at_least=1)
            if not 0 <= incident.partition < self.partitions:
                message = f"partition is {incident.partition}; it must be from 0 to {self.partitions - 1}"
                raise WorldError(message)

    @staticmethod
    def _require(name: str, value: float, *, at_least: float) -> None:
        if not value >= at_least:
            message = f"{name} is {value:g}; it must be at least {at_least:g}"
            raise WorldError(message)

    @property
    def replica_ceiling(self) -> int:
        """The most replicas that may be requested."""
        return self.partitions if self.max_replicas is None else self.max_replicas

    def partition_weights(self) -> FloatArray:
        """Each partition's share of the produce rate; they add up to 1, and are the same in every run.

        The weights are the log-normal's own quantiles, dealt in a fixed shuffled order; the heaviest is the hot one.

        >>> World(partitions=4, capacity_messages_per_second_per_replica=100, partition_skew=0).partition_weights()
        array([0.25, 0.25, 0.25, 0.25])
        """
        levels = (np.arange(self.partitions) + 0.5) / self.partitions
        weights = np.exp(self.partition_skew * ndtri(levels))
        dealt = np.random.default_rng(self.partitions).permutation(weights)
        shares: FloatArray = dealt / dealt.sum()
        if self.hot_partition_share is not None and self.partitions > 1:
            hot = int(shares.argmax())
            shares *= (1.0 - self.hot_partition_share) / (1.0 - shares[hot])
            shares[hot] = self.hot_partition_share
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
        each = self.capacity_messages_per_second_per_replica / (1.0 + self.contention * (replicas - 1))
        together = each * self.partitions / busiest
        return together if self.sink_messages_per_second is None else min(together, self.sink_messages_per_second)

    def smallest_carrying(self, messages_per_second: float) -> int:
        """The fewest replicas within bounds that keep up with a rate, or the ceiling if none do.

        >>> world = World(partitions=24, capacity_messages_per_second_per_replica=100)
        >>> world.smallest_carrying(790.0), world.smallest_carrying(1190.0), world.smallest_carrying(1e9)
        (8, 12, 24)
        """
        counts = range(self.min_replicas, self.replica_ceiling + 1)
        return next((count for count in counts if self.carried(count) >= messages_per_second), self.replica_ceiling)
