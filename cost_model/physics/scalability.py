"""Contention between replicas: throughput that grows less than the replica count."""

from dataclasses import dataclass

from forecasting.units import Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalability:
    """The share of its capacity that each of N replicas keeps: 1 / (1 + al * (N - 1) + be * N * (N - 1)).

    `contention` (al) is queueing at a shared resource, which flattens throughput; `coherence` (be) is work that
    replicas make for each other, which in the end reduces it. Source: Gunther's universal scalability law.

    >>> shared = Scalability(contention=0.05, coherence=0.0)
    >>> [round(n * shared.kept_fraction(Replicas(n)), 2) for n in (1, 10, 100)]    # never above 1 / 0.05 = 20
    [1.0, 6.9, 16.81]
    """

    contention: float
    coherence: float

    def __post_init__(self) -> None:
        if self.contention < 0.0 or self.coherence < 0.0:
            message = f"contention {self.contention} and coherence {self.coherence} cannot be negative"
            raise ValueError(message)

    def kept_fraction(self, replicas: Replicas) -> float:
        """The share of its capacity that each of so many replicas keeps."""
        others = max(replicas - 1, 0)
        return 1.0 / (1.0 + self.contention * others + self.coherence * replicas * others)
