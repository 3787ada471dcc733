"""The instants at which the loop decides: as soon as there are new rows, and at least once a cycle."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Event
from typing import Protocol

# Interval between two reads of the table: reading its manifest takes 0.1 ms.
TABLE_LOOK_SECONDS = 0.25


class VersionedTable(Protocol):
    """A table to which other processes add rows."""

    @property
    def version(self) -> int:
        """A number that changes with its rows."""
        ...

    def newest_interval_end_at(self) -> datetime | None:
        """End of the interval of its newest row."""
        ...


def as_rows_come(
    table: VersionedTable,
    cycle_seconds: float,
    *,
    clock: Callable[[], datetime],
    stop: Event,
    check: Callable[[], object] = lambda: None,
    early: Event | None = None,
) -> Iterator[datetime]:
    """The present, whenever the table has new rows and they may be used, at least once a cycle, until `stop` is set.

    `early` requests an instant before the cycle is over. Errors: those of `check`, which is called at each look.
    """
    seen, yielded = None, time.monotonic()
    while not stop.is_set():
        check()
        version = table.version
        is_requested = early is not None and early.is_set()
        if version != seen or is_requested or time.monotonic() - yielded >= cycle_seconds:
            seen, yielded = version, time.monotonic()
            if early is not None:
                early.clear()
            # Rows are read a second before their interval ends.
            newest = table.newest_interval_end_at() or clock()
            if stop.wait(max(0.0, (newest - clock()).total_seconds())):
                return
            yield clock()
        stop.wait(TABLE_LOOK_SECONDS)
