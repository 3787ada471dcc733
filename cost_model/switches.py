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


class Switches(NamedTuple):
    """What every move (n, m) does, whatever it costs: lost seconds of the whole group's work, repeated ones, stops.

    The classes of partitions that stop (a, a, 2) have a share each, and the mean time by which they outlast max_lag.
    """

    lost_seconds: FloatArray
    repeated_seconds: FloatArray
    pause_shares: FloatArray
    pause_overruns: FloatArray


@lru_cache(maxsize=1024)
def switches_of(
    profile: GroupProfile,
    choices: tuple[int, ...],
    *,
    pause_prior_seconds: float | None,
    pause_spread: float,
    max_lag_seconds: float,
) -> Switches:
    """What every move between these counts does.

    Remembered per profile, since a group's moves stay what they are while its demand and prices change: computing them
    takes 3 ms for 12 counts, more than the search itself.
    """
    size = len(choices)
    lost, repeated = np.zeros((size, size)), np.zeros((size, size))
    shares, overruns = np.zeros((size, size, 2)), np.zeros((size, size, 2))
    prior = None if pause_prior_seconds is None else Seconds(pause_prior_seconds)
    limit = Seconds(max_lag_seconds)
    for n, m in permutations(range(size), 2):
        before, after = Replicas(choices[n]), Replicas(choices[m])
        effect = move_effect(profile, from_replicas=before, to_replicas=after, pause_prior_seconds=prior)
        lost[n, m] = effect.lost_partition_seconds / profile.partitions
        repeated[n, m] = repeated_seconds(profile, from_replicas=before, to_replicas=after)
        for position, pause in enumerate(effect.pauses):
            shares[n, m, position] = pause.share
            overruns[n, m, position] = expected_overrun(mean=pause.mean_seconds, spread=pause_spread, limit=limit)
    return Switches(lost_seconds=lost, repeated_seconds=repeated, pause_shares=shares, pause_overruns=overruns)
