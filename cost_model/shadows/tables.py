"""The load that each useful count carries, and the stops of moves between them, as arrays for the compiled loop."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count, useful_counts
from cost_model.physics.streams import capacity_lead_seconds
from cost_model.pricing.move_effects import move_effects_of
from cost_model.pricing.simulation_inputs import replica_classes
from forecasting.units import FloatArray, IntArray, MessagesPerSecond, Replicas

# Less than this of the group stands still: some partitions go on.
_ALL = 1.0 - 1e-9
# Times count to a tenth: with less, each graded move would compute every move anew.
_STEPS_PER_DOUBLING = 7.0


class MoveTables(NamedTuple):
    """One value per count (c,), class (c, 3), useful count (a,) or pair of useful counts (a, a), ascending.

    `carried` and `class_replicas` are in replicas' worth of work, `class_shares` shares of the load. Of moves:
    `whole_seconds` that every partition stands still, `longer_shares` and `longer_seconds` (a, a, 3) of those that do
    so for longer, and the `lead_seconds` of new pods. A count moves as the useful count in its place of `places` (c,)
    does: the largest one up to it.
    """

    counts: FloatArray
    carried: FloatArray
    class_shares: FloatArray
    class_replicas: FloatArray
    places: IntArray
    whole_seconds: FloatArray
    longer_shares: FloatArray
    longer_seconds: FloatArray
    lead_seconds: FloatArray


class MoveTimes(NamedTuple):
    """Seconds of a group's rebalance pauses, up and down, and of start-up, to a tenth."""

    pause_up_seconds: float
    pause_down_seconds: float
    start_up_seconds: float

    @classmethod
    def of(cls, profile: GroupProfile, learned: Learned) -> "MoveTimes":
        """Those that the group's own moves have taught; of start-up as configured until one was seen."""
        start_up = float(profile.start_up_seconds) if learned.start_up is None else learned.start_up.value
        seconds = (learned.pause_scale_out.value, learned.pause_scale_in.value, start_up)
        return cls(*(to_a_tenth(value) for value in seconds))


@lru_cache(maxsize=1024)
def to_a_tenth(value: float) -> float:
    """The nearest of seven values per doubling, so that what was computed with it can be used again.

    >>> [round(to_a_tenth(value), 3) for value in (1.0, 1.04, 12.0)]
    [1.0, 1.0, 11.888]
    """
    steps = np.round(_STEPS_PER_DOUBLING * np.log2(max(value, 0.1)))
    return float(2.0 ** (steps / _STEPS_PER_DOUBLING))


def tables_of(profile: GroupProfile, times: MoveTimes, *, max_lag_seconds: float) -> MoveTables:
    """The tables of a group's useful counts within its bounds."""
    counts = useful_counts(profile, minimum=Replicas(profile.replica_floor), maximum=Replicas(profile.replica_ceiling))
    shares, replicas = replica_classes(profile, counts)
    effects = move_effects_of(
        profile,
        counts,
        rebalance_pause_prior_seconds=(times.pause_up_seconds, times.pause_down_seconds),
        pause_spread=0.0,
        max_lag_seconds=max_lag_seconds,
        quiet_seconds=None,
    )
    pauses, stopped = effects.rebalance_pause_seconds, effects.pause_shares
    all_stop = stopped.sum(axis=2) >= _ALL
    whole = np.where(all_stop, np.where(stopped > 0.0, pauses, np.inf).min(axis=2), 0.0)
    longer = pauses > whole[:, :, None]
    leads = [
        [
            times.start_up_seconds
            + capacity_lead_seconds(profile, from_replicas=Replicas(before), to_replicas=Replicas(after))
            for after in counts
        ]
        for before in counts
    ]
    return MoveTables(
        counts=np.array(counts, dtype=np.float64),
        carried=carried_by_count(profile, counts, capacity=MessagesPerSecond(1.0)),
        class_shares=shares,
        class_replicas=replicas,
        places=np.arange(len(counts)),
        whole_seconds=whole,
        longer_shares=np.where(longer, stopped, 0.0),
        longer_seconds=np.where(longer, pauses, 0.0),
        lead_seconds=np.array(leads),
    )


def of_every_count(tables: MoveTables, profile: GroupProfile) -> MoveTables:
    """The same group with any count within its bounds, as autoscalers choose it that know no useful counts.

    Between two useful counts the busiest replicas are as busy as with the smaller one, but they are fewer.

    >>> from forecasting.units import Partitions
    >>> eight = GroupProfile(cluster="c", group="g", partitions=Partitions(8), capacity=None)
    >>> every = of_every_count(tables_of(eight, MoveTimes(5.0, 5.0, 30.0), max_lag_seconds=10.0), eight)
    >>> every.counts.tolist(), every.carried.tolist(), every.places.tolist()
    ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 2.66, 4.0, 4.0, 4.0, 4.0, 8.0], [0, 1, 2, 3, 3, 3, 3, 4])
    """
    counts = tuple(range(profile.replica_floor, profile.replica_ceiling + 1))
    shares, replicas = replica_classes(profile, counts)
    carried = carried_by_count(profile, counts, capacity=MessagesPerSecond(1.0))
    places = np.searchsorted(tables.counts, counts, side="right") - 1
    return tables._replace(
        counts=np.array(counts, dtype=np.float64),
        # Where replicas hinder each other more of them carry less; nobody asks for those.
        carried=np.maximum.accumulate(carried),
        class_shares=shares,
        class_replicas=replicas,
        places=np.maximum(places, 0),
    )
