"""The rows that have come since the last cycle, read for many groups at once."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from forecasting.history import GroupInterval
from recommender.ports import Group, Histories

# Groups that are about as far behind the newest row are read together: up to this time, up to twice as far, and so on,
# so that no group is read for more than twice its own time, and a thousand groups of a late collector not one by one.
READ_TOGETHER = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


class NewestRows:
    """The rows of one cycle, in one read for the groups that are about as far behind each other, or a few.

    Where such a read fails, each of its groups is read alone, so that one which cannot be read is refused alone.
    """

    def __init__(self, histories: Histories, *, seen: Mapping[Group, datetime], until: datetime) -> None:
        """Read nothing yet; `seen` are the ends of the newest rows that are known of each group."""
        self._histories, self._until = histories, until
        newest = max((at for at in seen.values() if at <= until), default=until)
        together: dict[int, list[Group]] = {}
        for group, at in seen.items():
            together.setdefault(((newest - at) // READ_TOGETHER).bit_length(), []).append(group)
        self._turns: dict[Group, _Turn] = {}
        for groups in together.values():
            turn = _Turn(histories, sorted(groups), since=min(seen[group] for group in groups), until=until)
            self._turns.update(dict.fromkeys(groups, turn))

    def of(self, group: Group, *, since: datetime) -> Sequence[GroupInterval]:
        """The group's rows that end after `since`, oldest first. Errors: those of the histories."""
        turn = self._turns.get(group)
        rows = None if turn is None or since < turn.since else turn.of(group)
        if rows is None:
            return self._histories.intervals(*group, since=since, until=self._until)
        return [row for row in rows if row.interval_end_at > since]

    def has_any(self, group: Group, *, since: datetime) -> bool:
        """True if `of` has rows of the group, or has to read it alone."""
        turn = self._turns.get(group)
        rows = None if turn is None or since < turn.since else turn.look(group)
        return rows is None or any(row.interval_end_at > since for row in rows)


class _Turn:
    """The rows of some groups after `since`, read as they are asked for in the order of their names."""

    def __init__(self, histories: Histories, groups: Sequence[Group], *, since: datetime, until: datetime) -> None:
        self.since = since
        self._coming: Iterator[tuple[Group, Sequence[GroupInterval]]] = histories.intervals_in_turn(
            groups, since=since, until=until
        )
        self._read: dict[Group, Sequence[GroupInterval]] = {}

    def of(self, group: Group) -> Sequence[GroupInterval] | None:
        """The rows of one of the groups, once; None where they cannot be read together."""
        rows = self.look(group)
        self._read.pop(group, None)
        return rows

    def look(self, group: Group) -> Sequence[GroupInterval] | None:
        """The rows of one of the groups, which `of` gives again."""
        try:
            while group not in self._read:
                name, rows = next(self._coming)
                self._read[name] = rows
        except StopIteration:
            return None
        except Exception as error:  # noqa: BLE001  # reading the groups one by one gives the refusals
            _log.debug("reading_together_failed", error=str(error))
            return None
        return self._read[group]
