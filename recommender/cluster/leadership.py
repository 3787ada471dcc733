"""Election of the one recommender that may publish: the rules of a lease, by the monotonic clock of one machine.

A holder counts from the moment at which its last renewal *was sent*, the others from the moment at which they first saw
it. A renewal is sent before it is seen, so that a recommender which waits for longer than the holder believes comes
after it, even if the clocks of the two differ. Nothing here compares instants of two machines.

A recommender whose store does not answer can only refuse, so it leaves the lease to one that may still reach it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from recommender.deciding.recommendation import Decision
from recommender.ports import Publisher

# A wait of 0 s would send requests to the API server without end.
_SHORTEST_WAIT_SECONDS = 0.05

# Cycles in a row without an answer of the store, after which a leader gives its lease up. As rows come every 15 s these
# are a minute: a database that is restarted or fails over is back by then, and away for every recommender until then.
CYCLES_WITHOUT_STORE = 4
# Each recommender gives it up so often at most. Where the store is away for all, nobody leads for 30 s then
# (`LeaseTerms.deference_seconds`): a tenth of the time with two recommenders, a twentieth with one.
HAND_OVERS_APART = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """Durations of a lease, in seconds; the defaults are those of Kubernetes' own controllers."""

    lease_seconds: float = 15.0
    """No other recommender takes a lease whose renewal was seen so recently."""

    renew_deadline_seconds: float = 10.0
    """Time after its last renewal was sent for which a holder believes that it holds the lease."""

    retry_seconds: float = 2.0
    """Time between two renewals, and between two reads of another holder's lease."""

    deference_seconds: float = 30.0
    """Time for which a lease is free before one takes it whose store does not answer; others need 17 s at most.

    That is where giving it up has failed: `lease_seconds`, and `retry_seconds` until they look.
    """

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

    def defer(self, *, to_others: bool) -> None:
        """From now on take a free lease only after others have had the time to, or at once again."""
        ...

    def hand_over(self) -> None:
        """Give the lease up at the next step."""
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
        # Set by other threads; a step looks at each of them once.
        self._defers = self._hands_over = False
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
        """Renew the lease, give it up, or take it where it is free; returns the seconds to wait until the next step.

        Errors: LeaseFailedError, after which the next step is due in `terms.retry_seconds`.
        """
        if self._hands_over:
            self._hands_over = False
            self.release()
            return self.terms.retry_seconds
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

    def defer(self, *, to_others: bool) -> None:
        """From now on take a free lease `terms.deference_seconds` later than others may, or at once again."""
        self._defers = to_others

    def hand_over(self) -> None:
        """Give the lease up at the next step, which the thread of all steps takes within `terms.retry_seconds`."""
        self._hands_over = True

    def release(self) -> None:
        """Stop leading, so that another leads at once. Errors: LeaseFailedError; it leads after the expiry then."""
        self._end()
        held, self._held = self._held, None
        if held is None:
            return
        try:
            self._look(self._leases.write(held, holder="", lease_seconds=self.terms.lease_seconds))
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

        A lease without any holder may have been created anew while a holder still believes in the one before. One who
        leads defers to nobody: the lease is its own, and only the answer to a renewal was lost.
        """
        deference = self.terms.deference_seconds if self._defers and self.term() is None else 0.0
        if found.holder in ("", self._identity):
            return self._seen_at + deference
        return self._seen_at + found.lease_seconds + deference

    def _write(self, before: Lease) -> None:
        sent_at = self._clock()
        written = self._leases.write(before, holder=self._identity, lease_seconds=self.terms.lease_seconds)
        self._held = written
        self._look(written)
        with self._lock:
            if self._leads_until is None or self._clock() >= self._leads_until:
                self._number += 1
            self._leads_until = sent_at + self.terms.renew_deadline_seconds


class HandOvers:
    """The rule by which a leader whose store does not answer gives its lease up."""

    def __init__(self) -> None:
        self._cycles_without_store = 0
        self._latest_at: datetime | None = None

    def is_due(self, *, leads: bool, store_answers: bool, now: datetime) -> bool:
        """True after a cycle, which began at `now`, if the lease is to be given up; that counts as done then.

        >>> rule, minute = HandOvers(), timedelta(minutes=1)
        >>> began_at = datetime(2026, 1, 5)
        >>> instants = [began_at + cycle * minute for cycle in range(20)]
        >>> [now.minute for now in instants if rule.is_due(leads=True, store_answers=False, now=now)]
        [3, 13]
        """
        self._cycles_without_store = self._cycles_without_store + 1 if leads and not store_answers else 0
        # A clock that was set back does not make the rest longer.
        rests = self._latest_at is not None and timedelta(0) <= now - self._latest_at < HAND_OVERS_APART
        if self._cycles_without_store < CYCLES_WITHOUT_STORE or rests:
            return False
        self._cycles_without_store, self._latest_at = 0, now
        return True


class Fence:
    """Lets a cycle publish only in the term in which it began."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._term: int | None = None
        self._hand_overs = HandOvers()

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

    def leave(self, *, store_answers: bool, now: datetime) -> bool:
        """End the cycle of `now`, leading or standing by; returns True if the lease is given up for its store."""
        self._leadership.defer(to_others=not store_answers)
        hands_over = self._hand_overs.is_due(leads=not self.closed, store_answers=store_answers, now=now)
        if hands_over:
            self._leadership.hand_over()
        return hands_over


class FencedPublisher:
    """A `Publisher` behind a fence."""

    def __init__(self, publisher: Publisher, fence: Fence) -> None:
        self._publisher, self._fence = publisher, fence

    def publish(self, decision: Decision) -> None:
        """Publish `decision`. Errors: NotLeadingError, and those of the publisher."""
        self._fence.check()
        self._publisher.publish(decision)
