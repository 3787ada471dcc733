"""The instants at which the loop decides: as soon as there are new rows, and at least once a cycle."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

# Interval between two reads of the table: reading its manifest takes 0.1 ms.
TABLE_LOOK_SECONDS = 0.25
# Rows are read a second before their interval ends, and clocks of two machines differ. Rows that end later than this
# are of a wrong clock: nobody waits for them.
MOST_AHEAD = timedelta(seconds=30)


# A loop that has not looked for rows for so long hangs: the first cycle of 3,000 groups takes 2 min.
HANGS_AFTER_SECONDS = 900.0


class Pulse:
    """The signs of life of the loop, for a probe in another thread."""

    def __init__(self) -> None:
        self._beat_seconds: float | None = None

    def beat(self) -> None:
        """Note that the loop goes on."""
        self._beat_seconds = time.monotonic()

    def hangs(self) -> bool:
        """True if the loop has begun, and shown no sign of life for `HANGS_AFTER_SECONDS`."""
        return self._beat_seconds is not None and time.monotonic() - self._beat_seconds > HANGS_AFTER_SECONDS


class GrowingTable(Protocol):
    """A table to which other processes add rows."""

    @property
    def row_count(self) -> int:
        """The number of its rows."""
        ...

    def newest_interval_end_at(self, *, until: datetime | None = None) -> datetime | None:
        """End of the interval of its newest row, or of its newest one no later than `until`."""
        ...


def as_rows_come(
    table: GrowingTable,
    cycle_seconds: float,
    *,
    clock: Callable[[], datetime],
    stop: Event,
    early: Event | None = None,
    pulse: Pulse | None = None,
) -> Iterator[datetime]:
    """The present, whenever the table has new rows and they may be used, at least once a cycle, until `stop` is set.

    `early` requests an instant before the cycle is over, and `pulse` beats at each look. While the table cannot be read
    there is one instant each cycle: what is decided then tells the reason.
    """
    seen, yielded = None, time.monotonic()
    while not stop.is_set():
        if pulse is not None:
            pulse.beat()
        count = row_count_of(table)
        is_requested = early is not None and early.is_set()
        is_new = count is not None and count != seen
        if is_new or is_requested or time.monotonic() - yielded >= cycle_seconds:
            seen, yielded = seen if count is None else count, time.monotonic()
            if early is not None:
                early.clear()
            if stop.wait(_seconds_until_usable(table, clock())):
                return
            yield clock()
        stop.wait(TABLE_LOOK_SECONDS)


def row_count_of(table: GrowingTable) -> int | None:
    """The number of rows of the table; None while it cannot be read."""
    try:
        return table.row_count
    except Exception:  # noqa: BLE001  # the cycle reads it again and refuses with the reason
        return None


def _seconds_until_usable(table: GrowingTable, now: datetime) -> float:
    """Seconds until the interval of the newest row is over: rows are read a second before."""
    try:
        newest = table.newest_interval_end_at(until=now + MOST_AHEAD)
    except Exception:  # noqa: BLE001  # as above
        return 0.0
    return 0.0 if newest is None else max(0.0, (newest - now).total_seconds())
