"""Situation: the input of the plan search."""

from dataclasses import dataclass

from cost_model.physics.capacity import SATURATED_LAG_SECONDS
from cost_model.physics.profile import GroupProfile
from cost_model.pricing.price import Prices
from forecasting.units import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """Everything that the plan search needs, as plain values.

    `demand_messages_per_second` is the path to carry, one value per step of `step_seconds`. `replicas` is the present
    count, always a legal choice. `lag_messages` is backlog, its uncommitted part already removed. `target_utilization`
    is the share of capacity that plans may use; `max_lag_seconds` the wait beyond which a message is late.
    `rebalance_pause_prior_seconds` is a floor for a move's stop (see `move_effect`),
    `rebalance_pause_prior_scale_in_seconds` the one for removing where that differs, `pause_spread` the deviation of ln
    pause (0 makes pauses certain). No move takes effect before `earliest_move_step`. The search keeps `lag_points`
    backlogs. `quiet_seconds` have passed since the last rebalance; None: so long that heartbeats beat apart.
    """

    profile: GroupProfile
    prices: Prices
    demand_messages_per_second: FloatArray
    step_seconds: float
    replicas: int
    lag_messages: float
    max_lag_seconds: float
    target_utilization: float
    rebalance_pause_prior_seconds: float | None
    rebalance_pause_prior_scale_in_seconds: float | None = None
    quiet_seconds: float | None = None
    pause_spread: float = 0.5
    earliest_move_step: int = 0
    lag_points: int = 80
    behind_seconds: float = 0.0

    @property
    def pause_priors(self) -> tuple[float, float] | None:
        """The floors up and down, None where there is none."""
        if self.rebalance_pause_prior_seconds is None:
            return None
        down = self.rebalance_pause_prior_scale_in_seconds
        return self.rebalance_pause_prior_seconds, self.rebalance_pause_prior_seconds if down is None else down

    @property
    def behind(self) -> bool:
        """True if the backlog exceeds two seconds of the produce rate: batches are full then."""
        return self.lag_messages > SATURATED_LAG_SECONDS * float(self.demand_messages_per_second[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uncertainty:
    """The scenarios of demand, and the weight of the bad ones.

    Shapes: `demand_messages_per_second` (S, H), equally likely paths. `rate_now_messages_per_second` is the rate
    now. `risk_weight` in 0..1 weighs how much more expensive the worst tenth is than the mean. `planned_quantiles` are
    the quantile paths that plans of several moves are made for. `notice_seconds` pass until a surprise is seen.
    """

    demand_messages_per_second: FloatArray
    rate_now_messages_per_second: float
    risk_weight: float
    rest_up_steps: int
    rest_down_steps: int
    notice_seconds: float = 30.0
    planned_quantiles: tuple[float, ...] = (0.5, 0.9)
