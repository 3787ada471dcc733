"""What one replica carries, as it becomes known of a group for which nobody has set it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cost_model.calibrate import capacity_seen
from cost_model.profile import Capacity, GroupProfile
from forecasting.history import History
from forecasting.units import Seconds

# So often a group that was never at its limit may be filled a step further; looking takes 0.2 ms, after backlogs 20.
LOOK_AFTER = timedelta(minutes=5)


@dataclass(slots=True)
class KnownCapacity:
    """The capacity to decide with: the profile's own, or what the group has shown."""

    profile: GroupProfile
    _known: Capacity | None = None
    _looked_at: datetime | None = None

    def look(self, history: History, *, surprised: bool) -> Capacity | None:
        """What is known now; None until anything is. It is looked for every few minutes, and `surprised` at once.

        What was once known stays known, and grows older, until something else is.
        """
        if self.profile.capacity is not None:
            return self.profile.capacity
        before = self._looked_at
        if before is not None and history.end_at < before + LOOK_AFTER and not surprised:
            return self._known
        self._looked_at = history.end_at
        found = capacity_seen(history, self.profile)
        if found is None and self._known is not None and before is not None:
            age = (self._known.age_seconds or 0.0) + (history.end_at - before).total_seconds()
            found = replace(self._known, age_seconds=Seconds(age))
        self._known = found
        return found
