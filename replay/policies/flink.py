"""The formula of the Flink Kubernetes operator's autoscaler, with the group taken as one source vertex.

Target = rate that drains the lag in time + rate that a restart holds up + arrivals at the target utilisation, over the
true processing rate: the rate of which all replicas are capable, from their measured rate and busyness. A restart is
charged as more rate only and is never a reason not to move. Defaults are the operator's. Off by default, and absent
here: restart tracking, the observed scaling coefficient, the block on up-moves that had no effect.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import ceil, floor, inf
from operator import itemgetter
from statistics import fmean
from typing import NamedTuple

from replay.plant import Observation
from replay.world import World

MINUTE_SECONDS = 60
STABILISATION_SECONDS = 300
WINDOW_MINUTES = 15
SCALE_DOWN_SECONDS = 3_600
CATCH_UP_SECONDS = 1_800.0
RESTART_SECONDS = 300.0
UTILISATION, UTILISATION_MOST, UTILISATION_LEAST = 0.7, 1.0, 0.4
BACKLOG_SECONDS = 300.0
LEAST_FACTOR, MOST_FACTOR = 0.4, 1e5 + 1.0
MOST_REPLICAS = 200
# The rate seen while lagging stands in for the one by busyness if that is more than 15 % above it.
LAGGING_SECONDS, LAGGING_MINUTES, OBSERVED_EXCESS = 30.0, 2, 1.15


class Minute(NamedTuple):
    """Messages produced and consumed in one minute, the lag at its end, and the mean share of capacity in use.

    `produced` is computed as the original computes arrivals: consumption plus the growth of the lag.
    """

    produced: float
    consumed: float
    lag: float
    busy_share: float


class Load(NamedTuple):
    """Arrivals and consumption in messages/s over the window, and the lag at its end in messages."""

    arriving: float
    consumed: float
    lag: float

    def needed(self, utilisation: float, *, with_restart: bool) -> float:
        """The processing rate that catches up, makes up for a restart and carries the produce rate at a utilisation.

        >>> load = Load(arriving=700.0, consumed=700.0, lag=18_000.0)
        >>> load.needed(0.7, with_restart=False), load.needed(0.0, with_restart=True)     # 18,000/1,800 + 700/0.7
        (1010.0, inf)
        """
        if utilisation <= 0.0:
            return inf
        restart = self.arriving * RESTART_SECONDS / CATCH_UP_SECONDS if with_restart else 0.0
        return float(floor(self.lag / CATCH_UP_SECONDS + restart + self.arriving / utilisation + 0.5))

    def out_of_bounds(self, processing_rate: float) -> bool:
        """True if the utilisation is outside 40-100 %; with over five minutes of backlog, too low does not count."""
        draining = self.lag > BACKLOG_SECONDS * self.consumed
        least = 0.0 if draining else UTILISATION_LEAST
        return processing_rate < self.needed(UTILISATION_MOST, with_restart=False) or processing_rate > self.needed(
            least, with_restart=True
        )


def processing_rate(minutes: Collection[Minute]) -> float | None:
    """The capacity of all replicas, in messages/s; None where it could not be measured.

    >>> processing_rate([Minute(produced=30_000, consumed=30_000, lag=0, busy_share=0.5)] * 15)
    1000.0
    """
    busy = fmean(minute.busy_share for minute in minutes)
    consumed = fmean(minute.consumed for minute in minutes) / MINUTE_SECONDS
    if busy <= 0.0 or consumed <= 0.0:
        return None
    by_busyness = consumed / busy
    active = [(minute.consumed / MINUTE_SECONDS, minute.lag) for minute in minutes if minute.consumed > 0.0]
    lagging = [rate for rate, lag in active if lag >= LAGGING_SECONDS * rate]
    if len(lagging) >= LAGGING_MINUTES and by_busyness > OBSERVED_EXCESS * fmean(lagging):
        return fmean(lagging)
    return by_busyness


def aligned(wanted: int, *, replicas: int, partitions: int, most: int) -> int:
    """The count near `wanted` that suits the partitions (BALANCED), in the same direction from `replicas`.

    The first from `wanted` on that divides the partitions or has fewer whole partitions each; else, below it, the
    fewest with as many whole partitions each.

    >>> [aligned(wanted, replicas=10, partitions=40, most=40) for wanted in (11, 15, 21)]     # 40//14 is 2, 40//21 is 1
    [14, 20, 40]
    """
    if wanted == replicas:
        return replicas
    each = partitions // wanted
    for count in range(wanted, 1 + (most if wanted > replicas else replicas)):
        if partitions % count == 0 or partitions // count < each:
            return count
    fewest = partitions // (each + 1) + 1
    return replicas if (wanted > replicas) != (fewest > replicas) else fewest


@dataclass(slots=True, kw_only=True)
class RateWindow:
    """The minutes measured at the present count, from five minutes after the last rescale took effect."""

    minutes: deque[Minute] = field(default_factory=lambda: deque(maxlen=WINDOW_MINUTES), init=False)
    _replicas: int = field(default=-1, init=False)
    _settled_at: int = field(default=0, init=False)
    _busy: list[float] = field(default_factory=list, init=False)
    _offsets: tuple[int, int] | None = field(default=None, init=False)

    def look(self, seen: Observation) -> bool:
        """Add an observation; returns True if a minute has ended that fills the window."""
        if seen.replicas != self._replicas or seen.ready_members < seen.replicas:
            self._replicas, self._settled_at, self._offsets = (
                seen.replicas,
                seen.time_seconds + STABILISATION_SECONDS,
                None,
            )
            self.minutes.clear()
        self._busy.append(seen.busy_share)
        if seen.time_seconds % MINUTE_SECONDS != 0:
            return False
        self._end_minute(seen)
        return len(self.minutes) == WINDOW_MINUTES

    def _end_minute(self, seen: Observation) -> None:
        end, committed = int(seen.end_offsets.sum()), int(seen.committed_offsets.sum())
        if self._offsets is not None:
            produced, consumed = end - self._offsets[0], committed - self._offsets[1]
            minute = Minute(produced=produced, consumed=consumed, lag=end - committed, busy_share=fmean(self._busy))
            self.minutes.append(minute)
        self._offsets = (end, committed) if seen.time_seconds >= self._settled_at else None
        self._busy.clear()


@dataclass(slots=True, kw_only=True)
class ScaleDowns:
    """Requests for fewer replicas, which wait for an hour; a request for the present count or more deletes them."""

    _wants: deque[tuple[int, int, bool]] = field(default_factory=deque, init=False)
    _first_at: int | None = field(default=None, init=False)

    def forget(self) -> None:
        """Delete all waiting requests."""
        self._wants.clear()
        self._first_at = None

    def due(self, want: int, *, out_of_bounds: bool, now_seconds: int) -> int | None:
        """The highest request in an hour, an hour after the first one, if that one came from out of the bounds."""
        if self._first_at is None:
            self._first_at = now_seconds
        self._wants.append((now_seconds, want, out_of_bounds))
        while self._wants[0][0] < now_seconds - SCALE_DOWN_SECONDS:
            self._wants.popleft()
        if now_seconds - self._first_at < SCALE_DOWN_SECONDS:
            return None
        _, most, counts = max(self._wants, key=itemgetter(1))
        return most if counts else None


@dataclass(slots=True, kw_only=True)
class Flink:
    """Decides each minute on a full window: up at once, down an hour after the first request for less."""

    world: World
    _window: RateWindow = field(default_factory=RateWindow, init=False)
    _downs: ScaleDowns = field(default_factory=ScaleDowns, init=False)

    def decide(self, seen: Observation) -> int:
        """The count by the formula, once there are measurements of the present one."""
        replicas = seen.replicas
        if not self._window.look(seen):
            return replicas
        minutes = self._window.minutes
        rate = processing_rate(minutes)
        if rate is None:
            return replicas
        load = Load(
            arriving=fmean(minute.produced for minute in minutes) / MINUTE_SECONDS,
            consumed=fmean(minute.consumed for minute in minutes) / MINUTE_SECONDS,
            lag=minutes[-1].lag,
        )
        want = self._want(load.needed(UTILISATION, with_restart=True) / rate, replicas)
        wanted: int | None
        if want >= replicas:
            self._downs.forget()
            wanted = want if load.out_of_bounds(rate) else None
        else:
            now = seen.time_seconds
            wanted = self._downs.due(want, out_of_bounds=load.out_of_bounds(rate), now_seconds=now)
        if wanted is None or wanted == replicas:
            return replicas
        self._downs.forget()
        return wanted

    def _want(self, factor: float, replicas: int) -> int:
        partitions = self.world.partitions
        most = min(self.world.replica_ceiling, MOST_REPLICAS, partitions)
        wanted = ceil(max(LEAST_FACTOR, min(factor, MOST_FACTOR)) * replicas)
        bounded = max(self.world.min_replicas, min(wanted, most))
        return max(self.world.min_replicas, aligned(bounded, replicas=replicas, partitions=partitions, most=most))
