"""Messages in, messages out: arrivals, fair service, and how long each message waited."""

import math

from forecasting.compiled import compiled
from forecasting.units import AnyArray, IntArray
from replay.plant.assignment import set_rate
from replay.plant.physics import Physics
from replay.plant.randomness import normal
from replay.plant.state import BINS_PER_DOUBLING, FINE_BINS, FINE_SECONDS, STABLE, WAIT_BINS, State

# A pod's momentary speed keeps 0.9 of its deviation every 10 s: a memory of about a minute and a half.
MOOD_KEPT = 0.9


@compiled
def wait_bin(wait: float) -> int:
    """The place of a wait in the histogram: half seconds up to 64 s, then sixteenths of a doubling."""
    if wait < FINE_SECONDS:
        return int(wait * 2.0)
    return min(WAIT_BINS - 1, FINE_BINS + int(BINS_PER_DOUBLING * math.log2(wait / FINE_SECONDS)))


@compiled
def change_moods(state: State, physics: Physics) -> None:
    """Let every pod's momentary speed wander around its own mean."""
    shock = math.sqrt(1.0 - MOOD_KEPT * MOOD_KEPT)
    for seat in range(state.group[0].seats):
        pod = state.seats.pods[seat]
        state.pods.mood[pod] = MOOD_KEPT * state.pods.mood[pod] + shock * normal(state.random)
        set_rate(state, physics, pod)


@compiled
def count_waits(waits: IntArray, tally: AnyArray, messages: int, wait: float, max_lag: float) -> None:
    """Note that messages which have waited so long are consumed now."""
    waits[wait_bin(wait)] += messages
    tally.served += messages
    if wait > max_lag:
        tally.late += messages


@compiled
def keep_waiting(state: State, partition: int, messages: int, second: int) -> None:
    """Append messages of this second to what waits."""
    cohorts, table = state.cohorts, state.partitions
    mask = cohorts.seconds.shape[1] - 1
    place = table.next_cohort[partition]
    if place > table.first_cohort[partition] and cohorts.seconds[partition, (place - 1) & mask] == second:
        cohorts.messages[partition, (place - 1) & mask] += messages
        return
    cohorts.seconds[partition, place & mask] = second
    cohorts.messages[partition, place & mask] = messages
    table.next_cohort[partition] = place + 1


@compiled
def consume(state: State, physics: Physics, partition: int, messages: int, now: float, day: int) -> None:  # noqa: PLR0917 - compiled functions take no keywords
    """Take messages that wait from the front: first those that run again, then in order of arrival."""
    table, waits, tally = state.partitions, state.waits[day], state.tally[day]
    seconds, counts = state.cohorts.seconds[partition], state.cohorts.messages[partition]
    again = min(messages, table.replayed[partition])
    table.replayed[partition] -= again
    table.position[partition] += messages
    left, cohort = messages - again, table.first_cohort[partition]
    while left > 0:
        place = cohort & (counts.size - 1)
        taken = min(left, counts[place])
        # Messages of one second arrived half a second after its begin, on average.
        count_waits(waits, tally, taken, max(0.0, now - seconds[place] - 0.5), physics.max_lag)
        counts[place] -= taken
        left -= taken
        cohort += counts[place] == 0
    table.first_cohort[partition] = cohort


@compiled
def serve_all(state: State, physics: Physics, seat: int, new: AnyArray, second: int, now: float, day: int) -> None:  # noqa: PLR0917 - as above
    """Consume all that waits and all that is new; what came in this second never becomes a cohort."""
    table, held = state.partitions, state.seats.partitions
    fresh = 0
    for place in range(state.seats.begins[seat], state.seats.begins[seat + 1]):
        partition = held[place]
        waiting = table.end[partition] - table.position[partition]
        if waiting > 0:
            consume(state, physics, partition, waiting, now, day)
        table.end[partition] += new[partition]
        table.position[partition] = table.end[partition]
        fresh += new[partition]
    count_waits(state.waits[day], state.tally[day], fresh, max(0.0, now - second - 0.5), physics.max_lag)


@compiled
def share_out(state: State, physics: Physics, seat: int, new: AnyArray, second: int, now: float, day: int) -> None:  # noqa: PLR0917 - as above
    """Spend a pod's budget fairly on its partitions; what one does not need others get."""
    table, held = state.partitions, state.seats.partitions
    first, after = state.seats.begins[seat], state.seats.begins[seat + 1]
    for place in range(first, after):
        arrive(state, held[place], new[held[place]], second)
    budget = state.pods.budget[state.seats.pods[seat]]
    while budget > 0:
        busy = 0
        for place in range(first, after):
            busy += table.end[held[place]] > table.position[held[place]]
        share = max(1, budget // busy)
        for place in range(first, after):
            partition = held[place]
            messages = min(budget, share, table.end[partition] - table.position[partition])
            if messages > 0:
                consume(state, physics, partition, messages, now, day)
                budget -= messages


@compiled
def arrive(state: State, partition: int, messages: int, second: int) -> None:
    """Append what is new to the partition and to what waits in it."""
    if messages > 0:
        state.partitions.end[partition] += messages
        keep_waiting(state, partition, messages, second)


@compiled
def flow(state: State, physics: Physics, new: AnyArray, second: int, begin: float, end: float, day: int) -> None:  # noqa: PLR0917 - as above
    """Let the part [begin, end) of a second pass, in which nobody joins, leaves or hands over; `new` arrives in it."""
    span, now = end - begin, (begin + end) / 2.0
    group, table, pods, seats = state.group[0], state.partitions, state.pods, state.seats
    tally = state.tally[day]
    tally.pod_seconds += group.alive * span
    if group.phase != STABLE:
        tally.rebalancing_seconds += span
    arrived = 0
    for partition in range(new.size):
        arrived += new[partition]
    tally.arrivals += arrived
    for seat in range(group.seats):
        pod = seats.pods[seat]
        allowance = pods.rate[pod] * span + pods.carry[pod]
        pods.budget[pod] = int(allowance)
        pods.carry[pod] = allowance - pods.budget[pod]
        backlog = 0
        for place in range(seats.begins[seat], seats.begins[seat + 1]):
            partition = seats.partitions[place]
            backlog += table.end[partition] - table.position[partition] + new[partition]
        if backlog <= pods.budget[pod]:
            serve_all(state, physics, seat, new, second, now, day)
        else:
            share_out(state, physics, seat, new, second, now, day)
    for place in range(seats.begins[group.seats], seats.begins[group.seats + 1]):
        arrive(state, seats.partitions[place], new[seats.partitions[place]], second)
