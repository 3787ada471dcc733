"""A policy with the forecast but without the cost model: it measures the value of pricing moves."""

from collections import deque
from collections.abc import Iterable
from math import ceil

from forecasting.blend import BlendForecaster
from forecasting.forecaster import FittedForecaster
from forecasting.history import GroupInterval, HistoryBuffer
from forecasting.refusal import Refusal
from replay.plant.plant import Observation
from replay.sampling import Names, Rows
from replay.world import World

QUANTILE = 0.9
TARGET_UTILIZATION = 0.85
BEYOND_START_UP_SECONDS = 300.0
HOLD_SECONDS = 600
CYCLE_SECONDS = 60
REFIT_SECONDS = 3600


class Uncosted:
    """The fewest replicas that carry the p90 of the next start-up and five minutes at 85 % of their capacity.

    It decides once a minute with lagcast's own forecaster; it scales out at once, and scales in to the highest count
    needed in ten minutes. Where the forecaster refuses, the count stays.
    """

    def __init__(self, world: World, *, names: Names, history: Iterable[GroupInterval] = ()) -> None:
        self._world = world
        self._rows = Rows(names)
        self._buffer = HistoryBuffer(names.cluster, names.group)
        for row in history:
            self._buffer.append(row)
        self._steps = ceil((world.start_up_seconds + BEYOND_START_UP_SECONDS) / CYCLE_SECONDS)
        self._fitted: FittedForecaster | Refusal | None = None
        self._fit_due = 0
        self._look_due = CYCLE_SECONDS
        self._needs: deque[tuple[int, int]] = deque()

    def decide(self, seen: Observation) -> int:
        """The replicas that the forecast requires now."""
        self._buffer.append(self._rows.row(seen))
        if seen.time_seconds < self._look_due:
            return seen.replicas
        self._look_due += CYCLE_SECONDS
        need = self._need(seen.time_seconds)
        if need is None:
            return seen.replicas
        self._needs.append((seen.time_seconds, need))
        while self._needs[0][0] < seen.time_seconds - HOLD_SECONDS:
            self._needs.popleft()
        return need if need > seen.replicas else min(seen.replicas, max(need for _, need in self._needs))

    def _need(self, now: int) -> int | None:
        history = self._buffer.history()
        if history is None:
            return None
        if now >= self._fit_due or isinstance(self._fitted, Refusal) or self._fitted is None:
            self._fitted, self._fit_due = BlendForecaster().fit(history), now + REFIT_SECONDS
        if isinstance(self._fitted, Refusal):
            return None
        forecast = self._fitted.forecast(history, steps=self._steps)
        if isinstance(forecast, Refusal):
            return None
        return self._world.smallest_carrying(float(forecast.path(QUANTILE).max()) / TARGET_UTILIZATION)
