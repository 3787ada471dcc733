"""The state of the simulated group: the arrays that the compiled loops read and change in place."""

import math
from typing import NamedTuple

import numpy as np

from forecasting.compiled import compiled
from forecasting.units import SECONDS_PER_DAY, AnyArray, FloatArray, IntArray
from replay.plant.physics import Physics
from replay.plant.randomness import RandomState, normal, uniform

# Pods: a free slot; starting, not yet in the group; a member; stopping, and still a member until it has closed;
# killed, a member until its session ends.
FREE, STARTING, MEMBER, CLOSING, GHOST = 0, 1, 2, 3, 4
# The group's phases, in Kafka's order; RECONCILING is kip848's only one beside STABLE.
STABLE, JOINING, SYNCING, RECONCILING = 0, 1, 2, 3
# Waits are counted in half seconds up to 64 s, then in sixteenths of a doubling up to 18 h (64 s x 2^10).
FINE_BINS, FINE_SECONDS, BINS_PER_DOUBLING = 128, 64.0, 16
WAIT_BINS = FINE_BINS + 10 * BINS_PER_DOUBLING

FIRST_COHORTS = 2048
# Commands never come more often than this.
COMMAND_SECONDS = 15
RECENT_SECONDS = 15


class PartitionTable(NamedTuple):
    """One value for each partition; offsets in messages, times in seconds since the start.

    `replayed` messages at the front have been consumed once before; `stopped_at` is NaN while a member consumes;
    `released` counts this second's arrivals so far, `new` those of the present slice. A `blocked` partition makes no
    progress. `warm_pod` restores its state, or has done so, to take it over; -1: none; done at `warm_at`.
    Its cohorts are those from `first_cohort` up to, not including, `next_cohort`.
    """

    end: IntArray
    position: IntArray
    committed: IntArray
    replayed: IntArray
    owner: IntArray
    target: IntArray
    stopped_at: FloatArray
    released: IntArray
    blocked: IntArray
    warm_pod: IntArray
    warm_at: FloatArray
    new: AnyArray
    first_cohort: IntArray
    next_cohort: IntArray


class PodTable(NamedTuple):
    """One value for each slot that a pod may have; times in seconds since the start.

    `event_at` is when a starting pod joins, a member rejoins in a join phase (kip848: beats), a closing pod leaves, or
    a ghost's session ends. A member revokes at `revoke_at` and takes up at `take_up_at`, after as many more polls as
    `revoke_step` and `take_up_polls` show. A `doomed` pod is killed while it closes. It ends its batch at `poll_at`,
    last committed at `committed_at`, and beats at `beat_phase` plus whole intervals (kip848). `need` is its backlog,
    `wanted` the part of its `budget` that the sink has not granted yet. `drift` is how far its heartbeat strays,
    `speed` its own capacity factor, `mood` the momentary one (standard normal), `rate` what both make of the capacity
    (messages/s), `carry` the fraction of a message that its last budget left over.
    """

    status: IntArray
    born: IntArray
    rejoined: IntArray
    held_count: IntArray
    budget: IntArray
    need: IntArray
    wanted: IntArray
    doomed: IntArray
    revoke_step: IntArray
    take_up_polls: IntArray
    event_at: FloatArray
    revoke_at: FloatArray
    take_up_at: FloatArray
    poll_at: FloatArray
    committed_at: FloatArray
    beat_phase: FloatArray
    drift: FloatArray
    speed: FloatArray
    mood: FloatArray
    rate: FloatArray
    carry: FloatArray


class Seats(NamedTuple):
    """The present owners: seat i is `pods[i]` with `partitions[begins[i]:begins[i + 1]]`.

    There are `group.seats` of them; the block after the last one holds the partitions without a consumer.
    """

    pods: IntArray
    begins: IntArray
    partitions: IntArray


class Cohorts(NamedTuple):
    """The backlog: how many messages of which second, per partition a ring whose length is a power of two.

    Cohort k of a partition is in row `k & (length - 1)`. Messages served within the second of arrival are never here.
    """

    seconds: AnyArray
    messages: AnyArray


# `replicas` is the requested count, `alive` the charged one, `born` how many pods there have ever been, `members` how
# many are in the group and alive, `seats` how many of them consume. kip848 assigns at `assign_at`, Streams requests the
# next round at `probe_at`. `sink_carry` is the fraction of a message that the sink's last allowance left over.
GROUP = np.dtype(
    [
        ("phase", np.int64),
        ("replicas", np.int64),
        ("alive", np.int64),
        ("born", np.int64),
        ("members", np.int64),
        ("seats", np.int64),
        ("sync_at", np.float64),
        ("assign_at", np.float64),
        ("probe_at", np.float64),
        ("sink_carry", np.float64),
        ("in_step_at", np.float64),
        ("next_event_at", np.float64),
    ],
    align=True,
)
TALLY = np.dtype(
    [
        ("pod_seconds", np.float64),
        ("arrivals", np.int64),
        ("served", np.int64),
        ("late", np.int64),
        ("moves", np.int64),
        ("rebalances", np.int64),
        ("rebalancing_seconds", np.float64),
        ("paused_partition_seconds", np.float64),
        ("duplicates", np.int64),
        ("skipped", np.int64),
        ("lag_message_seconds", np.float64),
    ],
    align=True,
)


class State(NamedTuple):
    """All changing arrays, changed in place: `group` has one row, `tally` and `waits` (a histogram) one for each day.

    `recent` has the seconds that members worked, and that they were there, in each of the last 15 seconds.
    """

    partitions: PartitionTable
    pods: PodTable
    seats: Seats
    cohorts: Cohorts
    group: AnyArray
    tally: AnyArray
    waits: IntArray
    recent: FloatArray
    random: RandomState


@compiled
def own_speed(random: RandomState, physics: Physics) -> float:
    """A new pod's factor of the capacity."""
    speed = math.exp(physics.pod_speed_spread * normal(random))
    return speed * physics.slow_pod_speed if uniform(random) < physics.slow_pod_share else speed


def new_state(physics: Physics, *, partitions: int, ceiling: int, replicas: int, duration: int, seed: int) -> State:
    """A group of `replicas` members that has just become stable; nothing assigned, produced or consumed yet."""
    # A stopping pod keeps its slot until it has closed, an ungraceful one until its session has ended. Closing takes
    # 1.1 s by default: there are those requested, those of a rolling restart, and at most those that two commands have
    # stopped, four times the ceiling.
    closing = physics.shutdown + physics.batch
    ungraceful = physics.static_membership or closing > physics.grace
    gone = min(closing, physics.grace) + (physics.session if ungraceful else 0.0)
    slots = (4 + int(gone // COMMAND_SECONDS)) * ceiling
    days = -(-duration // SECONDS_PER_DAY)
    random = np.random.SeedSequence([seed, 2]).generate_state(1, np.uint64).astype(np.uint64)
    state = State(
        partitions=_partition_table(partitions),
        pods=_pod_table(slots),
        seats=Seats(
            pods=np.zeros(slots, dtype=np.int64),
            begins=np.zeros(slots + 2, dtype=np.int64),
            partitions=np.zeros(partitions, dtype=np.int64),
        ),
        cohorts=Cohorts(
            seconds=np.zeros((FIRST_COHORTS, partitions), dtype=np.int32),
            messages=np.zeros((FIRST_COHORTS, partitions), dtype=np.int32),
        ),
        group=np.zeros(1, dtype=GROUP),
        tally=np.zeros(days, dtype=TALLY),
        waits=np.zeros((days, WAIT_BINS), dtype=np.int64),
        recent=np.zeros((2, RECENT_SECONDS)),
        random=random,
    )
    for count in ("replicas", "alive", "born"):
        state.group[count] = replicas
    for instant in ("sync_at", "assign_at", "probe_at", "next_event_at"):
        state.group[instant] = np.inf
    state.pods.status[:replicas] = MEMBER
    state.pods.born[:replicas] = np.arange(replicas)
    state.pods.rejoined[:replicas] = 1
    for pod in range(replicas):
        state.pods.speed[pod] = own_speed(random, physics)
        state.pods.beat_phase[pod] = physics.consumer_heartbeat * uniform(random)
    return state


def _partition_table(partitions: int) -> PartitionTable:
    def zeros() -> IntArray:
        return np.zeros(partitions, dtype=np.int64)

    return PartitionTable(
        end=zeros(),
        position=zeros(),
        committed=zeros(),
        replayed=zeros(),
        owner=zeros(),
        target=zeros(),
        stopped_at=np.zeros(partitions),
        released=zeros(),
        blocked=zeros(),
        warm_pod=zeros() - 1,
        warm_at=np.zeros(partitions),
        new=np.zeros(partitions, dtype=np.int32),
        first_cohort=zeros(),
        next_cohort=zeros(),
    )


def _pod_table(slots: int) -> PodTable:
    def zeros() -> IntArray:
        return np.zeros(slots, dtype=np.int64)

    return PodTable(
        status=zeros(),
        born=zeros(),
        rejoined=zeros(),
        held_count=zeros(),
        budget=zeros(),
        need=zeros(),
        wanted=zeros(),
        doomed=zeros(),
        revoke_step=zeros(),
        take_up_polls=zeros(),
        event_at=np.full(slots, np.inf),
        revoke_at=np.full(slots, np.inf),
        take_up_at=np.full(slots, np.inf),
        poll_at=np.zeros(slots),
        committed_at=np.zeros(slots),
        beat_phase=np.zeros(slots),
        drift=np.zeros(slots),
        speed=np.zeros(slots),
        mood=np.zeros(slots),
        rate=np.zeros(slots),
        carry=np.zeros(slots),
    )
