"""The load of a published comparison, as a twin of our own, and the two figures that it published.

A white paper of 2019 (Federator.ai, ProphetStor) compared a predictive autoscaler with 40 consumers and with an HPA at
a lag target of 10,000, on 40 partitions; a later public demo has 144 one-minute values for its load. Their list has no
licence, so this one is made from a seed and shares their shape and size only. The capacity of one consumer is not
published: replay several capacities, and state which.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from scipy.optimize import brentq

from forecasting.units import FloatArray, read_only
from replay.trace import Trace

STEP_SECONDS = 60
MINUTES = 144
HALF_CYCLE_MINUTES = 10
START_AT = datetime(2026, 5, 4, tzinfo=UTC)

# Messages per minute and unit of the list: the range stated in a talk of 2021, and the one that the demo produced.
S1, S2 = 1_000.0, 60_000.0

MEAN, LEAST, PEAK = 62.8, 24.3, 112.6
# Levels of the high and the low half of a cycle, at the first and at the last minute; both decrease by the same share.
HIGH_LEVELS, LOW_LEVELS = (106.0, 62.0), (48.0, 28.0)
NOISE = 0.04
# All rises but one pass through the middle: 7 falls, 1 + 6 x 2 rises are 20 jumps of more than 30 %.
SLOW_RISES = 6

BURSTS_PER_MINUTE = 6

PARTITIONS = 40
OVER_PROVISIONED_REPLICAS = 40
# The number of consumers that just carry the peak: the comparison does not state it, so there are three guesses.
CARRYING_THE_PEAK = (40, 20, 10)


def twin(minutes: int = MINUTES, *, seed: int = 2019, scale: float = S1) -> Trace:
    """The first `minutes` of the twin's list, which repeats after 144; `scale` is S1 or S2, or any other.

    Ten minutes high, ten low, on a falling level, with 20 jumps of more than 30 %; the same seed gives the same list.

    >>> trace = twin()
    >>> trace.duration_seconds, round(trace.messages_per_second.mean())     # 62.8 x 1,000 / 60
    (8640, 1047)
    """
    values = np.resize(_values(seed), minutes)
    rates = np.round(values * (scale / STEP_SECONDS), 1)
    return Trace(
        name="whitepaper-twin", start_at=START_AT, step_seconds=STEP_SECONDS, messages_per_second=read_only(rates)
    )


def _values(seed: int) -> FloatArray:
    random = np.random.default_rng([seed, MINUTES])
    minute = np.arange(MINUTES)
    high, low = (np.geomspace(first, last, MINUTES) for first, last in (HIGH_LEVELS, LOW_LEVELS))
    values = np.where(minute // HALF_CYCLE_MINUTES % 2 == 0, high, low)
    rises = np.arange(2 * HALF_CYCLE_MINUTES, MINUTES, 2 * HALF_CYCLE_MINUTES)
    slow = random.choice(rises, SLOW_RISES, replace=False)
    values[slow] = np.sqrt(high[slow] * low[slow])
    return _resized(values * np.exp(random.uniform(-NOISE, NOISE, MINUTES)))


def _resized(values: FloatArray) -> FloatArray:
    """The same order of values, bent so that least, mean and peak are those of the original."""
    places = (values - values.min()) / np.ptp(values)

    def bent(power: float) -> FloatArray:
        curve: FloatArray = LEAST + (PEAK - LEAST) * places**power
        return curve

    return bent(brentq(lambda power: float(bent(power).mean()) - MEAN, 0.1, 10.0))


def in_bursts(trace: Trace) -> Trace:
    """The same load as the demo's producers sent it: six times a minute ten seconds' worth within one second.

    >>> in_bursts(twin(1)).messages_per_second[:20:5].round() / 10 / twin(1).messages_per_second[0].round()
    array([1., 0., 1., 0.])
    """
    seconds = np.arange(trace.duration_seconds)
    gap = 60 // BURSTS_PER_MINUTE
    rates = np.where(seconds % gap == 0, gap * trace.rates(0, trace.duration_seconds), 0.0)
    return replace(trace, name=f"{trace.name}-bursts", step_seconds=1, messages_per_second=read_only(rates))


def capacity_carrying_the_peak(trace: Trace, *, replicas: int) -> float:
    """Messages per second of one replica, if so many replicas just carry the busiest minute.

    >>> [round(capacity_carrying_the_peak(twin(), replicas=replicas), 1) for replicas in CARRYING_THE_PEAK]
    [46.9, 93.8, 187.7]
    """
    return float(trace.minute_rates().max()) / replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigures:
    """The two figures of the paper, as changes: -0.45 is 45 % less. They mean nothing without the capacity."""

    replicas_fraction: float
    lag_messages_fraction: float


PUBLISHED = PublishedFigures(replicas_fraction=-0.45, lag_messages_fraction=-0.9846)


def published_figures(
    *,
    mean_replicas: float,
    mean_lag_messages: float,
    hpa_mean_lag_messages: float,
    over_provisioned_replicas: float = OVER_PROVISIONED_REPLICAS,
) -> PublishedFigures:
    """One run's mean replicas against the over-provision, and its mean lag against that of HPA at 10,000.

    >>> published_figures(mean_replicas=22, mean_lag_messages=13_850, hpa_mean_lag_messages=899_000)
    PublishedFigures(replicas_fraction=-0.45, lag_messages_fraction=-0.9846)
    """
    return PublishedFigures(
        replicas_fraction=mean_replicas / over_provisioned_replicas - 1.0,
        lag_messages_fraction=mean_lag_messages / hpa_mean_lag_messages - 1.0,
    )
