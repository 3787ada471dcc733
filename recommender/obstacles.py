"""Obstacles and the refusals that they become."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from forecasting.refusal import Refusal, RefusalReason
from recommender.ports import AdapterError, Group, Obstacle

_OUTAGE_REMEDY = "Nothing is advised that cannot be read or stored; the first cycle after the outage decides again."
_FAILURE_REMEDY = "Look at the log line of this cycle; the next cycle starts from the table again."


def outage(error: Exception) -> Obstacle:
    """What all groups share hinders every decision: the store, the table or the objects."""
    return Obstacle("source_unreachable", str(error), _OUTAGE_REMEDY)


def failure(error: Exception) -> Obstacle:
    """One group has failed: its source by an error of the port, lagcast itself by any other."""
    reason: RefusalReason = "source_unreachable" if isinstance(error, AdapterError) else "unsupported"
    return Obstacle(reason, f"{type(error).__name__}: {error}", _FAILURE_REMEDY)


def worker_died(times: int) -> Obstacle:
    """The process that opens or decides the group has died so many times, at last with no other group beside it."""
    return Obstacle(
        "unsupported",
        f"The worker of Spark that was at this group died {times:,} times, at last with no other group beside it, as "
        "it does where its memory does not suffice.",
        "Give the workers of Spark more memory, or executors fewer cores; or set `mode: off` for this group.",
    )


def rows_ahead(newest: Mapping[Group, datetime], *, now: datetime) -> dict[Group, Obstacle]:
    """The groups whose newest row, at the given instant, is of a clock that is ahead of this machine's."""
    return {
        group: Obstacle(
            "history_stale",
            f"The newest row ends at {ends_at.isoformat()}, {(ends_at - now).total_seconds():,.0f} s ahead of this "
            "machine's clock: one of the two clocks is wrong.",
            "Set the clocks of both machines by NTP; until this clock has reached that row the group is not decided.",
        )
        for group, ends_at in newest.items()
    }


def refused(group: Group, obstacle: Obstacle, *, now: datetime, retry_seconds: float) -> Refusal:
    """The refusal of a group at `now`, to be tried again so many seconds later."""
    return Refusal(
        cluster=group[0],
        group=group[1],
        reason=obstacle.reason,
        sentence=obstacle.sentence,
        evidence=(),
        remedy=obstacle.remedy,
        refused_at=now,
        retry_at=now + timedelta(seconds=retry_seconds),
        hold_replicas=obstacle.hold_replicas,
    )
