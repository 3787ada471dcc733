"""GroupProfile: how one consumer group behaves when its size changes."""

from dataclasses import dataclass
from typing import Literal

from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds

GroupProtocol = Literal["eager", "cooperative"]
CapacitySource = Literal["configured", "saturated_windows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The most one replica consumes, as a band: planning uses p20, so that a lucky window does not remove a pod."""

    p20: MessagesPerSecond
    p50: MessagesPerSecond
    p90: MessagesPerSecond
    source: CapacitySource
    age_seconds: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProfile:
    """What the planner has to know of a group, configured or measured.

    `capacity` is None while unknown; then nothing may be advised. Defaults are Kafka's own (heartbeat 3 s, session
    time-out 45 s, auto-commit 5 s) or, for `sync_seconds` and `poll_batch_seconds`, the priors of short batches.
    """

    cluster: str
    group: str
    partitions: Partitions
    capacity: Capacity | None
    protocol: GroupProtocol = "eager"
    min_replicas: Replicas = Replicas(1)
    max_replicas: Replicas | None = None  # None: the partition count; replicas beyond it sit idle
    start_up_seconds: Seconds = Seconds(30.0)  # command to first commit of a new replica
    heartbeat_interval_seconds: Seconds = Seconds(3.0)
    session_timeout_seconds: Seconds = Seconds(45.0)
    poll_batch_seconds: Seconds = Seconds(0.1)
    sync_seconds: Seconds = Seconds(0.3)
    commit_interval_seconds: Seconds = Seconds(5.0)
    termination_grace_seconds: Seconds = Seconds(30.0)
    processing_p99_seconds: Seconds = Seconds(1.0)

    @property
    def replica_ceiling(self) -> int:
        """The most replicas that can hold a partition each, within the configured bound."""
        return min(self.partitions, self.max_replicas if self.max_replicas is not None else self.partitions)
