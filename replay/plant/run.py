"""The passing of seconds, and the start and end of pods."""

import math

from forecasting.compiled import compiled
from forecasting.units import SECONDS_PER_DAY, AnyArray
from replay.plant.assignment import deal_ranges, take_seats
from replay.plant.flow import change_moods, flow
from replay.plant.membership import batch_left, handle_events, note_next_event, put_in_step
from replay.plant.physics import Physics
from replay.plant.randomness import normal, uniform
from replay.plant.state import (
    CLOSING,
    FREE,
    MEMBER,
    STABLE,
    STARTING,
    State,
)

MOOD_SECONDS = 10


@compiled
def settle(state: State, physics: Physics) -> None:
    """Deal all partitions to the first members, as if they had always held them."""
    deal_ranges(state)
    state.partitions.owner[:] = state.partitions.target
    state.partitions.stopped_at[:] = math.nan
    take_seats(state, physics)
    put_in_step(state, 0.0)


@compiled
def commit_due(state: State, physics: Physics, second: int) -> None:
    """Members commit by the clock, each at its own second of the interval, but not between rejoin and hand-over."""
    table, seats, group = state.partitions, state.seats, state.group[0]
    for seat in range(group.seats):
        pod = seats.pods[seat]
        if (second + pod) % physics.commit_interval == 0 and (group.phase == STABLE or state.pods.rejoined[pod] == 0):
            for place in range(seats.begins[seat], seats.begins[seat + 1]):
                table.committed[seats.partitions[place]] = table.position[seats.partitions[place]]


@compiled
def pass_in_slices(state: State, physics: Physics, arrivals: AnyArray, second: int, day: int) -> None:
    """Let a second pass in which something happens: cut where it does, arrivals spread evenly over it."""
    table, begin = state.partitions, float(second)
    table.released[:] = 0
    while begin < second + 1.0:
        due = min(second + 1.0, max(begin, state.group[0].next_event_at))
        for partition in range(arrivals.size):
            by_then = int(arrivals[partition] * (due - second))
            table.new[partition] = by_then - table.released[partition]
            table.released[partition] = by_then
        if due > begin:
            flow(state, physics, table.new, second, begin, due, day)
        if state.group[0].next_event_at <= due:
            handle_events(state, physics, due, day)
        begin = due


@compiled
def run(state: State, physics: Physics, arrivals: AnyArray, first_second: int) -> None:
    """Let one second pass for each row of `arrivals` (seconds x partitions)."""
    for row in range(arrivals.shape[0]):
        second = first_second + row
        day = second // SECONDS_PER_DAY
        if second % MOOD_SECONDS == 0:
            change_moods(state, physics)
        if state.group[0].next_event_at <= second + 1.0:
            pass_in_slices(state, physics, arrivals[row], second, day)
        else:
            flow(state, physics, arrivals[row], second, float(second), second + 1.0, day)
        commit_due(state, physics, second)


@compiled
def start_pod(state: State, physics: Physics, now: float) -> None:
    """Create a pod in a free slot; it joins when it has started."""
    for pod in range(state.pods.status.size):
        if state.pods.status[pod] == FREE:
            state.pods.status[pod] = STARTING
            state.pods.rejoined[pod] = 0
            state.pods.born[pod] = state.group[0].born
            state.pods.event_at[pod] = now + physics.start_up + physics.start_up_spread * (uniform(state.random) - 0.5)
            state.pods.speed[pod] = math.exp(physics.pod_speed_spread * normal(state.random))
            state.pods.mood[pod] = 0.0
            state.pods.carry[pod] = 0.0
            state.group[0].born += 1
            state.group[0].alive += 1
            return


@compiled
def stop_pod(state: State, physics: Physics, now: float) -> None:
    """Remove the pod that a ReplicaSet would remove first: one that is not ready, else the youngest."""
    victim = -1
    for pod in range(state.pods.status.size):
        if state.pods.status[pod] != STARTING and state.pods.status[pod] != MEMBER:
            continue
        not_ready = state.pods.status[pod] == STARTING
        if (
            victim < 0
            or (not_ready and state.pods.status[victim] == MEMBER)
            or (not_ready == (state.pods.status[victim] == STARTING) and state.pods.born[pod] > state.pods.born[victim])
        ):
            victim = pod
    if state.pods.status[victim] == STARTING:
        state.pods.status[victim] = FREE
        state.pods.event_at[victim] = math.inf
        state.group[0].alive -= 1
        return
    state.pods.status[victim] = CLOSING
    closing = physics.shutdown * uniform(state.random) + batch_left(state, physics, victim)
    state.pods.event_at[victim] = now + closing


@compiled
def command_replicas(state: State, physics: Physics, replicas: int, now: float, day: int) -> None:
    """Change the wanted number of pods; asking for the present number changes nothing."""
    if replicas == state.group[0].replicas:
        return
    state.tally[day].moves += 1
    while state.group[0].replicas < replicas:
        start_pod(state, physics, now)
        state.group[0].replicas += 1
    while state.group[0].replicas > replicas:
        stop_pod(state, physics, now)
        state.group[0].replicas -= 1
    note_next_event(state)
