"""Settings of one consumer group, and of the workload that runs it."""

from dataclasses import fields
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cost_model.physics.detected import (
    DETECTABLE,
    DETECTABLE_IN_CLUSTER,
    STREAMS_DETECTABLE,
    STREAMS_MEASURED,
    ObservedGroup,
    ObservedStreams,
    ObservedWorkload,
)
from cost_model.physics.profile import (
    Assignor,
    Capacity,
    Client,
    CommitMode,
    GroupProfile,
    GroupProtocol,
    ScaleToZero,
    StreamsProfile,
)
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.configuring.holidays import HolidaySettings
from recommender.configuring.settings_check import invalid_bounds
from recommender.deciding.facts import MOST_PARTITIONS

Mode = Literal["off", "recommend", "apply"]

# Name of the settings for every group that is not named.
ANY_GROUP = "*"
# What Kafka's settings in milliseconds can hold: one of them, and 24 days. A message in eleven days, and more than any
# replica consumes, disk holds or group has. Beyond it stand typing errors, whose costs no float can hold.
LEAST_SECONDS, MOST_SECONDS = 0.001, 2**31 / 1000
LEAST_PER_SECOND, MOST_PER_SECOND = 1e-6, 1e9
MOST_BYTES, MOST_COUNT = 1e18, 10**9

_PROFILE_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(GroupProfile)}
_STREAMS_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(StreamsProfile)}
_ZERO_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ScaleToZero)}


class TargetSettings(BaseModel):
    """The workload that runs the group."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    api_version: str = "apps/v1"
    """API group and version of the workload. Default: that of Deployments and StatefulSets."""

    kind: str = Field(default="Deployment", min_length=1)
    """Kind of the workload: whatever of the API group has a `/scale`. Default: what most consumers run as."""

    namespace: str
    """Namespace of the workload. No default: a guess could scale another workload."""

    name: str
    """Name of the workload. No default, for the same reason."""


class StreamsSettings(BaseModel):
    """Settings of a Kafka Streams application: tasks instead of partitions, and state that has to be where they run."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    tasks: int | None = None
    """Tasks of the application: for each sub-topology the partitions of its largest source, summed. Default: what its
    members tell each other in Kafka; where that is not known, its partitions."""

    stateful: bool | None = None
    """True where tasks keep state in stores. Default: whether Kafka shows changelogs; where it does not tell, true, the
    slower one, so that nothing is promised that the application cannot do."""

    restore_bytes: float = Field(default=_STREAMS_DEFAULTS["restore_bytes"], ge=0, le=MOST_BYTES)
    """Bytes of changelog that all tasks together read where no copy is kept. Default: those on the brokers' disks,
    which a user with Describe on the cluster may see; where they are not known, 0."""

    behind_bytes: float = Field(default=_STREAMS_DEFAULTS["behind_bytes"], ge=0, le=MOST_BYTES)
    """Bytes of changelog that a kept copy (a standby, a volume) still has to read. Default: 0, it keeps up."""

    restore_bytes_per_second: float = Field(default=_STREAMS_DEFAULTS["restore_bytes_per_second"], ge=1, le=MOST_BYTES)
    """Bytes of changelog that one replica reads per second. Default: the most that a replica has restored over a
    minute, where Prometheus has Kafka Streams' own metrics; else 10 MB/s, which is assumed: measure yours."""

    standbys: int = Field(default=_STREAMS_DEFAULTS["standbys"], ge=0, le=MOST_COUNT)
    """`num.standby.replicas`. Default: what its members tell each other in Kafka; where that is not known, 0, Kafka's
    own."""

    max_warmup_replicas: int = Field(default=_STREAMS_DEFAULTS["max_warmup_replicas"], ge=1, le=MOST_COUNT)
    """`max.warmup.replicas`: copies that are brought up to date at a time. Default: 2, Kafka's own."""

    probing_seconds: float = Field(default=_STREAMS_DEFAULTS["probing_seconds"], ge=LEAST_SECONDS, le=MOST_SECONDS)
    """`probing.rebalance.interval.ms`, in seconds. Default: 600, Kafka's own."""

    commit_interval_seconds: float = Field(default=_STREAMS_DEFAULTS["commit_interval_seconds"], ge=0, le=MOST_SECONDS)
    """`commit.interval.ms`, in seconds. Default: as measured by `lagcast up`, and 30, Kafka's own, until then."""

    exactly_once: bool = _STREAMS_DEFAULTS["exactly_once"]
    """True where `processing.guarantee` is `exactly_once_v2`. Default: false, Kafka's own."""

    volume_kept: bool = _STREAMS_DEFAULTS["volume_kept"]
    """True where state lies on a volume that outlives its pod. Default: false, as on a Deployment."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.profile(ObservedStreams(), Partitions(1))
        return self

    def profile(self, observed: ObservedStreams, partitions: Partitions) -> StreamsProfile:
        """The profile for the cost model: what is set wins over what was `observed`, and that over the defaults.

        Errors: ValueError where the values do not hold together.
        """
        configured = {name for name in self.model_fields_set if getattr(self, name) is not None}
        seen = {name: getattr(observed, name) for name in STREAMS_DETECTABLE - configured}
        detected = {name: value for name, value in seen.items() if value is not None}
        assumed = {"tasks": partitions, "stateful": True}
        figures = {name: value for name, value in self.model_dump().items() if value is not None}
        return StreamsProfile(
            **assumed | figures | detected,
            configured=frozenset(configured),
            detected=frozenset(detected) - STREAMS_MEASURED,
            measured=STREAMS_MEASURED.intersection(detected),
        )


class ScaleToZeroSettings(BaseModel):
    """Scaling to zero: permission for 0 replicas, the idle time before, and the lag that activates the group."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    enabled: bool = False
    """True where 0 replicas may be advised and set, and a workload at 0 be started. Default: false, because a
    workload that was stopped was stopped on purpose."""

    activation_lag_messages: int = Field(default=_ZERO_DEFAULTS["activation_lag_messages"], ge=1, le=MOST_COUNT)
    """Number of waiting messages that activates the group; fewer count as none. Default: 1. Markers of transactions
    wait for ever: a topic of theirs needs more than it has partitions."""

    idle_seconds: float = Field(default=_ZERO_DEFAULTS["idle_seconds"], ge=60, le=MOST_SECONDS)
    """Seconds without a message, all of them seen, before 0 replicas are advised; and none may be expected in as many
    to come. Default: 900."""


class GroupSettings(BaseModel):
    """Settings of a consumer group. Under the name `*`: values for all other groups."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    partitions: int | None = Field(default=None, ge=1, le=MOST_PARTITIONS)
    """Partitions of the group's topics. Default: none, they are counted in the samples."""

    capacity_messages_per_second_per_replica: float | None = Field(
        default=None, ge=LEAST_PER_SECOND, le=MOST_PER_SECOND
    )
    """Most messages per second that one replica consumes. Default: none, it is measured in minutes with a backlog.
    Without any, what replicas have shown is a lower bound, from three minutes of samples on, under which nothing is
    added; from 22 hours on it is taken to be a step above the fullest minutes."""

    protocol: GroupProtocol = _PROFILE_DEFAULTS["protocol"]
    """Rebalance protocol: `eager` stops all partitions, `cooperative` and `kip848` those that move. Default:
    that of the group's state in Kafka; where that does not tell it, eager, the more expensive one, so that nothing is
    promised that the group cannot do."""

    client: Client = _PROFILE_DEFAULTS["client"]
    """Library that the consumers use: `java` answers a rebalance at its next poll, `librdkafka` (confluent-kafka, Go,
    .NET) from a thread of its own; of the others neither was measured, and they are taken to answer as `java` does.
    Default: the one that the members' client ids or their assignor name; where the application has chosen its ids,
    `other`, whose pauses grow with its batches."""

    assignor: Assignor = _PROFILE_DEFAULTS["assignor"]
    """`partition.assignment.strategy` of an eager group: `range`, `roundrobin` or `sticky`. Default: that of the
    group's state in Kafka; where that does not tell it, range, the first in the defaults of both clients."""

    static_membership: bool = _PROFILE_DEFAULTS["static_membership"]
    """True where `group.instance.id` is set: a member that closes is then missed only when its session has run out.
    Default: whether a member of the group has one; where Kafka does not tell, no, Kafka's own."""

    min_replicas: int = Field(default=_PROFILE_DEFAULTS["min_replicas"], ge=1, le=MOST_COUNT)
    """Fewest replicas to advise. Default: that of an HPA or ScaledObject on the target; without one 1, the least that
    consumes anything."""

    max_replicas: int | None = Field(default=_PROFILE_DEFAULTS["max_replicas"], ge=1, le=MOST_COUNT)
    """Most replicas to advise. Default: that of an HPA or ScaledObject on the target; without one none, the partition
    count is the ceiling; replicas beyond it sit idle."""

    start_up_seconds: float = Field(default=_PROFILE_DEFAULTS["start_up_seconds"], ge=0, le=MOST_SECONDS)
    """Seconds from the command to a new replica's first commit. Default: that of the group's graded moves; before the
    first, that of its pods in the cluster (`lagcast serve --kubernetes`); without any 30, an image already on the
    node."""

    heartbeat_interval_seconds: float = Field(
        default=_PROFILE_DEFAULTS["heartbeat_interval_seconds"], ge=LEAST_SECONDS, le=MOST_SECONDS
    )
    """The consumers' `heartbeat.interval.ms`, in seconds. Default: 3, Kafka's own."""

    session_timeout_seconds: float = Field(
        default=_PROFILE_DEFAULTS["session_timeout_seconds"], ge=LEAST_SECONDS, le=MOST_SECONDS
    )
    """The consumers' `session.timeout.ms`, in seconds. Default: that which Kafka keeps of the group's members, or tells
    them under the newer protocol, where lagcast may read it; else 45, Kafka's own."""

    commit_interval_seconds: float = Field(default=_PROFILE_DEFAULTS["commit_interval_seconds"], ge=0, le=MOST_SECONDS)
    """Seconds between two commits of a consumer; what lies between is processed twice after a kill. Default: as
    measured by `lagcast up`, and 5, the auto-commit of Kafka's client, until then."""

    commit_mode: CommitMode = _PROFILE_DEFAULTS["commit_mode"]
    """Time of offset commits: each `interval`, after each `batch` or after each `message`. Default: interval, the
    clients' auto-commit."""

    poll_batch_seconds: float = Field(default=_PROFILE_DEFAULTS["poll_batch_seconds"], ge=0, le=MOST_SECONDS)
    """Seconds between two polls of a consumer that keeps up; a Java client joins a rebalance at its next poll.
    Default: 0.1, short batches."""

    max_poll_records: int = Field(default=_PROFILE_DEFAULTS["max_poll_records"], ge=1, le=MOST_COUNT)
    """`max.poll.records`: the batch of a consumer that is behind. Default: 500, Kafka's own."""

    max_poll_interval_seconds: float = Field(
        default=_PROFILE_DEFAULTS["max_poll_interval_seconds"], ge=LEAST_SECONDS, le=MOST_SECONDS
    )
    """`max.poll.interval.ms`, in seconds: slower members are thrown out. Default: that which Kafka keeps of the
    members of Java, librdkafka and kafka-python, where lagcast may read it; else 300, Kafka's own."""

    concurrency: int = Field(default=_PROFILE_DEFAULTS["concurrency"], ge=1, le=MOST_COUNT)
    """Messages in work at once in one replica; these are repeated after a kill. Default: 1."""

    termination_grace_seconds: float = Field(
        default=_PROFILE_DEFAULTS["termination_grace_seconds"], ge=0, le=MOST_SECONDS
    )
    """Seconds that a pod has to leave in order. Default: those of the target's pods in the cluster; where they are not
    seen 30, Kubernetes' own."""

    processing_p99_seconds: float = Field(default=_PROFILE_DEFAULTS["processing_p99_seconds"], ge=0, le=MOST_SECONDS)
    """Seconds that the slowest hundredth of messages takes; moves keep five times that distance. Default: 1."""

    streams: StreamsSettings | None = None
    """Settings of Kafka Streams. Default: those of an application that is seen in Kafka; else none, a plain
    consumer."""

    holidays: HolidaySettings = HolidaySettings()
    """Days with a load like that of holidays, for the week ahead; a group's own replace those under `*`. Default: none,
    each day has the load of its weekday."""

    target: TargetSettings | None = None
    """The workload that runs the group. Default: none, advice is published and cannot be carried out."""

    mode: Mode = "recommend"
    """`off`: the group is left out; `recommend`: advice only; `apply`: an executor may act on it. Default: recommend,
    because nothing is scaled without a request."""

    scale_to_zero: ScaleToZeroSettings = ScaleToZeroSettings()
    """Scaling to zero while no message is produced. Default: disabled."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if failure := invalid_bounds(self):
            raise ValueError(failure)
        return self

    def profile(
        self, cluster: str, group: str, observed: ObservedGroup, workload: ObservedWorkload | None = None
    ) -> GroupProfile:
        """The profile for the cost model: what is set wins over what was observed, and that over the defaults.

        A configured capacity is a band of no width: it is taken as exact. None leaves it to be measured. A bound of the
        `workload` gives way to one that is set.
        """
        rate = self.capacity_messages_per_second_per_replica
        capacity = None
        if rate is not None:
            per_replica = MessagesPerSecond(rate)
            capacity = Capacity(p20=per_replica, p50=per_replica, p90=per_replica, source="configured")
        zero = self.scale_to_zero
        own = {"cluster", "group", "partitions", "capacity", "streams", "scale_to_zero"}
        same = {field.name for field in fields(GroupProfile)} & set(GroupSettings.model_fields) - own
        configured = same & self.model_fields_set
        seen = {name: getattr(observed, name) for name in DETECTABLE - configured}
        if workload is not None:
            seen |= {name: getattr(workload, name) for name in DETECTABLE_IN_CLUSTER - configured}
        detected = {name: value for name, value in seen.items() if value is not None}
        if "min_replicas" in detected and self.max_replicas is not None:
            detected["min_replicas"] = min(detected["min_replicas"], Replicas(self.max_replicas))
        if "max_replicas" in detected:
            detected["max_replicas"] = max(detected["max_replicas"], Replicas(self.min_replicas))
        partitions = Partitions(self.partitions or observed.partitions)
        return GroupProfile(
            cluster=cluster,
            group=group,
            partitions=partitions,
            capacity=capacity,
            streams=self._streams(observed.streams, partitions),
            scale_to_zero=ScaleToZero(
                activation_lag_messages=zero.activation_lag_messages, idle_seconds=Seconds(zero.idle_seconds)
            )
            if zero.enabled
            else None,
            configured=frozenset(configured),
            detected=frozenset(detected),
            **{name: getattr(self, name) for name in same} | detected,
        )

    def _streams(self, observed: ObservedStreams | None, partitions: Partitions) -> StreamsProfile | None:
        """The profile of a Streams application: one that is set, or seen in Kafka."""
        if self.streams is None and observed is None:
            return None
        return (self.streams or StreamsSettings()).profile(observed or ObservedStreams(), partitions)
