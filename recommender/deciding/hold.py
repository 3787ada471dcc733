"""Hold: a time in which groups keep their replicas, whatever plans and rules want, set by whoever runs them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldScope:
    """The groups that a hold is for: those of this name, cluster and Kubernetes namespace; None: of any."""

    cluster: str | None = None
    namespace: str | None = None
    group: str | None = None

    def covers(self, cluster: str, group: str, *, namespace: str | None) -> bool:
        """True if that group, of that namespace, is one of them.

        >>> HoldScope(namespace="shop").covers("prod", "orders", namespace="shop")
        True
        >>> HoldScope(namespace="shop").covers("prod", "orders", namespace=None)
        False
        """
        wanted = ((self.cluster, cluster), (self.namespace, namespace), (self.group, group))
        return all(asked in (None, found) for asked, found in wanted)

    @property
    def words(self) -> str:
        """The scope for people.

        >>> HoldScope(cluster="prod", group="orders").words, HoldScope().words
        ("group 'orders', cluster 'prod'", 'all groups')
        """
        named = (("group", self.group), ("namespace", self.namespace), ("cluster", self.cluster))
        return ", ".join(f"{kind} '{name}'" for kind, name in named if name is not None) or "all groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Groups of `scope` keep their replicas until `until` (None: until it is released), for `reason`."""

    scope: HoldScope
    reason: str
    placed_at: datetime
    until: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """True if it is in force."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        """What is held, until when and why, as one sentence."""
        end = "until it is released" if self.until is None else f"until {self.until:%Y-%m-%dT%H:%M:%SZ}"
        return f"A hold on {self.scope.words} is in force {end}, nothing is moved: {self.reason.removesuffix('.')}."


def hold_on(holds: Iterable[Hold], cluster: str, group: str, *, namespace: str | None, now: datetime) -> Hold | None:
    """The hold on a group that ends last, and of those without an end the newest; None: it is not held."""
    on_group = [hold for hold in holds if hold.holds(now) and hold.scope.covers(cluster, group, namespace=namespace)]
    endless = [hold for hold in on_group if hold.until is None]
    if endless:
        return max(endless, key=lambda hold: hold.placed_at)
    return max(on_group, key=lambda hold: hold.until or hold.placed_at, default=None)
