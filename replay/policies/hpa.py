"""The horizontal pod autoscaler on an external metric, step for step, without and with a `behavior` stanza.

Held against the real controller (Kubernetes 1.36) the same steps came out. Constants are Kubernetes' own: tolerance
0.1, five minutes of scale-down stabilisation, at most 4 pods or 100 % more in 15 s where `behavior` is given.

A want that is exactly 300 s old still counts without `behavior` and has expired with it, as the controller compares
them. Its own reads come 15.05 s apart, so that there no age is ever exact: a spike that is held for 315 s on this grid
was held for 301 s there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from replay.plant import Observation

TOLERANCE = 0.1
STABILISATION_SECONDS = 300
POLICY_SECONDS = 15
LEGACY_LEAST_LIMIT = 4


Tolerance = Callable[[float], bool]


def is_near(ratio: float) -> bool:
    """Whether a metric is near enough to its target to leave the count alone, as Kubernetes compares since 1.33.

    >>> is_near(11 / 10), is_near(9 / 10), is_near(12 / 10)
    (True, True, False)
    """
    return 1.0 - TOLERANCE <= ratio <= 1.0 + TOLERANCE


def is_near_before_1_33(ratio: float) -> bool:
    """The same up to Kubernetes 1.32, where 11/10 is too far: abs(1 - 1.1) is 0.10000000000000009 in doubles.

    >>> is_near_before_1_33(11 / 10), is_near_before_1_33(9 / 10)
    (False, True)
    """
    return abs(1.0 - ratio) <= TOLERANCE


def wanted_for(total: float, *, target: float, replicas: int, near: Tolerance = is_near) -> int:
    """Replicas at which an External metric's average would be `target`; the present count within the tolerance.

    >>> wanted_for(64_000, target=1_000, replicas=8), wanted_for(8_700, target=1_000, replicas=8)
    (64, 8)
    """
    if replicas == 0 or not near(total / (target * replicas)):
        return ceil(total / target)
    return replicas


@dataclass(slots=True, kw_only=True)
class LegacyRules:
    """No `behavior` stanza (KEDA's default): at most twice the present count, never under a want of five minutes.

    The highest want of the last five minutes also drives growth, so that one spike becomes a staircase.
    """

    least: int = 1
    most: int = 100
    _wants: list[tuple[int, int]] = field(default_factory=list)

    def reconcile(self, wanted: int, *, replicas: int, now_seconds: int) -> int:
        """The count that is asked for, given what the metric wants."""
        if not self._wants:
            self._wants.append((now_seconds, replicas))
        recent = [(at, want) for at, want in self._wants if at >= now_seconds - STABILISATION_SECONDS]
        highest = max([wanted, *(want for _, want in recent)])
        self._wants = [*recent, (now_seconds, wanted)]
        limit = min(self.most, max(2 * replicas, LEGACY_LEAST_LIMIT))
        return max(self.least, min(highest, limit))


@dataclass(slots=True, kw_only=True)
class BehaviorRules:
    """A `behavior` stanza with Kubernetes' defaults: grow by the present want, in limited steps."""

    least: int = 1
    most: int = 100
    _wants: list[tuple[int, int]] = field(default_factory=list)
    _changes: list[tuple[int, int]] = field(default_factory=list)

    def reconcile(self, wanted: int, *, replicas: int, now_seconds: int) -> int:
        """The count that is asked for, given what the metric wants."""
        if not self._wants:
            self._wants.append((now_seconds, replicas))
        recent = [(at, want) for at, want in self._wants if at > now_seconds - STABILISATION_SECONDS]
        highest = max([wanted, *(want for _, want in recent)])
        self._wants = [*recent, (now_seconds, wanted)]
        stabilised = min(max(replicas, wanted), highest)
        asked = self._limited(stabilised, replicas=replicas, now_seconds=now_seconds)
        if asked != replicas:
            self._changes.append((now_seconds, asked - replicas))
        return asked

    def _limited(self, stabilised: int, *, replicas: int, now_seconds: int) -> int:
        self._changes = [(at, change) for at, change in self._changes if at > now_seconds - POLICY_SECONDS]
        start = replicas - sum(change for _, change in self._changes)
        if stabilised > replicas:
            return min(stabilised, self.most, max(replicas, start + 4, ceil(2 * start)))
        return max(stabilised, self.least)


Rules = LegacyRules | BehaviorRules


def reconcile(wants: Sequence[int | None], *, rules: Rules, replicas: int, now_seconds: int) -> int:
    """One pass of the controller over what each metric wants; None is a metric that could not be read.

    The highest want rules. While a metric is lost the count may grow but not fall; with none left it stays. A count
    outside the bounds is put on them without a look at the metrics.

    >>> [reconcile([want, None], rules=LegacyRules(), replicas=8, now_seconds=0) for want in (5, 11)]
    [8, 11]
    """
    if not rules.least <= replicas <= rules.most:
        return max(rules.least, min(replicas, rules.most))
    read = [want for want in wants if want is not None]
    if not read or (len(read) < len(wants) and max(read) < replicas):
        return replicas
    return rules.reconcile(max(read), replicas=replicas, now_seconds=now_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """HPA on the summed lag, External AverageValue `target_messages`, every 15 s."""

    target_messages: float
    rules: Rules
    near: Tolerance = is_near

    def decide(self, seen: Observation) -> int:
        """One pass of the controller."""
        lag, replicas = float(seen.lag_messages.sum()), seen.replicas
        want = wanted_for(lag, target=self.target_messages, replicas=replicas, near=self.near)
        return reconcile([want], rules=self.rules, replicas=replicas, now_seconds=seen.time_seconds)
