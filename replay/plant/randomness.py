"""Random numbers that live inside compiled loops."""

import math

import numpy as np
from numpy.typing import NDArray

from forecasting.compiled import compiled

# The state of one stream: numba's own generator is global, so two plants in one process would draw from one stream.
RandomState = NDArray[np.uint64]


GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MIX = np.uint64(0x94D049BB133111EB)
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@compiled
def uniform(random: RandomState) -> float:
    """A number in [0, 1); advances the stream. Source: Steele, Lea and Flood (2014), SplitMix64."""
    random[0] += GOLDEN_GAMMA
    mixed = random[0]
    mixed = (mixed ^ (mixed >> SHIFT_30)) * FIRST_MIX
    mixed = (mixed ^ (mixed >> SHIFT_27)) * SECOND_MIX
    mixed = mixed ^ (mixed >> SHIFT_31)
    return float(mixed >> SHIFT_11) / 9007199254740992.0  # 2^53


@compiled
def normal(random: RandomState) -> float:
    """A standard normal number. Source: Box and Muller (1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(random)))
    return radius * math.cos(2.0 * math.pi * uniform(random))
