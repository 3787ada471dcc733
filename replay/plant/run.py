"""The simulation of seconds."""

import math

from forecasting.compiled import compiled
from forecasting.units import SECONDS_PER_DAY, AnyArray
from replay.plant.assignment import deal_ranges, take_seats
from replay.plant.events import handle_events
from replay.plant.flow import change_moods, flow
from replay.plant.membership import put_in_step
from replay.plant.physics import Physics
from replay.plant.randomness import uniform
from replay.plant.state import JOINING, RECENT_SECONDS, SYNCING, State

MOOD_SECONDS = 10


@compiled
def settle(state: State, physics: Physics) -> None:
    """Assign all partitions to the first members, as if they had always held them."""
    deal_ranges(state)
    state.partitions.owner[:] = state.partitions.target
    state.partitions.stopped_at[:] = math.nan
    take_seats(state, physics)
    put_in_step(state, 0.0)


@compiled
def commit_due(state: State, physics: Physics, second: int) -> None:
    """Members commit by the clock, each at its own second of the interval, but not between rejoin and hand-over.

    Where batches are long or committed one by one, commits come between two batches only. All in one loop: a call for
    each pod and second cost three quarters of the plant's time.
    """
    committed, position, end = state.partitions.committed, state.partitions.position, state.partitions.end
    pods, begins, held, rejoined = state.seats.pods, state.seats.begins, state.seats.partitions, state.pods.rejoined
    poll_at, committed_at, random = state.pods.poll_at, state.pods.committed_at, state.random
    in_rebalance = JOINING <= state.group[0].phase <= SYNCING
    by_clock = physics.batch < 1.0 and not physics.commits_batches
    now = second + 1.0
    for seat in range(state.group[0].seats):
        pod = pods[seat]
        if in_rebalance and rejoined[pod] == 1:
            continue
        if by_clock:
            due = (second + pod) % physics.commit_interval == 0
        else:
            if poll_at[pod] > now:
                continue
            # A batch takes a random time within a fifth of the mean, so that pods are out of step after ten of them.
            jitter = 0.8 + 0.4 * uniform(random)
            backlog = 0
            for place in range(begins[seat], begins[seat + 1]):
                backlog += end[held[place]] - position[held[place]]
            poll_at[pod] = max(poll_at[pod], now - 1.0) + jitter * min(physics.batch, backlog / physics.capacity)
            due = physics.commits_batches or now - committed_at[pod] >= physics.commit_interval
            if due:
                committed_at[pod] = now
        if due:
            for place in range(begins[seat], begins[seat + 1]):
                committed[held[place]] = position[held[place]]


@compiled
def pass_in_slices(state: State, physics: Physics, arrivals: AnyArray, second: int, day: int) -> None:
    """Simulate a second with events: cut at each of them, arrivals spread evenly over it."""
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
    """Simulate one second for each row of `arrivals` (seconds x partitions)."""
    ends, committed = state.partitions.end, state.partitions.committed
    for row in range(arrivals.shape[0]):
        second = first_second + row
        day = second // SECONDS_PER_DAY
        state.recent[0, second % RECENT_SECONDS] = 0.0
        state.recent[1, second % RECENT_SECONDS] = 0.0
        if second % MOOD_SECONDS == 0:
            change_moods(state, physics)
        if state.group[0].next_event_at <= second + 1.0:
            pass_in_slices(state, physics, arrivals[row], second, day)
        else:
            flow(state, physics, arrivals[row], second, float(second), second + 1.0, day)
        commit_due(state, physics, second)
        state.tally[day].lag_message_seconds += ends.sum() - committed.sum()
