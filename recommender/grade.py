"""Grading: what a move really did to the group, read from the rows around it.

A move is watched from its command (or, where somebody else moved the group, from the first row that shows it) until the
group has been quiet for a while. Its stop is what was measured of its rebalances, where somebody looked often enough;
else how far lag rose, in seconds of arrivals, above what it was before and above what a lack of replicas alone would
have built up.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cost_model.capacity import group_capacity
from cost_model.learned import MoveOutcome
from cost_model.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas
from recommender.recommendation import GradedMove, PromisedPrice

# A move is over when members have not changed for this long; its backlog has mostly drained then.
QUIET_SECONDS = 60.0
# A command that shows no effect within this many start-ups and sessions was not carried out.
PATIENCE_FACTOR = 2.0
# Lag before the move is the mean of this many rows: two minutes.
ROWS_BEFORE = 8
# Leavers that are noticed only after this share of their session left ungracefully.
UNGRACEFUL_SHARE_OF_SESSION = 0.6
# A move in two steps causes a few rebalances; twenty replicas that come one by one cause twenty.
STOPS_KEPT = 20
# Where a lack of replicas alone builds up more than this share of the promised wait, nobody can tell what the move
# made late: 40,000/s that are late for 75 s after a jump would be 30 replica-hours.
SHORT_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A move that was advised under an id, and what was expected of it. `stopped_share` of the partitions stop."""

    at: datetime
    from_replicas: int
    to_replicas: int
    rebalance_pause_seconds: float
    late_messages: float
    stopped_share: float
    recommendation_id: str | None = None
    promised: PromisedPrice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPause:
    """What somebody who looked more often than rows come saw of one rebalance.

    `lost_seconds` is what all partitions together stood still, over their number; each stop may be off by
    `resolution_seconds`.
    """

    began_at: datetime
    ended_at: datetime
    lost_seconds: float
    resolution_seconds: float


@dataclass(slots=True, kw_only=True)
class _Watch:
    """A move while it happens."""

    command: Command | None
    began_at: datetime
    before: int
    lag_seconds_before: float
    last_change_at: datetime | None = None
    first_change_at: datetime | None = None
    after: int = 0
    peak_seconds: float = 0.0
    short_seconds: float = 0.0
    late_messages: float = 0.0


@dataclass(slots=True, kw_only=True)
class Grader:
    """Watches one group's rows, oldest first, and hands out the outcome of each move when it is over."""

    profile: GroupProfile
    max_lag_seconds: float
    _lags: deque[float] = field(default_factory=lambda: deque(maxlen=ROWS_BEFORE))
    _members: int | None = None
    _watch: _Watch | None = None
    _measured: deque[MeasuredPause] = field(default_factory=lambda: deque(maxlen=STOPS_KEPT))

    def commanded(self, command: Command) -> None:
        """A move was advised for now; the rows will tell whether it came."""
        if self._watch is None and self._lags:
            self._watch = self._opened(command.at, command.from_replicas, command)

    def measured(self, stop: MeasuredPause) -> None:
        """Keep what was measured; a move that it falls into is graded by it."""
        self._measured.append(stop)

    def observe(self, row: GroupInterval, capacity: MessagesPerSecond | None) -> GradedMove | None:
        """Take the next row; the move that is over with it, graded, else None."""
        rate = row.produce_messages_per_second or 0.0
        if row.members == 0 and not row.in_rebalance:
            self._members, self._watch = None, None  # nobody is there to be stopped: what follows is a start
            self._lags.clear()
            return None
        if row.members is None or row.lag_messages is None or rate <= 0.0:
            return None
        lag_seconds = row.lag_messages / rate
        changed = self._members is not None and row.members != self._members
        if changed and self._watch is None:
            began_at = row.interval_end_at - timedelta(seconds=row.interval_seconds)
            self._watch = self._opened(began_at, self._members or row.members, None)
        self._members = row.members
        if self._watch is None:
            self._lags.append(lag_seconds)
            return None
        self._follow(self._watch, row, lag_seconds, capacity, changed=changed)
        return self._closed(self._watch, row.interval_end_at)

    def _opened(self, at: datetime, before: int, command: Command | None) -> _Watch:
        lag_before = sum(self._lags) / len(self._lags) if self._lags else 0.0
        return _Watch(command=command, began_at=at, before=before, lag_seconds_before=lag_before)

    def _follow(
        self,
        watch: _Watch,
        row: GroupInterval,
        lag_seconds: float,
        capacity: MessagesPerSecond | None,
        *,
        changed: bool,
    ) -> None:
        if changed:
            watch.first_change_at = watch.first_change_at or row.interval_end_at
            watch.last_change_at = row.interval_end_at
        watch.after = row.members or watch.after
        rate = row.produce_messages_per_second or 0.0
        watch.peak_seconds = max(watch.peak_seconds, lag_seconds - watch.lag_seconds_before - watch.short_seconds)
        if capacity is not None and row.members:
            carried = group_capacity(Replicas(row.members), partitions=Partitions(row.partitions), capacity=capacity)
            watch.short_seconds += max(0.0, rate - carried) * row.interval_seconds / rate
        waiting = lag_seconds - self.profile.commit_interval_seconds / 2.0
        if waiting - watch.short_seconds > self.max_lag_seconds:
            watch.late_messages += rate * row.interval_seconds

    def _closed(self, watch: _Watch, now: datetime) -> GradedMove | None:
        if watch.last_change_at is None:
            patience = PATIENCE_FACTOR * self.profile.start_up_seconds + self.profile.session_timeout_seconds
            if (now - watch.began_at).total_seconds() > patience + QUIET_SECONDS:
                self._watch = None
            return None
        if (now - watch.last_change_at).total_seconds() < QUIET_SECONDS:
            return None
        self._watch = None
        if watch.lag_seconds_before > self.max_lag_seconds / 2 + self.profile.commit_interval_seconds:
            return None  # a backlog was there before: what the move added cannot be told
        command = watch.command
        took = None
        if command is not None and watch.first_change_at is not None:
            took = (watch.first_change_at - watch.began_at).total_seconds()
        down = watch.after < watch.before
        hidden = watch.late_messages > 0.0 and watch.short_seconds > SHORT_SHARE * self.max_lag_seconds
        outcome = MoveOutcome(
            from_replicas=watch.before,
            to_replicas=watch.after,
            expected_rebalance_pause_seconds=command.rebalance_pause_seconds if command else 0.0,
            rebalance_pause_seconds=self._rebalance_pause_seconds(
                watch, now, stopped_share=command.stopped_share if command else 1.0
            ),
            expected_late_messages=command.late_messages if command else 0.0,
            late_messages=None if hidden else watch.late_messages,
            ungraceful=(took > UNGRACEFUL_SHARE_OF_SESSION * self.profile.session_timeout_seconds)
            if down and took is not None
            else None,
            start_up_seconds=took if not down else None,
            advised_as=command.recommendation_id if command else None,
        )
        return GradedMove(
            cluster=self.profile.cluster,
            group=self.profile.group,
            graded_at=now,
            outcome=outcome,
            promised=command.promised if command else None,
        )

    def _rebalance_pause_seconds(self, watch: _Watch, now: datetime, *, stopped_share: float) -> float:
        """As it was measured, if it was, and by more than measuring is off; else as lag rose.

        Rows of 15 s show the lag that is left when they are read: a stop of 3 s may be consumed by then.
        """
        stops = [stop for stop in self._measured if watch.began_at <= stop.ended_at and stop.began_at <= now]
        measured = sum(stop.lost_seconds for stop in stops) / stopped_share
        if measured > max((stop.resolution_seconds for stop in stops), default=0.0):
            return measured
        return max(0.0, watch.peak_seconds) / stopped_share
