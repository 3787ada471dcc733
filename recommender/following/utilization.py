"""Target utilization of a group, learned from its own quiet minutes.

A backlog that grows while the group should keep up shows that its target utilization is too high: some of its
replicas are slower, or some partitions heavier, than the single figure of capacity assumes.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from cost_model.physics.capacity import group_capacity
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.deciding.facts import excess_seconds

# Three minutes of base rows in which members stayed and the load was carried: learning uses only these.
QUIET_ROWS = 12
# A load above this share of the carried rate may build up a backlog by itself.
FULL = 0.98
CREEPING_SECONDS = 2.0
# One row may show more by chance than the other rows confirm.
WAITS = 4
LEAST = 0.7
# Each row lowers it a quarter of the way to the utilization that was too high; an hour of full rows that kept up raises
# it by 5 %.
STEP_DOWN = 0.25
STEP_UP = 0.05 / 240.0


@dataclass(slots=True, kw_only=True)
class TargetUtilization:
    """The share of capacity that plans may use: `most` on day one, less where quiet minutes require it."""

    most: float
    commit_interval_seconds: Seconds
    value: float = 0.0
    _members: int | None = None
    _before: tuple[datetime, float] | None = None  # the end of the last row whose lag is known, and its lag
    _loads: deque[float] = field(default_factory=lambda: deque(maxlen=QUIET_ROWS))
    _lags: deque[float] = field(default_factory=lambda: deque(maxlen=QUIET_ROWS))
    _waits: deque[float] = field(default_factory=lambda: deque(maxlen=WAITS))

    def __post_init__(self) -> None:
        """Begin with `most`."""
        self.value = self.most

    def observe(self, row: GroupInterval, capacity: MessagesPerSecond, *, likely: MessagesPerSecond) -> None:
        """Take the next row: `value` is a share of `capacity`, which plans use; `likely` is a replica's likely one.

        They differ where the capacity is not set. A group that runs as full as planned, and keeps up, would never reach
        a share of the larger one: its target utilization would stay low, and the measured capacity would sink day by
        day.
        """
        stopped = self._stopped(row)
        if row.members is not None and (row.members != self._members or row.in_rebalance or stopped):
            self._members = row.members
            self._loads.clear()
            self._lags.clear()
            self._waits.clear()
        rate = row.produce_messages_per_second
        if not rate or not row.members or row.lag_messages is None:
            return
        carried = group_capacity(Replicas(row.members), partitions=Partitions(row.partitions), capacity=capacity)
        load = rate / carried
        self._loads.append(load)
        self._lags.append(row.lag_messages)
        waiting = row.lag_messages / rate - self.commit_interval_seconds
        self._waits.append(max(waiting, excess_seconds(row, self.commit_interval_seconds) or 0.0))
        if len(self._loads) < QUIET_ROWS or max(self._loads) > FULL * likely / capacity:
            return
        if median(self._waits) > CREEPING_SECONDS:
            if self._lags[-1] < self._lags[0]:
                return  # left over from a jump, and being consumed
            too_full = max(self._loads)
            self.value = max(LEAST, self.value + STEP_DOWN * min(0.0, too_full - self.value))
        elif load >= self.value - 0.02:
            self.value = min(self.most, self.value + STEP_UP)

    def _stopped(self, row: GroupInterval) -> bool:
        """True if more was left than a group leaves that carries LEAST of what comes: it has stood still meanwhile."""
        if row.lag_messages is None:
            return False
        end_at, before = row.interval_end_at, self._before
        self._before = (end_at, row.lag_messages)
        rate = row.produce_messages_per_second
        if rate is None:
            return True
        if before is None:
            return False
        may_wait = (1.0 - LEAST) * (end_at - before[0]).total_seconds() + self.commit_interval_seconds
        return row.lag_messages - before[1] > may_wait * rate
