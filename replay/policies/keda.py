"""KEDA's Kafka scaler with its defaults: lag capped at the partition count, given to an HPA without `behavior`.

With at least one replica its own loop (polling interval, cool-down) only ever concerns zero, and the HPA's reads every
15 s refresh the metric: replays see nothing else of it. `Loop` is that other half. Both were compared with a real KEDA
2.21: tests/live/harness/keda_series.yaml.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import floor

from replay.plant import Observation
from replay.policies.hpa import Rules, reconcile, wanted_for


def capped_lag(lag_messages: int, *, threshold_messages: int, partitions: int) -> int:
    """The metric that KEDA reports: lag, but no more than the threshold for each partition.

    The cap compares by integer division, so a lag of up to one threshold above it escapes:

    >>> [capped_lag(lag, threshold_messages=10, partitions=4) for lag in (30, 45, 49, 50)]
    [30, 45, 49, 40]
    """
    if lag_messages // threshold_messages > partitions:
        return partitions * threshold_messages
    return lag_messages


def even_lag(lag_messages: int, *, threshold_messages: int, partitions: int) -> int:
    """The metric with ensureEvenDistributionOfPartitions: enough for the next count that divides the partitions.

    >>> [even_lag(lag, threshold_messages=10, partitions=10) for lag in (0, 11, 21, 51, 1_000)]
    [10, 20, 50, 100, 100]
    """
    divisors = (count for count in range(1, partitions + 1) if partitions % count == 0)
    fitting = (count for count in divisors if count * threshold_messages >= lag_messages)
    return threshold_messages * next(fitting, partitions)


def whole_lag(lag_messages: int, **_: int) -> int:
    """The metric with allowIdleConsumers, and of triggers without partitions: the uncapped lag."""
    return lag_messages


@dataclass(slots=True, kw_only=True)
class Fallback:
    """KEDA's result when the lag cannot be read: nothing at first, then a metric that requests `replicas`.

    The static behaviour; every failed read counts, the loop's and the HPA's alike, and one good read resets the count.
    (Two within some milliseconds may count as one in the real KEDA, which keeps the number in the object's status.)
    """

    replicas: int
    failure_threshold: int = 3
    _failures: int = field(default=0, init=False)

    def reading(self, metric_messages: int | None, *, threshold_messages: int) -> int | None:
        """The metric that the HPA gets; None is the error on which it holds."""
        self._failures = 0 if metric_messages is not None else self._failures + 1
        return self.replicas * threshold_messages if self._failures > self.failure_threshold else metric_messages


@dataclass(slots=True, kw_only=True)
class Loop:
    """KEDA's own loop, once in each polling interval: it scales a group to and from zero, or its idle count.

    `least` and `idle` are minReplicaCount and idleReplicaCount; the HPA's least is never under 1.
    """

    least: int = 0
    idle: int | None = None
    cooldown_seconds: float = 300
    activation_messages: int = 0
    _active_at_seconds: int | None = field(default=None, init=False)

    def poll(self, *, active: bool | None, replicas: int, now_seconds: float) -> int:
        """The requested count; a trigger whose `active` is None could not be read, and changes nothing.

        The last active instant is kept in whole seconds, so that a cool-down may end up to a second early.
        """
        if active is None:
            return replicas
        if active:
            self._active_at_seconds = floor(now_seconds)
            scaled_to_zero = replicas == 0 or (self.idle is not None and replicas < self.least)
            return max(self.least, 1) if scaled_to_zero else replicas
        rest = self.least if self.idle is None else self.idle
        if replicas > rest and (rest == 0 or self.idle is not None):
            last = self._active_at_seconds
            return rest if last is None or last + self.cooldown_seconds < now_seconds else replicas
        return max(self.least, replicas) if self.idle is None else replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Keda:
    """A ScaledObject with one Kafka trigger; `metric` is `capped_lag`, `even_lag`, or `whole_lag`."""

    threshold_messages: int
    rules: Rules
    metric: Callable[..., int] = capped_lag
    fallback: Fallback | None = None
    loop: Loop = field(default_factory=Loop)

    def decide(self, seen: Observation) -> int:
        """One pass of the HPA that KEDA created."""
        return self.reconcile(
            int(seen.lag_messages.sum()),
            partitions=len(seen.end_offsets),
            replicas=seen.replicas,
            now_seconds=seen.time_seconds,
        )

    def reconcile(self, lag_messages: int | None, *, partitions: int, replicas: int, now_seconds: float) -> int:
        """The requested count; a lag of None could not be read."""
        threshold, metric = self.threshold_messages, None
        if lag_messages is not None:
            metric = self.metric(lag_messages, threshold_messages=threshold, partitions=partitions)
        if self.fallback is not None:
            metric = self.fallback.reading(metric, threshold_messages=threshold)
        want = None if metric is None else wanted_for(metric, target=threshold, replicas=replicas)
        return reconcile([want], rules=self.rules, replicas=replicas, now_seconds=now_seconds)

    def poll(self, lag_messages: int | None, *, replicas: int, now_seconds: float) -> int:
        """The count that its own loop requests; a lag of None could not be read, and a fallback with a value is active.

        The threshold of activation is compared with the lag itself, independent of the metric.
        """
        answered = lag_messages
        if self.fallback is not None:
            answered = self.fallback.reading(lag_messages, threshold_messages=self.threshold_messages)
        active = None if answered is None else lag_messages is None or lag_messages > self.loop.activation_messages
        return self.loop.poll(active=active, replicas=replicas, now_seconds=now_seconds)
