"""Election of the one recommender that may publish: the rules of a lease, by the monotonic clock of one machine.

A holder counts from the moment at which its last renewal *was sent*, the others from the moment at which they first saw
it. A renewal is sent before it is seen, so that a recommender which waits for longer than the holder believes comes
after it, even if the clocks of the two differ. Nothing here compares instants of two machines.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from recommender.deciding.recommendation import Decision
from recommender.ports import Publisher

# A wait of 0 s would send requests to the API server without end.
_SHORTEST_WAIT_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """Durations of a lease, in seconds; the defaults are those of Kubernetes' own controllers."""

    lease_seconds: float = 15.0
    """No other recommender takes a lease whose renewal was seen so recently."""

    renew_deadline_seconds: float = 10.0
    """Time after its last renewal was sent for which a holder believes that it holds the lease."""

    retry_seconds: float = 2.0
    """Time between two renewals, and between two reads of another holder's lease."""

    @property
    def margin_seconds(self) -> float:
        """Seconds for a holder's running work to end before another can begin: 5 s."""
        return self.lease_seconds - self.renew_deadline_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The Lease as the cluster keeps it. `version` changes with every write.

    `holder` is empty where it was released; None where it never had one, as after the Lease was created anew.
    """

    holder: str | None
    lease_seconds: float
    version: str


class LeaseTakenError(Exception):
    """The lease was written by another since it was read; nothing was written."""


class LeaseFailedError(Exception):
    """The lease can neither be read nor written now; the message has the reason and the next step."""


class Leases(Protocol):
    """One lease in a cluster. Each call ends within half a renew deadline. Errors: LeaseFailedError."""

    def read(self) -> Lease:
        """The current lease."""
        ...

    def write(self, before: Lease, *, holder: str, lease_seconds: float) -> Lease:
        """Make `holder` its holder (empty: none), unless it has changed since `before`. Errors: LeaseTakenError."""
        ...


class NotLeadingError(Exception):
    """This recommender may not publish; another one may, or none."""


class Leadership(Protocol):
    """The right of this process to publish."""

    def term(self) -> int | None:
        """Number of the term that is certainly in force now; None: none. An ended term's number is not used again."""
        ...


class Elector:
    """Tries to hold a lease, step by step; a `Leadership`, for calls from any thread.

    `clock` is monotonic, in seconds. `identity` must be unique to this process: a restarted process has another one,
    and waits until the lease of the one before has expired.
    """

    def __init__(
        self, leases: Leases, *, identity: str, clock: Callable[[], float], terms: LeaseTerms | None = None
    ) -> None:
        self._leases, self._identity, self._clock = leases, identity, clock
        self.terms = terms or LeaseTerms()
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._held: Lease | None = None
        # Both are read by other threads while `step` runs, and belong together.
        self._lock = threading.Lock()
        self._number = 0
        self._leads_until: float | None = None

    def term(self) -> int | None:
        """The term in force, by the clock at the time of the call."""
        with self._lock:
            leads = self._leads_until is not None and self._clock() < self._leads_until
            return self._number if leads else None

    @property
    def holder(self) -> str | None:
        """The lease's holder when it was last read."""
        return None if self._seen is None else self._seen.holder

    def step(self) -> float:
        """Renew the lease, or take it where it is free; returns the seconds to wait until the next step.

        Errors: LeaseFailedError, after which the next step is due in `terms.retry_seconds`.
        """
        if self._held is not None:
            try:
                self._write(self._held)
            except LeaseTakenError:
                # The write without a response may have succeeded: the lease as read now shows it.
                self._held = None
            else:
                return self.terms.retry_seconds
        found = self._leases.read()
        self._look(found)
        if found.holder != self._identity:
            # Whatever time is left: another holder's name can only have been written by hand.
            self._end()
        left = self._free_at(found) - self._clock()
        if left > 0:
            return max(_SHORTEST_WAIT_SECONDS, min(self.terms.retry_seconds, left))
        try:
            self._write(found)
        except LeaseTakenError:
            return _SHORTEST_WAIT_SECONDS
        return self.terms.retry_seconds

    def release(self) -> None:
        """Stop leading, so that another leads at once. Errors: LeaseFailedError; it leads after the expiry then."""
        self._end()
        held, self._held = self._held, None
        if held is None:
            return
        try:
            self._leases.write(held, holder="", lease_seconds=self.terms.lease_seconds)
        except LeaseTakenError:
            return

    def _end(self) -> None:
        with self._lock:
            self._leads_until = None

    def _look(self, found: Lease) -> None:
        if self._seen is None or found.version != self._seen.version:
            self._seen, self._seen_at = found, self._clock()

    def _free_at(self, found: Lease) -> float:
        """The time from which the lease may be taken: at once where it was released or is ours, else when it expires.

        A lease without any holder may have been created anew while a holder still believes in the one before.
        """
        if found.holder in ("", self._identity):
            return self._seen_at
        return self._seen_at + found.lease_seconds

    def _write(self, before: Lease) -> None:
        sent_at = self._clock()
        written = self._leases.write(before, holder=self._identity, lease_seconds=self.terms.lease_seconds)
        self._held = written
        self._look(written)
        with self._lock:
            if self._leads_until is None or self._clock() >= self._leads_until:
                self._number += 1
            self._leads_until = sent_at + self.terms.renew_deadline_seconds


class Fence:
    """Lets a cycle publish only in the term in which it began."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._term: int | None = None

    def enter(self) -> bool:
        """Begin a cycle; returns True if it is the first of its term. Errors: NotLeadingError."""
        before, self._term = self._term, self._leadership.term()
        self.check()
        return self._term != before

    @property
    def closed(self) -> bool:
        """True if the term in which the cycle began has ended, or there was none."""
        return self._term is None or self._leadership.term() != self._term

    def check(self) -> None:
        """Errors: NotLeadingError, unless the term in which the cycle began is certainly still in force."""
        if self.closed:
            message = "this recommender does not hold the lease; it publishes nothing"
            raise NotLeadingError(message)


class FencedPublisher:
    """A `Publisher` behind a fence."""

    def __init__(self, publisher: Publisher, fence: Fence) -> None:
        self._publisher, self._fence = publisher, fence

    def publish(self, decision: Decision) -> None:
        """Publish `decision`. Errors: NotLeadingError, and those of the publisher."""
        self._fence.check()
        self._publisher.publish(decision)
