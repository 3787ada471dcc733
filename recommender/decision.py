"""DecisionSettings: what the owner of a group may set about how decisions are made."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSettings:
    """The knobs of the pure decision, each with its unit, its default and the reason for the default."""

    replica_hour: float = 0.05
    """Price of one replica for one hour, in `currency`. A small pod on a shared node costs about this much."""

    currency: str = "USD"
    """Name of the money that every price is in."""

    late_message: float | None = None
    """Price of one message that waits longer than `max_lag_seconds`. None: 100 s of one replica's full work being
    late is worth one replica-hour, whatever the topic's scale."""

    duplicate_message: float | None = None
    """Price of one message processed twice. None: a fifth of a late message."""

    move: float | None = None
    """Risk price of one change of replicas. None: two replica-hours; at a fiftieth of that a planner thrashes
    (measured: 528 rebalances a day)."""

    max_lag_seconds: float = 10.0
    """The promise to keep: a message that waits longer is late."""

    head_room: float = 0.88
    """Share of a replica's capacity that plans may use. At 0.97 noise inside a minute becomes lag, which was seen to
    cost 4 times as much as doing nothing; 0.85 pays 2 to 3 % more for replicas on the loads this was tuned on."""

    planning_quantile: float = 0.9
    """Quantile path that plans have to carry. Must be one of `forecasting.forecast.QUANTILES`."""

    pause_prior_seconds: float = 12.0
    """Stop of the group that one move is believed to cause until outcomes say otherwise. The fluid formula gives 2-3 s
    for one rebalance; a move is several of them, and shy is cheaper than sorry."""

    horizon_seconds: int = 3600
    """How far plans look. An hour outlasts start-up plus the break-even time of ordinary moves."""

    cycle_seconds: int = 60
    """Time between two decisions for one group."""

    min_interval_seconds: float = 300.0
    """Least time between two moves; longer where five times the p99 processing time is longer (livelock)."""

    valid_for_seconds: float = 300.0
    """How long a recommendation may be acted on."""

    freshness_limit_seconds: float = 600.0
    """Older samples than this are refused as stale."""
