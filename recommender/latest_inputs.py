"""What each group's advice in force was decided from: the loop keeps it, and any thread may read it."""

from typing import NamedTuple

from recommender.deciding.inputs import DecisionInputs
from recommender.deciding.recommendation import Recommendation
from recommender.ports import Group


class Decided(NamedTuple):
    """Advice, and what it was decided from; neither changes any more."""

    advice: Recommendation
    inputs: DecisionInputs


class LatestInputs:
    """The newest advice of each group with its inputs; one thread writes, others read.

    A group without advice has none, nor has any group while this process decides nothing.
    """

    def __init__(self) -> None:
        self._kept: dict[Group, Decided] = {}

    def of(self, group: Group) -> Decided | None:
        """The newest advice of the group, if this process has made it."""
        return self._kept.get(group)

    def keep(self, group: Group, decided: Decided | None) -> None:
        """Replace what is kept of the group; None: nothing is."""
        if decided is None:
            self._kept.pop(group, None)
        else:
            self._kept[group] = decided

    def clear(self) -> None:
        """Keep nothing: another process decides now."""
        self._kept.clear()
