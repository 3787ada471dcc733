"""Lateness of the group as it really is: late messages by its lag, and its strength while it stays behind.

Shadows are held to it: what they get wrong of the group as it is, they get wrong of other scalers.
"""

from datetime import datetime
from typing import NamedTuple

from cost_model.physics.fluid import share_late
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count
from forecasting.history import GroupInterval
from forecasting.units import SECONDS_PER_HOUR, MessagesPerSecond
from recommender.deciding.facts import excess_seconds

# Two minutes behind at one count: the best row among them shows what that count carries, beside what a move stops.
SATURATED_ROWS = 8
# Half of what a shortage has shown is forgotten in so many seconds.
HALF_LIFE_SECONDS = 6.0 * SECONDS_PER_HOUR
# A group stands still while it consumes less than this share of what it could. That is not near 0: where no broker
# answered, the first row after it shows what was done since as well.
STILL_SHARE = 0.4
# After so many intervals: a burst at the end of one looks as a standstill does, and so do commits that are not due yet.
STILL_INTERVALS = 2.0
# So long after its members have changed, and for twice the longest pause that it is known to make, it may be the move.
SETTLED_SECONDS = 120.0
# At three quarters of its capacity a group catches up in three times the seconds that it stood still.
CATCH_UP_FACTOR = 3.0


class Waits(NamedTuple):
    """Seconds that partitions make their newest message wait: on average, and the quickest and the slowest of them."""

    mean: float
    shortest: float
    longest: float


class Lateness:
    """Late messages of one group, row by row, as its lag shows them."""

    def __init__(self, profile: GroupProfile, *, max_lag_seconds: float) -> None:
        self._profile, self._limit = profile, max_lag_seconds
        self.waits = Waits(0.0, 0.0, 0.0)

    @property
    def mean_wait_seconds(self) -> float:
        """The wait of a message in the last row, on average over the partitions."""
        return self.waits.mean

    def late_messages(self, row: GroupInterval, *, rate: float, lag: float, carried: float) -> float:
        """Messages that came in a row and wait for longer than promised, at a capacity of `carried`.

        Partitions wait for anything up to what the worst of them does, evenly around the mean; where the worst is far
        from it, so many of them that the mean comes out, and the others not at all.
        """
        mean = max(0.0, lag - rate * self._profile.commits_every_seconds / 2.0) / carried
        before = self.waits
        worst = max(mean, excess_seconds(row, self._profile.commits_every_seconds) or 0.0)
        self.waits = Waits(mean, max(0.0, 2.0 * mean - worst), worst)
        shortest, longest = min(before.shortest, self.waits.shortest), max(before.longest, worst)
        waiting = min(1.0, 2.0 * max(before.mean, mean) / longest) if longest > 0.0 else 0.0
        return rate * row.interval_seconds * waiting * share_late(shortest, longest, self._limit)


class StrengthState(NamedTuple):
    """The `share`; and members and consume rate of the last rows, oldest first, where the group was behind in all."""

    share: float
    behind: tuple[tuple[int, float], ...]


class Strength:
    """The share of its estimated capacity that one group has shown to have."""

    def __init__(self, profile: GroupProfile) -> None:
        self._profile = profile
        self.state = StrengthState(1.0, ())

    def see(self, row: GroupInterval, *, members: int, rate: float, late: float, capacity: MessagesPerSecond) -> float:
        """Learn from a group that stays behind how much of its capacity it has; half of that is forgotten in 6 h.

        A group stays behind in a row of which all messages are `late`. With an estimate of twice the capacity, shadows
        are too cheap and following them is expensive. A group that consumes nothing, or has no member, shows no
        strength.
        """
        share: float = 1.0 - (1.0 - self.state.share) * 0.5 ** (row.interval_seconds / HALF_LIFE_SECONDS)
        behind = self.state.behind
        saturated_rate = row.consume_messages_per_second if late >= rate * row.interval_seconds else None
        if not saturated_rate or not members or (behind and behind[-1][0] != members):
            behind = ()
        if saturated_rate and members:
            behind = (*behind, (members, saturated_rate))[-SATURATED_ROWS:]
        if len(behind) == SATURATED_ROWS:
            (carried,) = carried_by_count(self._profile, (members,), capacity=capacity).tolist()
            share = min(share, max(seen for _, seen in behind) / carried)
        self.state = StrengthState(share, behind)
        return share


class StandstillState(NamedTuple):
    """End, lag and produce rate of the last row; members, and since when they are so many; and seconds.

    The group has stood still for `stood_seconds`, and is excused for `excused_seconds` more.
    """

    before: tuple[datetime, float, float] | None = None
    members: tuple[int, datetime] | None = None
    stood_seconds: float = 0.0
    excused_seconds: float = 0.0


class Standstill:
    """Times in which a group whose members stay does nothing, or the same again: no count of replicas prevents them.

    A coordinator moves, a broker restarts, a database behind the consumers is away, an owner sets offsets back. What is
    late then, and until the group has caught up, is charged to nobody: who is scaled otherwise would have stood still
    too.
    """

    def __init__(self, profile: GroupProfile) -> None:
        self._commits_every_seconds = profile.commits_every_seconds
        self.state = StandstillState()

    def see(self, row: GroupInterval, *, members: int, lag: float, carried: float, pause_seconds: float) -> None:
        """Take a row of a group that could consume `carried` messages/s; `pause_seconds`: of its longest move.

        Where its produce rate is not known, as after rows that are missing, it is that of the row before.
        """
        end_at, rate = row.interval_end_at, row.produce_messages_per_second
        before, since, stood_seconds, excused_seconds = self.state
        if rate is None and before is not None:
            rate = before[2]
        if rate is None:
            return
        if since is None or since[0] != members:
            since = (members, end_at)
        if before is not None:
            elapsed = (end_at - before[0]).total_seconds()
            waiting = before[1] + rate * elapsed
            consumed, possible = waiting - lag, min(waiting, carried * elapsed)
            settled = (end_at - since[1]).total_seconds() - elapsed >= max(SETTLED_SECONDS, 2.0 * pause_seconds)
            still = settled and consumed < STILL_SHARE * possible
            stood_seconds = stood_seconds + elapsed - consumed / carried if still else 0.0
            if stood_seconds >= STILL_INTERVALS * max(row.interval_seconds, self._commits_every_seconds):
                excused_seconds = CATCH_UP_FACTOR * stood_seconds
            else:
                excused_seconds = max(0.0, excused_seconds - elapsed)
        self.state = StandstillState((end_at, lag, rate), since, stood_seconds, excused_seconds)

    def excuses(self, *, late: float) -> bool:
        """True if the `late` messages of the last row are those of a standstill; it is over once nothing is late."""
        if late == 0.0 and self.state.stood_seconds == 0.0:
            self.state = self.state._replace(excused_seconds=0.0)
        return self.state.excused_seconds > 0.0
