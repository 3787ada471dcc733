"""Grading: the measured effects of a move on the group, read from the rows around it.

A move is watched from its command (or, where it was not advised, from the first row that shows it) until the group has
been quiet for a while. Its stop is the measured one of its rebalances, where samples were frequent enough; else how far
lag rose above its value before and above the part that a lack of replicas alone would have built up, in seconds of the
highest produce rate until then: a rate that falls makes no lag. That takes the capacity of a replica: a move that is
over before the capacity is known waits for it.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from cost_model.physics.capacity import group_capacity
from cost_model.physics.learned import MoveOutcome
from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas
from recommender.deciding.recommendation import GradedMove, PromisedPrice

# A move is over when members have not changed for this long; its backlog has mostly drained then.
QUIET_SECONDS = 60.0
# A command without an effect within this many start-ups and sessions was not carried out.
PATIENCE_FACTOR = 2.0
# Added replicas may wait for a node and an image, whatever the settings expect: 180 s were missed with the default of
# 30 s, and so never measured.
LONGEST_START_UP_SECONDS = 600.0
# Lag before the move is the mean of this many rows: two minutes.
ROWS_BEFORE = 8
# Leavers that are noticed only after this share of their session left ungracefully.
UNGRACEFUL_SHARE_OF_SESSION = 0.6
# A move in two steps causes a few rebalances; twenty replicas that come one by one cause twenty.
STOPS_KEPT = 20
# Where a lack of replicas alone builds up more than this share of the promised wait, the lateness of the move cannot be
# measured: 40,000/s that are late for 75 s after a jump would be 30 replica-hours.
SHORT_SHARE = 0.5
# While the capacity is unknown, a group that changes for longer than an hour without a quiet minute is graded by the
# last hour of it, and as many moves wait as are read from the store after a restart.
LOOKS_KEPT = 240
WAITING_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A move that was advised under an id, and its expected effects. `stopped_share` of the partitions stop."""

    at: datetime
    from_replicas: int
    to_replicas: int
    rebalance_pause_seconds: float
    late_messages: float
    stopped_share: float
    recommendation_id: str | None = None
    promised: PromisedPrice | None = None

    @property
    def adds(self) -> bool:
        """True if replicas are to be added."""
        return self.to_replicas > self.from_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPause:
    """One rebalance as measured by an observer that samples more often than rows are written.

    `lost_seconds` is the sum of all partitions' stops, divided by their number; each stop may be off by
    `resolution_seconds`.
    """

    began_at: datetime
    ended_at: datetime
    lost_seconds: float
    resolution_seconds: float


class _Look(NamedTuple):
    """The figures of one row that grade a move."""

    row: GroupInterval
    rate: float
    lag_messages: float

    @property
    def lag_seconds(self) -> float:
        """The lag in seconds of arrivals."""
        return self.lag_messages / self.rate


@dataclass(slots=True, kw_only=True)
class _Watch:
    """A move while it happens; `looks` are the rows that are not counted yet because the capacity is unknown."""

    command: Command | None
    began_at: datetime
    before: int
    lag_seconds_before: float
    seen_until: datetime
    last_change_at: datetime | None = None
    first_change_at: datetime | None = None
    after: int = 0
    peak_seconds: float = 0.0
    highest_rate: float = 0.0
    short_seconds_at_peak: float = 0.0
    short_seconds: float = 0.0
    short_messages: float = 0.0
    late_messages: float = 0.0
    looks: deque[_Look] = field(default_factory=lambda: deque(maxlen=LOOKS_KEPT))

    def is_refuted_by(self, *, adds: bool) -> bool:
        """True if its command has had no effect, and a change the other way is commanded or seen."""
        return self.last_change_at is None and self.command is not None and self.command.adds != adds


@dataclass(slots=True, kw_only=True)
class Grader:
    """Watches one group's rows, oldest first, and returns the outcome of each move when it is over.

    `grade_waiting` returns a move that was over before the capacity was known, as soon as it is known.
    """

    profile: GroupProfile
    max_lag_seconds: float
    _lags: deque[float] = field(default_factory=lambda: deque(maxlen=ROWS_BEFORE))
    _members: int | None = None
    _watch: _Watch | None = None
    _waiting: deque[_Watch] = field(default_factory=lambda: deque(maxlen=WAITING_KEPT))
    _measured: deque[MeasuredPause] = field(default_factory=lambda: deque(maxlen=STOPS_KEPT))

    def commanded(self, command: Command) -> None:
        """Record that a move is advised for now; the rows will show whether it was made.

        It takes the place of a command the other way that has had no effect.
        """
        if self._lags and (self._watch is None or self._watch.is_refuted_by(adds=command.adds)):
            self._watch = self._opened(command.at, command.from_replicas, command)

    def retract(self, at: datetime) -> None:
        """Forget the command of that instant: nobody was told of it."""
        command = None if self._watch is None else self._watch.command
        if command is not None and command.at == at:
            self._watch = None

    def measured(self, stop: MeasuredPause) -> None:
        """Keep a measured pause; a move that it falls into is graded by it."""
        self._measured.append(stop)

    def observe(self, row: GroupInterval, capacity: MessagesPerSecond | None) -> GradedMove | None:
        """Take the next row; returns the graded move that ended with it, else None.

        `capacity` is that of one replica as far as known by now. None: the move waits for `grade_waiting`.
        """
        rate = row.produce_messages_per_second or 0.0
        if row.members == 0 and not row.in_rebalance:
            self._members, self._watch = None, None  # no member can be stopped: the next change is a start
            self._lags.clear()
            return None
        if row.members is None or row.lag_messages is None or rate <= 0.0:
            return None
        look = _Look(row, rate, row.lag_messages)
        before = row.members if self._members is None else self._members
        changed = row.members != before
        if changed and (self._watch is None or self._watch.is_refuted_by(adds=row.members > before)):
            began_at = row.interval_end_at - timedelta(seconds=row.interval_seconds)
            self._watch = self._opened(began_at, before, None)
        self._members = row.members
        if self._watch is None:
            self._lags.append(look.lag_seconds)
            return None
        self._follow(self._watch, look, changed=changed)
        if self._watch.last_change_at is None:
            self._lags.append(look.lag_seconds)  # of use to the watch that takes the place of this one
        return self._closed(self._watch, capacity)

    def grade_waiting(self, capacity: MessagesPerSecond) -> list[GradedMove]:
        """The moves that were over before the capacity was known, oldest first; each is returned once."""
        waiting = tuple(self._waiting)
        self._waiting.clear()
        for watch in waiting:
            self._count(watch, capacity)
        return [self._graded(watch) for watch in waiting]

    def _opened(self, at: datetime, before: int, command: Command | None) -> _Watch:
        lag_before = sum(self._lags) / len(self._lags) if self._lags else 0.0
        return _Watch(command=command, began_at=at, before=before, lag_seconds_before=lag_before, seen_until=at)

    def _follow(self, watch: _Watch, look: _Look, *, changed: bool) -> None:
        watch.looks.append(look)
        watch.seen_until = look.row.interval_end_at
        if changed:
            watch.first_change_at = watch.first_change_at or watch.seen_until
            watch.last_change_at = watch.seen_until
        watch.after = look.row.members or watch.after

    def _count(self, watch: _Watch, capacity: MessagesPerSecond) -> None:
        """Add up lag and lateness of the rows that are not counted yet."""
        for look in watch.looks:
            row, rate = look.row, look.rate
            watch.highest_rate = max(watch.highest_rate, rate)
            above = look.lag_messages - rate * watch.lag_seconds_before - watch.short_messages
            if above / watch.highest_rate > watch.peak_seconds:
                watch.peak_seconds, watch.short_seconds_at_peak = above / watch.highest_rate, watch.short_seconds
            if row.members:
                partitions = Partitions(row.partitions)
                carried = group_capacity(Replicas(row.members), partitions=partitions, capacity=capacity)
                short_messages = max(0.0, rate - carried) * row.interval_seconds
                watch.short_messages += short_messages
                watch.short_seconds += short_messages / rate
            waiting = look.lag_seconds - self.profile.commits_every_seconds / 2.0
            if waiting - watch.short_seconds > self.max_lag_seconds:
                watch.late_messages += rate * row.interval_seconds
        watch.looks.clear()

    def _closed(self, watch: _Watch, capacity: MessagesPerSecond | None) -> GradedMove | None:
        if capacity is not None:
            self._count(watch, capacity)
        if not self._over(watch):
            return None
        self._watch = None
        if not self._gradable(watch):
            return None
        if capacity is None:
            self._waiting.append(watch)
            return None
        return self._graded(watch)

    def _over(self, watch: _Watch) -> bool:
        """True if the group has been quiet for long enough, or no move has come for too long."""
        if watch.last_change_at is None:
            patience = PATIENCE_FACTOR * self.profile.start_up_seconds + self.profile.session_timeout_seconds
            if watch.command is not None and watch.command.adds:
                patience = max(patience, LONGEST_START_UP_SECONDS)
            return (watch.seen_until - watch.began_at).total_seconds() > patience + QUIET_SECONDS
        return (watch.seen_until - watch.last_change_at).total_seconds() >= QUIET_SECONDS

    def _gradable(self, watch: _Watch) -> bool:
        """True if the group has moved without a backlog: the effect of a move on a backlog cannot be measured."""
        most = self.max_lag_seconds / 2 + self.profile.commits_every_seconds
        return watch.last_change_at is not None and watch.lag_seconds_before <= most

    def _graded(self, watch: _Watch) -> GradedMove:
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
                watch, stopped_share=command.stopped_share if command else 1.0
            ),
            expected_late_messages=command.late_messages if command else 0.0,
            late_messages=None if hidden else watch.late_messages,
            ungraceful=(took > UNGRACEFUL_SHARE_OF_SESSION * self.profile.session_timeout_seconds)
            if down and took is not None
            else None,
            # Another scaler may change the group while the command waits: that would be no start-up time.
            start_up_seconds=took
            if command is not None and command.adds and watch.after == command.to_replicas
            else None,
            advised_as=command.recommendation_id if command else None,
        )
        return GradedMove(
            cluster=self.profile.cluster,
            group=self.profile.group,
            graded_at=watch.seen_until,
            outcome=outcome,
            promised=command.promised if command else None,
        )

    def _rebalance_pause_seconds(self, watch: _Watch, *, stopped_share: float) -> float | None:
        """The measured pause, if there is one above the resolution; else the pause that explains the rise of the lag.

        Rows of 15 s show the lag at the time when they are read: a stop of 3 s may be caught up by then. None where the
        lack of replicas alone had made messages late by then: replicas that come within a row of 15 s are counted from
        its begin, and leave up to 15 s of lag that no stop has caused.
        """
        stops = [
            stop for stop in self._measured if watch.began_at <= stop.ended_at and stop.began_at <= watch.seen_until
        ]
        measured = sum(stop.lost_seconds for stop in stops) / stopped_share
        if measured > max((stop.resolution_seconds for stop in stops), default=0.0):
            return measured
        if watch.short_seconds_at_peak > self.max_lag_seconds:
            return None
        return max(0.0, watch.peak_seconds) / stopped_share
