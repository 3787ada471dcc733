"""The steps of a member with a partition: consume, stop, commit, give back, take up."""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import is_running
from replay.plant.physics import COOPERATIVE, KIP848, Physics
from replay.plant.randomness import uniform
from replay.plant.state import GHOST, State

# The Java client takes one protocol step per poll(), and the poll of a member that is behind is a full batch. Polls
# from the revocation to the JoinGroup request (cooperative) or the acknowledgement (kip848), and from the assignment to
# the first record of a new partition: assignment, committed offset, position, fetch request, fetched data.
REVOKE_POLLS_COOPERATIVE, REVOKE_POLLS_KIP848 = 2, 3
TAKE_UP_POLLS_COOPERATIVE, TAKE_UP_POLLS_KIP848 = 5, 6


@compiled
def batch_now(state: State, physics: Physics, pod: int) -> float:
    """The length of a batch that begins now: full if the backlog allows, else as many messages as there are."""
    backlog = 0
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod and is_running(state, partition):
            backlog += state.partitions.end[partition] - state.partitions.position[partition]
    return min(physics.batch, backlog / physics.capacity)


@compiled
def batch_left(state: State, physics: Physics, pod: int) -> float:
    """Seconds until the present batch is done: a uniform part of it."""
    return uniform(state.random) * batch_now(state, physics, pod)


@compiled
def revoke_polls(physics: Physics) -> int:
    """Polls from a revocation to the response; other clients talk to the coordinator in a thread of their own."""
    if not physics.java:
        return 0
    return REVOKE_POLLS_KIP848 if physics.protocol == KIP848 else REVOKE_POLLS_COOPERATIVE


@compiled
def commit_held(state: State, pod: int) -> None:
    """Commit the position of every partition that the pod consumes."""
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod and is_running(state, partition):
            state.partitions.committed[partition] = state.partitions.position[partition]


@compiled
def stop_partition(state: State, partition: int, now: float) -> None:
    """Stop the partition: no member consumes it from now on."""
    if is_running(state, partition):
        state.partitions.stopped_at[partition] = now


@compiled
def resume_partition(state: State, partition: int, now: float, day: int) -> None:
    """Let the owner consume the partition from now on, if it lives; the time of the stop is counted."""
    if not is_running(state, partition) and state.pods.status[state.partitions.owner[partition]] != GHOST:
        state.tally[day].paused_partition_seconds += now - state.partitions.stopped_at[partition]
        state.partitions.stopped_at[partition] = math.nan
        state.partitions.warm_pod[partition] = -1


@compiled
def go_back(state: State, partition: int, day: int) -> None:
    """Set the partition back to its committed offset: messages consumed since run again."""
    table = state.partitions
    again = table.position[partition] - table.committed[partition]
    state.tally[day].duplicates += again
    table.replayed[partition] += again
    table.position[partition] = table.committed[partition]


@compiled
def free_partitions(state: State, pod: int, now: float) -> None:
    """Take all partitions from the pod; its unfinished work is lost."""
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod:
            stop_partition(state, partition, now)
            state.partitions.owner[partition] = -1
        if state.partitions.warm_pod[partition] == pod:
            state.partitions.warm_pod[partition] = -1
    forget_plans(state, pod)


@compiled
def forget_plans(state: State, pod: int) -> None:
    """Cancel all planned steps of the pod."""
    state.pods.event_at[pod] = math.inf
    state.pods.revoke_at[pod] = math.inf
    state.pods.take_up_at[pod] = math.inf


@compiled
def start_revoking(state: State, physics: Physics, pod: int, now: float) -> None:
    """Notify the member that it has to give up partitions; it does so when its present batch is done."""
    if math.isinf(state.pods.revoke_at[pod]):
        state.pods.revoke_step[pod] = 1
        state.pods.revoke_at[pod] = now + (batch_left(state, physics, pod) if physics.java else 0.0)


@compiled
def grant(state: State, physics: Physics, partition: int, pod: int, now: float) -> None:
    """Give the partition to the pod, which takes it up some polls later, and once its state is restored."""
    table, pods = state.partitions, state.pods
    table.owner[partition] = pod
    if math.isinf(pods.take_up_at[pod]):
        pods.take_up_polls[pod] = 0
        if physics.java:
            cooperative = physics.protocol == COOPERATIVE
            pods.take_up_polls[pod] = TAKE_UP_POLLS_COOPERATIVE if cooperative else TAKE_UP_POLLS_KIP848
        # Under kip848 the round trip is the new owner's own; otherwise all have waited for the sync.
        trip = physics.sync if physics.protocol == KIP848 else 0.0
        is_warm = table.warm_pod[partition] == pod and table.warm_at[partition] <= now
        pods.take_up_at[pod] = now + trip + batch_left(state, physics, pod) + (0.0 if is_warm else physics.restore)


@compiled
def take_up(state: State, physics: Physics, pod: int, now: float, day: int) -> None:
    """One poll further; after the last one the pod consumes all partitions that were granted to it."""
    pods, table = state.pods, state.partitions
    if pods.take_up_polls[pod] > 0:
        pods.take_up_polls[pod] -= 1
        pods.take_up_at[pod] = now + batch_now(state, physics, pod)
        return
    pods.take_up_at[pod] = math.inf
    for partition in range(table.owner.size):
        if table.owner[partition] == pod and table.target[partition] == pod:
            resume_partition(state, partition, now, day)
