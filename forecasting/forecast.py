"""Forecast: per future minute, the values that the produce rate stays under with given probabilities."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from forecasting.memory import USUAL_MEMORY, ErrorMemory, RankArray
from forecasting.units import FloatArray

HistoryTier = Literal["reactive", "daily", "weekly"]

# The quantiles that every forecaster gives, ascending.
QUANTILES: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Quantile paths of `produce_messages_per_second`, made at `origin_at` from the data known then.

    Shapes: `paths` is (len(QUANTILES), steps), row i for QUANTILES[i], ascending down each column, never negative.
    Step 1 (column 0) is the first interval not yet seen: it ends at `origin_at + step_seconds`.
    `memory` is how long errors last, from one step to the next; `error_ranks` are their known paths,
    see `forecasting.memory.error_ranks_of`. `history_tier` is what the history allowed: reactive from
    30 min, daily from 2 days, weekly from 14 days.
    """

    cluster: str
    group: str
    model: str
    history_tier: HistoryTier
    origin_at: datetime
    step_seconds: int
    paths: FloatArray
    memory: ErrorMemory = USUAL_MEMORY
    error_ranks: RankArray | None = None

    @property
    def steps(self) -> int:
        """The number of intervals that the paths reach ahead."""
        return int(self.paths.shape[1])

    def path(self, quantile: float) -> FloatArray:
        """One value per step: the produce rate stays under it with probability `quantile`.

        Errors: ValueError on a quantile outside QUANTILES; an interpolated quantile would not be scored.
        """
        if quantile not in QUANTILES:
            message = f"quantile {quantile} is not forecast; one of {QUANTILES} is"
            raise ValueError(message)
        row: FloatArray = np.asarray(self.paths[QUANTILES.index(quantile)], dtype=np.float64)
        return row
