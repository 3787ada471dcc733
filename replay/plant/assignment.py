"""The assignment of partitions: contiguous ranges under the eager protocol, few moves under cooperative."""

import math

from forecasting.compiled import compiled
from replay.plant.physics import Physics
from replay.plant.state import CLOSING, GHOST, MEMBER, State


@compiled
def in_group(state: State, pod: int) -> bool:
    """True if the coordinator counts the pod as a member: stopping or not, alive or killed."""
    return bool(MEMBER <= state.pods.status[pod] <= GHOST)


@compiled
def is_running(state: State, partition: int) -> bool:
    """True if a member consumes the partition."""
    return math.isnan(state.partitions.stopped_at[partition])


@compiled
def set_rate(state: State, physics: Physics, pod: int) -> None:
    """The capacity of the pod per second at its present speed and group size."""
    mood = math.exp(physics.minute_speed_spread * state.pods.mood[pod])
    crowd = 1.0 + physics.contention * max(0, state.group[0].members - 1)
    state.pods.rate[pod] = physics.capacity * state.pods.speed[pod] * mood / crowd


@compiled
def take_seats(state: State, physics: Physics) -> None:
    """Record the current owner of each partition, and count the members that are alive."""
    group, seats, table = state.group[0], state.seats, state.partitions
    group.members, group.seats = 0, 0
    place = 0
    for pod in range(state.pods.status.size):
        if not MEMBER <= state.pods.status[pod] <= CLOSING:
            continue
        group.members += 1
        begin = place
        for partition in range(table.owner.size):
            if table.owner[partition] == pod and is_running(state, partition) and table.blocked[partition] == 0:
                seats.partitions[place] = partition
                place += 1
        if place > begin:
            seats.pods[group.seats] = pod
            seats.begins[group.seats] = begin
            group.seats += 1
    seats.begins[group.seats] = place
    for partition in range(table.owner.size):
        if not is_running(state, partition) or table.blocked[partition] == 1:
            seats.partitions[place] = partition
            place += 1
    seats.begins[group.seats + 1] = place
    for seat in range(group.seats):
        set_rate(state, physics, seats.pods[seat])


@compiled
def deal_ranges(state: State) -> None:
    """Fill `target` with contiguous ranges over the members; the first ones take the remainder.

    Seven partitions over three members: 3, 2, 2. Without members: -1.
    """
    targets = state.partitions.target
    members = 0
    for pod in range(state.pods.status.size):
        members += in_group(state, pod)
    targets[:] = -1
    first, seat = 0, 0
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            share = targets.size // members + (1 if seat < targets.size % members else 0)
            targets[first : first + share] = pod
            first += share
            seat += 1


@compiled
def keep_what_fits(state: State, members: int) -> None:
    """Leave partitions with their owners up to an even share; larger owners keep one extra while extras last."""
    targets, held = state.partitions.target, state.pods.held_count
    share, larger = targets.size // members, targets.size % members
    for partition in range(targets.size):
        pod = state.partitions.owner[partition]
        if pod < 0 or not in_group(state, pod):
            continue
        extra = held[pod] == share and larger > 0
        if held[pod] < share or extra:
            targets[partition] = pod
            held[pod] += 1
            larger -= extra


@compiled
def neediest_member(state: State) -> int:
    """The member with the fewest partitions, the first of equals."""
    neediest, held = -1, state.pods.held_count
    for pod in range(held.size):
        if in_group(state, pod) and (neediest < 0 or held[pod] < held[neediest]):
            neediest = pod
    return neediest


@compiled
def deal_sticky(state: State) -> None:
    """Fill `target` with even shares that leave every partition where it is unless its owner holds too many.

    Forty partitions, four members to five: each of the four gives up two, so 8 of 40 move.
    """
    targets, held = state.partitions.target, state.pods.held_count
    members = 0
    for pod in range(held.size):
        held[pod] = 0
        members += in_group(state, pod)
    targets[:] = -1
    if members == 0:
        return
    keep_what_fits(state, members)
    for partition in range(targets.size):
        warm = state.partitions.warm_pod[partition]
        # A member that has restored the state gets the partition, unless that makes shares uneven.
        if (
            targets[partition] < 0
            and warm >= 0
            and in_group(state, warm)
            and held[warm] == held[neediest_member(state)]
        ):
            targets[partition] = warm
            held[warm] += 1
    for partition in range(targets.size):
        if targets[partition] < 0:
            neediest = neediest_member(state)
            targets[partition] = neediest
            held[neediest] += 1
