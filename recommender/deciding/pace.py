"""Pace: the times of a group's changes of size, by its own member counts, and their greatest number within an hour."""

from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from cost_model.physics.livelock import least_move_interval_seconds
from cost_model.physics.profile import GroupProfile
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import MINUTES_PER_DAY
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation

HOUR = timedelta(hours=1)
_MINUTES = 60


def patience_seconds(profile: GroupProfile) -> float:
    """Start-up times differ between pods: the last of several is ready about twice the mean after the command."""
    return 2 * profile.start_up_seconds + profile.termination_grace_seconds


def rest_seconds(profile: GroupProfile, settings: DecisionSettings, *, removing: bool) -> float:
    """Least time since the last move: the configured cooldown before removing, the move interval before adding.

    The move interval is what the group needs between two moves: time to settle, and five p99 processing times, so that
    work is not interrupted again and again. A shorter configured cooldown is raised to it.
    """
    needed = least_move_interval_seconds(profile)
    return max(settings.scale_in_cooldown_seconds, needed) if removing else needed


def last_move_at(history: History, previous: Recommendation | None, *, now: datetime) -> datetime | None:
    """Instant of the last change of size, by the group's own member counts or by the last advised move."""
    changes = [at for at, _ in _changes(history)]
    if previous is not None and previous.action != "hold" and previous.execute_at <= now:
        changes.append(previous.execute_at)
    return max(changes, default=None)


def last_grown_at(history: History) -> datetime | None:
    """Instant of the last change of the group's member counts, if it was an increase; else None."""
    at, more = max(_changes(history), default=(None, 0))
    return at if more > 0 else None


def taken_back(history: History, *, replicas: int, within_minutes: int, look_back_minutes: int) -> bool:
    """True if members were removed down to so many or fewer, and others added so soon after that.

    Only the minutes that are looked back on count.
    """
    members = history.members[-look_back_minutes - 1 :]
    known = np.flatnonzero(np.isfinite(members))
    steps = np.diff(members[known])
    removed = known[1:][(steps < 0.0) & (members[known[1:]] <= replicas)]
    added = known[1:][steps > 0.0]
    after = np.searchsorted(removed, added)
    return bool((added[after > 0] - removed[after[after > 0] - 1] <= within_minutes).any())


def last_growth(history: History, *, patience_seconds: float) -> tuple[datetime, int, int] | None:
    """Begin of the last change of size within a day of minutes, if it was up, and the counts before and after.

    Pods that join one after the other within `patience_seconds` are one change.
    """
    members = history.members[-MINUTES_PER_DAY - 1 :]
    known = np.flatnonzero(np.isfinite(members))
    steps = np.flatnonzero(np.diff(members[known]))
    if steps.size == 0:
        return None
    before, after = known[steps], known[steps + 1]
    first = steps.size - 1
    while first > 0 and MINUTE_SECONDS * (after[first] - after[first - 1]) <= patience_seconds:
        first -= 1
    least, most = int(members[before[first]]), int(members[after[-1]])
    at = history.end_at - timedelta(minutes=len(members) - 1 - int(after[first]))
    return (at, least, most) if most > least else None


def _changes(history: History) -> list[tuple[datetime, int]]:
    """Instants and sizes of the changes of members in the newest base rows."""
    members = [(row.interval_end_at, row.members) for row in history.recent if row.members is not None]
    return [(at, after - before) for (_, before), (at, after) in pairwise(members) if before != after]


def moves_of_the_hour(history: History, *, patience_seconds: float) -> tuple[datetime, ...]:
    """Starts of the changes of size in the last hour of minutes, of every origin; oldest first.

    The pods of one move come one after the other: changes the same way are one move while the next follows within
    `patience_seconds`.
    """
    members = history.members[-_MINUTES - 1 :]
    known = np.flatnonzero(np.isfinite(members)).tolist()
    begun: list[datetime] = []
    latest, upwards = None, False
    for before, after in pairwise(known):
        change = members[after] - members[before]
        if change == 0.0:
            continue
        at = history.end_at - timedelta(minutes=len(members) - 1 - after)
        continues = (
            latest is not None and upwards == (change > 0.0) and at - latest <= timedelta(seconds=patience_seconds)
        )
        if not continues:
            begun.append(at)
        latest, upwards = at, bool(change > 0.0)
    return tuple(begun)
