"""Measured stops of rebalances, kept until the move that they belong to is graded."""

from collections import defaultdict, deque

from recommender.following.grading import MeasuredPause
from recommender.ports import Group

# A standby takes none; a leader learns from as many moves of a group.
STOPS_KEPT = 500


class MeasuredStops:
    """The newest stops by group; one thread may add while another takes."""

    def __init__(self) -> None:
        self._kept: defaultdict[Group, deque[MeasuredPause]] = defaultdict(lambda: deque(maxlen=STOPS_KEPT))

    def add(self, group: Group, stop: MeasuredPause) -> None:
        """Keep one more stop of the group."""
        self._kept[group].append(stop)

    def taken(self, group: Group) -> tuple[MeasuredPause, ...]:
        """The stops that were added since this was last called for the group."""
        kept = self._kept[group]
        return tuple(kept.popleft() for _ in range(len(kept)))
