"""Incidents: restarts, poison messages and offset resets of the group at their seconds, under every policy."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

import numpy as np

from forecasting.compiled import compiled
from forecasting.units import IntArray
from replay.plant.assignment import take_seats
from replay.plant.lifecycle import replace_oldest
from replay.plant.physics import Physics
from replay.plant.state import State
from replay.world import Incident, OffsetsReset, PoisonMessage, RollingRestart

ArrivedSince = Callable[[int], IntArray]


class Incidents:
    """All incidents that are still to come, in order."""

    def __init__(self, incidents: tuple[Incident, ...]) -> None:
        # The second entry keeps incidents of the same second in the order of the world.
        self._due: list[tuple[int, int, Incident]] = []
        self._restarting: dict[int, int] = {}
        for place, incident in enumerate(incidents):
            heappush(self._due, (incident.at_second, place, incident))

    @property
    def next_second(self) -> float:
        """The second of the next incident; infinite when there is none."""
        return self._due[0][0] if self._due else inf

    def happen(self, state: State, physics: Physics, *, second: int, day: int, arrived_since: ArrivedSince) -> None:
        """Apply all incidents due by this second; `arrived_since` counts arrivals per partition from a second on."""
        while self.next_second <= second:
            _, place, incident = heappop(self._due)
            match incident:
                case RollingRestart(seconds_per_pod=pause):
                    born_before = self._restarting.setdefault(place, int(state.group["born"].item()))
                    if replace_oldest(state, physics, born_before, float(second)):
                        heappush(self._due, (second + pause, place, incident))
                case PoisonMessage(at_second=at, seconds=seconds, partition=partition):
                    state.partitions.blocked[partition] = second == at
                    take_seats(state, physics)
                    if second == at:
                        heappush(self._due, (at + seconds, place, incident))
                case OffsetsReset(seconds=seconds) if seconds >= 0:
                    go_back_by(state, arrived_since(max(0, second - seconds)), day)
                case OffsetsReset(seconds=seconds):
                    skip_oldest(state, -seconds, day)


def go_back_by(state: State, messages: IntArray, day: int) -> None:
    """Set back every partition's position and commit by so many messages, at most to its begin."""
    table = state.partitions
    position = np.maximum(0, np.minimum(table.committed, table.position - messages))
    again = table.position - position
    state.tally["duplicates"][day] += again.sum()
    table.replayed[:] += again
    table.position[:] = position
    table.committed[:] = position


@compiled
def skip_oldest(state: State, seconds: int, day: int) -> None:
    """Set forward every partition's position and commit over the arrivals of its oldest waiting `seconds`."""
    table, cohorts = state.partitions, state.cohorts
    mask = cohorts.seconds.shape[0] - 1
    for partition in range(table.owner.size):
        first, after = table.first_cohort[partition], table.next_cohort[partition]
        skipped, begins = 0, cohorts.seconds[first & mask, partition]
        while first < after and cohorts.seconds[first & mask, partition] < begins + seconds:
            skipped += cohorts.messages[first & mask, partition]
            first += 1
        table.first_cohort[partition] = first
        table.position[partition] += table.replayed[partition] + skipped
        table.replayed[partition] = 0
        table.committed[partition] = table.position[partition]
        state.tally[day].skipped += skipped
