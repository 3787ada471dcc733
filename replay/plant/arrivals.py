"""Messages produced in each partition in each second, drawn beforehand so that many policies can share one draw."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.units import SECONDS_PER_DAY
from replay.trace import Trace
from replay.world import World

Int32Array = NDArray[np.int32]
# Drawn in one go: 900 x 120 partitions are 0.9 MB of rates.
CHUNK_SECONDS = 900


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Messages that arrive, shape (seconds, partitions); row i is second `first_second + i` of the trace."""

    first_second: int
    messages: Int32Array

    @property
    def end_second(self) -> int:
        """The first second after the drawn ones."""
        return self.first_second + len(self.messages)

    def rows(self, first_second: int, seconds: int) -> Int32Array:
        """The given seconds, or fewer where the draw ends; a view, not a copy."""
        begin = first_second - self.first_second
        return self.messages[begin : begin + seconds]


def draw_arrivals(
    world: World, trace: Trace, seed: int, *, first_second: int = 0, last_second: int | None = None
) -> Arrivals:
    """Poisson numbers around the trace's rates times the partitions' weights, from one second up to another.

    The whole trace if no seconds are given; `first_second` must begin a day of the trace. Each day has a stream of its
    own, so that a day drawn alone is the same as that day of the whole. One day of 120 partitions is 41 MB.
    """
    end = trace.duration_seconds if last_second is None else min(last_second, trace.duration_seconds)
    weights = world.partition_weights()
    bursts = _burst_begins(world, trace, seed)
    messages = np.empty((end - first_second, world.partitions), dtype=np.int32)
    for begin in range(first_second, end, CHUNK_SECONDS):
        if begin % SECONDS_PER_DAY == 0:
            random = np.random.default_rng([seed, 1, begin // SECONDS_PER_DAY])
        chunk = min(CHUNK_SECONDS, end - begin)
        row = begin - first_second
        gains = np.ones(chunk)
        for burst in bursts:
            gains[max(0, burst - begin) : max(0, burst - begin + world.burst_seconds)] = world.burst_gain
        messages[row : row + chunk] = random.poisson(np.outer(trace.rates(begin, chunk) * gains, weights))
    messages.flags.writeable = False
    return Arrivals(first_second=first_second, messages=messages)


def _burst_begins(world: World, trace: Trace, seed: int) -> list[int]:
    """The seconds at which bursts begin: so many a day on average, anywhere in the trace."""
    random = np.random.default_rng([seed, 3])
    count = int(random.poisson(world.burst_per_day * trace.days))
    begins: list[int] = random.integers(0, trace.duration_seconds, count).tolist()
    return begins
