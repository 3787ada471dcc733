"""A stateful Streams application: a partition moves only to a member that has restored its state."""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import in_group
from replay.plant.physics import Physics
from replay.plant.state import State


@compiled
def hold_back_the_cold(state: State, physics: Physics, now: float) -> None:
    """Leave moving partitions with their owners until the new ones are warm, and warm up as many as there are slots.

    Partitions that have lost their owner move at once. While some are held back, the group rebalances again after the
    probing interval.
    """
    table, group = state.partitions, state.group[0]
    warming = 0
    for partition in range(table.owner.size):
        if table.warm_pod[partition] >= 0 and table.warm_pod[partition] != table.target[partition]:
            table.warm_pod[partition] = -1
        warming += table.warm_pod[partition] >= 0 and table.warm_at[partition] > now
    group.probe_at = math.inf
    for partition in range(table.owner.size):
        owner, target = table.owner[partition], table.target[partition]
        if owner < 0 or owner == target or not in_group(state, owner):
            continue
        if table.warm_pod[partition] == target and table.warm_at[partition] <= now:
            continue
        if table.warm_pod[partition] < 0 and warming < physics.warmup_slots:
            table.warm_pod[partition] = target
            table.warm_at[partition] = now + physics.restore
            warming += 1
        table.target[partition] = owner
        group.probe_at = now + physics.probing
