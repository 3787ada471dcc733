"""Families of generated loads: six kinds of change, each with and without a daily shape, as many draws as wanted.

A draw is a family, whether it has a daily shape, and a seed; everything else about the load is drawn from the seed. The
same seed gives the same changes with a daily shape and without, so that the two differ in nothing else. Rates have no
unit: the tournament rescales every load.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from forecasting.units import SECONDS_PER_DAY, FloatArray, read_only
from replay.trace import Trace

DAYS = 3
START_AT = datetime(2026, 5, 4, tzinfo=UTC)
STEP_SECONDS = 15
# Bursts are as short as one step.
BURST_STEP_SECONDS = 5
MINUTE, HOUR = 60.0, 3_600.0

BURST_SECONDS = (5.0, 10 * MINUTE)
BURST_GAP_SECONDS = (2 * MINUTE, 4 * HOUR)
BURST_GAINS = (1.5, 10.0)
CROWDS_PER_DAY = (1.0, 20.0)
# A lower exponent makes greater crowds more frequent: below 2 their variance is infinite, so the height has a limit.
CROWD_PARETO_EXPONENTS = (1.1, 2.5)
LEAST_CROWD, MOST_CROWD = 0.5, 30.0
CROWD_RISE_SECONDS = (15.0, 2 * MINUTE)
CROWD_DECAY_SECONDS = (2 * MINUTE, 60 * MINUTE)
WALK_RANGES = (3.0, 20.0)
# Standard deviation of ln(rate) after an hour.
WALK_PER_ROOT_HOUR = (0.1, 1.5)
HOLD_SECONDS = (10 * MINUTE, 4 * HOUR)
LEVEL_RANGES = (2.0, 20.0)
STATE_SECONDS = (5 * MINUTE, 6 * HOUR)
MOST_LOW_SHARE = 0.1
# Once in so many draws of on/off loads the low level is 0.
SILENT_SHARE = 0.25
NOISE_EXPONENTS = (0.0, 2.0)
NOISE_DEVIATIONS = (0.1, 0.8)
# The greatest rate of a daily shape over the least, and how long its peak is (a standard deviation on each side).
DAILY_RANGES = (2.0, 10.0)
DAILY_WIDTH_HOURS = (2.0, 5.0)

# The rates of so many steps.
Changes = Callable[[int, np.random.Generator], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFamily:
    """One kind of change: its description, the length of its steps, and the function that draws it."""

    sentence: str
    changes: Changes
    step_seconds: int = STEP_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One load of a family."""

    family: str
    with_daily: bool
    seed: int

    @property
    def load(self) -> str:
        """The name of the loads that differ from this one in the seed only.

        >>> Draw(family="bursts", with_daily=True, seed=3).load
        'bursts-daily'
        """
        return f"{self.family}-daily" if self.with_daily else self.family


def drawn(draw: Draw, *, days: int = DAYS) -> Trace:
    """The load of this draw; the same draw gives the same load.

    >>> drawn(Draw(family="on-off", with_daily=True, seed=3), days=1).messages_per_second.size
    5760
    """
    family = LOAD_FAMILIES[draw.family]
    place = list(LOAD_FAMILIES).index(draw.family)
    steps = days * SECONDS_PER_DAY // family.step_seconds
    rates = family.changes(steps, np.random.default_rng([draw.seed, place, 0]))
    if draw.with_daily:
        rates = rates * daily_shape(steps, family.step_seconds, np.random.default_rng([draw.seed, place, 1]))
    return Trace(
        name=draw.load, start_at=START_AT, step_seconds=family.step_seconds, messages_per_second=read_only(rates)
    )


def daily_shape(steps: int, step_seconds: int, random: np.random.Generator) -> FloatArray:
    """One smooth peak a day, of 1, the same every day: its hour, its width and the least rate are drawn."""
    peak_at = random.uniform(0.0, 2.0 * np.pi)
    width = random.uniform(*DAILY_WIDTH_HOURS) * HOUR * 2.0 * np.pi / SECONDS_PER_DAY
    least = 1.0 / _log_uniform(random, DAILY_RANGES)
    angle = np.arange(steps) * step_seconds * 2.0 * np.pi / SECONDS_PER_DAY
    # The peak of a normal distribution on the clock's circle, from 0 at the quietest hour to 1.
    bump = np.expm1((np.cos(angle - peak_at) + 1.0) / width**2) / np.expm1(2.0 / width**2)
    return np.asarray(least + (1.0 - least) * bump, dtype=np.float64)


def _bursts(steps: int, random: np.random.Generator) -> FloatArray:
    """A level of 1, and bursts above it that begin and end at once."""
    shortest, longest = sorted(_log_uniform(random, BURST_SECONDS) for _ in range(2))
    gap_seconds, gain = _log_uniform(random, BURST_GAP_SECONDS), _log_uniform(random, BURST_GAINS)
    rates = np.ones(steps)
    begins = 1 + int(random.exponential(gap_seconds / BURST_STEP_SECONDS))
    while begins < steps:
        length = max(1, round(_log_uniform(random, (shortest, longest)) / BURST_STEP_SECONDS))
        rates[begins : begins + length] = 1.0 + (gain - 1.0) * random.uniform(0.5, 1.0)
        begins += length + 1 + int(random.exponential(gap_seconds / BURST_STEP_SECONDS))
    return rates


def _flash_crowds(steps: int, random: np.random.Generator) -> FloatArray:
    """A level of 1, and at least one crowd on top of it that rises within two minutes and decays exponentially."""
    exponent = random.uniform(*CROWD_PARETO_EXPONENTS)
    rise_seconds, decay_seconds = (_log_uniform(random, each) for each in (CROWD_RISE_SECONDS, CROWD_DECAY_SECONDS))
    count = 1 + int(random.poisson(_log_uniform(random, CROWDS_PER_DAY) * steps * STEP_SECONDS / SECONDS_PER_DAY))
    rise = max(1, round(rise_seconds / STEP_SECONDS))
    crowds = np.zeros(steps)
    for begins in random.integers(0, steps, count):
        height = min(MOST_CROWD, LEAST_CROWD * (1.0 + random.pareto(exponent)))
        since = np.arange(steps - begins)
        crowds[begins:] += height * np.where(
            since < rise, (since + 1) / rise, np.exp(-(since - rise + 1) * STEP_SECONDS / decay_seconds)
        )
    return np.asarray(1.0 + crowds, dtype=np.float64)


def _random_walk(steps: int, random: np.random.Generator) -> FloatArray:
    """ln(rate) takes independent steps between two bounds that reflect it."""
    span = np.log(_log_uniform(random, WALK_RANGES))
    step = _log_uniform(random, WALK_PER_ROOT_HOUR) * np.sqrt(STEP_SECONDS / HOUR)
    free = random.uniform(0.0, span) + np.cumsum(random.normal(0.0, step, steps))
    # A walk between two mirrors is a free one, folded.
    return np.asarray(np.exp(-np.abs((free + span) % (2.0 * span) - span)), dtype=np.float64)


def _level_shifts(steps: int, random: np.random.Generator) -> FloatArray:
    """Levels anywhere in their range, each held for ten minutes to four hours."""
    least = 1.0 / _log_uniform(random, LEVEL_RANGES)
    rates = np.empty(steps)
    begins = 0
    while begins < steps:
        length = round(_log_uniform(random, HOLD_SECONDS) / STEP_SECONDS)
        rates[begins : begins + length] = _log_uniform(random, (least, 1.0))
        begins += length
    return rates


def _on_off(steps: int, random: np.random.Generator) -> FloatArray:
    """A Markov chain of two states that begins with the high one; the low level is 0 to a tenth of the high one."""
    on_seconds, off_seconds = (_log_uniform(random, STATE_SECONDS) for _ in range(2))
    low = 0.0 if random.random() < SILENT_SHARE else random.uniform(0.0, MOST_LOW_SHARE)
    rates = np.empty(steps)
    begins, is_on = 0, True
    while begins < steps:
        length = int(random.geometric(STEP_SECONDS / (on_seconds if is_on else off_seconds)))
        rates[begins : begins + length] = 1.0 if is_on else low
        begins, is_on = begins + length, not is_on
    return rates


def _coloured_noise(steps: int, random: np.random.Generator) -> FloatArray:
    """ln(rate) is noise whose power falls with the frequency's power of 0 (no memory) to 2 (a random walk)."""
    exponent, deviation = random.uniform(*NOISE_EXPONENTS), random.uniform(*NOISE_DEVIATIONS)
    # Twice as long as needed, because the inverse transform is periodic: its end meets its beginning.
    amplitudes = np.fft.rfft(random.normal(size=2 * steps))
    frequencies = np.fft.rfftfreq(2 * steps)
    amplitudes[0] = 0.0
    amplitudes[1:] *= frequencies[1:] ** (-exponent / 2.0)
    noise = np.fft.irfft(amplitudes, 2 * steps)[:steps]
    return np.asarray(np.exp(deviation * (noise - noise.mean()) / noise.std()), dtype=np.float64)


def _log_uniform(random: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(np.exp(random.uniform(*np.log(bounds))))


LOAD_FAMILIES: dict[str, LoadFamily] = {
    "bursts": LoadFamily(
        sentence="A level with bursts of 5 s to 10 min, up to ten times as high, that switch on and off.",
        changes=_bursts,
        step_seconds=BURST_STEP_SECONDS,
    ),
    "flash-crowds": LoadFamily(
        sentence="A level with crowds that come within 2 min and decay over 2 to 60 min; heights are Pareto's.",
        changes=_flash_crowds,
    ),
    "random-walk": LoadFamily(
        sentence="A random walk of the logarithm between two bounds that reflect it.", changes=_random_walk
    ),
    "level-shifts": LoadFamily(sentence="Random levels, each held for 10 min to 4 h.", changes=_level_shifts),
    "on-off": LoadFamily(
        sentence="A high level and one of 0 to 10 % of it, each for 5 min to 6 h on average, without memory.",
        changes=_on_off,
    ),
    "coloured-noise": LoadFamily(
        sentence="Noise of the logarithm with a spectrum of 1/f to a power of 0 to 2.", changes=_coloured_noise
    ),
}
