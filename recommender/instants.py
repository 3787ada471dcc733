"""The instants at which the loop decides: once a cycle, or as soon as there are new rows."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Event
from typing import Protocol

# Longest delay until an event is noticed.
EARLY_LOOK_SECONDS = 0.1
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


def each_cycle(
    seconds: float, *, clock: Callable[[], datetime], stop: Event, early: Event | None = None
) -> Iterator[datetime]:
    """The present, once per `seconds`, until `stop` is set. A cycle that took longer gets the next one at once.

    The next one also comes within a tenth of a second after `early` was set.
    """
    while not stop.is_set():
        until = time.monotonic() + seconds
        if early is not None:
            early.clear()
        yield clock()
        while (left := until - time.monotonic()) > 0 and not (early is not None and early.is_set()):
            if stop.wait(left if early is None else min(left, EARLY_LOOK_SECONDS)):
                break


def as_rows_come(
    table: VersionedTable,
    cycle_seconds: float,
    *,
    clock: Callable[[], datetime],
    stop: Event,
    check: Callable[[], object],
) -> Iterator[datetime]:
    """The present, whenever the table has new rows and they may be used, at least once a cycle, until `stop` is set.

    Errors: those of `check`, which is called at each look.
    """
    seen, yielded = None, time.monotonic()
    while not stop.is_set():
        check()
        version = table.version
        if version != seen or time.monotonic() - yielded >= cycle_seconds:
            seen, yielded = version, time.monotonic()
            # Rows are read a second before their interval ends.
            newest = table.newest_interval_end_at() or clock()
            if stop.wait(max(0.0, (newest - clock()).total_seconds())):
                return
            yield clock()
        stop.wait(TABLE_LOOK_SECONDS)
