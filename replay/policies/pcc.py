"""Production over consumption per consumer ("pcc"): a predictive scaler after Federator.ai, as far as it is public.

A reconstruction from public logs, data model and configuration; the product's recommender is closed. The formula is
`(LogOffset + LagOffset / 5) / CurrentOffset * CurrentReplicas` per minute: what will be produced and the lag drained
over five minutes, over what one consumer consumes.

Its weakness: a group that keeps up consumes exactly the produced messages, so that one consumer's share does not show
its capacity. The count follows changes of the load and never discovers that fewer would be enough; `capacity_seen`
measures a consumer by its highest observed rate instead.
"""

from collections import deque
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from replay.plant import Observation
from replay.policies.seasonal import SEASON_MINUTES, forecast_minutes
from replay.world import World

CYCLE_SECONDS = 300
POINTS = 5
MINUTE_SECONDS = 60
# Ten seasons of the model.
HISTORY_MINUTES = 10 * SEASON_MINUTES


@dataclass(slots=True, kw_only=True)
class Pcc:
    """A decision every five minutes on five observed and five predicted minutes; in between the count stays."""

    world: World
    capacity_seen: bool
    _ends: deque[int] = field(default_factory=lambda: deque(maxlen=HISTORY_MINUTES + 1), init=False)
    _committed: deque[int] = field(default_factory=lambda: deque(maxlen=POINTS + 1), init=False)
    _most_per_consumer: float = field(default=0.0, init=False)

    def decide(self, seen: Observation) -> int:
        """The count at which consumers at their present rate will drain the lag and follow the prediction."""
        if seen.time_seconds % MINUTE_SECONDS == 0:
            self._ends.append(int(seen.end_offsets.sum()))
            self._committed.append(int(seen.committed_offsets.sum()))
        if seen.time_seconds % CYCLE_SECONDS != 0 or len(self._committed) <= POINTS:
            return seen.replicas
        per_consumer = (self._committed[-1] - self._committed[0]) / POINTS / seen.replicas
        self._most_per_consumer = max(self._most_per_consumer, per_consumer)
        if self.capacity_seen:
            per_consumer = self._most_per_consumer
        if per_consumer <= 0.0:
            return seen.replicas
        predicted = forecast_minutes(np.diff(np.array(self._ends, dtype=np.float64)), steps=POINTS)
        lag = self._ends[-1] - self._committed[-1]
        want = ceil((float(predicted.max()) + lag / POINTS) / per_consumer)
        return max(self.world.min_replicas, min(want, self.world.replica_ceiling))
