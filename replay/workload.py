"""The project's own workload "orders": two weeks of a shop's order events, generated from a seed."""

from datetime import UTC, datetime

import numpy as np

from forecasting.units import SECONDS_PER_DAY, FloatArray, read_only
from replay.trace import Trace

STEP_SECONDS = 60
MEAN_MESSAGES_PER_SECOND = 2_400.0
# A Monday, so that the weekends of the default 14 days are days 6, 7, 13 and 14.
START_AT = datetime(2026, 5, 4, tzinfo=UTC)
PROMOTION_GAIN = 1.5
# Levels at these hours of a weekday, straight lines between: quiet night, morning rise, lunch dip, evening peak.
HOURS = (0.0, 3.0, 5.0, 7.0, 9.5, 11.5, 13.0, 14.5, 17.0, 19.5, 21.0, 22.5, 24.0)
LEVELS = (0.42, 0.25, 0.24, 0.55, 1.10, 1.28, 1.02, 1.15, 1.35, 1.95, 1.85, 0.95, 0.42)
# Monday to Sunday: the weekend is slower by day.
WEEKDAY_GAINS = (1.0, 0.98, 1.0, 1.02, 1.10, 0.82, 0.76)


def orders_workload(*, days: int = 14, seed: int = 7, start_at: datetime = START_AT) -> Trace:
    """`days` days at one-minute steps, mean 2,400 messages/s; the same seed gives the same trace.

    It has a daily and a weekly shape with a lunch dip and an evening peak, noise with memory (about ten minutes), a
    few short bursts a day without warning, and from nine days on one promotion day at half as much again.

    >>> orders_workload(days=2).messages_per_second.size
    2880
    """
    random = np.random.default_rng([seed, days])
    minutes = days * SECONDS_PER_DAY // STEP_SECONDS
    shape = _daily_shape(minutes, start_at) * _weekly_gain(minutes, start_at)
    shape = shape * _promotion(minutes, random) * np.exp(_noise_with_memory(minutes, random)) + _bursts(minutes, random)
    rates = shape * (MEAN_MESSAGES_PER_SECOND / shape.mean())
    return Trace(
        name="orders", start_at=start_at, step_seconds=STEP_SECONDS, messages_per_second=read_only(np.round(rates, 1))
    )


def _minute_of_day(minutes: int, start_at: datetime) -> FloatArray:
    first = start_at.hour * 60 + start_at.minute
    return np.asarray((np.arange(minutes) + first) % 1440, dtype=np.float64)


def _day_number(minutes: int, start_at: datetime) -> FloatArray:
    first = start_at.hour * 60 + start_at.minute
    return np.asarray((np.arange(minutes) + first) // 1440, dtype=np.float64)


def _daily_shape(minutes: int, start_at: datetime) -> FloatArray:
    return np.asarray(np.interp(_minute_of_day(minutes, start_at) / 60.0, HOURS, LEVELS), dtype=np.float64)


def _weekly_gain(minutes: int, start_at: datetime) -> FloatArray:
    weekdays = (_day_number(minutes, start_at).astype(np.int64) + start_at.weekday()) % 7
    return np.asarray(np.array(WEEKDAY_GAINS)[weekdays], dtype=np.float64)


def _promotion(minutes: int, random: np.random.Generator) -> FloatArray:
    """A gain of 1, but on one day between the ninth and the last it swells from 09:00 and ebbs by midnight."""
    gain = np.ones(minutes)
    days = minutes // 1440
    if days < 9:
        return gain
    begins = int(random.integers(8, days)) * 1440 + 9 * 60
    swell = np.interp(np.arange(15 * 60), (0, 90, 780, 900), (1.0, PROMOTION_GAIN, PROMOTION_GAIN, 1.0))
    gain[begins : begins + swell.size] = swell[: minutes - begins]
    return gain


def _noise_with_memory(minutes: int, random: np.random.Generator) -> FloatArray:
    """A first-order autoregression: each minute keeps 0.9 of the last one; its standard deviation is 0.04."""
    keep, deviation = 0.9, 0.04
    shocks = random.normal(0.0, deviation * np.sqrt(1.0 - keep**2), minutes)
    level, noise = 0.0, np.empty(minutes)
    for minute in range(minutes):
        level = keep * level + shocks[minute]
        noise[minute] = level
    return noise


def _bursts(minutes: int, random: np.random.Generator) -> FloatArray:
    """About three a day, each up to 0.7 of the mean level at once, halved every four minutes."""
    bursts = np.zeros(minutes)
    count = int(random.poisson(3.0 * minutes / 1440))
    for begins, height in zip(random.integers(0, minutes, count), random.uniform(0.25, 0.7, count), strict=True):
        fading = height * 0.5 ** (np.arange(20) / 4.0)
        bursts[begins : begins + 20] += fading[: minutes - begins]
    return bursts
