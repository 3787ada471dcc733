"""Rests after long decisions: a group whose decisions take very long must not delay all others in each cycle."""

from datetime import datetime, timedelta

import structlog

from recommender.deciding.recommendation import Decision
from recommender.ports import Group

# Decisions that take longer than this, two in a row, are followed by so long a rest that they have this share of the
# time. With 1,000 partitions one takes 0.1 s; the first of a process may compile the loops, 10 s.
LONG_DECISION_SECONDS = 5.0
SHARE_OF_TIME = 0.05

_log = structlog.get_logger(__name__)


class LongDecisions:
    """The groups that rest, each with its last decision, which stays as it is until it expires."""

    def __init__(self) -> None:
        self._long_before: set[Group] = set()
        self._resting: dict[Group, tuple[datetime, datetime, Decision]] = {}

    def resting(self, group: Group, *, now: datetime) -> Decision | None:
        """The last decision on the group while it rests; None for a group that is to be decided now."""
        if group in self._resting:
            began, until, decision = self._resting[group]
            if began <= now < until:
                return decision
            del self._resting[group]  # over, or the clock was set back
        return None

    def note(self, decision: Decision, *, seconds: float, now: datetime) -> None:
        """Note how long a decision took to make, store and publish."""
        group = decision.cluster, decision.group
        if seconds <= LONG_DECISION_SECONDS:
            self._long_before.discard(group)
            return
        if group not in self._long_before:
            self._long_before.add(group)
            return
        until = now + timedelta(seconds=seconds / SHARE_OF_TIME)
        self._resting[group] = now, until, decision
        _log.warning(
            "long_decisions",
            cluster=decision.cluster,
            group=decision.group,
            seconds=round(seconds, 1),
            next_decision_at=until.isoformat(),
        )

    def forget(self, group: Group) -> None:
        """Keep nothing of a group that is gone."""
        self._long_before.discard(group)
        self._resting.pop(group, None)

    def clear(self) -> None:
        """Let no group rest."""
        self._long_before.clear()
        self._resting.clear()
