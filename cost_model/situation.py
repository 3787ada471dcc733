"""Situation: what the plan search is asked."""

from dataclasses import dataclass

from cost_model.price import Prices
from cost_model.profile import GroupProfile
from forecasting.units import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """Everything the plan search needs to know, as plain values.

    `demand_messages_per_second` is the path to carry, one value per step of `step_seconds`. `replicas` is the present
    count, always a legal choice. `lag_messages` is backlog, its uncommitted part already removed. `head_room` is the
    share of p20 capacity that plans may use; `max_lag_seconds` the wait beyond which a message is late.
    `pause_prior_seconds` is a floor for a move's stop (see `move_effect`), `pause_spread` the deviation of ln pause
    (0 makes pauses certain). No move takes effect before `earliest_move_step`.
    """

    profile: GroupProfile
    prices: Prices
    demand_messages_per_second: FloatArray
    step_seconds: float
    replicas: int
    lag_messages: float
    max_lag_seconds: float
    head_room: float
    pause_prior_seconds: float | None
    pause_spread: float = 0.5
    earliest_move_step: int = 0
