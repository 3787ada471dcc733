"""The wire, version 1: the messages of REST and of the other channels. Imports nothing of ours but its parts and keys.

A field that is not known is absent, never null or 0. Consumers ignore fields that they do not know; fields of version
1 never change their meaning. Instants are RFC 3339 in UTC; units are in the names.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, FiniteFloat, TypeAdapter, field_validator

from api.keys import GroupKeyError, group_of_key
from api.parts import (
    Alternative,
    Capacity,
    CostComparison,
    DataQuality,
    ExecuteWindow,
    Expected,
    FallbackPolicy,
    FleetTotal,
    Forecast,
    ForecastPart,
    Happened,
    Instant,
    Learned,
    Ledger,
    LedgerQuarter,
    LedgerTotal,
    Observed,
    ObservedMinute,
    PartitionLoad,
    Policy,
    ProfileFigure,
    QuantileSeries,
    Reason,
    RebalanceImpact,
    Standing,
    Target,
    TurningPoint,
    Wire,
)

__all__ = [
    "DECISION_V1",
    "SCHEMA_VERSION",
    "DecisionV1",
    "Fleet",
    "FleetLedger",
    "ForecastSeries",
    "Group",
    "GroupDay",
    "GroupKeyError",
    "GroupLedger",
    "GroupPage",
    "GroupPartitions",
    "GroupSummary",
    "Mode",
    "Outcome",
    "OutcomePage",
    "Problem",
    "RecommendationV1",
    "RefusalV1",
    "Remedy",
    "Target",
    "WhatIf",
    "WhatIfChanges",
    "group_of_key",
]

SCHEMA_VERSION = "1.0"

Mode = Literal["off", "recommend", "apply"]


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
    scale_to_zero: bool = False
    """True where 0 replicas may be set, and a workload that stands at 0 be started."""
    action: Literal["hold", "scale_out", "scale_in"]
    current_replicas: int
    desired_replicas: int
    due_replicas: int | None = None
    """Replicas that the group should have at the instant of the answer: `desired_replicas` from `execute_at` on,
    `current_replicas` before; absent once the advice has expired."""
    desired_replicas_lower: int | None = None
    """The cheapest count in the lowest tenth of scenarios."""
    desired_replicas_upper: int | None = None
    """The cheapest count in the highest tenth of scenarios."""
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
    rebalance_impact: RebalanceImpact
    cost: CostComparison
    alternatives: tuple[Alternative, ...]
    """Every other plan that was priced, cheapest first."""
    reason: Reason
    binding_rule: str | None = None
    """The guard that changed the cheapest plan, where one did."""
    fallback_policy: FallbackPolicy | None = None
    """Absent while the fallback policy is off, and before it has seen a row."""
    sensitivity: tuple[TurningPoint, ...] | None = None
    """Changes that would reverse the decision, the nearest first, as of the instant when it was first made; absent
    where none was found, or a guard decided."""
    confidence: FiniteFloat | None = None
    """Share of scenarios in which the choice is no more expensive than staying; for a hold, than the best move."""
    confidence_level: Literal["high", "medium", "low"] | None = None
    """High from 0.8, medium from 0.6."""
    learned: Learned | None = None
    profile: tuple[ProfileFigure, ...] = ()
    """The figures of the group that moves are priced with, each with its source; empty in advice that is too old."""
    policy: Policy | None = None
    ledger: Ledger | None = None
    """Absent before a row with members, rate and lag was seen."""


class Remedy(Wire):
    """Next step after a refusal."""

    sentence: str


class RefusalV1(Wire):
    """No advice for this group now, and why; executors leave the group unchanged."""

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
    """The quantities behind the reason, units in their names, with the limit that was missed."""
    hold_replicas: int | None = None
    remedy: Remedy
    retry_at: Instant | None = None


DecisionV1 = Annotated[RecommendationV1 | RefusalV1, Field(discriminator="kind")]
DECISION_V1: TypeAdapter[RecommendationV1 | RefusalV1] = TypeAdapter(DecisionV1)


class GroupSummary(Wire):
    """One group on a page of groups: its latest decision, in short."""

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
    concern: Literal["no_advice", "promise_missed", "saving_forgone"] | None = None
    """The worst that the decision tells of the group; absent where nothing is to be done."""


class GroupPage(Wire):
    """Some groups, by cluster and name or the worst first; `next` is the cursor of the page behind, if there is one."""

    groups: tuple[GroupSummary, ...]
    next: str | None = None


class Fleet(Wire):
    """All groups, or those of a cluster, together: by currency, for money in two currencies has no sum."""

    cluster: str | None = None
    totals: tuple[FleetTotal, ...]


class DueReplicas(Wire):
    """The replicas that a group should have now, for clients that read one number."""

    value: int


class Explanation(Wire):
    """One decision in sentences: its reasons, what is known of the group, and what would reverse it."""

    recommendation_id: str
    kind: Literal["Recommendation", "Refusal"]
    sentences: tuple[str, ...]
    known: tuple[str, ...]
    """The figures that the decision rests on, each with its source; empty for a refusal."""
    reversals: tuple[str, ...]
    """What would reverse the decision, the nearest first."""
    remedy: str | None = None
    """Next step after a refusal."""


class DecisionPage(Wire):
    """Some decisions on one group in short, newest first; `next` is the cursor of the page behind, absent on the last.

    Those of a day ago and older are kept without their repetitions within an hour.
    """

    group_key: str
    cluster: str
    group_id: str
    decisions: tuple[GroupSummary, ...]
    next: str | None = None


class Group(Wire):
    """One group: its address on this API, and its latest decision."""

    group_key: str
    cluster: str
    group_id: str
    latest: DecisionV1


class Outcome(Wire):
    """One move of a group that is over: its expected and its measured effects."""

    graded_at: Instant
    from_replicas: int
    to_replicas: int
    recommendation_id: str | None = None
    """The advice that called for the move; absent where the move was not advised."""
    expected: Expected | None = None
    """Absent together with `recommendation_id`: nothing was expected."""
    happened: Happened
    sentence: str


class OutcomePage(Wire):
    """Some graded moves of one group, newest first; `next` is the cursor of the page behind, absent on the last one."""

    group_key: str
    cluster: str
    group_id: str
    learned: Learned | None = None
    """Beliefs of the last advice; absent before there was any."""
    outcomes: tuple[Outcome, ...]
    next: str | None = None


class GroupLedger(Wire):
    """The ledger of one group, as its last advice published it."""

    group_key: str
    cluster: str
    group_id: str
    issued_at: Instant
    """Instant of that advice, up to which the ledger counts."""
    ledger: Ledger


class GroupDay(Wire):
    """The last 24 hours of one group: what was observed, what was decided, and what the ledger counted."""

    group_key: str
    cluster: str
    group_id: str
    since_at: Instant
    until_at: Instant
    max_lag_seconds: FiniteFloat | None = None
    """The longest wait of a message that is not late; absent where this process does not decide on the group."""
    first_seen_at: Instant | None = None
    """Begin of the first minute in which anything was seen of the group, in the last four weeks; absent where this
    process does not decide on it."""
    minutes: tuple[ObservedMinute, ...]
    """Oldest first; a minute in which nothing was seen is left out. Empty where this process does not decide on the
    group, so ask the one that does."""
    standings: tuple[Standing, ...]
    """What was decided, oldest first, where it changed."""
    quarters: tuple[LedgerQuarter, ...]
    """The ledger by the quarter of an hour; empty before anything is counted."""


class GroupPartitions(Wire):
    """A group by partition, as it was read last."""

    group_key: str
    cluster: str
    group_id: str
    since_at: Instant
    """Produce rates are means from then on."""
    until_at: Instant
    """The instant of the lags."""
    capacity_messages_per_second_per_replica: FiniteFloat | None = None
    """What one replica consumes; no two replicas share a partition. Absent where it is not known."""
    partitions: int
    """How many there are; `loads` has the 2,000 busiest at most."""
    loads: tuple[PartitionLoad, ...]
    """The busiest first; those of unknown rate last."""


class Hold(Wire):
    """A time in which groups keep their replicas: those with these names, absent for any."""

    cluster: str | None = None
    namespace: str | None = None
    group_id: str | None = None
    reason: str
    placed_at: Instant
    until: Instant | None = None
    """Absent: until it is released."""


class Holds(Wire):
    """The holds in force, oldest first."""

    holds: tuple[Hold, ...]


class FleetLedger(Wire):
    """The ledgers of all groups, or of those of a cluster or a namespace, added up."""

    cluster: str | None = None
    namespace: str | None = None
    totals: tuple[LedgerTotal, ...]
    """One for each currency: money in two currencies has no sum."""
    groups_without_ledger: int
    """Groups that are in no total: nothing is counted for them yet, or not in the last hour."""


class ForecastSeries(Wire):
    """Forecast of the produce rate of one group: the next hour by the minute, then the week in five minutes.

    Step i ends at `ends_at[i]` and is `step_seconds[i]` long; there is no gap between steps.
    """

    group_key: str
    cluster: str
    group_id: str
    parts: tuple[ForecastPart, ...]
    """The forecasts that the steps are taken from, in the order of time. Where two meet, the later one is moved onto
    the earlier one, and the move fades over two hours."""
    ends_at: tuple[Instant, ...]
    step_seconds: tuple[int, ...]
    produce_messages_per_second: QuantileSeries
    notes: tuple[str, ...] | None = None
    """The reason why the hour or the week is not in it; absent where both are."""


class WhatIfChanges(Wire):
    """What is to be different in a what-if, by the names, units and limits of the settings; at least one of them."""

    model_config = ConfigDict(extra="forbid", strict=True)  # else true is a price of 1, and "2" one of 2

    @field_validator("*", mode="before")
    @classmethod
    def _given(cls, value: object) -> object:
        if value is None:
            message = "leave out what stays as it is"
            raise ValueError(message)
        return value

    policy: Literal["stable", "balanced", "compact"] | None = None
    price_per_replica_hour: FiniteFloat | None = None
    price_per_late_message: FiniteFloat | None = None
    price_per_duplicate_message: FiniteFloat | None = None
    price_per_move: FiniteFloat | None = None
    """Risk price of one move before outcomes have taught; those of the group still count."""
    price_per_restored_gigabyte: FiniteFloat | None = None
    risk_weight: FiniteFloat | None = None
    max_lag_seconds: FiniteFloat | None = None
    target_utilization: FiniteFloat | None = None
    """Plans still use less where quiet minutes of the group have shown that less is possible."""
    capacity_messages_per_second_per_replica: FiniteFloat | None = Field(default=None, ge=1e-6, le=1e9)
    """Taken as exact, as in the settings."""
    min_replicas: int | None = Field(default=None, ge=1, le=10**9)
    max_replicas: int | None = Field(default=None, ge=1, le=10**9)
    rebalance_pause_seconds: FiniteFloat | None = Field(default=None, ge=0.001, le=2**31 / 1000)
    """Believed of every move, in place of what was learned; not less than what protocol and polls take, and under
    cooperative and kip848 by the share of partitions that move."""


class Advised(Wire):
    """Advice without id, validity and forecast: what would be advised, and at which price. It cannot be acted on."""

    kind: Literal["Recommendation"] = "Recommendation"
    action: Literal["hold", "scale_out", "scale_in"]
    current_replicas: int
    desired_replicas: int
    desired_replicas_lower: int | None = None
    desired_replicas_upper: int | None = None
    uncapped_replicas: int
    useful_replicas: tuple[int, ...]
    execute_at: Instant
    effective_at: Instant
    lead_time_seconds: FiniteFloat
    capacity_messages_per_second_per_replica: Capacity
    rebalance_impact: RebalanceImpact
    cost: CostComparison
    alternatives: tuple[Alternative, ...]
    """Every other plan that was priced, cheapest first."""
    reason: Reason
    binding_rule: str | None = None
    confidence: FiniteFloat | None = None
    confidence_level: Literal["high", "medium", "low"] | None = None
    policy: Policy | None = None
    """The policy, and the figures that were used."""


class Refused(Wire):
    """No advice with these changes, and why."""

    kind: Literal["Refusal"] = "Refusal"
    reason: Reason
    evidence: dict[str, FiniteFloat]
    remedy: Remedy


class WhatIf(Wire):
    """The latest decision once more with other figures, beside the one in force; nothing of it is kept.

    Both are of one instant, from the same rows and forecast.
    """

    group_key: str
    cluster: str
    group_id: str
    recommendation_id: str
    """The decision in force that was made again."""
    issued_at: Instant
    """Its instant."""
    changes: WhatIfChanges
    in_force: Advised
    what_if: Annotated[Advised | Refused, Field(discriminator="kind")]


class Problem(Wire):
    """Problem with a request (RFC 9457): one sentence in `detail`, the next step included; `instance` is a new URN."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
