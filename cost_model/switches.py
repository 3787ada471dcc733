"""Every move of a group at once: what each does to it, as arrays for the plan search."""

from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from cost_model.backlog import expected_overrun
from cost_model.duplicates import repeated_seconds
from cost_model.profile import GroupProfile
from cost_model.rebalance import move_effect
from forecasting.units import FloatArray, Replicas, Seconds

# Those that stay, those whose owner said goodbye, and those whose owner did not.
PAUSE_CLASSES = 3


class Switches(NamedTuple):
    """What every move (n, m) does, whatever it costs: lost seconds of the whole group's work, repeated ones, stops.

    The classes of partitions that stop (a, a, PAUSE_CLASSES) have a share each, the mean time that they stop, and the
    mean time by which that outlasts max_lag.
    """

    lost_seconds: FloatArray
    repeated_seconds: FloatArray
    pause_shares: FloatArray
    pause_seconds: FloatArray
    pause_overruns: FloatArray


@lru_cache(maxsize=1024)
def switches_of(
    profile: GroupProfile,
    choices: tuple[int, ...],
    *,
    pause_prior_seconds: tuple[float, float] | None,
    pause_spread: float,
    max_lag_seconds: float,
) -> Switches:
    """What every move between these counts does.

    `pause_prior_seconds` are the floors of a move's stop, up and down. Remembered per profile, since a group's moves
    stay what they are while its demand and prices change: computing them takes 3 ms for 12 counts.
    """
    size = len(choices)
    lost, repeated = np.zeros((size, size)), np.zeros((size, size))
    shares, seconds, overruns = (np.zeros((size, size, PAUSE_CLASSES)) for _ in range(3))
    limit = Seconds(max_lag_seconds)
    for n, m in permutations(range(size), 2):
        before, after = Replicas(choices[n]), Replicas(choices[m])
        prior = None if pause_prior_seconds is None else Seconds(pause_prior_seconds[int(after < before)])
        effect = move_effect(profile, from_replicas=before, to_replicas=after, pause_prior_seconds=prior)
        lost[n, m] = effect.lost_partition_seconds / profile.partitions
        repeated[n, m] = repeated_seconds(profile, from_replicas=before, to_replicas=after)
        for position, pause in enumerate(effect.pauses):
            shares[n, m, position] = pause.share
            seconds[n, m, position] = pause.mean_seconds
            overruns[n, m, position] = expected_overrun(mean=pause.mean_seconds, spread=pause_spread, limit=limit)
    return Switches(
        lost_seconds=lost,
        repeated_seconds=repeated,
        pause_shares=shares,
        pause_seconds=seconds,
        pause_overruns=overruns,
    )
