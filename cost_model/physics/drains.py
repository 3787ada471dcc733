"""Drains: what a group does at its limit between a rebalance and the end of its backlog, in base rows."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import sqrt
from statistics import fmean, pstdev

from cost_model.physics.capacity import LEAST_COMMITS, SATURATED_LAG_SECONDS, WINDOW_SPREAD
from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Seconds

# Three rows of 15 s: members that came together read their first messages within a second or two.
LEAST_SECONDS = 45.0
KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A stretch of base rows in which a steady group was behind all the time, and less so at its end."""

    began_at: datetime
    ended_at: datetime
    members: int
    messages_per_second: MessagesPerSecond

    @property
    def seconds(self) -> Seconds:
        """Its length."""
        return Seconds((self.ended_at - self.began_at).total_seconds())


@dataclass(slots=True)
class Drains:
    """The drains of a group in the last day, from its base rows, oldest first.

    Replicas that are replaced leave a backlog of a minute or two, which holds no whole minute without a rebalance in it
    or before it: minutes do not show what replicas do meanwhile. A group that stands still or is overloaded falls
    further behind; what it does then is left to whole minutes.
    The rows have to be even. A client that works off a backlog may commit once a batch, which takes longer than its
    commit interval: 500 messages at 30 messages/s take 17 s, and rows of 15 s show 174, 18, 120 and 0 messages/s.
    """

    profile: GroupProfile
    _before: GroupInterval | None = None
    _rows: list[GroupInterval] = field(default_factory=list)
    _lag_at_begin: float = 0.0
    _over: deque[Drain] = field(default_factory=deque)

    def observe(self, row: GroupInterval) -> None:
        """Take the next row."""
        before, self._before = self._before, row
        if before is not None and self._goes_on(before, row):
            if not self._rows:
                self._lag_at_begin = before.lag_messages or 0.0
            self._rows.append(row)
        else:
            self._end()
        while self._over and self._over[0].ended_at <= row.interval_end_at - KEPT:
            self._over.popleft()

    @property
    def over(self) -> tuple[Drain, ...]:
        """Those that are over."""
        return tuple(self._over)

    def _goes_on(self, before: GroupInterval, row: GroupInterval) -> bool:
        """True if the group was steady and behind from the end of the row before to the end of this one."""
        began_at = row.interval_end_at - timedelta(seconds=row.interval_seconds)
        steady = row.members and row.members == before.members and not (row.in_rebalance or before.in_rebalance)
        rate = row.consume_messages_per_second
        # A row without a commit is part of a drain, and begins none: the first messages take longer than others.
        if not steady or before.interval_end_at != began_at or rate is None or not (rate or self._rows):
            return False
        floor = (SATURATED_LAG_SECONDS + self.profile.commits_every_seconds) * rate
        return all(lag is not None and lag > floor for lag in (before.lag_messages, row.lag_messages))

    def _end(self) -> None:
        """Keep the stretch that is over, if it shows what the group does at its limit."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        last, seconds = rows[-1], sum(row.interval_seconds for row in rows)
        is_long = seconds >= max(LEAST_SECONDS, LEAST_COMMITS * self.profile.commits_every_seconds)
        if not is_long or (last.lag_messages or 0.0) >= self._lag_at_begin:
            return
        rates = [row.consume_messages_per_second or 0.0 for row in rows]
        mean = fmean(rates, weights=[row.interval_seconds for row in rows])
        if pstdev(rates) > WINDOW_SPREAD * mean * sqrt(len(rates)):
            return
        self._over.append(
            Drain(
                began_at=last.interval_end_at - timedelta(seconds=seconds),
                ended_at=last.interval_end_at,
                members=last.members or 0,
                messages_per_second=MessagesPerSecond(mean),
            )
        )
