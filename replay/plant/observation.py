"""The observation of the group from outside at one instant, and the totals of each day."""

from dataclasses import dataclass, fields
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from forecasting.units import AnyArray, IntArray

BoolArray = NDArray[np.bool_]

# By the phase of the group.
GROUP_STATES = ("STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING", "RECONCILING")
# Kafka's words, by the protocol and the client of the world; a client of another kind has an id of its application.
GROUP_PROTOCOLS = {"eager": "classic", "cooperative": "classic", "kip848": "consumer"}
ASSIGNORS = {"eager": "range", "cooperative": "cooperative-sticky", "kip848": "uniform"}
CLIENTS = {"java": "java", "librdkafka": "librdkafka", "other": "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """The visible state of the group from outside at one instant; offsets have one value for each partition.

    `replicas` is the deployment's count, `ready_members` the pods in the group. `busy_share` is the mean share of
    their capacity that these used in the last 15 s. `unseen_partitions` were not sampled: their offsets are the last
    sampled ones. The rest is what Kafka tells of the group and of a member's client; None: it was not asked.
    """

    at: datetime
    time_seconds: int
    replicas: int
    ready_members: int
    group_state: str
    end_offsets: IntArray
    committed_offsets: IntArray
    busy_share: float = 0.0
    group_protocol: str | None = None
    group_assignor: str | None = None
    static_members: int | None = None
    clients: str | None = None
    unseen_partitions: tuple[int, ...] = ()

    @property
    def sampled(self) -> BoolArray:
        """The partitions that were seen, one boolean each."""
        seen: BoolArray = np.ones(len(self.end_offsets), dtype=np.bool_)
        seen[list(self.unseen_partitions)] = False
        return seen

    @property
    def lag_messages(self) -> IntArray:
        """End offset minus committed offset of each partition; never negative."""
        lag: IntArray = self.end_offsets - self.committed_offsets
        return lag


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """The totals of one day (or of the part of it that was simulated).

    `skipped` messages were left out by a forward reset; `lag_message_seconds` sums up the visible lag of every second.
    """

    pod_seconds: float
    arrivals: int
    served: int
    late: int
    moves: int
    rebalances: int
    rebalancing_seconds: float
    paused_partition_seconds: float
    duplicates: int
    skipped: int
    lag_message_seconds: float


def day_totals_of(tally: AnyArray) -> tuple[DayTotals, ...]:
    """The rows of the tally as values."""
    names = [field.name for field in fields(DayTotals)]
    return tuple(DayTotals(**{name: row[name].item() for name in names}) for row in tally)
