"""GroupProfile: how one consumer group behaves when its size changes."""

from dataclasses import dataclass, replace
from typing import Literal

from forecasting.units import Fraction, MessagesPerSecond, Partitions, Replicas, Seconds

GroupProtocol = Literal["eager", "cooperative", "kip848"]
Client = Literal["java", "librdkafka", "kafka-python", "aiokafka", "kafkajs", "sarama", "franz-go", "kafka-go", "other"]
CommitMode = Literal["interval", "batch", "message"]
Assignor = Literal["range", "roundrobin", "sticky"]
FigureSource = Literal["configured", "detected", "measured", "assumed"]
CapacitySource = Literal["configured", "saturated_windows", "busy_time", "unsaturated_windows", "lower_bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The most one replica consumes, as a band.

    Plans are priced in scenarios around p50, as wide as p90. Limits, and the plans that the search proposes, use
    p20, so that a lucky window does not remove a pod.
    """

    p20: MessagesPerSecond
    p50: MessagesPerSecond
    p90: MessagesPerSecond
    source: CapacitySource
    age_seconds: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsProfile:
    """The settings of Kafka Streams: tasks instead of partitions, and state that has to be where its task runs.

    `tasks` is the sum over sub-topologies of the largest source's partitions. `restore_bytes` is the changelog of all
    tasks together; `behind_bytes` is the part of it that a kept copy (a standby, or a volume that outlives its pod)
    still has to read. The rate is per replica; its default is RATE. Other defaults are Kafka's own (no standbys, 2
    warm-ups, a probe every 600 s, commits every 30 s). `configured`, `detected` and `measured` name the fields that the
    owner has set, those that Kafka tells, and those that the application itself measures; others are assumed. Errors:
    ValueError on no task, no warm-up, or no rate.
    """

    stateful: bool
    tasks: int
    exactly_once: bool = False
    max_warmup_replicas: int = 2
    probing_seconds: Seconds = Seconds(600.0)
    standbys: int = 0
    restore_bytes: float = 0.0
    behind_bytes: float = 0.0
    restore_bytes_per_second: float = 1e7
    volume_kept: bool = False
    commit_interval_seconds: Seconds = Seconds(30.0)
    configured: frozenset[str] = frozenset()
    detected: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.max_warmup_replicas < 1:
            message = f"{self.tasks} tasks with {self.max_warmup_replicas} warm-ups: both must be at least 1"
            raise ValueError(message)
        if not self.restore_bytes_per_second > 0.0:
            message = f"restore_bytes_per_second is {self.restore_bytes_per_second:g}: it has to be above 0"
            raise ValueError(message)

    def source_of(self, name: str) -> FigureSource:
        """The source of a figure of this profile, by its field."""
        return "measured" if name in self.measured else _source(name, self.configured, self.detected)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleToZero:
    """Conditions of scaling to zero: the time without a message, and the lag that activates the group again."""

    activation_lag_messages: int = 1
    idle_seconds: Seconds = Seconds(900.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProfile:
    """The planner's parameters of a group, configured or measured.

    `capacity` is None while unknown; then nothing may be advised. Defaults are Kafka's and Kubernetes' own, or, for
    `sync_seconds` and `poll_batch_seconds`, the priors of a near broker and short batches. `ungraceful_share` is the
    learned share of exits without LeaveGroup; None: by grace period, static membership and Streams.
    `partition_weights` are the partitions' (with Streams, the tasks') shares of the load, in any unit; None: even.
    `configured` and `detected` name the fields that the owner has set and those that Kafka tells; others are assumed.
    Errors: ValueError on weights that do not match the partitions, or on a share outside 0 to 1.
    """

    cluster: str
    group: str
    partitions: Partitions
    capacity: Capacity | None
    protocol: GroupProtocol = "eager"  # the protocol of the Java default [Range, CooperativeSticky]
    client: Client = "other"  # unknown: taken to answer a rebalance at its next poll, which is the longer stop
    assignor: Assignor = "range"  # first in the defaults of Java and librdkafka; cooperative and kip848 are sticky
    static_membership: bool = False  # group.instance.id set: closing sends no LeaveGroup
    min_replicas: Replicas = Replicas(1)
    max_replicas: Replicas | None = None  # None: the partition count; replicas beyond it sit idle
    scale_to_zero: ScaleToZero | None = None  # None: never fewer than the minimum, at any load
    start_up_seconds: Seconds = Seconds(30.0)  # command to first commit of a new replica
    heartbeat_interval_seconds: Seconds = Seconds(3.0)  # heartbeat.interval.ms
    consumer_heartbeat_seconds: Seconds = Seconds(5.0)  # group.consumer.heartbeat.interval.ms, the broker's, kip848
    session_timeout_seconds: Seconds = Seconds(45.0)  # session.timeout.ms
    max_poll_interval_seconds: Seconds = Seconds(300.0)  # max.poll.interval.ms: slower members are evicted
    max_poll_records: int = 500  # max.poll.records
    poll_batch_seconds: Seconds = Seconds(0.1)
    sync_seconds: Seconds = Seconds(0.3)
    commit_mode: CommitMode = "interval"  # enable.auto.commit is on by default
    commit_interval_seconds: Seconds = Seconds(5.0)  # auto.commit.interval.ms
    concurrency: int = 1  # messages in work at once in one replica
    termination_grace_seconds: Seconds = Seconds(30.0)  # terminationGracePeriodSeconds: SIGKILL follows
    processing_p99_seconds: Seconds = Seconds(1.0)
    ungraceful_share: Fraction | None = None
    streams: StreamsProfile | None = None
    partition_weights: tuple[float, ...] | None = None
    configured: frozenset[str] = frozenset()
    detected: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.ungraceful_share is not None and not 0.0 <= self.ungraceful_share <= 1.0:
            message = (
                f"ungraceful_share of group '{self.group}' is {self.ungraceful_share}; a share lies between 0 and 1"
            )
            raise ValueError(message)
        weights = self.partition_weights
        if weights is None:
            return
        if len(weights) != self.work_units:
            message = f"group '{self.group}' has {self.work_units} partitions or tasks and {len(weights)} weights"
            raise ValueError(message)
        if min(weights) < 0.0 or not sum(weights) > 0.0:
            message = f"weights of group '{self.group}' must not be negative and not all 0"
            raise ValueError(message)

    def source_of(self, name: str) -> FigureSource:
        """The source of a figure of this profile, by its field.

        >>> GroupProfile(cluster="c", group="g", partitions=Partitions(8), capacity=None).source_of("protocol")
        'assumed'
        """
        return _source(name, self.configured, self.detected)

    @property
    def work_units(self) -> Partitions:
        """The units that are assigned: partitions, or the tasks of a Streams application."""
        return self.partitions if self.streams is None else Partitions(min(self.partitions, self.streams.tasks))

    @property
    def replica_ceiling(self) -> int:
        """The most replicas that can hold work each, within the configured bound."""
        return min(self.work_units, self.max_replicas if self.max_replicas is not None else self.work_units)

    @property
    def replica_floor(self) -> int:
        """The fewest replicas allowed, or all that can hold work where the bound lies above them."""
        return min(self.min_replicas, self.replica_ceiling)

    @property
    def rebalances_as(self) -> GroupProtocol:
        """The protocol that runs: Streams rebalances cooperatively, despite the settings of its consumers."""
        return "cooperative" if self.streams is not None else self.protocol

    @property
    def commits_every_seconds(self) -> Seconds:
        """Time between two commits, within which processed messages look like lag: Streams has an interval of its own.

        >>> streams = StreamsProfile(stateful=False, tasks=8)
        >>> group = GroupProfile(cluster="c", group="g", partitions=Partitions(8), capacity=None, streams=streams)
        >>> group.commits_every_seconds
        30.0
        """
        return self.commit_interval_seconds if self.streams is None else self.streams.commit_interval_seconds

    @property
    def deals_by(self) -> Assignor:
        """The assignor that runs: the newer protocols are sticky, so only an eager group has a choice."""
        return self.assignor if self.rebalances_as == "eager" else "sticky"

    @property
    def batch_p99_seconds(self) -> Seconds:
        """Time a replica may need before it can respond: its slowest message, or its batch if that is longer."""
        return Seconds(max(self.processing_p99_seconds, self.poll_batch_seconds))


def _source(name: str, configured: frozenset[str], detected: frozenset[str]) -> FigureSource:
    if name in configured:
        return "configured"
    return "detected" if name in detected else "assumed"


def while_behind(profile: GroupProfile) -> GroupProfile:
    """The same group when it is behind: its batches are then full, however short they are while it keeps up.

    Used to price moves that answer a backlog; moves ahead of one use the profile itself. Batches of a nominal 1 s and 5
    s ran at 0.03 to 0.05 s while a group kept up. librdkafka returns one message per poll.

    >>> rate = MessagesPerSecond(100.0)
    >>> known = Capacity(p20=rate, p50=rate, p90=rate, source="configured")
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=known)
    >>> while_behind(profile).poll_batch_seconds                     # 500 records at 100 a second
    5.0
    """
    if profile.capacity is None or not profile.capacity.p50 > 0.0:
        return profile
    records = 1 if profile.client == "librdkafka" else profile.max_poll_records
    full = records / profile.capacity.p50
    return replace(profile, poll_batch_seconds=Seconds(max(profile.poll_batch_seconds, full)))
