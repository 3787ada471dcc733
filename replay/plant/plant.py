"""Plant: one simulated consumer group under one load, moved by whoever calls `scale`."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import numpy as np

from forecasting.units import SECONDS_PER_DAY, AnyArray, FloatArray, IntArray
from replay.plant.run import command_replicas, run, settle
from replay.plant.state import (
    BINS_PER_DOUBLING,
    CLOSING,
    FINE_BINS,
    FINE_SECONDS,
    MEMBER,
    WAIT_BINS,
    State,
    new_state,
    physics_of,
)
from replay.trace import Trace
from replay.world import World

GRID_SECONDS = 15
# Arrivals are drawn for this many seconds at once, at fixed borders: whoever steps how, the draws are the same.
CHUNK_SECONDS = 900
GROUP_STATES = ("STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What can be seen of the group from outside at one instant; offsets have one value for each partition.

    `replicas` is what the deployment asks for, `ready_members` what is in the group.
    """

    at: datetime
    time_seconds: int
    replicas: int
    ready_members: int
    group_state: str
    end_offsets: IntArray
    committed_offsets: IntArray

    @property
    def lag_messages(self) -> IntArray:
        """End offset minus committed offset of each partition; never negative."""
        lag: IntArray = self.end_offsets - self.committed_offsets
        return lag


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """What one day (or the part of it that was simulated) added up to."""

    pod_seconds: float
    arrivals: int
    served: int
    late: int
    moves: int
    rebalances: int
    rebalancing_seconds: float
    paused_partition_seconds: float
    duplicates: int


class Plant:
    """A group under `trace`, beginning with `replicas` stable members; one seed gives the same arrivals to everybody.

    Arrivals are Poisson per partition and second. Replicas asked for are kept between 1 and the world's ceiling.
    """

    def __init__(self, *, world: World, trace: Trace, seed: int, replicas: int) -> None:
        self._trace = trace
        self._ceiling = max(world.replica_ceiling, replicas)
        self._weights = world.partition_weights()
        self._physics = physics_of(world)
        self._arrivals_random = np.random.default_rng([seed, 1])
        self._arrivals: IntArray = np.zeros((0, world.partitions), dtype=np.int64)
        self._now = 0
        self._state: State = new_state(world, replicas=replicas, duration_seconds=trace.duration_seconds, seed=seed)
        settle(self._state)

    @property
    def time_seconds(self) -> int:
        """Seconds since the start of the trace."""
        return self._now

    @property
    def remaining_seconds(self) -> int:
        """Seconds until the trace ends."""
        return self._trace.duration_seconds - self._now

    def advance(self, seconds: int = GRID_SECONDS) -> None:
        """Let time pass, at most to the end of the trace."""
        until = min(self._now + seconds, self._trace.duration_seconds)
        while self._now < until:
            offset = self._now % CHUNK_SECONDS
            if offset == 0:
                self._draw_chunk()
            rows = self._arrivals[offset : offset + until - self._now]
            run(self._state, self._physics, rows, self._now)
            self._now += len(rows)

    def scale(self, replicas: int) -> None:
        """Ask for another number of replicas, from now on."""
        wanted = max(1, min(replicas, self._ceiling))
        day = min(self._now, self._trace.duration_seconds - 1) // SECONDS_PER_DAY
        command_replicas(self._state, self._physics, wanted, float(self._now), day)

    def observation(self) -> Observation:
        """The group as it stands now."""
        state = self._state
        return Observation(
            at=self._trace.start_at + timedelta(seconds=self._now),
            time_seconds=self._now,
            replicas=int(state.group["replicas"][0]),
            ready_members=int(np.count_nonzero((state.pods["status"] == MEMBER) | (state.pods["status"] == CLOSING))),
            group_state=GROUP_STATES[state.group["phase"][0]],
            end_offsets=state.partitions["end"].copy(),
            committed_offsets=state.partitions["committed"].copy(),
        )

    def day_totals(self) -> tuple[DayTotals, ...]:
        """One entry for each day since the start; what still waits and is late by now counts on the last day."""
        tally = self._state.tally.copy()
        tally["late"][max(0, self._now - 1) // SECONDS_PER_DAY] += self.late_in_backlog
        return tuple(_day_totals(row) for row in tally)

    @property
    def backlog_messages(self) -> int:
        """Messages that have arrived and were never consumed."""
        parts = self._state.partitions
        return int((parts["end"] - parts["position"] - parts["replayed"]).sum())

    @property
    def late_in_backlog(self) -> int:
        """Messages that still wait and have done so for longer than the objective."""
        mask = self._state.queue.shape[0] - 1
        newest_late = int(np.ceil(self._now - self._physics.max_lag - 0.5)) - 1
        late = 0
        for partition, oldest in enumerate(self._state.partitions["head"]):
            seconds = np.arange(oldest, newest_late + 1)
            late += int(self._state.queue[seconds & mask, partition].sum())
        return late

    def wait_quantile(self, quantile: float) -> float:
        """Seconds that the given share of all consumed messages waited at most; 0 when nothing was consumed.

        Waits are resolved to half a second below a minute and to 4.4 % above.
        """
        counts = self._state.waits.sum(axis=0)
        if counts.sum() == 0:
            return 0.0
        place = int(np.searchsorted(np.cumsum(counts), quantile * counts.sum()))
        return float(_bin_begins()[min(place, WAIT_BINS - 1)])

    def _draw_chunk(self) -> None:
        """Draw the arrivals of the next chunk, and make sure that the queue can remember all who may wait."""
        seconds = min(CHUNK_SECONDS, self._trace.duration_seconds - self._now)
        rates = np.outer(self._trace.rates(self._now, seconds), self._weights)
        self._arrivals = self._arrivals_random.poisson(rates)
        oldest = int(self._state.partitions["head"].min())
        if self._now - oldest + CHUNK_SECONDS >= self._state.queue.shape[0]:
            self._state = self._state._replace(queue=_doubled(self._state.queue, oldest, self._now))


def _day_totals(row: AnyArray) -> DayTotals:
    return DayTotals(**{field.name: row[field.name].item() for field in fields(DayTotals)})


def _bin_begins() -> FloatArray:
    """The least wait in each place of the histogram."""
    fine = np.arange(FINE_BINS) / 2.0
    coarse = FINE_SECONDS * 2.0 ** (np.arange(WAIT_BINS - FINE_BINS) / BINS_PER_DOUBLING)
    return np.concatenate([fine, coarse])


def _doubled(queue: IntArray, oldest: int, now: int) -> IntArray:
    """A queue of twice the seconds with the same contents."""
    ring = queue.shape[0]
    larger = np.zeros((2 * ring, queue.shape[1]), dtype=np.int64)
    seconds = np.arange(oldest, now)
    larger[seconds % (2 * ring)] = queue[seconds % ring]
    return larger
