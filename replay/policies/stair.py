"""Stair-aware: a reactive scaler that knows the produce rate, one replica's capacity and the partition stairs.

The reactive rival to beat: it needs no forecast and makes none of the mistakes of a lag target.
"""

from collections import deque
from dataclasses import dataclass, field

from replay.plant.plant import Observation
from replay.world import World

RATE_SECONDS = 60
ROOM = 1.2
DRAIN_SECONDS = 300.0
HOLD_SECONDS = 600


@dataclass(slots=True, kw_only=True)
class StairAware:
    """Room for a fifth more than what arrives and for draining in five minutes; down after ten minutes of less need."""

    world: World
    _ends: deque[tuple[int, int]] = field(default_factory=deque)
    _needs: deque[tuple[int, int]] = field(default_factory=deque)

    def decide(self, seen: Observation) -> int:
        """Up at once to what is needed now; down to what was needed at most in the last ten minutes."""
        now = seen.time_seconds
        self._ends.append((now, int(seen.end_offsets.sum())))
        while self._ends[0][0] < now - RATE_SECONDS:
            self._ends.popleft()
        began, begin_offset = self._ends[0]
        if now == began:
            return seen.replicas
        rate = (self._ends[-1][1] - begin_offset) / (now - began)
        waiting = max(0.0, float(seen.lag_messages.sum()) - self.world.commit_interval_seconds * rate)
        need = self.world.smallest_carrying(ROOM * rate + waiting / DRAIN_SECONDS)
        self._needs.append((now, need))
        while self._needs[0][0] < now - HOLD_SECONDS:
            self._needs.popleft()
        return need if need > seen.replicas else min(seen.replicas, max(need for _, need in self._needs))
