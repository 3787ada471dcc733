"""What the loop of this process knows of each group: the loop keeps it after each decision, any thread may read it."""

from typing import NamedTuple

from forecasting.history import PackedHistory
from recommender.deciding.inputs import DecisionInputs
from recommender.deciding.recommendation import Recommendation
from recommender.following.ledger import LedgerDay
from recommender.ports import Group


class Decided(NamedTuple):
    """Advice, and what it was decided from; neither changes any more."""

    advice: Recommendation
    inputs: DecisionInputs


class KnownGroup(NamedTuple):
    """One group after its latest decision, which has `decision_id`; nothing in it changes any more.

    `decided` is None where that was a refusal; what was seen of the group before it is there all the same.
    """

    decision_id: str
    decided: Decided | None = None
    history: PackedHistory | None = None
    day: LedgerDay | None = None


class KnownGroups:
    """The groups that this process decides on; one thread writes, others read.

    While this process decides nothing it knows none.
    """

    def __init__(self) -> None:
        self._kept: dict[Group, KnownGroup] = {}
        self._cycles = 0

    @property
    def cycles(self) -> int:
        """A number that is another one after each cycle of decisions."""
        return self._cycles

    def cycle_is_over(self) -> None:
        """What is known is that of a whole cycle now."""
        self._cycles += 1

    def of(self, group: Group) -> KnownGroup | None:
        """What is known of the group, if this process decides on it."""
        return self._kept.get(group)

    def keep(self, group: Group, known: KnownGroup | None) -> None:
        """Replace what is known of the group; None: nothing is."""
        if known is None:
            self._kept.pop(group, None)
        else:
            self._kept[group] = known

    def clear(self) -> None:
        """Know no group: another process decides now."""
        self._kept.clear()
        self._cycles += 1
