"""Rebalances of the newer protocol (KIP-848): no barrier, each member gets its assignment at its own heartbeat."""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import deal_sticky, is_running
from replay.plant.ownership import batch_now, commit_held, grant, revoke_polls, start_revoking, stop_partition
from replay.plant.physics import Physics
from replay.plant.state import MEMBER, RECONCILING, STABLE, State

# Joins within this time are one assignment (group.consumer.assignment.interval.ms).
ASSIGNMENT_SECONDS = 1.0
SAME_INSTANT_SECONDS = 1e-6


@compiled
def next_beat(state: State, physics: Physics, pod: int, now: float) -> float:
    """The instant of the member's next heartbeat; always later than now.

    Rounding may leave 5 s - 4.999999999999999 s to the present beat, which added to 100 s is 100 s: no next one.
    """
    ahead = physics.consumer_heartbeat - (now - state.pods.beat_phase[pod]) % physics.consumer_heartbeat
    return float(now + ahead + (physics.consumer_heartbeat if ahead < SAME_INSTANT_SECONDS else 0.0))


@compiled
def assign(state: State, physics: Physics, now: float, day: int) -> None:
    """The coordinator decides on the assignment; every member receives its part at its heartbeat."""
    state.group[0].assign_at = math.inf
    state.group[0].phase = RECONCILING
    state.tally[day].rebalances += 1
    deal_sticky(state)
    for pod in range(state.pods.status.size):
        if state.pods.status[pod] == MEMBER:
            state.pods.event_at[pod] = next_beat(state, physics, pod, now)


@compiled
def beat(state: State, physics: Physics, pod: int, now: float) -> None:
    """The member begins to give up partitions of others, and gets its own ones that are free."""
    table = state.partitions
    outstanding = False
    for partition in range(table.owner.size):
        is_mine, is_to_be_mine = table.owner[partition] == pod, table.target[partition] == pod
        if is_mine and not is_to_be_mine:
            start_revoking(state, physics, pod, now)
        elif is_to_be_mine and table.owner[partition] < 0:
            grant(state, physics, partition, pod, now)
        outstanding = outstanding or is_mine != is_to_be_mine
    state.pods.event_at[pod] = next_beat(state, physics, pod, now) if outstanding else math.inf


@compiled
def give_up(state: State, physics: Physics, pod: int, now: float) -> None:
    """One step of a member that gives up partitions: stop, poll, commit and acknowledge."""
    table, pods = state.partitions, state.pods
    if pods.revoke_step[pod] == 1:
        commit_held(state, pod)
        for partition in range(table.owner.size):
            if table.owner[partition] == pod and table.target[partition] != pod:
                stop_partition(state, partition, now)
    if pods.revoke_step[pod] <= revoke_polls(physics):
        pods.revoke_step[pod] += 1
        pods.revoke_at[pod] = now + batch_now(state, physics, pod)
        return
    pods.revoke_at[pod] = math.inf
    for partition in range(table.owner.size):
        if table.owner[partition] == pod and not is_running(state, partition):
            if table.target[partition] != pod:
                table.owner[partition] = -1
            else:  # assigned to it again in the meantime
                grant(state, physics, partition, pod, now)


@compiled
def note_whether_settled(state: State) -> None:
    """The group is stable when every partition is with its assigned owner."""
    for partition in range(state.partitions.owner.size):
        if state.partitions.owner[partition] != state.partitions.target[partition]:
            return
    state.group[0].phase = STABLE
