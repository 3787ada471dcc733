"""The capacity of N replicas: the useful replica counts, and a capacity estimate from a replica's observed rates."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cost_model.physics.profile import Capacity
from forecasting.units import FloatArray, MessagesPerSecond, Partitions, Replicas, Seconds, read_only

BoolArray = NDArray[np.bool_]

# Lag worth less than this much of the group's own rate may be uncommitted work alone.
SATURATED_LAG_SECONDS = 2.0
# A rate is known by commits alone: of a window, up to a commit interval may be missing at its begin, and be too much at
# its end. In a window of this many commit intervals that is 8 % (one deviation), as much as all else that disturbs a
# saturated window. One minute of a Streams application, which commits each 30 s, may show 27 or 13 messages/s of 20.
LEAST_COMMITS = 5
GRID_POINTS = 400
PRIOR_SPREAD = 1.5  # of ln capacity: a factor 4.5 either way within one deviation, so that data decide
WINDOW_SPREAD = 0.08  # of ln rate: a saturated minute shows capacity to about 8 %, where commits come each 5 s
OUTLIER_SHARE = 0.05  # windows without information: throttled brokers, a slow downstream call
OUTLIER_DENSITY = 1.0 / 5.0  # per unit of ln rate, spread over the grid's 5.3 units
# Each window's evidence fades by this factor with each later one: 1,000 windows of 15 s, about four hours.
MEMORY = 0.999
# At a 10-90 % band of factor 1.5, p20 lies 1.5 ** -(0.84 / 2.56), that is 12 %, under the median: four times the 3 %
# that plans keep free by default. A wider band would decide the plan more than the group's own figures do.
WIDEST_BAND_FACTOR = 1.5


def useful_replicas(
    partitions: Partitions, *, minimum: Replicas = Replicas(1), maximum: Replicas | None = None
) -> tuple[int, ...]:
    """The useful replica counts: for every level of throughput within the bounds, the smallest count that reaches it.

    The busiest replica holds ceil(P/N) partitions, so only the counts ceil(P/j) raise throughput, about 2 * sqrt(P) of
    them; a lower bound that falls between two is kept too, being the smallest legal count of its level. Never empty
    and never above the partition count, for any bounds.
    Errors: ValueError on less than one partition, or on a maximum under the minimum.

    >>> useful_replicas(Partitions(40))
    (1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 20, 40)
    >>> useful_replicas(Partitions(40), minimum=Replicas(9), maximum=Replicas(18))
    (9, 10, 14)
    """
    if partitions < 1:
        message = f"a topic has at least 1 partition, not {partitions}"
        raise ValueError(message)
    if maximum is not None and maximum < minimum:
        message = f"at most {maximum} replicas and at least {minimum} exclude each other: raise the maximum"
        raise ValueError(message)
    least = min(max(minimum, 1), partitions)
    most = partitions if maximum is None else min(max(maximum, 1), partitions)
    levels = {-(-partitions // share) for share in range(1, partitions + 1)}
    return tuple(sorted({least} | {level for level in levels if least <= level <= most}))


def group_capacity(replicas: Replicas, *, partitions: Partitions, capacity: MessagesPerSecond) -> MessagesPerSecond:
    """The produce rate up to which the busiest replica keeps up; replicas beyond the partitions add nothing.

    >>> [round(group_capacity(Replicas(n), partitions=Partitions(40), capacity=MessagesPerSecond(100.0)))
    ...  for n in (0, 7, 8, 9, 40, 50)]
    [0, 667, 800, 800, 4000, 4000]
    """
    if replicas < 1:
        return MessagesPerSecond(0.0)
    return MessagesPerSecond(capacity * partitions / -(-partitions // replicas))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapacityBelief:
    """The distribution of one replica's capacity, from windows that show it (saturated) and windows that only bound it.

    Without backlog a group consumes the produced messages, even if it could consume more: the mean of such rates is no
    capacity. A window counts as saturated when its lag at both ends exceeds about two seconds of its rate, with no
    rebalance or start-up inside.
    Shapes: `log_rates` (ln messages/s) and `log_weights` (normalised) have GRID_POINTS values each.
    """

    log_rates: FloatArray
    log_weights: FloatArray
    saturated_windows: int = 0

    @classmethod
    def around(cls, guess: MessagesPerSecond) -> "CapacityBelief":
        """The prior before any window, within a tenth and twenty times of `guess`.

        Errors: ValueError unless the guess is above 0; the highest rate seen per replica is a fair one.
        """
        if not guess > 0.0:
            message = f"a capacity guess must be above 0 messages/s, not {guess}; the highest rate seen is one"
            raise ValueError(message)
        grid = np.linspace(np.log(0.1 * guess), np.log(20.0 * guess), GRID_POINTS)
        weights = -0.5 * ((grid - np.log(guess)) / PRIOR_SPREAD) ** 2
        return cls(log_rates=read_only(grid), log_weights=_normalised(weights))

    def observed(
        self, rates_per_replica: FloatArray, saturated: BoolArray, *, spreads: FloatArray | None = None
    ) -> "CapacityBelief":
        """The belief after these windows, oldest first; rates of 0 or NaN are skipped.

        Shapes: equal lengths, one value per window. `spreads` are the deviations of ln rate, 0.08 where they are None.
        """
        rates, flags = np.asarray(rates_per_replica, dtype=np.float64), np.asarray(saturated, dtype=bool)
        telling = np.isfinite(rates) & (rates > 0.0)
        widths = np.full(rates.size, WINDOW_SPREAD) if spreads is None else spreads
        rates, flags, widths = rates[telling], flags[telling], widths[telling]
        if rates.size == 0:
            return self
        ages = np.arange(rates.size - 1, -1, -1)
        evidence = (MEMORY**ages) @ _log_likelihood(
            np.log(rates)[:, None] - self.log_rates, flags[:, None], widths[:, None]
        )
        return replace(
            self,
            log_weights=_normalised(MEMORY**rates.size * self.log_weights + evidence),
            saturated_windows=self.saturated_windows + int(flags.sum()),
        )

    def quantile(self, probability: float) -> MessagesPerSecond:
        """The rate that capacity lies under with this probability."""
        mass = np.cumsum(np.exp(self.log_weights))
        return MessagesPerSecond(float(np.exp(np.interp(probability, mass, self.log_rates))))

    def capacity(self, age_seconds: Seconds | None) -> Capacity | None:
        """The band to plan with, or None while it is unknown: no saturated window yet, or too wide a band."""
        if self.saturated_windows == 0 or self.quantile(0.9) > WIDEST_BAND_FACTOR * self.quantile(0.1):
            return None
        return Capacity(
            p20=self.quantile(0.2),
            p50=self.quantile(0.5),
            p90=self.quantile(0.9),
            source="saturated_windows",
            age_seconds=age_seconds,
        )


def _normalised(log_weights: FloatArray) -> FloatArray:
    shifted = log_weights - log_weights.max()
    return read_only(shifted - np.log(np.exp(shifted).sum()))


def _log_likelihood(log_ratio: FloatArray, saturated: BoolArray, spread: FloatArray) -> FloatArray:
    """Likelihood of each window (row) under each capacity (column): a density where it shows capacity, a bound else.

    Formula: saturated ln((1 - nu) * pdf(z) / sigma + nu / 5), else ln((1 - nu) * exp(-max(z, 0)^2 / 2) + nu).

    A window without backlog speaks only against capacities under its rate: the load up to the capacity that explains it
    best is taken. 1 - cdf(z), which takes any load up to it as equally likely, counts each window that is nearly full
    against its capacity as well. A day of them at 90 to 99 % moved a capacity of 1,000 to 1,085, although 22 saturated
    windows showed 965.
    """
    z = log_ratio / spread
    density = np.exp(-0.5 * z**2) / (spread * np.sqrt(2.0 * np.pi))
    shown = (1.0 - OUTLIER_SHARE) * density + OUTLIER_SHARE * OUTLIER_DENSITY
    bounded = (1.0 - OUTLIER_SHARE) * np.exp(-0.5 * np.maximum(z, 0.0) ** 2) + OUTLIER_SHARE
    likelihood: FloatArray = np.log(np.where(saturated, shown, bounded))
    return likelihood
