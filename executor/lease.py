"""Checks whether a recommender is alive, by its Lease and by the executor's own monotonic clock.

Instants in the Lease are compared with each other, never with a clock of ours: if they change, a recommender renews
the Lease. A renewal that is new in one look was made after the look before it was requested.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from zlib import crc32

from executor.plan import CLOCK_SKEW_LIMIT, Held

# The interval at which a recommender renews.
LOOK_SECONDS = 2.0
# The default duration of a lease: without a renewal in this time, none is expected.
_FIRST_RENEWAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A Lease as it was read. `holder` and `renewed` are empty if it has no holder, or never had one."""

    holder: str
    renewed: str
    lease_seconds: float
    clock_skew: timedelta
    """The least by which the API server's clock differs from ours."""


class Leases(Protocol):
    """The Lease of the recommenders."""

    name: str

    def read(self) -> Sighting:
        """The Lease as it stands. Errors: OutsideError."""
        ...


class LeaseWatch:
    """Reads a Lease periodically; `held` returns the reason why nothing may be done at the moment.

    `clock` is monotonic, in seconds. Until a renewal was seen, no recommender is known to be alive.
    """

    def __init__(self, leases: Leases, *, clock: Callable[[], float]) -> None:
        self._leases, self._clock = leases, clock
        self._last: Sighting | None = None
        self._asked_at = self._renewal_seen_at = clock()
        # Replaced by the watching thread, read by the acting threads.
        self._alive_until: float | None = None
        self._trouble = ""

    def look(self) -> None:
        """Read the Lease once, and note a renewal or an error."""
        asked_at = self._clock()
        try:
            found = self._leases.read()
        except Exception as error:  # noqa: BLE001  # a token that cannot be read, for one: the next look may be answered
            self._trouble = str(error) or type(error).__name__
            return
        self._trouble = ""
        before, not_before = self._last, self._asked_at
        self._last, self._asked_at = found, asked_at
        if not found.holder:
            self._alive_until = None
        elif before is not None and found.renewed != before.renewed:
            self._renewal_seen_at = self._clock()
            self._alive_until = not_before + found.lease_seconds

    def held(self) -> Held | None:
        """The reason why no patch may be sent now; None if a recommender holds the Lease for certain."""
        now, last, until, lease = self._clock(), self._last, self._alive_until, f"the Lease {self._leases.name}"
        if last is not None and last.clock_skew > CLOCK_SKEW_LIMIT:
            sentence = (
                f"the clocks of executor and API server differ by {last.clock_skew.total_seconds():.1f} s or more; the "
                f"limit is {CLOCK_SKEW_LIMIT.total_seconds():.0f} s: synchronise them"
            )
            return Held(reason="clock_skew", sentence=sentence)
        if self._trouble:
            why = f"{lease} cannot be read: {self._trouble}"
        elif until is not None and now < until:
            return None
        elif last is not None and not last.holder:
            why = f"{lease} has no holder"
        else:
            why = f"{lease} was not seen to be renewed for {now - self._renewal_seen_at:.0f} s"
        return Held(reason="no_leader", sentence=f"{why}; nothing is changed until a recommender renews it")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Read the Lease every 2 s until the block ends; it begins when a renewal was seen, or after 15 s without."""
        stop, known = threading.Event(), threading.Event()

        def watch() -> None:
            while not stop.is_set():
                self.look()
                if self.held() is None:
                    known.set()
                stop.wait(LOOK_SECONDS)

        thread = threading.Thread(target=watch, name="lease", daemon=True)
        thread.start()
        known.wait(_FIRST_RENEWAL_SECONDS)
        try:
            yield
        finally:
            stop.set()
            thread.join()


def held_by_shard(watches: Sequence[LeaseWatch]) -> Callable[[tuple[str, str]], Held | None]:
    """The reason why nothing may be done for a group of (cluster, name), by the Lease of its shard.

    `watches` has a Lease for each shard, in their order. The rule is that of `recommender.shards`, which nothing here
    may import; a test compares the two.
    """
    return lambda group: watches[crc32("\0".join(group).encode()) % len(watches)].held()
