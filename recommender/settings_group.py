"""What may be set for one consumer group, and for the workload that runs it."""

from dataclasses import fields
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cost_model.profile import GroupProfile, GroupProtocol

Mode = Literal["off", "recommend", "apply"]

# What holds for every group that is not named.
ANY_GROUP = "*"
_PROFILE_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(GroupProfile)}


class TargetSettings(BaseModel):
    """The workload that runs the group."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    api_version: str = "apps/v1"
    """API group and version of the workload. Default: that of Deployments and StatefulSets."""

    kind: Literal["Deployment", "StatefulSet"] = "Deployment"
    """Kind of the workload. Default: what most consumers run as."""

    namespace: str
    """Namespace of the workload. No default: a guess could scale somebody else's workload."""

    name: str
    """Name of the workload. No default, for the same reason."""


class GroupSettings(BaseModel):
    """What the owner of a consumer group knows of it. Under the name `*`: what holds unless a group says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    partitions: int | None = Field(default=None, ge=1)
    """Partitions that the group reads. Default: none, they are counted in the samples."""

    capacity_messages_per_second_per_replica: float | None = Field(default=None, gt=0)
    """Most messages per second that one replica consumes. Default: none, it is measured from windows with a backlog."""

    protocol: GroupProtocol = _PROFILE_DEFAULTS["protocol"]
    """How a rebalance stops the group: `eager` stops all partitions, `cooperative` those that move. Default: eager,
    the dearer one, so that nothing is promised that the group cannot do."""

    min_replicas: int = Field(default=_PROFILE_DEFAULTS["min_replicas"], ge=1)
    """Fewest replicas to advise. Default: 1, the least that consumes anything."""

    max_replicas: int | None = Field(default=_PROFILE_DEFAULTS["max_replicas"], ge=1)
    """Most replicas to advise. Default: none, the partition count is the ceiling; replicas beyond it sit idle."""

    start_up_seconds: float = Field(default=_PROFILE_DEFAULTS["start_up_seconds"], ge=0)
    """Seconds from the command to a new replica's first commit. Default: 30, an image already on the node."""

    heartbeat_interval_seconds: float = Field(default=_PROFILE_DEFAULTS["heartbeat_interval_seconds"], gt=0)
    """The consumers' `heartbeat.interval.ms`, in seconds. Default: 3, Kafka's own."""

    session_timeout_seconds: float = Field(default=_PROFILE_DEFAULTS["session_timeout_seconds"], gt=0)
    """The consumers' `session.timeout.ms`, in seconds. Default: 45, Kafka's own."""

    commit_interval_seconds: float = Field(default=_PROFILE_DEFAULTS["commit_interval_seconds"], ge=0)
    """Seconds between two commits of a consumer; what lies between is processed twice after a kill. Default: 5, the
    auto-commit of Kafka's client."""

    termination_grace_seconds: float = Field(default=_PROFILE_DEFAULTS["termination_grace_seconds"], ge=0)
    """Seconds that a pod has to leave in order. Default: 30, Kubernetes' own."""

    processing_p99_seconds: float = Field(default=_PROFILE_DEFAULTS["processing_p99_seconds"], ge=0)
    """Seconds that the slowest hundredth of messages takes; moves keep five times that distance. Default: 1."""

    target: TargetSettings | None = None
    """The workload that runs the group. Default: none, the advice is published and nobody can act on it."""

    mode: Mode = "recommend"
    """`off`: the group is left out; `recommend`: advice only; `apply`: an executor may act on it. Default: recommend,
    because nothing is scaled that nobody asked to scale."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.max_replicas is not None and self.min_replicas > self.max_replicas:
            bounds = f"min_replicas is {self.min_replicas}, above max_replicas {self.max_replicas}"
            message = f"{bounds}; lower one or raise the other"
            raise ValueError(message)
        return self
