"""The rows that have come since the last cycle, read for all groups at once."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from forecasting.history import GroupInterval
from recommender.ports import Group, Histories

# A group that is so far behind the others is read alone: the rows of all would be read again for its sake.
READ_TOGETHER = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


class NewestRows:
    """The rows of one cycle: one read for the groups that were read lately, and one each for the others.

    Where the one read fails, each group is read alone, so that one which cannot be read is refused alone.
    """

    def __init__(self, histories: Histories, *, seen: Iterable[datetime], until: datetime) -> None:
        """Read them; `seen` are the ends of the newest rows that are known of each group."""
        self._histories, self._until = histories, until
        known = [at for at in seen if at <= until]
        newest = max(known, default=until)
        lately = [at for at in known if at >= newest - READ_TOGETHER]
        self._since = min(lately, default=until)
        self._rows: Mapping[Group, Sequence[GroupInterval]] = {}
        if lately:
            try:
                self._rows = histories.intervals_of_all(since=self._since, until=until)
            except Exception as error:  # noqa: BLE001  # reading the groups one by one gives the refusals
                _log.debug("reading_together_failed", error=str(error))
                self._since = until

    def of(self, group: Group, *, since: datetime) -> Sequence[GroupInterval]:
        """The group's rows that end after `since`, oldest first. Errors: those of the histories."""
        if since < self._since:
            return self._histories.intervals(*group, since=since, until=self._until)
        return [row for row in self._rows.get(group, ()) if row.interval_end_at > since]
