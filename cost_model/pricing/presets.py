"""Presets: three ways of weighing pods against lateness and moves, each a set of figures."""

from dataclasses import dataclass
from typing import Literal

Policy = Literal["stable", "balanced", "compact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The figures of a policy that replace prices that are not set.

    `late_seconds_per_replica_hour`: so many seconds of one replica's work being late are worth one replica-hour.
    `move_replica_hours`: the risk of one move. `risk_weight`: how much the worst tenth of scenarios counts beyond the
    mean.
    """

    late_seconds_per_replica_hour: float
    move_replica_hours: float
    risk_weight: float


PRESETS: dict[Policy, Preset] = {
    "stable": Preset(late_seconds_per_replica_hour=50.0, move_replica_hours=4.0, risk_weight=0.3),
    "balanced": Preset(late_seconds_per_replica_hour=100.0, move_replica_hours=2.0, risk_weight=0.1),
    "compact": Preset(late_seconds_per_replica_hour=200.0, move_replica_hours=1.0, risk_weight=0.0),
}
