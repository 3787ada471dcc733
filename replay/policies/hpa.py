"""The horizontal pod autoscaler on an external metric, step for step, without and with a `behavior` stanza.

Held against the real controller (Kubernetes 1.36) the same steps came out. Constants are Kubernetes' own: tolerance
0.1, five minutes of scale-down stabilisation, at most 4 pods or 100 % more in 15 s where `behavior` is given.
"""

from dataclasses import dataclass, field
from math import ceil

from replay.plant.plant import Observation

TOLERANCE = 0.1
STABILISATION_SECONDS = 300
POLICY_SECONDS = 15
LEGACY_LEAST_LIMIT = 4


def wanted_for(total: float, *, target: float, replicas: int) -> int:
    """Replicas at which an External metric's average would be `target`; the present count within the tolerance.

    >>> wanted_for(64_000, target=1_000, replicas=8), wanted_for(8_700, target=1_000, replicas=8)
    (64, 8)
    """
    if replicas == 0:
        return ceil(total / target)
    ratio = total / (target * replicas)
    # As since 1.33: 11/10 lies within. Before, abs(1 - 1.1) = 0.10000000000000009 did not.
    return replicas if 1.0 - TOLERANCE <= ratio <= 1.0 + TOLERANCE else ceil(total / target)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """HPA on the summed lag, External AverageValue `target_messages`, every 15 s."""

    target_messages: float
    rules: LegacyRules | BehaviorRules

    def decide(self, seen: Observation) -> int:
        """One pass of the controller."""
        wanted = wanted_for(float(seen.lag_messages.sum()), target=self.target_messages, replicas=seen.replicas)
        return self.rules.reconcile(wanted, replicas=seen.replicas, now_seconds=seen.time_seconds)
