"""What the simulated group consists of: the arrays that the compiled loops read and change in place."""

from typing import NamedTuple

import numpy as np

from forecasting.units import SECONDS_PER_DAY, AnyArray, IntArray
from replay.plant.randomness import RandomState, normal
from replay.world import World

# Pods: a free slot; starting, not yet in the group; a member; told to stop, and still a member until it has closed.
FREE, STARTING, MEMBER, CLOSING = 0, 1, 2, 3
# The group's phases, in Kafka's order.
STABLE, JOINING, SYNCING = 0, 1, 2
# Waits are counted in half seconds up to 64 s, then in sixteenths of a doubling up to 18 h (64 s x 2^10).
FINE_BINS, FINE_SECONDS, BINS_PER_DOUBLING = 128, 64.0, 16
WAIT_BINS = FINE_BINS + 10 * BINS_PER_DOUBLING

FIRST_RING_SECONDS = 4096
# Nobody gives commands more often than this.
COMMAND_SECONDS = 15


class Physics(NamedTuple):
    """The constants of one world, as plain numbers."""

    cooperative: bool
    capacity: float
    start_up: float
    start_up_spread: float
    heartbeat: float
    heartbeat_drift: float
    sync: float
    batch: float
    commit_interval: int
    shutdown: float
    pod_speed_spread: float
    minute_speed_spread: float
    max_lag: float


# Offsets in messages, times in seconds since the start. `replayed` messages at the front have been consumed once
# before; `stopped_at` is NaN while somebody consumes; `head` is the oldest second that may still hold a message;
# `released` counts this second's arrivals so far; `next_held` chains the partitions that one pod consumes now.
PARTITION = np.dtype(
    [
        ("end", np.int64),
        ("position", np.int64),
        ("committed", np.int64),
        ("replayed", np.int64),
        ("owner", np.int64),
        ("stopped_at", np.float64),
        ("head", np.int64),
        ("released", np.int64),
        ("next_held", np.int64),
        ("target", np.int64),
    ],
    align=True,
)
# `event_at` is when a starting pod joins, a member rejoins in a join phase, or a closing pod leaves. `drift` is how far
# its heartbeat strays, `speed` its own capacity factor, `mood` the momentary one (standard normal), `carry` the
# fraction of a message that its budget left over, `first_held` the begin of its chain of partitions.
POD = np.dtype(
    [
        ("status", np.int64),
        ("born", np.int64),
        ("event_at", np.float64),
        ("rejoined", np.int64),
        ("drift", np.float64),
        ("speed", np.float64),
        ("mood", np.float64),
        ("carry", np.float64),
        ("first_held", np.int64),
        ("held_count", np.int64),
    ],
    align=True,
)
# `replicas` is what was asked for, `alive` what is billed, `born` how many pods there have ever been.
GROUP = np.dtype(
    [
        ("phase", np.int64),
        ("replicas", np.int64),
        ("alive", np.int64),
        ("born", np.int64),
        ("sync_at", np.float64),
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
    ],
    align=True,
)


class State(NamedTuple):
    """All that changes: rows of the tables above, changed in place.

    `group` has one row, `tally` and `waits` (a histogram) one for each day. `queue[second & (ring - 1), p]` is what
    arrived in that second in partition p and has not been consumed; the ring's length is a power of two.
    """

    partitions: AnyArray
    pods: AnyArray
    group: AnyArray
    tally: AnyArray
    queue: IntArray
    waits: IntArray
    random: RandomState


def physics_of(world: World) -> Physics:
    """The world's constants in the form that compiled loops take."""
    return Physics(
        cooperative=world.protocol == "cooperative",
        capacity=float(world.capacity_messages_per_second_per_replica),
        start_up=float(world.start_up_seconds),
        start_up_spread=float(world.start_up_spread_seconds),
        heartbeat=float(world.heartbeat_interval_seconds),
        heartbeat_drift=float(world.heartbeat_drift),
        sync=float(world.sync_seconds),
        batch=float(world.batch_seconds),
        commit_interval=int(world.commit_interval_seconds),
        shutdown=float(world.shutdown_seconds),
        pod_speed_spread=float(world.pod_speed_spread),
        minute_speed_spread=float(world.minute_speed_spread),
        max_lag=float(world.max_lag_seconds),
    )


def new_state(world: World, *, replicas: int, duration_seconds: int, seed: int) -> State:
    """A group of `replicas` members that has just become stable; nothing assigned, produced or consumed yet."""
    partitions = world.partitions
    # A pod told to stop keeps its slot until it has closed. Closing takes 1.1 s by default: there are those asked for
    # and at most those that two commands have stopped, three times the ceiling.
    commands_while_closing = 2 + int((world.shutdown_seconds + world.batch_seconds) // COMMAND_SECONDS)
    slots = (1 + commands_while_closing) * max(world.replica_ceiling, replicas)
    days = -(-duration_seconds // SECONDS_PER_DAY)
    random = np.random.SeedSequence([seed, 2]).generate_state(1, np.uint64).astype(np.uint64)
    state = State(
        partitions=np.zeros(partitions, dtype=PARTITION),
        pods=np.zeros(slots, dtype=POD),
        group=np.zeros(1, dtype=GROUP),
        tally=np.zeros(days, dtype=TALLY),
        queue=np.zeros((FIRST_RING_SECONDS, partitions), dtype=np.int64),
        waits=np.zeros((days, WAIT_BINS), dtype=np.int64),
        random=random,
    )
    for count in ("replicas", "alive", "born"):
        state.group[count] = replicas
    state.group["sync_at"] = state.group["next_event_at"] = np.inf
    state.pods["event_at"] = np.inf
    state.pods["first_held"] = -1
    for pod in range(replicas):
        speed = np.exp(world.pod_speed_spread * normal(state.random))
        state.pods[pod] = (MEMBER, pod, np.inf, 1, 0.0, speed, 0.0, 0.0, -1, 0)
    return state
