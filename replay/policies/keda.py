"""KEDA's Kafka scaler with its defaults: lag capped at the partition count, handed to an HPA without `behavior`.

With at least one replica its own loop (polling interval, cool-down) only ever concerns zero: it changes nothing here.
"""

from dataclasses import dataclass

from replay.plant.plant import Observation
from replay.policies.hpa import LegacyRules, wanted_for


def capped_lag(lag_messages: int, *, threshold_messages: int, partitions: int) -> int:
    """The metric that KEDA reports: lag, but no more than the threshold for each partition.

    The cap compares by integer division, so a lag of up to one threshold above it escapes:

    >>> [capped_lag(lag, threshold_messages=10, partitions=4) for lag in (30, 45, 49, 50)]
    [30, 45, 49, 40]
    """
    if lag_messages // threshold_messages > partitions:
        return partitions * threshold_messages
    return lag_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Keda:
    """A ScaledObject with one Kafka trigger."""

    threshold_messages: int
    rules: LegacyRules

    def decide(self, seen: Observation) -> int:
        """One pass of the HPA that KEDA made."""
        lag = capped_lag(
            int(seen.lag_messages.sum()),
            threshold_messages=self.threshold_messages,
            partitions=len(seen.lag_messages),
        )
        wanted = wanted_for(lag, target=self.threshold_messages, replicas=seen.replicas)
        return self.rules.reconcile(wanted, replicas=seen.replicas, now_seconds=seen.time_seconds)
