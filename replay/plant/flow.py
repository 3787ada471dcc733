"""Messages in, messages out: arrivals, fair service, and how long each message waited."""

import math

from forecasting.compiled import compiled
from forecasting.units import IntArray
from replay.plant.randomness import normal
from replay.plant.state import (
    BINS_PER_DOUBLING,
    FINE_BINS,
    FINE_SECONDS,
    STABLE,
    WAIT_BINS,
    Physics,
    State,
)

# A pod's momentary speed keeps 0.9 of its deviation every 10 s: a memory of about a minute and a half.
MOOD_KEPT = 0.9


@compiled
def wait_bin(wait: float) -> int:
    """The place of a wait in the histogram: half seconds up to 64 s, then sixteenths of a doubling."""
    if wait < FINE_SECONDS:
        return int(wait * 2.0)
    return min(WAIT_BINS - 1, FINE_BINS + int(BINS_PER_DOUBLING * math.log2(wait / FINE_SECONDS)))


@compiled
def change_moods(state: State) -> None:
    """Let every pod's momentary speed wander around its own mean."""
    shock = math.sqrt(1.0 - MOOD_KEPT * MOOD_KEPT)
    for pod in range(state.pods.size):
        if state.pods[pod].first_held >= 0:
            state.pods[pod].mood = MOOD_KEPT * state.pods[pod].mood + shock * normal(state.random)


@compiled
def release_arrivals(state: State, arrivals: IntArray, second: int, fraction: float, day: int) -> None:
    """Append what has arrived by `fraction` of this second (1: all of it)."""
    place = second & (state.queue.shape[0] - 1)
    total = 0
    for partition in range(state.partitions.size):
        arrived = arrivals[partition] if fraction >= 1.0 else int(arrivals[partition] * fraction)
        new = arrived - state.partitions[partition].released
        state.partitions[partition].released = arrived
        state.queue[place, partition] += new
        state.partitions[partition].end += new
        total += new
    state.tally[day].arrivals += total


@compiled
def consume(  # noqa: PLR0917 - compiled functions take no keywords
    state: State, physics: Physics, partition: int, messages: int, second: int, now: float, day: int
) -> None:
    """Take messages from the front: first those that run again, then in order of arrival, counting their waits."""
    again = min(messages, state.partitions[partition].replayed)
    state.partitions[partition].replayed -= again
    state.partitions[partition].position += messages
    left = messages - again
    state.tally[day].served += left
    mask = state.queue.shape[0] - 1
    while left > 0:
        oldest = state.partitions[partition].head
        taken = min(left, state.queue[oldest & mask, partition])
        # Messages of one second arrived half a second after its begin, on average.
        wait = max(0.0, now - oldest - 0.5)
        state.waits[day, wait_bin(wait)] += taken
        if wait > physics.max_lag:
            state.tally[day].late += taken
        state.queue[oldest & mask, partition] -= taken
        left -= taken
        if oldest < second and state.queue[oldest & mask, partition] == 0:
            state.partitions[partition].head = oldest + 1


@compiled
def serve(  # noqa: PLR0917 - as above
    state: State, physics: Physics, pod: int, span: float, second: int, now: float, day: int
) -> None:
    """Spend a pod's capacity over `span` seconds fairly on its partitions; what one does not need others get."""
    speed = state.pods[pod].speed * math.exp(physics.minute_speed_spread * state.pods[pod].mood)
    allowance = physics.capacity * speed * span + state.pods[pod].carry
    budget = int(allowance)
    state.pods[pod].carry = allowance - budget
    while budget > 0:
        busy, waiting = 0, 0
        partition = state.pods[pod].first_held
        while partition >= 0:
            backlog = state.partitions[partition].end - state.partitions[partition].position
            busy += backlog > 0
            waiting += backlog
            partition = state.partitions[partition].next_held
        if busy == 0:
            return
        share = waiting if waiting <= budget else max(1, budget // busy)
        partition = state.pods[pod].first_held
        while partition >= 0:
            messages = min(budget, share, state.partitions[partition].end - state.partitions[partition].position)
            if messages > 0:
                consume(state, physics, partition, messages, second, now, day)
                budget -= messages
            partition = state.partitions[partition].next_held


@compiled
def flow(  # noqa: PLR0917 - as above
    state: State, physics: Physics, arrivals: IntArray, second: int, begin: float, end: float, day: int
) -> None:
    """Let the part [begin, end) of a second pass, in which nobody joins, leaves or hands over."""
    span = end - begin
    release_arrivals(state, arrivals, second, end - second, day)
    state.tally[day].pod_seconds += state.group[0].alive * span
    if state.group[0].phase != STABLE:
        state.tally[day].rebalancing_seconds += span
    if span <= 0.0:
        return
    for pod in range(state.pods.size):
        if state.pods[pod].first_held >= 0:
            serve(state, physics, pod, span, second, (begin + end) / 2.0, day)
