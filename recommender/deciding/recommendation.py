"""Recommendation: the count of replicas, its instant, and the cost of every alternative.

A recommender answers with a `Recommendation` or a `Refusal` (from `forecasting.refusal`); both are published.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cost_model.physics.learned import MoveOutcome, Source, StartUpSource
from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity, GroupProtocol
from cost_model.pricing.presets import Policy
from cost_model.pricing.price import Cost
from forecasting.forecast import HistoryTier
from forecasting.refusal import Refusal

Action = Literal["hold", "scale_out", "scale_in"]
ConfidenceLevel = Literal["high", "medium", "low"]
TurningQuantity = Literal[
    "price_per_late_message",
    "rebalance_pause_seconds",
    "capacity_messages_per_second_per_replica",
    "forecast_peak_messages_per_second",
]
FindingCode = Literal["hot_partition", "downstream_limit", "slow_replica"]
LagCause = Literal["restart_backlog", "capacity_drop", "load"]
ReasonCode = Literal[
    FindingCode,
    "ramp_ahead",
    "peak_ending",
    "backlog_drain",
    "cheaper_to_stay",
    "at_useful_maximum",
    "idle_members",
    "probing",
    "warming_up",
    "scale_in_cooldown",
    "move_interval",
    "guarded",
    "held",
    "idle",
    "activating",
]

# The decisions of which it is told what would reverse them: none; those that were the same before, as it was told then;
# or any, a new one being searched.
SensitivityOf = Literal["none", "as_before", "any"]

# In four of five scenarios the choice is no more expensive than the other way: high; in three of five: medium.
HIGH_CONFIDENCE = 0.8
MEDIUM_CONFIDENCE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan:
    """One alternative: `desired_replicas` from `execute_at`, then the cheapest continuation; its price, itemised.

    `execute_at` is None for the plan that stays.
    """

    desired_replicas: int
    execute_at: datetime | None
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The group as it stood in the newest usable rows."""

    as_of: datetime
    produce_messages_per_second: float
    consume_messages_per_second: float | None
    lag_messages: float
    lag_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceImpact:
    """Effects of the chosen move on the group while it happens (all zero for a hold)."""

    protocol_profile: GroupProtocol
    rebalance_pause_seconds: float
    moved_partition_fraction: float
    expected_rebalances: float
    duplicate_messages: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastValue:
    """What plans have cost with a forecast, and what they have cost with the produce rate taken to stay as it is.

    Both in currency, by the same weights: hours count half with each six hours from now. One of them was followed, or
    a simple scaler was; what was not followed was played beside the group. `forecast_proven`: the forecaster has beaten
    that out of sample; while it has not, both kinds of plans do without it. `forecast_used`: plans use the forecast.
    """

    cost_with_forecast: float
    cost_without_forecast: float
    forecast_proven: bool
    forecast_used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSummary:
    """The forecast behind the decision, thin enough to publish: three paths, one value per step from `origin_at` on.

    `value` is what forecasts have been worth, None while no plans are played beside the group. `origin_at` is None in
    advice that was stored before this field existed.
    """

    model: str
    history_tier: HistoryTier
    step_seconds: int
    p05: tuple[float, ...]
    p50: tuple[float, ...]
    p95: tuple[float, ...]
    value: ForecastValue | None = None
    origin_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedMoves:
    """Beliefs about the group's moves, and the share of their capacity that its replicas may use.

    `move_risk` is the price of one move beyond its expected price, in currency; `source` shows whether `moves`, the
    graded ones, outweigh the priors, and whether those were assumed or come from so many `similar_groups`;
    `target_utilization` is the share of capacity that plans use, `target_utilization_set` the most that settings allow.
    Plans expect added replicas after `start_up_seconds`: as set; else `start_up_seen_seconds`, that of graded moves,
    None before the first; else that of the workload's pods, `pod_start_up`; else as in similar groups, or assumed.
    `start_up_source` says which.
    """

    rebalance_pause_scale_out_seconds: float
    rebalance_pause_scale_in_seconds: float
    move_risk: float
    moves: int
    source: Source
    target_utilization: float
    target_utilization_set: float | None = None
    start_up_seconds: float | None = None
    start_up_seen_seconds: float | None = None
    start_up_source: StartUpSource | None = None
    similar_groups: int | None = None
    pod_start_up: PodStartUp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFigure:
    """One figure of the group's profile, by the name of its setting, and its source.

    `configured`: set by the owner, which wins; `detected`: Kafka, the Kubernetes cluster or the prices of its nodes
    tell it; `measured`: from the group's own moves and restores; `similar_groups`: from the moves of groups of the same
    kind; `assumed`: the default. What Kafka or the cluster tells was last seen, and the price that is in use was read,
    at `seen_at`; None where that is more than a quarter of an hour ago, as of a group without members.
    """

    name: str
    value: str | bool | float
    source: Literal["configured", "detected", "measured", "similar_groups", "assumed"]
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """The policy by name, and the figures that were in force: those of its preset where not set.

    Prices are in currency; `price_per_move` is the risk of one move before outcomes teach. `risk_weight` is how much
    the worst tenth of scenarios counts beyond the mean. A message that waits longer than `max_lag_seconds` is late;
    None in advice that was stored before this field existed.
    """

    name: Policy
    price_per_replica_hour: float
    price_per_late_message: float
    price_per_duplicate_message: float
    price_per_move: float
    risk_weight: float
    max_lag_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackStanding:
    """The used part of the plans' allowance: `policy` is followed while `used` is above `limit`.

    Both are in currency and fade with a half-life of six hours. `used` is the cost of the plans; the limit is the cost
    of the policy (`useful-counts` reacts with the useful replica counts in mind, `fixed` never moves), `slack_ratio`
    more, and the price of a change; it is lower while the policy is followed already.
    """

    policy: Literal["useful-counts", "fixed"]
    slack_ratio: float
    used: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """The cost of one scaler, in currency: of its replicas, those that start included, and of late messages.

    `distinguishable` is False where it differs from what was paid by no more than the ledger's error.
    """

    scaler: str
    replicas: float
    late: float
    distinguishable: bool

    @property
    def total(self) -> float:
        """The sum of the items."""
        return self.replicas + self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStanding:
    """What the group has cost since `since_at`, in the last 24 hours at most, and what each scaler would have.

    `error_ratio` is the simulated cost of the group as it was over what was paid; None: nothing was.
    """

    since_at: datetime
    currency: str
    error_ratio: float | None
    paid: LedgerAccount
    accounts: tuple[LedgerAccount, ...]

    def saving_against(self, account: LedgerAccount) -> float:
        """What the scaler would have cost more than was paid; negative where it would have cost less."""
        return account.total - self.paid.total

    @property
    def regret(self) -> float:
        """What was paid beyond the cheapest scaler, known afterwards; 0 where none would have cost less.

        A scaler that cannot be told from what was paid does not count: the least of ten estimates is mostly too low.
        """
        savings = [self.saving_against(account) for account in self.accounts if account.distinguishable]
        return max(0.0, -min(savings, default=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurningPoint:
    """The smallest change found that reverses the decision, all else equal: `quantity` from `present` to `turning`."""

    quantity: TurningQuantity
    present: float
    turning: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """The recent record of advice and forecaster for one group; None: too early to judge.

    `forecaster_failure` is the sentence on a forecaster that failed and was replaced; None: it works. The workload was
    last seen in its cluster at `cluster_seen_at`. `past_unread`: after a start only the newest hour of the group's past
    was read so far.
    """

    fallback_policy: FallbackStanding | None = None
    forecast_value: ForecastValue | None = None
    ledger: LedgerStanding | None = None
    forecaster_failure: str | None = None
    cluster_seen_at: datetime | None = None
    past_unread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Advice for one group, valid until `valid_until`, to be carried out at `execute_at` and never after.

    `due_replicas` is `desired_replicas` from `execute_at` on and `current_replicas` before. `chosen` and `stay` are
    prices over `horizon_seconds`; `alternatives` holds every other plan that was priced, cheapest first.
    `uncapped_replicas` is the plan's count before bounds and guards; `binding_rule` names the guard that bound.
    `act_now` is the price of making a later move at once instead. `desired_replicas_lower` and `_upper` are the
    cheapest counts in the lowest and the highest tenth of scenarios; `confidence` is the share of scenarios in which
    the choice is no more expensive than staying (a hold: than the best move). `cause` is why messages wait beyond the
    promise, None while none do. Fields that earlier versions did not store are None.
    """

    recommendation_id: str
    cluster: str
    group: str
    topics: tuple[str, ...]
    issued_at: datetime
    valid_until: datetime
    action: Action
    current_replicas: int
    desired_replicas: int
    uncapped_replicas: int
    useful_replicas: tuple[int, ...]
    execute_at: datetime
    not_before: datetime
    latest_safe: datetime
    effective_at: datetime
    lead_time_seconds: float
    observed: Observed
    history_seconds: float
    data_counts: tuple[tuple[str, int], ...]
    capacity: Capacity
    forecast: ForecastSummary
    rebalance_impact: RebalanceImpact
    horizon_seconds: float
    currency: str
    chosen: Cost
    stay: Cost
    break_even_seconds: float | None
    alternatives: tuple[PricedPlan, ...]
    reason: ReasonCode
    sentences: tuple[str, ...]
    binding_rule: str | None = None
    supersedes: str | None = None
    desired_replicas_lower: int | None = None
    desired_replicas_upper: int | None = None
    confidence: float | None = None
    act_now: Cost | None = None
    sensitivity: tuple[TurningPoint, ...] | None = None
    fallback_policy: FallbackStanding | None = None
    learned: LearnedMoves | None = None
    policy: PolicyFigures | None = None
    ledger: LedgerStanding | None = None
    profile: tuple[ProfileFigure, ...] = ()
    cause: LagCause | None = None

    @property
    def confidence_level(self) -> ConfidenceLevel | None:
        """`confidence` as a word."""
        if self.confidence is None:
            return None
        if self.confidence >= HIGH_CONFIDENCE:
            return "high"
        return "medium" if self.confidence >= MEDIUM_CONFIDENCE else "low"

    @property
    def saving(self) -> float:
        """The saving of the choice against staying, over the horizon."""
        return self.stay.total - self.chosen.total

    def due_replicas(self, *, now: datetime) -> int:
        """The replica count due at `now`: the clock-less channels (metrics, KEDA) serve this."""
        return self.desired_replicas if now >= self.execute_at else self.current_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedPrice:
    """The costs that advice published for its move and for staying, over its horizon, in `currency`."""

    chosen: float
    stay: float
    horizon_seconds: float
    currency: str

    @property
    def saving(self) -> float:
        """The expected saving of the move."""
        return self.stay - self.chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedMove:
    """One move of a group that is over: its expected and its measured effects, known at `graded_at`.

    `promised` is None where the move was not advised.
    """

    cluster: str
    group: str
    graded_at: datetime
    outcome: MoveOutcome
    promised: PromisedPrice | None = None


Decision = Recommendation | Refusal


def due_replicas(decision: Decision, *, now: datetime) -> int | str:
    """The replica count due at `now`; or, as a sentence without its stop, the reason why none is."""
    if isinstance(decision, Refusal):
        return f"no advice: {decision.sentence}"
    if now > decision.valid_until:
        return f"the last advice expired at {decision.valid_until:%Y-%m-%dT%H:%M:%SZ}"
    return decision.due_replicas(now=now)
