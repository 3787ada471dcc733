"""Who gets which partition: contiguous ranges under the eager protocol, as few moves as possible under cooperative."""

from forecasting.compiled import compiled
from replay.plant.state import CLOSING, MEMBER, State


@compiled
def in_group(state: State, pod: int) -> bool:
    """Whether the pod is a member, told to stop or not."""
    return bool(state.pods[pod].status == MEMBER or state.pods[pod].status == CLOSING)


@compiled
def link_held(state: State) -> None:
    """Chain up, per pod, the partitions that it consumes now (a stopped partition is in nobody's chain)."""
    for pod in range(state.pods.size):
        state.pods[pod].first_held = -1
    for partition in range(state.partitions.size - 1, -1, -1):
        pod = state.partitions[partition].owner
        if (
            pod >= 0 and state.partitions[partition].stopped_at != state.partitions[partition].stopped_at
        ):  # NaN: it is being consumed
            state.partitions[partition].next_held = state.pods[pod].first_held
            state.pods[pod].first_held = partition


@compiled
def deal_ranges(state: State) -> None:
    """Fill `target` with contiguous ranges over the members; the first ones take the remainder.

    Seven partitions over three members: 3, 2, 2. Nobody in the group: -1.
    """
    members = 0
    for pod in range(state.pods.size):
        members += in_group(state, pod)
    for partition in range(state.partitions.size):
        state.partitions[partition].target = -1
    partitions, first, seat = state.partitions.size, 0, 0
    for pod in range(state.pods.size):
        if in_group(state, pod):
            share = partitions // members + (1 if seat < partitions % members else 0)
            for partition in range(first, first + share):
                state.partitions[partition].target = pod
            first += share
            seat += 1


@compiled
def keep_what_fits(state: State, members: int) -> None:
    """Leave partitions with their owners up to an even share; those who hold more keep one extra while extras last."""
    share, larger = state.partitions.size // members, state.partitions.size % members
    for partition in range(state.partitions.size):
        pod = state.partitions[partition].owner
        if pod < 0 or not in_group(state, pod):
            continue
        held = state.pods[pod].held_count
        extra = held == share and larger > 0
        if held < share or extra:
            state.partitions[partition].target = pod
            state.pods[pod].held_count += 1
            larger -= extra


@compiled
def neediest_member(state: State) -> int:
    """The member with the fewest partitions, the first of equals."""
    neediest = -1
    for pod in range(state.pods.size):
        if in_group(state, pod) and (neediest < 0 or state.pods[pod].held_count < state.pods[neediest].held_count):
            neediest = pod
    return neediest


@compiled
def deal_sticky(state: State) -> None:
    """Fill `target` with even shares that leave every partition where it is unless its owner holds too many.

    Forty partitions, four members to five: each of the four gives up two, so 8 of 40 move.
    """
    members = 0
    for pod in range(state.pods.size):
        state.pods[pod].held_count = 0
        members += in_group(state, pod)
    for partition in range(state.partitions.size):
        state.partitions[partition].target = -1
    if members == 0:
        return
    keep_what_fits(state, members)
    for partition in range(state.partitions.size):
        if state.partitions[partition].target < 0:
            neediest = neediest_member(state)
            state.partitions[partition].target = neediest
            state.pods[neediest].held_count += 1
