"""The effects of every move of a group, as arrays for the plan search."""

from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from math import log2
from typing import NamedTuple

import numpy as np

from cost_model.physics.backlog import expected_overrun
from cost_model.physics.duplicates import dropped_seconds, in_flight_messages, repeated_seconds
from cost_model.physics.profile import GroupProfile, while_behind
from cost_model.physics.rebalance import move_effect
from cost_model.physics.streams import lead_seconds, restored_bytes
from cost_model.pricing.situation import Situation
from forecasting.units import FloatArray, Replicas, Seconds

# Partitions that stay, those whose owner left gracefully, and those whose owner did not.
PAUSE_CLASSES = 3


class MoveEffects(NamedTuple):
    """The effects of every move (n, m), before prices; each array is (a, a).

    `lost_seconds` of the whole group's work are lost to the stop, `repeated_seconds` processed twice, `dropped_seconds`
    never; `in_flight_messages` are repeated at any rate. A move up carries more `lead_seconds` after its command.
    The classes of partitions that stop (a, a, PAUSE_CLASSES) have a share each, the mean time that they stop, and the
    mean time by which that outlasts max_lag.
    """

    lost_seconds: FloatArray
    repeated_seconds: FloatArray
    in_flight_messages: FloatArray
    dropped_seconds: FloatArray
    restored_bytes: FloatArray
    lead_seconds: FloatArray
    pause_shares: FloatArray
    rebalance_pause_seconds: FloatArray
    pause_overruns: FloatArray


def move_effects_now(situation: Situation, choices: tuple[int, ...], *, behind: bool) -> MoveEffects:
    """The effects of moves between these counts on a group that keeps up, or is `behind`: its batches are full.

    The length of full batches counts to a twentieth and the quiet time, whose root matters, to a factor of two, so that
    cached results can be used again.
    """
    profile = situation.profile
    if behind:
        batch = while_behind(profile).poll_batch_seconds
        profile = replace(profile, poll_batch_seconds=Seconds(max(profile.poll_batch_seconds, float(f"{batch:.2g}"))))
    return move_effects_of(
        replace(profile, cluster="", group="", capacity=None, partition_weights=None),
        choices,
        rebalance_pause_prior_seconds=situation.pause_priors,
        pause_spread=situation.pause_spread,
        max_lag_seconds=situation.max_lag_seconds,
        quiet_seconds=None
        if situation.quiet_seconds is None
        else 2.0 ** round(log2(max(situation.quiet_seconds, 1.0))),
    )


# Four of each of a thousand groups that differ, 10 kB each at 9 counts. Those that are used in turn are all lost where
# they are more than this.
@lru_cache(maxsize=4096)
def move_effects_of(
    profile: GroupProfile,
    choices: tuple[int, ...],
    *,
    rebalance_pause_prior_seconds: tuple[float, float] | None,
    pause_spread: float,
    max_lag_seconds: float,
    quiet_seconds: float | None,
) -> MoveEffects:
    """The effects of every move between these counts.

    `rebalance_pause_prior_seconds` are the floors of a move's stop, up and down; `quiet_seconds` as in `move_effect`.
    Cached, since the effects of a group's moves do not change with its demand and prices, nor with its name: computing
    them takes 3 ms for 12 counts.
    """
    size = len(choices)
    lost, repeated, in_flight, dropped, restored, lead = (np.zeros((size, size)) for _ in range(6))
    shares, seconds, overruns = (np.zeros((size, size, PAUSE_CLASSES)) for _ in range(3))
    limit = Seconds(max_lag_seconds)
    quiet = None if quiet_seconds is None else Seconds(quiet_seconds)
    for n, m in permutations(range(size), 2):
        before, after = Replicas(choices[n]), Replicas(choices[m])
        prior = (
            None
            if rebalance_pause_prior_seconds is None
            else Seconds(rebalance_pause_prior_seconds[int(after < before)])
        )
        effect = move_effect(
            profile, from_replicas=before, to_replicas=after, rebalance_pause_prior_seconds=prior, quiet_seconds=quiet
        )
        lost[n, m] = effect.lost_partition_seconds / profile.partitions
        repeated[n, m] = repeated_seconds(profile, from_replicas=before, to_replicas=after)
        in_flight[n, m] = in_flight_messages(profile, from_replicas=before, to_replicas=after)
        dropped[n, m] = dropped_seconds(profile, from_replicas=before, to_replicas=after)
        restored[n, m] = restored_bytes(profile, from_replicas=before, to_replicas=after)
        lead[n, m] = lead_seconds(profile, from_replicas=before, to_replicas=after)
        for position, pause in enumerate(effect.pauses):
            shares[n, m, position] = pause.share
            seconds[n, m, position] = pause.mean_seconds
            overruns[n, m, position] = expected_overrun(mean=pause.mean_seconds, spread=pause_spread, limit=limit)
    # Most groups drop nothing and restore nothing: what is all zeros is one array for all of it.
    nothing = np.zeros((size, size))
    lost, repeated, in_flight, dropped, restored, lead = (
        each if each.any() else nothing for each in (lost, repeated, in_flight, dropped, restored, lead)
    )
    return MoveEffects(
        lost_seconds=lost,
        repeated_seconds=repeated,
        in_flight_messages=in_flight,
        dropped_seconds=dropped,
        restored_bytes=restored,
        lead_seconds=lead,
        pause_shares=shares,
        rebalance_pause_seconds=seconds,
        pause_overruns=overruns,
    )
