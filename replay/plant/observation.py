"""What the outside sees of the group at one instant, and what each day added up to."""

from dataclasses import dataclass, fields
from datetime import datetime

from forecasting.units import AnyArray, IntArray

# By the phase of the group.
GROUP_STATES = ("STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What can be seen of the group from outside at one instant; offsets have one value for each partition.

    `replicas` is what the deployment asks for, `ready_members` what is in the group.
    """

    at: datetime
    time_seconds: int
    replicas: int
    ready_members: int
    group_state: str
    end_offsets: IntArray
    committed_offsets: IntArray

    @property
    def lag_messages(self) -> IntArray:
        """End offset minus committed offset of each partition; never negative."""
        lag: IntArray = self.end_offsets - self.committed_offsets
        return lag


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """What one day (or the part of it that was simulated) added up to."""

    pod_seconds: float
    arrivals: int
    served: int
    late: int
    moves: int
    rebalances: int
    rebalancing_seconds: float
    paused_partition_seconds: float
    duplicates: int


def day_totals_of(tally: AnyArray) -> tuple[DayTotals, ...]:
    """The rows of the tally as values."""
    names = [field.name for field in fields(DayTotals)]
    return tuple(DayTotals(**{name: row[name].item() for name in names}) for row in tally)
