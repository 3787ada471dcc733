"""The due events, in their order: joins, leaves, ends of sessions, heartbeats, rejoins, revocations, hand-overs."""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import take_seats
from replay.plant.kip848 import ASSIGNMENT_SECONDS, assign, beat, give_up, note_whether_settled
from replay.plant.membership import all_rejoined, hand_out, next_heartbeat, open_join_phase, rejoin, revoke_moved
from replay.plant.ownership import commit_held, forget_plans, free_partitions, go_back, stop_partition, take_up
from replay.plant.physics import KIP848, Physics
from replay.plant.randomness import uniform
from replay.plant.state import (
    CLOSING,
    FREE,
    GHOST,
    JOINING,
    MEMBER,
    RECONCILING,
    STABLE,
    STARTING,
    SYNCING,
    State,
)


@compiled
def membership_changed(state: State, physics: Physics, now: float, within: float) -> None:
    """The coordinator updates its members: a join phase opens; kip848: an assignment is due `within` s."""
    group = state.group[0]
    if physics.protocol == KIP848:
        group.assign_at = min(group.assign_at, now + within)
    elif group.phase != JOINING:
        open_join_phase(state, physics, now)


@compiled
def join(state: State, physics: Physics, pod: int, now: float) -> None:
    """A started pod sends its join."""
    membership_changed(state, physics, now, ASSIGNMENT_SECONDS)
    state.pods.status[pod] = MEMBER
    state.pods.rejoined[pod] = 1
    state.pods.event_at[pod] = math.inf
    state.pods.beat_phase[pod] = now


@compiled
def leave(state: State, physics: Physics, pod: int, now: float) -> None:
    """A pod closes: it commits, leaves the group and exits; its partitions stand still until they are dealt again."""
    commit_held(state, pod)
    state.group[0].alive -= 1
    expire(state, physics, pod, now)


@compiled
def expire(state: State, physics: Physics, pod: int, now: float) -> None:
    """The pod is no longer a member, and the coordinator has removed it."""
    free_partitions(state, pod, now)
    state.pods.status[pod] = FREE
    membership_changed(state, physics, now, 0.0)


@compiled
def go_silent(state: State, pod: int, session_ends_at: float, now: float) -> None:
    """The pod has stopped, but the coordinator is not informed: its partitions stand still until the session ends."""
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] == pod:
            stop_partition(state, partition, now)
    forget_plans(state, pod)
    state.pods.status[pod] = GHOST
    state.pods.event_at[pod] = session_ends_at
    state.group[0].alive -= 1


@compiled
def close(state: State, physics: Physics, pod: int, now: float, day: int) -> None:
    """A stopping pod ends: gracefully, without LeaveGroup as a static member, or killed without a commit."""
    if state.pods.doomed[pod] == 1:
        for partition in range(state.partitions.owner.size):
            if state.partitions.owner[partition] == pod:
                go_back(state, partition, day)
        if physics.protocol == KIP848:
            last_beat_at = now - physics.consumer_heartbeat * uniform(state.random)
        else:
            last_beat_at = next_heartbeat(state, physics, pod, now) - physics.heartbeat
        go_silent(state, pod, last_beat_at + physics.session, now)
    elif physics.static_membership:
        commit_held(state, pod)
        go_silent(state, pod, now + physics.session, now)
    else:
        leave(state, physics, pod, now)


@compiled
def handle_pod(state: State, physics: Physics, pod: int, now: float, day: int) -> None:
    """Process the due events of one pod."""
    pods = state.pods
    if pods.event_at[pod] <= now:
        if pods.status[pod] == STARTING:
            join(state, physics, pod, now)
        elif pods.status[pod] == CLOSING:
            close(state, physics, pod, now, day)
        elif pods.status[pod] == GHOST:
            expire(state, physics, pod, now)
        elif physics.protocol == KIP848:
            beat(state, physics, pod, now)
        else:
            rejoin(state, physics, pod, now)
    if pods.revoke_at[pod] <= now:
        if physics.protocol == KIP848:
            give_up(state, physics, pod, now)
        else:
            revoke_moved(state, physics, pod, now, day)
    if pods.take_up_at[pod] <= now:
        take_up(state, physics, pod, now, day)


@compiled
def handle_events(state: State, physics: Physics, now: float, day: int) -> None:
    """Process all events due by `now` and their consequences, and set the time of the next event."""
    group = state.group[0]
    while group.next_event_at <= now:
        if group.phase == SYNCING and group.sync_at <= now:
            hand_out(state, physics, now, day)
        if group.assign_at <= now:
            assign(state, physics, now, day)
        if group.probe_at <= now:
            group.probe_at = math.inf
            if group.phase == STABLE:
                open_join_phase(state, physics, now)
        for pod in range(state.pods.status.size):
            handle_pod(state, physics, pod, now, day)
        if group.phase == JOINING and all_rejoined(state):
            group.phase = SYNCING
            group.sync_at = now + physics.sync
            state.tally[day].rebalances += 1
        elif group.phase == RECONCILING:
            note_whether_settled(state)
        note_next_event(state)
    take_seats(state, physics)


@compiled
def note_next_event(state: State) -> None:
    """The earliest of all planned events."""
    group, pods = state.group[0], state.pods
    due = min(group.sync_at, group.assign_at, group.probe_at)
    for pod in range(pods.status.size):
        due = min(due, pods.event_at[pod], pods.revoke_at[pod], pods.take_up_at[pod])
    group.next_event_at = due
