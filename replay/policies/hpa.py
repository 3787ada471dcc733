"""The horizontal pod autoscaler on an external metric, step for step, without and with a `behavior` stanza.

Compared with the real controller (Kubernetes 1.36) the steps are the same: tests/live/harness/hpa_series.yaml.
Constants are Kubernetes' own: tolerance 0.1, five minutes of scale-down stabilisation, at most 4 pods or 100 % more in
15 s where `behavior` is given.

A desired count that is exactly 300 s old still counts without `behavior` and has expired with it, as the controller
compares them. Its own reads come 15.05 s apart, so that there no age is ever exact: a spike that is held for 315 s on
this grid was held for 301 s there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from replay.plant import Observation

TOLERANCE = 0.1
STABILISATION_SECONDS = 300
POLICY_SECONDS = 15
LEGACY_LEAST_LIMIT = 4


Tolerance = Callable[[float], bool]


def is_near(ratio: float, *, down: float = TOLERANCE, up: float = TOLERANCE) -> bool:
    """True if a metric is near enough to its target to leave the count alone, as Kubernetes compares since 1.33.

    `down` and `up` are the tolerances that a `behavior` stanza may set for each direction.

    >>> is_near(11 / 10), is_near(9 / 10), is_near(12 / 10)
    (True, True, False)
    """
    return 1.0 - down <= ratio <= 1.0 + up


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


def wanted_for_value(value: float, *, target: float, replicas: int, ready: int, near: Tolerance = is_near) -> int:
    """The same for a target of type Value: the metric is one of the whole group, and only ready pods are multiplied.

    >>> wanted_for_value(1_500, target=1_000, replicas=8, ready=6)      # 1.5 x 6 that are ready
    9
    """
    return replicas if near(value / target) else ceil(value / target * ready)


@dataclass(slots=True, kw_only=True)
class _Memory:
    """The bounds, and past desired counts with their times. The first pass stores the present count in any case."""

    least: int = 1
    most: int = 100
    _wants: list[tuple[float, int]] = field(default_factory=list)

    def begin(self, replicas: int, *, now_seconds: float) -> None:
        """Store the count of the first pass; later ones change nothing."""
        if not self._wants:
            self._wants.append((now_seconds, replicas))

    def rescaled(self, change: int, *, now_seconds: float) -> None:
        """Store a rescale, where policies need it."""


@dataclass(slots=True, kw_only=True)
class LegacyRules(_Memory):
    """No `behavior` stanza (KEDA's default): at most twice the present count, never under one of the last five minutes.

    The highest desired count of the last five minutes also drives growth, so that one spike goes up in steps.
    """

    stabilisation_seconds: float = STABILISATION_SECONDS

    def reconcile(self, wanted: int, *, replicas: int, now_seconds: float) -> int:
        """The requested count, for the count by the metric."""
        self.begin(replicas, now_seconds=now_seconds)
        recent = [(at, want) for at, want in self._wants if at >= now_seconds - self.stabilisation_seconds]
        highest = max([wanted, *(want for _, want in recent)])
        self._wants = [*recent, (now_seconds, wanted)]
        limit = min(self.most, max(2 * replicas, LEGACY_LEAST_LIMIT))
        return max(self.least, min(highest, limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """The limit of a period: so many pods, or a share of those at the period's beginning."""

    pods: int | None = None
    percent: int | None = None
    period_seconds: float = POLICY_SECONDS

    def farthest(self, start: int, *, up: bool) -> int:
        """The count that may be reached from `start`: rounded up on the way up, down on the way down.

        >>> [ScalingPolicy(percent=50).farthest(5, up=up) for up in (True, False)]
        [8, 2]
        """
        if self.percent is None:
            return start + (self.pods or 0) * (1 if up else -1)
        return ceil(start * (1 + self.percent / 100)) if up else int(start * (1 - self.percent / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Half of a `behavior` stanza: how long the mildest desired count holds, and which policy limits the pace."""

    window_seconds: float
    policies: tuple[ScalingPolicy, ...]
    select: Literal["Max", "Min", "Disabled"] = "Max"

    def limit(self, starts: Callable[[float], int], *, replicas: int, up: bool) -> int:
        """The farthest count now; `starts` is the count at the beginning of a period of so many seconds."""
        if self.select == "Disabled":
            return replicas
        farthest = [policy.farthest(starts(policy.period_seconds), up=up) for policy in self.policies]
        reached = max(farthest) if up == (self.select == "Max") else min(farthest)
        return max(replicas, reached) if up else min(replicas, reached)


UP = Direction(window_seconds=0, policies=(ScalingPolicy(pods=4), ScalingPolicy(percent=100)))
DOWN = Direction(window_seconds=STABILISATION_SECONDS, policies=(ScalingPolicy(percent=100),))


@dataclass(slots=True, kw_only=True)
class BehaviorRules(_Memory):
    """A `behavior` stanza, Kubernetes' defaults where not set: grow by the present desired count, in limited steps."""

    up: Direction = UP
    down: Direction = DOWN
    _changes: list[tuple[float, int]] = field(default_factory=list)

    def reconcile(self, wanted: int, *, replicas: int, now_seconds: float) -> int:
        """The requested count, for the count by the metric."""
        self.begin(replicas, now_seconds=now_seconds)
        lowest, highest = (
            pick([wanted, *(want for at, want in self._wants if at > now_seconds - direction.window_seconds)])
            for pick, direction in ((min, self.up), (max, self.down))
        )
        oldest = now_seconds - max(self.up.window_seconds, self.down.window_seconds)
        self._wants = [*((at, want) for at, want in self._wants if at > oldest), (now_seconds, wanted)]
        stabilised = min(max(replicas, lowest), highest)
        requested = self._limited(stabilised, replicas=replicas, now_seconds=now_seconds)
        if requested != replicas:
            self.rescaled(requested - replicas, now_seconds=now_seconds)
        return requested

    def rescaled(self, change: int, *, now_seconds: float) -> None:
        """Store a rescale for as long as any policy looks back."""
        longest = max(policy.period_seconds for way in (self.up, self.down) for policy in way.policies)
        self._changes = [past for past in self._changes if past[0] > now_seconds - longest]
        self._changes.append((now_seconds, change))

    def _limited(self, stabilised: int, *, replicas: int, now_seconds: float) -> int:
        def starts(period_seconds: float) -> int:
            return replicas - sum(change for at, change in self._changes if at > now_seconds - period_seconds)

        if stabilised > replicas:
            return min(stabilised, self.most, self.up.limit(starts, replicas=replicas, up=True))
        if stabilised < replicas:
            return max(stabilised, self.least, self.down.limit(starts, replicas=replicas, up=False))
        return replicas


Rules = LegacyRules | BehaviorRules


def reconcile(wants: Sequence[int | None], *, rules: Rules, replicas: int, now_seconds: float) -> int:
    """One pass of the controller over the desired count of each metric; None is a metric that could not be read.

    The highest desired count rules. While a metric is lost the count may grow but not fall; with none left it stays. A
    count outside the bounds is put on them without reading the metrics, and a count of 0 is left alone: setting it
    switches the autoscaler off.

    >>> [reconcile([want, None], rules=LegacyRules(), replicas=8, now_seconds=0) for want in (5, 11)]
    [8, 11]
    """
    rules.begin(replicas, now_seconds=now_seconds)
    if replicas == 0:
        return 0
    bounded = max(rules.least, min(replicas, rules.most))
    if bounded != replicas:
        rules.rescaled(bounded - replicas, now_seconds=now_seconds)
        return bounded
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
