"""The passing of seconds, and the start and end of pods."""

import math

from forecasting.compiled import compiled
from forecasting.units import SECONDS_PER_DAY, IntArray
from replay.plant.assignment import deal_ranges, in_group, link_held
from replay.plant.flow import change_moods, flow
from replay.plant.membership import batch_left, commit_held, handle_events, note_next_event, put_in_step
from replay.plant.randomness import normal, uniform
from replay.plant.state import (
    CLOSING,
    FREE,
    MEMBER,
    STABLE,
    STARTING,
    Physics,
    State,
)

MOOD_SECONDS = 10


@compiled
def settle(state: State) -> None:
    """Deal all partitions to the first members, as if they had always held them."""
    deal_ranges(state)
    for partition in range(state.partitions.size):
        state.partitions[partition].owner = state.partitions[partition].target
        state.partitions[partition].stopped_at = math.nan
    link_held(state)
    put_in_step(state, 0.0)


@compiled
def commit_due(state: State, physics: Physics, second: int) -> None:
    """Members commit by the clock, each at its own second of the interval, but not between rejoin and hand-over."""
    for pod in range(state.pods.size):
        if (second + pod) % physics.commit_interval != 0 or not in_group(state, pod):
            continue
        if state.group[0].phase == STABLE or state.pods[pod].rejoined == 0:
            commit_held(state, pod)


@compiled
def run(state: State, physics: Physics, arrivals: IntArray, first_second: int) -> None:
    """Let one second pass for each row of `arrivals` (seconds x partitions)."""
    mask = state.queue.shape[0] - 1
    for row in range(arrivals.shape[0]):
        second = first_second + row
        day = second // SECONDS_PER_DAY
        for partition in range(state.partitions.size):
            state.partitions[partition].released = 0
            state.queue[second & mask, partition] = 0
        if second % MOOD_SECONDS == 0:
            change_moods(state)
        begin = float(second)
        while begin < second + 1.0:
            due = min(second + 1.0, max(begin, state.group[0].next_event_at))
            flow(state, physics, arrivals[row], second, begin, due, day)
            if state.group[0].next_event_at <= due:
                handle_events(state, physics, due, day)
            begin = due
        commit_due(state, physics, second)
        for partition in range(state.partitions.size):
            if state.partitions[partition].head == second and state.queue[second & mask, partition] == 0:
                state.partitions[partition].head = second + 1


@compiled
def start_pod(state: State, physics: Physics, now: float) -> None:
    """Create a pod in a free slot; it joins when it has started."""
    for pod in range(state.pods.size):
        if state.pods[pod].status == FREE:
            state.pods[pod].status = STARTING
            state.pods[pod].rejoined = 0
            state.pods[pod].born = state.group[0].born
            state.pods[pod].event_at = now + physics.start_up + physics.start_up_spread * (uniform(state.random) - 0.5)
            state.pods[pod].speed = math.exp(physics.pod_speed_spread * normal(state.random))
            state.pods[pod].mood = 0.0
            state.pods[pod].carry = 0.0
            state.group[0].born += 1
            state.group[0].alive += 1
            return


@compiled
def stop_pod(state: State, physics: Physics, now: float) -> None:
    """Remove the pod that a ReplicaSet would remove first: one that is not ready, else the youngest."""
    victim = -1
    for pod in range(state.pods.size):
        if state.pods[pod].status != STARTING and state.pods[pod].status != MEMBER:
            continue
        not_ready = state.pods[pod].status == STARTING
        if (
            victim < 0
            or (not_ready and state.pods[victim].status == MEMBER)
            or (not_ready == (state.pods[victim].status == STARTING) and state.pods[pod].born > state.pods[victim].born)
        ):
            victim = pod
    if state.pods[victim].status == STARTING:
        state.pods[victim].status = FREE
        state.pods[victim].event_at = math.inf
        state.group[0].alive -= 1
        return
    state.pods[victim].status = CLOSING
    closing = physics.shutdown * uniform(state.random) + batch_left(state, physics, victim)
    state.pods[victim].event_at = now + closing


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
