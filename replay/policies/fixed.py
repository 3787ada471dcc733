"""Fixed: always enough replicas for the peak. Every other policy has to be cheaper."""

from dataclasses import dataclass

from replay.plant import Observation
from replay.trace import Trace
from replay.world import World

# In practice a peak is sized with some room.
PEAK_ROOM = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Always the same count."""

    replicas: int

    def decide(self, seen: Observation) -> int:
        """The fixed count, independent of the observation."""
        del seen
        return self.replicas


def count_for_peak(world: World, trace: Trace) -> int:
    """The fewest replicas that carry the trace's busiest minute with a twentieth to spare."""
    return world.smallest_carrying(float(trace.minute_rates().max()) * PEAK_ROOM)
