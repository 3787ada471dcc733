"""PodStartUp: how long new replicas of a group take, as the pods of its workload and the growth of the group show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, inf
from typing import NamedTuple

from forecasting.history import GroupInterval
from forecasting.units import Seconds

# Plans expect added replicas after a time that this share of starts has not exceeded. A replica that comes later than
# expected makes messages late, one that comes earlier costs its seconds: with the default prices 36 times less. One
# slow start in five (a new node, an image that had to be pulled) is left out.
START_UP_SHARE = 0.8
# Starts of an earlier version of the workload fade with so many newer ones.
STARTS_KEPT = 20
# Pods are matched with the newest of so many changes; a rolling restart of fifty pods makes a hundred.
CHANGES_KEPT = 100
# A growth of the group this long after a pod was ready is another one's.
LONGEST_JOIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStart:
    """One pod from its creation on: when it was given a node, when its containers ran, and when it was ready.

    Between `scheduled_at` and `started_at` images are pulled, volumes mounted and init containers run.
    """

    created_at: datetime
    scheduled_at: datetime
    started_at: datetime
    ready_at: datetime


class MembersChange(NamedTuple):
    """The number of a group's members from `at` on, the end of the first row that shows it."""

    at: datetime
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStartUp:
    """The start-up time of a group's replicas over its newest `pods`, the newest of which was up at `newest_at`.

    Four of five pods took `start_up_seconds` or less, from their creation until they were ready and the group had grown
    by them. The others are those of the pod at that place: it waited `node_wait_seconds` for a node, its containers ran
    `container_start_seconds` later, and it was up after `joining_seconds` more; they add up to `start_up_seconds`.
    """

    start_up_seconds: Seconds
    pods: int
    newest_at: datetime
    node_wait_seconds: Seconds
    container_start_seconds: Seconds
    joining_seconds: Seconds


def changes_in(rows: Iterable[GroupInterval], *, before: Sequence[MembersChange] = ()) -> tuple[MembersChange, ...]:
    """The newest changes of the number of members, oldest first, after those that were known `before` the rows."""
    changes = list(before)
    for row in rows:
        if row.members is not None and not row.in_rebalance and (not changes or changes[-1].members != row.members):
            changes.append(MembersChange(row.interval_end_at, row.members))
    return tuple(changes[-CHANGES_KEPT:])


def start_up_of(starts: Sequence[PodStart], changes: Sequence[MembersChange] = ()) -> PodStartUp | None:
    """The start-up time that the newest of these pods show; None without any. `changes` are oldest first.

    A pod is up when it is ready and the group has grown by it. Where no growth can be matched with it (a rolling
    restart, a standby) it is up when it is ready. Rows of 15 s show a growth up to 15 s late.
    """
    newest = sorted(_ups(starts, changes), key=lambda each: each[0].created_at)[-STARTS_KEPT:]
    if not newest:
        return None
    start, up_at = sorted(newest, key=_took)[ceil(START_UP_SHARE * len(newest)) - 1]
    return PodStartUp(
        start_up_seconds=_seconds(start.created_at, up_at),
        pods=len(newest),
        newest_at=max(up_at for _, up_at in newest),
        node_wait_seconds=_seconds(start.created_at, start.scheduled_at),
        container_start_seconds=_seconds(start.scheduled_at, start.started_at),
        joining_seconds=_seconds(start.started_at, up_at),
    )


def _ups(starts: Sequence[PodStart], changes: Sequence[MembersChange]) -> list[tuple[PodStart, datetime]]:
    """Each pod, and when it was up; those that were created between the same two changes join as they are ready."""
    ups: list[tuple[PodStart, datetime]] = []
    beside: Counter[int] = Counter()
    for start in sorted(starts, key=lambda each: each.ready_at):
        before = sum(change.at <= start.created_at for change in changes)
        beside[before] += 1
        wanted = changes[before - 1].members + beside[before] if before else inf
        grown_at = next((change.at for change in changes[before:] if change.members >= wanted), start.ready_at)
        joined = start.ready_at < grown_at <= start.ready_at + LONGEST_JOIN
        ups.append((start, grown_at if joined else start.ready_at))
    return ups


def _took(start_and_up: tuple[PodStart, datetime]) -> timedelta:
    start, up_at = start_and_up
    return up_at - start.created_at


def _seconds(since: datetime, until: datetime) -> Seconds:
    return Seconds((until - since).total_seconds())
