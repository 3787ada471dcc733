"""Messages in, messages out: produced messages, fair service, and the wait of each message."""

import math

from forecasting.compiled import compiled
from forecasting.units import AnyArray, IntArray
from replay.plant.assignment import set_rate
from replay.plant.physics import Physics
from replay.plant.randomness import normal
from replay.plant.state import (
    BINS_PER_DOUBLING,
    FINE_BINS,
    FINE_SECONDS,
    RECENT_SECONDS,
    STABLE,
    WAIT_BINS,
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
def change_moods(state: State, physics: Physics) -> None:
    """Let every pod's momentary speed wander around its own mean."""
    shock = math.sqrt(1.0 - MOOD_KEPT * MOOD_KEPT)
    for seat in range(state.group[0].seats):
        pod = state.seats.pods[seat]
        state.pods.mood[pod] = MOOD_KEPT * state.pods.mood[pod] + shock * normal(state.random)
        set_rate(state, physics, pod)


# The loops below take single arrays: a table handed over counts a reference to each of its arrays, there and back,
# which made a day of a group that is behind take 1.0 s where it takes 0.5 s now.
@compiled
def keep_waiting(  # noqa: PLR0917 - compiled functions take no keywords
    first: IntArray, after: IntArray, seconds: AnyArray, counts: AnyArray, partition: int, messages: int, second: int
) -> None:
    """Append messages of this second to the backlog of the partition."""
    mask, place = seconds.shape[0] - 1, after[partition]
    if place > first[partition] and seconds[(place - 1) & mask, partition] == second:
        counts[(place - 1) & mask, partition] += messages
        return
    seconds[place & mask, partition] = second
    counts[place & mask, partition] = messages
    after[partition] = place + 1


@compiled
def take_oldest(  # noqa: PLR0917 - as above
    first: IntArray,
    seconds: AnyArray,
    counts: AnyArray,
    waits: IntArray,
    partition: int,
    messages: int,
    now: float,
    max_lag: float,
) -> int:
    """Consume waiting messages in the order of their arrival; returns how many of them are late."""
    left, late, cohort, mask = messages, 0, first[partition], seconds.shape[0] - 1
    while left > 0:
        taken = min(left, counts[cohort & mask, partition])
        # Messages of one second arrived half a second after its begin, on average.
        wait = max(0.0, now - seconds[cohort & mask, partition] - 0.5)
        waits[wait_bin(wait)] += taken
        late += taken if wait > max_lag else 0
        counts[cohort & mask, partition] -= taken
        left -= taken
        cohort += counts[cohort & mask, partition] == 0
    first[partition] = cohort
    return late


@compiled
def serve(  # noqa: C901, PLR0917 - as above
    state: State, physics: Physics, new: AnyArray, second: int, now: float, day: int
) -> None:
    """Spend every pod's budget on its partitions, fairly: budget that one partition does not need goes to others.

    A pod with enough budget serves all at once: messages of this second then never become a cohort.
    Messages that run again come first, and count as served only once.
    """
    table, seats, waits = state.partitions, state.seats, state.waits[day]
    end, position, replayed, held = table.end, table.position, table.replayed, seats.partitions
    first, after, seconds, counts = table.first_cohort, table.next_cohort, state.cohorts.seconds, state.cohorts.messages
    needs, budgets, pods, begins = state.pods.need, state.pods.budget, seats.pods, seats.begins
    fresh_wait = max(0.0, now - second - 0.5)
    fresh, served, late, max_lag = 0, 0, 0, physics.max_lag
    for seat in range(state.group[0].seats):
        budget = budgets[pods[seat]]
        is_enough, fresh_here = needs[pods[seat]] <= budget, 0
        for place in range(begins[seat], begins[seat + 1]):
            partition = held[place]
            if is_enough:
                fresh_here += new[partition]
                position[partition] += new[partition]
            elif new[partition] > 0:
                keep_waiting(first, after, seconds, counts, partition, new[partition], second)
            end[partition] += new[partition]
        fresh += fresh_here
        if is_enough and fresh_here == needs[pods[seat]]:
            continue
        while budget > 0:
            busy = 0
            for place in range(begins[seat], begins[seat + 1]):
                busy += end[held[place]] > position[held[place]]
            if busy == 0:
                break
            share = budget if is_enough else max(1, budget // busy)
            for place in range(begins[seat], begins[seat + 1]):
                partition = held[place]
                messages = min(budget, share, end[partition] - position[partition])
                if messages > 0:
                    again = min(messages, replayed[partition])
                    replayed[partition] -= again
                    position[partition] += messages
                    budget -= messages
                    served += messages - again
                    late += take_oldest(first, seconds, counts, waits, partition, messages - again, now, max_lag)
    waits[wait_bin(fresh_wait)] += fresh
    state.tally[day].served += served + fresh
    state.tally[day].late += late + (fresh if fresh_wait > max_lag else 0)
    for place in range(begins[state.group[0].seats], begins[state.group[0].seats + 1]):
        partition = held[place]
        if new[partition] > 0:
            end[partition] += new[partition]
            keep_waiting(first, after, seconds, counts, partition, new[partition], second)


@compiled
def share_sink(state: State, allowance: float) -> None:
    """Cut the pods' budgets to the sink's capacity for all of them: as fairly as a pod treats its partitions."""
    group, pods, seats = state.group[0], state.pods, state.seats
    left, wanted = int(allowance + group.sink_carry), 0
    group.sink_carry = allowance + group.sink_carry - left
    for seat in range(group.seats):
        wanted += min(pods.budget[seats.pods[seat]], pods.need[seats.pods[seat]])
    if wanted <= left:
        return
    for seat in range(group.seats):
        pods.wanted[seats.pods[seat]] = min(pods.budget[seats.pods[seat]], pods.need[seats.pods[seat]])
        pods.budget[seats.pods[seat]] = 0
    while left > 0:
        hungry = 0
        for seat in range(group.seats):
            hungry += pods.wanted[seats.pods[seat]] > 0
        share = max(1, left // hungry)
        for seat in range(group.seats):
            pod = seats.pods[seat]
            messages = min(left, share, pods.wanted[pod])
            pods.budget[pod] += messages
            pods.wanted[pod] -= messages
            left -= messages


@compiled
def open_budgets(state: State, new: AnyArray, span: float) -> float:
    """Each pod's capacity in the span and its backlog; returns the pod-seconds needed, the sink left aside."""
    seats, held, begins = state.seats.pods, state.seats.partitions, state.seats.begins
    end, position = state.partitions.end, state.partitions.position
    rates, carries, budgets, needs = state.pods.rate, state.pods.carry, state.pods.budget, state.pods.need
    worked = 0.0
    for seat in range(state.group[0].seats):
        pod = seats[seat]
        allowance = rates[pod] * span + carries[pod]
        budgets[pod] = int(allowance)
        carries[pod] = allowance - budgets[pod]
        backlog = 0
        for place in range(begins[seat], begins[seat + 1]):
            partition = held[place]
            backlog += end[partition] - position[partition] + new[partition]
        needs[pod] = backlog
        worked += min(backlog / rates[pod], span)
    return worked


@compiled
def flow(state: State, physics: Physics, new: AnyArray, second: int, begin: float, end: float, day: int) -> None:  # noqa: PLR0917 - as above
    """Simulate the part [begin, end) of a second, without joins, leaves or hand-overs; `new` arrives in it."""
    span = end - begin
    group, tally = state.group[0], state.tally[day]
    tally.pod_seconds += group.alive * span
    if group.phase != STABLE:
        tally.rebalancing_seconds += span
    tally.arrivals += new.sum()
    # A pod that waits for the sink is as busy as one that computes: both are inside a poll loop without idle time.
    state.recent[0, second % RECENT_SECONDS] += open_budgets(state, new, span)
    state.recent[1, second % RECENT_SECONDS] += group.members * span
    if physics.sink < math.inf:
        share_sink(state, physics.sink * span)
    serve(state, physics, new, second, (begin + end) / 2.0, day)
