"""A lease in memory and a clock, for the tests of leadership."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recommender.cluster.leadership import Elector, Lease, LeaseFailedError, LeaseTakenError, LeaseTerms

TERMS = LeaseTerms()


@dataclass
class World:
    """One lease and the time in seconds. `weather` is called before and after each request; it may raise or wait."""

    now: float = 1000.0
    lease: Lease = field(default_factory=lambda: Lease(holder="", lease_seconds=15.0, version="1"))
    weather: Callable[[], None] = lambda: None

    def read(self) -> Lease:
        """The present lease."""
        self.weather()
        found = self.lease
        self.weather()
        return found

    def write(self, before: Lease, *, holder: str, lease_seconds: float) -> Lease:
        """Write as the API server does: never over a version that has been replaced."""
        self.weather()
        if before.version != self.lease.version:
            raise LeaseTakenError
        self.by_hand(holder=holder, lease_seconds=lease_seconds)
        written = self.lease
        self.weather()
        return written

    def by_hand(self, **changes: object) -> None:
        """Write the lease as another client would."""
        self.lease = replace(self.lease, version=str(int(self.lease.version) + 1), **changes)  # type: ignore[arg-type]  # fields of Lease

    def elector(self, identity: str, *, ahead: float = 0.0) -> Elector:
        """An elector whose clock began to count so many seconds earlier."""
        return Elector(self, identity=identity, clock=lambda: self.now + ahead)


def goes_on(world: World, *electors: Elector, seconds: float) -> None:
    """Let each elector take its steps at the interval it returns, for so many seconds."""
    due = dict.fromkeys(range(len(electors)), world.now)
    until = world.now + seconds
    while min(due.values()) < until:
        number = min(due, key=lambda each: due[each])
        world.now = due[number]
        try:
            wait = electors[number].step()
        except LeaseFailedError:
            wait = TERMS.retry_seconds
        due[number] = world.now + wait
    world.now = until
