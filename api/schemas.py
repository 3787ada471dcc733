"""The wire, version 1: what REST answers and other channels carry. Imports nothing of ours.

A field that is not known is absent, never null or 0. Consumers ignore fields that they do not know; fields of version
1 never change their meaning. Instants are RFC 3339 in UTC; units are in the names.
"""

from datetime import UTC
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter

SCHEMA_VERSION = "1.0"

Mode = Literal["off", "recommend", "apply"]
Instant = Annotated[AwareDatetime, AfterValidator(lambda instant: instant.astimezone(UTC))]


class Wire(BaseModel):
    """What all messages share: immutable, and described by the sentences under their fields."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Target(Wire):
    """The workload that runs the group; its namespace stands beside it."""

    api_version: str
    kind: str
    name: str


class ExecuteWindow(Wire):
    """When the move may be carried out; `execute_at` lies inside."""

    not_before: Instant
    latest_safe: Instant
    """After this instant the move costs more than it was advised for: do not make it."""

    model_config = ConfigDict(extra="allow")


class DataQuality(Wire):
    """What the decision rests on."""

    as_of: Instant
    """When the newest usable row ended."""
    age_seconds: FiniteFloat
    """How old that row was when the decision was made."""
    history_seconds: FiniteFloat
    rung: Literal["reactive", "daily", "weekly"]
    """What the history allowed: reactive from 30 min, daily from 2 days, weekly from 14 days."""
    counts: dict[str, int]


class Observed(Wire):
    """The group as it stood at `data.as_of`."""

    produce_messages_per_second: FiniteFloat
    consume_messages_per_second: FiniteFloat | None = None
    lag_messages: FiniteFloat
    lag_seconds: FiniteFloat | None = None


class Capacity(Wire):
    """The most one replica consumes, in messages per second, as a band."""

    p20: FiniteFloat
    p50: FiniteFloat
    p90: FiniteFloat
    source: Literal["configured", "saturated_windows", "unsaturated_windows", "busy_time"]
    age_seconds: FiniteFloat | None = None


class QuantilePaths(Wire):
    """One value per step: arrivals stay under it with that probability."""

    p05: tuple[FiniteFloat, ...]
    p50: tuple[FiniteFloat, ...]
    p95: tuple[FiniteFloat, ...]


class Forecast(Wire):
    """What was expected to be produced; step 1 ends `step_seconds` after the forecast was made."""

    model: str
    horizon_seconds: FiniteFloat
    step_seconds: int
    produce_messages_per_second: QuantilePaths


class Switch(Wire):
    """What the move does to the group while it happens."""

    protocol_profile: Literal["eager", "cooperative", "kip848"]
    pause_seconds: FiniteFloat
    moved_partition_fraction: FiniteFloat
    expected_rebalances: FiniteFloat
    duplicate_messages: FiniteFloat


class CostItems(Wire):
    """A price over the horizon, itemised; `total` is the sum of the other items, and no message counts twice."""

    replicas: FiniteFloat
    late: FiniteFloat
    pause_late: FiniteFloat
    """Messages late because of the pause of a rebalance; they are not in `late`."""
    backlog: FiniteFloat
    duplicates: FiniteFloat
    start_up: FiniteFloat
    restore: FiniteFloat
    risk: FiniteFloat
    total: FiniteFloat


class Alternative(CostItems):
    """A plan that was priced and not chosen; without `execute_at` it is the one that stays."""

    desired_replicas: int
    execute_at: Instant | None = None


class CostComparison(Wire):
    """The choice beside staying, over the same horizon."""

    currency: str
    horizon_seconds: FiniteFloat
    chosen: CostItems
    stay: CostItems
    saving: FiniteFloat
    """`stay.total - chosen.total`."""
    break_even_seconds: FiniteFloat | None = None


class Reason(Wire):
    """Why, as one code for machines and as sentences with the arithmetic for people."""

    code: str
    sentences: tuple[str, ...]


class RecommendationV1(Wire):
    """Advice: have `desired_replicas` from `execute_at` on; never act on it after `valid_until`."""

    kind: Literal["Recommendation"] = "Recommendation"
    schema_version: str = SCHEMA_VERSION
    recommendation_id: str
    supersedes: str | None = None
    issued_at: Instant
    valid_until: Instant
    cluster: str
    namespace: str | None = None
    group_id: str
    topics: tuple[str, ...]
    target: Target | None = None
    """Absent: advice only, nothing can be scaled."""
    mode: Mode
    action: Literal["hold", "scale_out", "scale_in"]
    current_replicas: int
    desired_replicas: int
    due_replicas: int | None = None
    """What the group should have at the instant of the answer: `desired_replicas` from `execute_at` on,
    `current_replicas` before; absent once the advice has expired."""
    uncapped_replicas: int
    useful_replicas: tuple[int, ...]
    """The counts between which the busiest replica's load changes; more than the last one cannot help."""
    execute_at: Instant
    execute_window: ExecuteWindow
    effective_at: Instant
    lead_time_seconds: FiniteFloat
    data: DataQuality
    observed: Observed
    capacity_messages_per_second_per_replica: Capacity
    forecast: Forecast
    switch: Switch
    cost: CostComparison
    alternatives: tuple[Alternative, ...]
    """Every other plan that was priced, cheapest first."""
    reason: Reason
    binding_rule: str | None = None
    """The guard that changed the cheapest plan, where one did."""


class Remedy(Wire):
    """What to do about a refusal."""

    sentence: str


class RefusalV1(Wire):
    """No advice for this group now, and why; whoever acts on advice leaves the group as it is."""

    kind: Literal["Refusal"] = "Refusal"
    schema_version: str = SCHEMA_VERSION
    recommendation_id: str
    issued_at: Instant
    cluster: str
    namespace: str | None = None
    group_id: str
    target: Target | None = None
    mode: Mode
    reason: Reason
    evidence: dict[str, FiniteFloat]
    """The quantities that say so, units in their names, the limit that was missed included."""
    hold_replicas: int | None = None
    remedy: Remedy
    retry_at: Instant | None = None


DecisionV1 = Annotated[RecommendationV1 | RefusalV1, Field(discriminator="kind")]
DECISION_V1: TypeAdapter[RecommendationV1 | RefusalV1] = TypeAdapter(DecisionV1)


class GroupSummary(Wire):
    """One group on a page of groups: what was last decided for it, in short."""

    group_key: str
    """Opaque and URL-safe: the group's name in paths."""
    cluster: str
    namespace: str | None = None
    group_id: str
    kind: Literal["Recommendation", "Refusal"]
    recommendation_id: str
    reason_code: str
    issued_at: Instant
    valid_until: Instant | None = None
    expired: bool | None = None
    action: Literal["hold", "scale_out", "scale_in"] | None = None
    current_replicas: int | None = None
    desired_replicas: int | None = None
    due_replicas: int | None = None
    execute_at: Instant | None = None
    lag_seconds: FiniteFloat | None = None
    saving: FiniteFloat | None = None
    currency: str | None = None


class GroupPage(Wire):
    """Some groups, sorted by cluster and name; `next` is the cursor of the page behind, absent on the last one."""

    groups: tuple[GroupSummary, ...]
    next: str | None = None


class Group(Wire):
    """One group: where it stands on this API, and what was last decided for it."""

    group_key: str
    cluster: str
    group_id: str
    latest: DecisionV1


class Problem(Wire):
    """Why a request was not answered (RFC 9457): one sentence in `detail`, the next step included."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
