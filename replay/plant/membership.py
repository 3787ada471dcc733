"""Joins, leaves and rebalances of the classic group protocol, event by event in continuous time.

A join or leave opens a join phase that ends when every member has rejoined; a member hears of it at its next heartbeat
and rejoins when the batch in hand is done. A join in the join phase merges; one that comes later starts it anew.
Eager: a member commits and stops everything when it rejoins, and all resume together after the sync.
Cooperative: members go on; after the first sync only what moves is revoked, without a second commit, so what was
consumed since the rejoin runs again at the new owner; a second round hands it over.
Batches of seconds under the Java client's cooperative protocol stop moved partitions longer than is modelled here.
"""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import deal_ranges, deal_sticky, in_group, is_running, take_seats
from replay.plant.physics import Physics
from replay.plant.randomness import normal, uniform
from replay.plant.state import (
    CLOSING,
    FREE,
    JOINING,
    MEMBER,
    STABLE,
    STARTING,
    SYNCING,
    State,
)


@compiled
def batch_left(state: State, physics: Physics, pod: int) -> float:
    """Seconds until the batch in hand is done: a uniform part of a batch that is full only if there is a backlog."""
    backlog = 0
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod and is_running(state, partition):
            backlog += state.partitions.end[partition] - state.partitions.position[partition]
    return uniform(state.random) * min(physics.batch, backlog / physics.capacity)


@compiled
def next_heartbeat(state: State, physics: Physics, pod: int, now: float) -> float:
    """When the pod hears from the coordinator next: heartbeats start in step and drift apart.

    Never more than one interval from now, however far the drift: 10.5 s after they were in step, 2 s astray and 3 s
    apart, the last beat was 2.5 s ago and the next one comes in 0.5 s.
    """
    age = now - state.group[0].in_step_at
    strayed = state.pods.drift[pod] * physics.heartbeat_drift * math.sqrt(age)
    return float(now + physics.heartbeat - (age - strayed) % physics.heartbeat)


@compiled
def open_join_phase(state: State, physics: Physics, now: float) -> None:
    """Ask every member to rejoin; during a sync they all wait for the answer and rejoin at once."""
    at_once = state.group[0].phase == SYNCING
    state.group[0].phase = JOINING
    state.group[0].sync_at = math.inf
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            state.pods.rejoined[pod] = 0
            if state.pods.status[pod] == MEMBER:
                heard_at = now if at_once else next_heartbeat(state, physics, pod, now)
                state.pods.event_at[pod] = heard_at + (0.0 if at_once else batch_left(state, physics, pod))


@compiled
def commit_held(state: State, pod: int) -> None:
    """Commit the position of every partition that the pod consumes."""
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod and is_running(state, partition):
            state.partitions.committed[partition] = state.partitions.position[partition]


@compiled
def stop_partition(state: State, partition: int, now: float) -> None:
    """Nobody consumes the partition from now on."""
    if is_running(state, partition):
        state.partitions.stopped_at[partition] = now


@compiled
def resume_partition(state: State, partition: int, pod: int, now: float, day: int) -> None:
    """The pod consumes the partition from now on; the time it stood still is counted."""
    state.partitions.owner[partition] = pod
    if not is_running(state, partition):
        state.tally[day].paused_partition_seconds += now - state.partitions.stopped_at[partition]
        state.partitions.stopped_at[partition] = math.nan


@compiled
def join(state: State, physics: Physics, pod: int, now: float) -> None:
    """A started pod asks to join."""
    if state.group[0].phase != JOINING:
        open_join_phase(state, physics, now)
    state.pods.status[pod] = MEMBER
    state.pods.rejoined[pod] = 1
    state.pods.event_at[pod] = math.inf


@compiled
def leave(state: State, physics: Physics, pod: int, now: float) -> None:
    """A pod closes: it commits, leaves the group and exits; its partitions stand still until they are dealt again."""
    commit_held(state, pod)
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod:
            stop_partition(state, partition, now)
            state.partitions.owner[partition] = -1
    state.pods.status[pod] = FREE
    state.pods.event_at[pod] = math.inf
    state.group[0].alive -= 1
    if state.group[0].phase != JOINING:
        open_join_phase(state, physics, now)


@compiled
def rejoin(state: State, physics: Physics, pod: int, now: float) -> None:
    """A member commits and waits for the others; under the eager protocol it stops everything first."""
    commit_held(state, pod)
    state.pods.rejoined[pod] = 1
    state.pods.event_at[pod] = math.inf
    if not physics.cooperative:
        for partition in range(state.partitions.owner.size):
            if state.partitions.owner[partition] == pod:
                stop_partition(state, partition, now)


@compiled
def revoke_moved(state: State, now: float, day: int) -> bool:
    """Take what moves from its owner, back to the committed offset; whether anything was taken."""
    any_revoked = False
    for partition in range(state.partitions.owner.size):
        owner = state.partitions.owner[partition]
        if owner >= 0 and owner != state.partitions.target[partition]:
            again = state.partitions.position[partition] - state.partitions.committed[partition]
            state.tally[day].duplicates += again
            state.partitions.replayed[partition] += again
            state.partitions.position[partition] = state.partitions.committed[partition]
            stop_partition(state, partition, now)
            state.partitions.owner[partition] = -1
            state.pods.rejoined[owner] = 2  # it gave something up, so it asks for the second round at once
            any_revoked = True
        elif owner < 0 and state.partitions.target[partition] >= 0:
            resume_partition(state, partition, state.partitions.target[partition], now, day)
    return any_revoked


@compiled
def hand_out(state: State, physics: Physics, now: float, day: int) -> None:
    """The sync is answered: partitions are dealt; heartbeats are in step again; maybe a second round opens."""
    state.group[0].sync_at = math.inf
    state.group[0].phase = STABLE
    any_revoked = False
    if physics.cooperative:
        deal_sticky(state)
        any_revoked = revoke_moved(state, now, day)
    else:
        deal_ranges(state)
        for partition in range(state.partitions.owner.size):
            if state.partitions.target[partition] >= 0:
                resume_partition(state, partition, state.partitions.target[partition], now, day)
    if any_revoked:
        open_second_round(state, physics, now)
    put_in_step(state, now)


@compiled
def open_second_round(state: State, physics: Physics, now: float) -> None:
    """Those who gave something up rejoin at once; the others hear of it one heartbeat after this sync."""
    state.group[0].phase = JOINING
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            gave_up = state.pods.rejoined[pod] == 2
            state.pods.rejoined[pod] = 0
            if state.pods.status[pod] == MEMBER:
                wait = 0.0 if gave_up else physics.heartbeat + batch_left(state, physics, pod)
                state.pods.event_at[pod] = now + wait


@compiled
def put_in_step(state: State, now: float) -> None:
    """Every rebalance restarts all heartbeat timers; each member then drifts at a rate of its own."""
    state.group[0].in_step_at = now
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            state.pods.drift[pod] = normal(state.random)


@compiled
def handle_events(state: State, physics: Physics, now: float, day: int) -> None:
    """Do all that is due by `now`, and note when the next thing is due."""
    if state.group[0].phase == SYNCING and state.group[0].sync_at <= now:
        hand_out(state, physics, now, day)
    for pod in range(state.pods.status.size):
        if state.pods.event_at[pod] <= now:
            if state.pods.status[pod] == STARTING:
                join(state, physics, pod, now)
            elif state.pods.status[pod] == CLOSING:
                leave(state, physics, pod, now)
            elif state.pods.status[pod] == MEMBER:
                rejoin(state, physics, pod, now)
    if state.group[0].phase == JOINING and all_rejoined(state):
        state.group[0].phase = SYNCING
        state.group[0].sync_at = now + physics.sync
        state.tally[day].rebalances += 1
    take_seats(state, physics)
    note_next_event(state)


@compiled
def all_rejoined(state: State) -> bool:
    """Whether the join phase may end: every member is back."""
    missing = 0
    for pod in range(state.pods.status.size):
        if in_group(state, pod) and state.pods.rejoined[pod] == 0:
            missing += 1
    return missing == 0


@compiled
def note_next_event(state: State) -> None:
    """The earliest of the sync's answer and all joins, rejoins and leaves."""
    due = state.group[0].sync_at
    for pod in range(state.pods.status.size):
        due = min(due, state.pods.event_at[pod])
    state.group[0].next_event_at = due
