"""Recommendation: how many replicas, when, and what every way of doing it would cost.

A recommender answers with a `Recommendation` or a `Refusal` (from `forecasting.refusal`); both are published.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cost_model.price import Cost
from cost_model.profile import Capacity, GroupProtocol
from forecasting.forecast import Rung
from forecasting.refusal import Refusal

Action = Literal["hold", "scale_out", "scale_in"]
FindingCode = Literal["hot_partition", "downstream_limit"]
ReasonCode = Literal[
    FindingCode,
    "ramp_ahead",
    "peak_ending",
    "backlog_drain",
    "cheaper_to_stay",
    "at_useful_maximum",
    "idle_members",
    "warming_up",
    "min_interval",
    "guarded",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan:
    """One way to go on: `desired_replicas` from `execute_at`, then what is best from there; its price, itemised.

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
class Switch:
    """What the chosen move does to the group while it happens (all zero for a hold)."""

    protocol_profile: GroupProtocol
    pause_seconds: float
    moved_partition_fraction: float
    expected_rebalances: float
    duplicate_messages: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSummary:
    """The forecast behind the decision, thin enough to publish: three paths, one value per step."""

    model: str
    rung: Rung
    step_seconds: int
    p05: tuple[float, ...]
    p50: tuple[float, ...]
    p95: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Advice for one group, valid until `valid_until`, to be carried out at `execute_at` and never after.

    `due_replicas` is `desired_replicas` from `execute_at` on and `current_replicas` before. `chosen` and `stay` are
    prices over `horizon_seconds`; `alternatives` holds every other plan that was priced, cheapest first.
    `uncapped_replicas` is what the plan wanted before bounds and guards; `binding_rule` names the guard that bound.
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
    switch: Switch
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

    @property
    def saving(self) -> float:
        """What the choice saves against staying, over the horizon."""
        return self.stay.total - self.chosen.total

    def due_replicas(self, *, now: datetime) -> int:
        """What the group should have at `now`: the clock-less channels (metrics, KEDA) serve this."""
        return self.desired_replicas if now >= self.execute_at else self.current_replicas


Decision = Recommendation | Refusal
