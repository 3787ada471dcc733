"""Capacity of one replica: as configured, or as measured in the group's history."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cost_model.physics.calibrate import capacity_seen
from cost_model.physics.drains import Drains
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval, History
from forecasting.units import Seconds
from recommender.following.kept_account import MeasuredCapacity

# Interval at which plans may fill a group that was never at its limit a step further; measuring takes 0.5 ms, after
# backlogs 20 ms.
LOOK_AFTER = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class CapacityTracker:
    """The capacity to decide with: the profile's own, or the one measured in the history and in the rows observed."""

    profile: GroupProfile
    _drains: Drains = field(init=False)
    _seen: Capacity | None = None
    _looked_at: datetime | None = None

    def __post_init__(self) -> None:
        self._drains = Drains(self.profile)

    def resume(self, measured: MeasuredCapacity | None) -> None:
        """Go on with a capacity that was kept: it stays in use, as without a restart, until another one is measured."""
        if measured is not None:
            self._looked_at, self._seen = measured

    @property
    def measured(self) -> MeasuredCapacity | None:
        """The last capacity that was measured, to be kept; None before there was one."""
        return None if self._looked_at is None or self._seen is None else MeasuredCapacity(self._looked_at, self._seen)

    def observe(self, row: GroupInterval) -> None:
        """Take the next base row of the history."""
        if self.profile.capacity is None:
            self._drains.observe(row)

    @property
    def known(self) -> Capacity | None:
        """The configured capacity, or else the last one measured; None until there is one."""
        return self._seen if self.profile.capacity is None else self.profile.capacity

    @property
    def limit(self) -> Capacity | None:
        """The same where it tells what a replica can do; None while it only tells what one has done at least."""
        known = self.known
        return None if known is None or known.source == "lower_bound" else known

    def look(self, history: History, *, surprised: bool) -> Capacity | None:
        """The capacity, measured again in `history` every few minutes, and at once if `surprised`.

        One that is not known yet is looked for in each new minute.
        A measured capacity stays in use, with growing age, until another one is measured: a lower bound is none.
        """
        before = self._looked_at
        wait = MINUTE if self.known is None else LOOK_AFTER
        recent = before is not None and history.end_at < before + wait
        if self.profile.capacity is not None or (recent and not surprised):
            return self.known
        self._looked_at = history.end_at
        found = capacity_seen(history, self.profile, drains=self._drains.over)
        if found is not None and found.source == "lower_bound" and self.limit is not None:
            found = None
        if found is None and self._seen is not None and before is not None:
            age = (self._seen.age_seconds or 0.0) + (history.end_at - before).total_seconds()
            found = replace(self._seen, age_seconds=Seconds(age))
        self._seen = found
        return found
