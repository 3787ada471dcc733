"""Rate-based: a quarter more than the produce rate, over one replica's capacity, without regard to useful counts.

30 replicas of 40 partitions carry no more than 20 do: between the useful counts it pays for idle replicas, or falls
behind.
"""

from collections import deque
from dataclasses import dataclass, field
from math import ceil

from replay.plant import Observation
from replay.policies.produce_rate import ProduceRate
from replay.world import World

HEADROOM_FACTOR = 1.25
TOLERANCE = 0.1
HOLD_SECONDS = 300


@dataclass(slots=True, kw_only=True)
class RateBased:
    """Up at once; down to the highest desired count of the last five minutes; a tenth more or less changes nothing."""

    world: World
    _rate: ProduceRate = field(default_factory=ProduceRate, init=False)
    _wants: deque[tuple[int, int]] = field(default_factory=deque, init=False)

    def decide(self, seen: Observation) -> int:
        """The count that carries the last minute's rate with a quarter to spare, were the partitions divisible."""
        now, replicas = seen.time_seconds, seen.replicas
        rate = self._rate.after(now, int(seen.end_offsets.sum()))
        if rate is None:
            return replicas
        fair = ceil(HEADROOM_FACTOR * rate / self.world.capacity_messages_per_second_per_replica)
        want = max(self.world.min_replicas, min(fair, self.world.replica_ceiling))
        wants = self._wants
        wants.append((now, want))
        while wants[0][0] < now - HOLD_SECONDS:
            wants.popleft()
        if abs(want / replicas - 1.0) <= TOLERANCE:
            return replicas
        return want if want > replicas else min(replicas, max(recent for _, recent in wants))
