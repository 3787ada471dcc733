"""Contention between replicas: throughput that grows less than the replica count, fitted to observations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from forecasting.units import FloatArray, IntArray, MessagesPerSecond, Replicas

# Throughput at three counts identifies C, contention and coherence; at two it identifies C and one of them.
COUNTS_FOR_BOTH = 3
COUNTS_FOR_CONTENTION = 2
# A coefficient that takes less than 1 % at the largest count seen is taken as 0: windows have noise of 8 %.
NEGLIGIBLE_FRACTION = 0.01
LARGEST_COEFFICIENT = 10.0  # ten replicas then carry less than one does: beyond, nothing changes


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFit:
    """One replica's capacity when alone, and its loss to other replicas."""

    capacity: MessagesPerSecond
    scalability: Scalability
    distinct_counts: int


def fit_scalability(replicas: IntArray, rates: FloatArray, saturated: NDArray[np.bool_]) -> ScalingFit | None:
    """The law that fits windows of a group's throughput, or None while fewer than two counts were seen at their limit.

    A saturated window shows throughput, so the mean of those of one count is a point of the curve. Unsaturated ones
    only bound it: of a count never seen at its limit the highest rate counts, where the curve runs below it. Contention
    alone is fitted at two counts, both from three.
    Shapes: equal lengths, one value per window; windows without a positive rate are skipped. Rates are messages/s of
    the whole group, of replicas that hold equally many partitions each.

    >>> counts = np.array([1, 2, 5, 10, 20])
    >>> rates = 100.0 * counts / (1.0 + 0.05 * (counts - 1))
    >>> fit = fit_scalability(counts, rates, np.ones(5, dtype=bool))
    >>> round(fit.capacity), round(fit.scalability.contention, 3), round(fit.scalability.coherence, 3)
    (100, 0.05, 0.0)
    """
    at_limit, means = saturated_points(replicas, rates, saturated)
    if at_limit.size < COUNTS_FOR_CONTENTION:
        return None
    bounding = np.isfinite(rates) & (rates > 0.0) & (replicas > 0) & ~np.isin(replicas, at_limit)
    bounded = np.unique(replicas[bounding])
    bounds = [float(rates[bounding & (replicas == count)].max()) for count in bounded]
    counts = np.concatenate((at_limit, bounded)).astype(np.float64)
    seen = np.concatenate((means, bounds))
    shown = np.arange(counts.size) < at_limit.size
    free = 3 if at_limit.size >= COUNTS_FOR_BOTH else 2

    def misses(parameters: FloatArray) -> FloatArray:
        alone, contention, coherence = (*parameters, 0.0)[:3]
        curve = alone + np.log(counts / (1.0 + contention * (counts - 1.0) + coherence * counts * (counts - 1.0)))
        miss: FloatArray = np.log(seen) - curve
        return np.where(shown, miss, np.maximum(miss, 0.0))

    start = np.array([float(np.log(seen[shown] / counts[shown]).max()), 0.01, 1e-4])[:free]
    least, most = [-np.inf, 0.0, 0.0][:free], [np.inf, LARGEST_COEFFICIENT, LARGEST_COEFFICIENT][:free]
    found = least_squares(misses, start, bounds=(least, most), x_scale=np.array([1.0, 0.1, 0.01])[:free])
    alone, contention, coherence = (*(float(value) for value in found.x), 0.0)[:3]
    most_others = float(counts.max()) - 1.0
    return ScalingFit(
        capacity=MessagesPerSecond(float(np.exp(alone))),
        scalability=Scalability(
            contention=contention if contention * most_others > NEGLIGIBLE_FRACTION else 0.0,
            coherence=coherence if coherence * most_others * counts.max() > NEGLIGIBLE_FRACTION else 0.0,
        ),
        distinct_counts=int(at_limit.size),
    )


def saturated_points(
    replicas: IntArray, rates: FloatArray, saturated: NDArray[np.bool_]
) -> tuple[IntArray, FloatArray]:
    """The counts, smallest first, that were seen at their limit, and the mean rate of each.

    >>> full = np.array([True, False, True])
    >>> counts, seen = saturated_points(np.array([4, 2, 4]), np.array([390.0, 150.0, 410.0]), full)
    >>> counts.tolist(), seen.tolist()
    ([4], [400.0])
    """
    telling = np.isfinite(rates) & (rates > 0.0) & (replicas > 0) & saturated
    counts = np.unique(replicas[telling])
    means = [float(rates[telling & (replicas == count)].mean()) for count in counts]
    return counts, np.array(means, dtype=np.float64)
