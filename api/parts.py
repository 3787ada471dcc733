"""The parts of the messages of the wire. Imports nothing of ours."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        message = f"{instant.isoformat()} lies outside of the years 1 to 9999 in UTC"
        raise ValueError(message) from error


def _written_out(value: object) -> object:
    """The value unless it is a number, which may be seconds or milliseconds: nobody should have to guess."""
    try:
        float(value)  # type: ignore[arg-type]  # whatever is no number is an error, too
    except (TypeError, ValueError):
        return value
    message = "an instant has to be written out, such as 2026-01-05T12:00:00Z"
    raise ValueError(message)


Instant = Annotated[AwareDatetime, BeforeValidator(_written_out), AfterValidator(_in_utc)]


class Wire(BaseModel):
    """Base of all messages: immutable, and described by the sentences under their fields."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Target(Wire):
    """The workload that runs the group; its namespace stands beside it."""

    api_version: str
    kind: str
    name: str


class ExecuteWindow(Wire):
    """Instants between which the move may be carried out; `execute_at` lies inside."""

    not_before: Instant
    latest_safe: Instant
    """After this instant the move costs more than it was advised for: do not make it."""

    model_config = ConfigDict(extra="allow")


class DataQuality(Wire):
    """Data that the decision rests on."""

    as_of: Instant
    """End of the newest usable row."""
    age_seconds: FiniteFloat
    """Age of that row when the decision was made."""
    history_seconds: FiniteFloat
    history_tier: Literal["reactive", "daily", "weekly"]
    """History tier that the data allowed: reactive from 30 min, daily from 2 days, weekly from 14 days."""
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
    source: Literal["configured", "saturated_windows", "busy_time", "unsaturated_windows", "lower_bound"]
    age_seconds: FiniteFloat | None = None


class QuantilePaths(Wire):
    """One value per step: arrivals stay under it with that probability."""

    p05: tuple[FiniteFloat, ...]
    p50: tuple[FiniteFloat, ...]
    p95: tuple[FiniteFloat, ...]


class ForecastValue(Wire):
    """Cost of plans with a forecast and without one, in the currency of the advice; recent hours count more."""

    cost_with_forecast: FiniteFloat
    cost_without_forecast: FiniteFloat
    """The produce rate was taken to stay as it is."""
    forecast_proven: bool
    """Whether the forecaster has beaten a constant produce rate out of sample; until then no plan uses it."""
    forecast_used: bool
    """Whether plans use the forecast; they do while it is proven and has not made them more expensive."""


class Forecast(Wire):
    """Forecast of the produce rate; step 1 ends `step_seconds` after the forecast was made."""

    model: str
    horizon_seconds: FiniteFloat
    step_seconds: int
    produce_messages_per_second: QuantilePaths
    value: ForecastValue | None = None
    """Absent while no plans are played beside the group: its capacity or its members are unknown."""


class ForecastPart(Wire):
    """A forecast that a series takes its steps from, up to `ends_at`."""

    model: str
    history_tier: Literal["reactive", "daily", "weekly"]
    issued_at: Instant
    """Instant at which it was made: it rests on nothing later."""
    step_seconds: int
    ends_at: Instant


class QuantileSeries(Wire):
    """One value per step: arrivals stay under it with that probability. What was not kept is absent."""

    p05: tuple[FiniteFloat, ...]
    p10: tuple[FiniteFloat, ...] | None = None
    p25: tuple[FiniteFloat, ...] | None = None
    p50: tuple[FiniteFloat, ...]
    p75: tuple[FiniteFloat, ...] | None = None
    p90: tuple[FiniteFloat, ...] | None = None
    p95: tuple[FiniteFloat, ...]
    p99: tuple[FiniteFloat, ...] | None = None


class RebalanceImpact(Wire):
    """Effects of the move on the group while it happens."""

    protocol_profile: Literal["eager", "cooperative", "kip848"]
    rebalance_pause_seconds: FiniteFloat
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
    """Name of the money, or `pod-hours` where no price of a replica-hour is known: a replica then costs one an hour."""
    horizon_seconds: FiniteFloat
    chosen: CostItems
    stay: CostItems
    saving: FiniteFloat
    """`stay.total - chosen.total`."""
    break_even_seconds: FiniteFloat | None = None
    act_now: CostItems | None = None
    """The price of making the move at once instead; absent where it is to be made at once, and for a hold."""


class FallbackPolicy(Wire):
    """Used part of the plans' allowance; `policy` is followed while `used` is above `limit`.

    Both are in the currency of `cost`, and fade with a half-life of six hours.
    """

    policy: Literal["useful-counts", "fixed"]
    """The cheapest of the simple scalers simulated beside the group, or the one that is followed.

    `useful-counts` reacts to the produce rate, `fixed` never moves."""
    slack_ratio: FiniteFloat
    """By how much plans may be more expensive than the fallback policy, beside the price of a change."""
    used: FiniteFloat
    limit: FiniteFloat


class LedgerItems(Wire):
    """What was paid, itemised, in the currency of the ledger; `total` is the sum of the other items."""

    replicas: FiniteFloat
    """Replicas, those that start included."""
    late: FiniteFloat
    """Messages that waited longer than promised."""
    total: FiniteFloat


class LedgerAccount(LedgerItems):
    """What one scaler would have cost on the same messages, by its simulation."""

    scaler: str
    """`stay` at the first count, `fixed-ceiling`, `rate-1.25` times the produce rate, `useful-counts`, and `hpa`,
    `hpa-behavior` and `keda` with their lag target in messages."""
    distinguishable: bool
    """False where it differs from what was paid by no more than the error of its simulation."""
    saving: FiniteFloat | None = None
    """`total` minus what was paid; negative where the scaler would have cost less."""


class Ledger(Wire):
    """What the group has cost in the last 24 hours, and what each scaler would have."""

    since_at: Instant
    """Instant from which all accounts count: a day ago, or the begin of what is known."""
    currency: str
    error_ratio: FiniteFloat | None = None
    """Simulated cost of the group as it was, over what was paid; absent where nothing was paid."""
    paid: LedgerItems
    regret: FiniteFloat | None = None
    """What was paid beyond the cheapest distinguishable scaler; 0 where none would have cost less."""
    accounts: tuple[LedgerAccount, ...]


class ScalerTotal(LedgerItems):
    """What one scaler would have cost for several groups."""

    scaler: str
    groups: int
    """Groups whose ledger has the scaler."""
    distinguishable_groups: int
    """Those of them where it differs from what was paid by more than the error of its simulation."""
    saving: FiniteFloat
    """`total` minus what was paid for the same groups; negative where the scaler would have cost less."""


class LedgerTotal(Wire):
    """The ledgers of several groups with prices in one currency, together."""

    currency: str
    groups: int
    group_hours: FiniteFloat
    """Time that the ledgers count, added up: 24 h for each group that has been counted for a day."""
    since_at: Instant
    """Instant from which the oldest of them counts."""
    error_ratio: FiniteFloat | None = None
    """Simulated cost of the groups as they were, over what was paid; absent where nothing was paid."""
    paid: LedgerItems
    regret: FiniteFloat
    """Sum of the groups' regrets: each has a cheapest scaler of its own."""
    accounts: tuple[ScalerTotal, ...]


class FleetTotal(Wire):
    """The groups whose last decision is in one currency, together.

    Groups whose advice has expired are counted in `groups` and `expired` alone; sums are of advice in force.
    """

    currency: str | None = None
    """Absent: the groups that are refused, whose figures are not known."""
    groups: int
    expired: int
    no_advice: int
    promise_missed: int
    """Groups whose messages wait longer than was promised."""
    saving_forgone: int
    """Groups that keep their promise, and whose advised move would save."""
    current_replicas: int
    desired_replicas: int
    advised_saving_per_hour: FiniteFloat
    """Of the advice in force against staying, added up."""
    groups_with_ledger: int
    paid_per_hour: FiniteFloat | None = None
    """What these have cost by the hour of their ledgers; absent where there is no ledger."""


class TurningPoint(Wire):
    """The smallest change found of one quantity, all else equal, that reverses the decision."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True, validate_by_name=True)

    quantity: Literal[
        "price_per_late_message",
        "rebalance_pause_seconds",
        "capacity_messages_per_second_per_replica",
        "forecast_peak_messages_per_second",
    ]
    present: FiniteFloat = Field(alias="from")
    turning: FiniteFloat = Field(alias="to")


class PodStartUp(Wire):
    """How long the newest pods of the group's workload took, from creation until ready and, where seen, in the group.

    `node_wait_seconds`, `container_start_seconds` and `joining_seconds` add up to `start_up_seconds`: those of the pod
    that took so long.
    """

    start_up_seconds: FiniteFloat
    """Four of five pods took no longer."""
    pods: int
    newest_at: Instant
    """Instant at which the newest of them was up."""
    node_wait_seconds: FiniteFloat
    """Until the pod had a node."""
    container_start_seconds: FiniteFloat
    """From there until its containers ran: image pull, volumes, init containers."""
    joining_seconds: FiniteFloat
    """From there until it was ready and the group had grown by it."""


class Learned(Wire):
    """Beliefs about the group's moves, and the share of their capacity that its replicas may use."""

    rebalance_pause_scale_out_seconds: FiniteFloat
    """Rebalance pause of a move that adds replicas."""
    rebalance_pause_scale_in_seconds: FiniteFloat
    move_risk: FiniteFloat
    """Price of one move beyond what is expected of it, in the currency of `cost`."""
    moves: int
    """Moves of the group that were graded."""
    source: Literal["assumed", "similar_groups", "measured"]
    """`measured` once the graded moves outweigh the priors; those are `assumed`, or come from `similar_groups`."""
    target_utilization: FiniteFloat
    """Share of a replica's capacity that plans use."""
    target_utilization_set: FiniteFloat | None = None
    """The most that settings allow; plans use less where quiet minutes showed that it is too full."""
    start_up_seconds: FiniteFloat | None = None
    """Seconds from the command until plans expect added replicas to consume: as set; else as in graded moves; else as
    the pods of the workload show; else as in similar groups, or assumed."""
    start_up_seen_seconds: FiniteFloat | None = None
    """Seconds that it took in graded moves; absent while none was seen."""
    start_up_source: Literal["assumed", "similar_groups", "detected", "measured"] | None = None
    """Where `start_up_seconds` comes from: `assumed` is as set, `detected` is that of `pod_start_up`."""
    similar_groups: int | None = None
    """Number of groups of the same client, protocol and batch length whose moves the priors come from."""
    pod_start_up: PodStartUp | None = None
    """Absent where no pod of the group's workload is seen in a Kubernetes cluster."""


class Expected(Wire):
    """Figures that the advice published for its move; amounts are over its horizon."""

    rebalance_pause_seconds: FiniteFloat
    late_messages: FiniteFloat
    chosen: FiniteFloat | None = None
    """Price of the plan that was chosen."""
    stay: FiniteFloat | None = None
    """Price of staying instead."""
    saving: FiniteFloat | None = None
    """`stay - chosen`."""
    currency: str | None = None
    horizon_seconds: FiniteFloat | None = None


class Happened(Wire):
    """Measured effects of a move, from the rows around it."""

    rebalance_pause_seconds: FiniteFloat | None = None
    """Work of the partitions that were moved, in seconds of arrivals, that was lost; absent where a lack of replicas
    hides it."""
    late_messages: FiniteFloat | None = None
    """Messages that waited longer than promised until the group settled; absent where a lack of replicas hides them."""
    start_up_seconds: FiniteFloat | None = None
    """From the command to the first added replica; absent where the advised count was not reached by adding."""
    left_ungracefully: bool | None = None
    """True where leavers were missed only when their session ran out; absent where no member left or it is unknown."""


class ProfileFigure(Wire):
    """One figure of the group's profile, by the name of its setting."""

    name: str
    value: str | bool | FiniteFloat
    source: Literal["configured", "detected", "measured", "similar_groups", "assumed"]
    """Set by the owner, told by Kafka, the Kubernetes cluster or the prices of its nodes, from the group's own moves
    and restores, from those of similar groups, or the default."""
    seen_at: Instant | None = None
    """Instant at which Kafka or the Kubernetes cluster last showed the figure, or at which the price that is in use was
    read, which is replaced once a day at most. Absent for all others, and where Kafka showed it no more for a quarter
    of an hour."""


class Policy(Wire):
    """The policy, and the figures that were in force: those of its preset unless they were set."""

    name: Literal["stable", "balanced", "compact"]
    price_per_replica_hour: FiniteFloat
    price_per_late_message: FiniteFloat
    price_per_duplicate_message: FiniteFloat
    price_per_move: FiniteFloat
    """Risk price of one move before outcomes have taught."""
    risk_weight: FiniteFloat
    """Weight of the worst tenth of scenarios beyond the mean, 0 to 1."""
    max_lag_seconds: FiniteFloat | None = None
    """The longest wait of a message that is not late; absent in advice that is too old to have it."""


class Reason(Wire):
    """The reason of a decision, as one code for machines and as sentences with the arithmetic for people."""

    code: str
    sentences: tuple[str, ...]
    cause: Literal["restart_backlog", "capacity_drop", "load"] | None = None
    """Why messages wait beyond the promise: the group stood still, replicas do less than before, or more came.

    Absent while none wait so long, or what they wait for was not seen.
    """


class ObservedMinute(Wire):
    """The group in the minute that ends at `ends_at`."""

    ends_at: Instant
    produce_messages_per_second: FiniteFloat | None = None
    consume_messages_per_second: FiniteFloat | None = None
    lag_messages: FiniteFloat | None = None
    lag_seconds: FiniteFloat | None = None
    """Lag over the mean produce rate of five minutes; absent where nothing was produced."""
    members: int | None = None
    in_rebalance_fraction: FiniteFloat
    """Share of the minute in which partitions changed their owner."""
    hindsight_replicas: int | None = None
    """Replicas of the cheapest plan that carries the load of the whole day, known afterwards: useful counts at today's
    capacity, and the risk of a move at each change. Absent where the rate, the capacity or the price is not known."""


class PartitionLoad(Wire):
    """One partition of a group."""

    topic: str
    partition: int
    produce_messages_per_second: FiniteFloat | None = None
    lag_messages: int | None = None


class Standing(Wire):
    """What was decided for the group from `since_at` on, until the next one."""

    since_at: Instant
    reason_code: str
    current_replicas: int | None = None
    desired_replicas: int | None = None
    """Both are absent for a refusal."""


class LedgerQuarter(Wire):
    """A quarter of an hour of the ledger."""

    begins_at: Instant
    replicas: dict[str, FiniteFloat]
    """Mean replicas, those that start included: of the group itself as `paid`, and of each simulated scaler."""
    late_messages: dict[str, FiniteFloat]
