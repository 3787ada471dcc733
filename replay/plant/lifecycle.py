"""The start and end of pods, as the deployment's controller does them."""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import take_seats
from replay.plant.events import note_next_event
from replay.plant.ownership import batch_left
from replay.plant.physics import Physics
from replay.plant.randomness import normal, uniform
from replay.plant.state import CLOSING, FREE, MEMBER, STARTING, State, own_speed


@compiled
def start_up(state: State, physics: Physics) -> float:
    """Seconds from the command to the join of one new pod."""
    seconds = physics.start_up * math.exp(physics.start_up_log_spread * normal(state.random))
    seconds += physics.start_up_spread * (uniform(state.random) - 0.5)
    return max(0.0, seconds) + (physics.new_node if uniform(state.random) < physics.new_node_share else 0.0)


@compiled
def start_pod(state: State, physics: Physics, now: float) -> None:
    """Create a pod in a free slot; it joins when it has started."""
    pods = state.pods
    for pod in range(pods.status.size):
        if pods.status[pod] == FREE:
            pods.status[pod] = STARTING
            pods.rejoined[pod] = 0
            pods.doomed[pod] = 0
            pods.born[pod] = state.group[0].born
            pods.event_at[pod] = now + start_up(state, physics)
            pods.speed[pod] = own_speed(state.random, physics)
            pods.mood[pod] = 0.0
            pods.carry[pod] = 0.0
            pods.poll_at[pod] = pods.committed_at[pod] = now
            state.group[0].born += 1
            state.group[0].alive += 1
            return


@compiled
def next_victim(state: State) -> int:
    """The pod that a ReplicaSet would remove first: one that is not ready, else the youngest."""
    pods, victim = state.pods, -1
    for pod in range(pods.status.size):
        if not STARTING <= pods.status[pod] <= MEMBER:
            continue
        not_ready = pods.status[pod] == STARTING
        if (
            victim < 0
            or (not_ready and pods.status[victim] == MEMBER)
            or (not_ready == (pods.status[victim] == STARTING) and pods.born[pod] > pods.born[victim])
        ):
            victim = pod
    return victim


@compiled
def stop_pod(state: State, physics: Physics, pod: int, now: float) -> None:
    """Stop a pod: it ends at once if it was only starting, and is killed if it cannot close within the grace."""
    pods = state.pods
    if pods.status[pod] == STARTING:
        pods.status[pod] = FREE
        pods.event_at[pod] = math.inf
        state.group[0].alive -= 1
        return
    closing = physics.shutdown * uniform(state.random) + batch_left(state, physics, pod)
    pods.status[pod] = CLOSING
    pods.doomed[pod] = closing > physics.grace
    pods.event_at[pod] = now + min(closing, physics.grace)


@compiled
def command_replicas(state: State, physics: Physics, replicas: int, now: float, day: int) -> None:
    """Change the requested number of pods; requesting the present number changes nothing."""
    group = state.group[0]
    if replicas == group.replicas:
        return
    state.tally[day].moves += 1
    while group.replicas < replicas:
        start_pod(state, physics, now)
        group.replicas += 1
    while group.replicas > replicas:
        stop_pod(state, physics, next_victim(state), now)
        group.replicas -= 1
    note_next_event(state)
    take_seats(state, physics)


@compiled
def replace_oldest(state: State, physics: Physics, born_before: int, now: float) -> bool:
    """Stop the oldest of the pods born before another, and start one in its place; returns True if there was one."""
    pods, oldest = state.pods, -1
    for pod in range(pods.status.size):
        is_old = STARTING <= pods.status[pod] <= MEMBER and pods.born[pod] < born_before
        if is_old and (oldest < 0 or pods.born[pod] < pods.born[oldest]):
            oldest = pod
    if oldest >= 0:
        stop_pod(state, physics, oldest, now)
        start_pod(state, physics, now)
        note_next_event(state)
    return oldest >= 0
