"""Plant: one simulated consumer group under one load, scaled by calls of `scale`."""

from datetime import timedelta

import numpy as np

from forecasting.units import SECONDS_PER_DAY, AnyArray, FloatArray, IntArray
from replay.plant.arrivals import CHUNK_SECONDS, Arrivals, draw_arrivals
from replay.plant.incidents import Incidents
from replay.plant.lifecycle import command_replicas
from replay.plant.observation import (
    ASSIGNORS,
    CLIENTS,
    GROUP_PROTOCOLS,
    GROUP_STATES,
    DayTotals,
    Observation,
    day_totals_of,
)
from replay.plant.physics import physics_of
from replay.plant.run import run, settle
from replay.plant.state import BINS_PER_DOUBLING, FINE_BINS, FINE_SECONDS, WAIT_BINS, Cohorts, State, new_state
from replay.trace import Trace
from replay.world import World

__all__ = ["GRID_SECONDS", "DayTotals", "Observation", "Plant"]

GRID_SECONDS = 15


class Plant:
    """A group under `trace`, beginning with `replicas` stable members; one seed gives every policy the same load.

    Arrivals are Poisson per partition and second: those of `arrivals` if given, which must be drawn for the same world,
    trace and seed from the first second on; else each day is drawn when it begins. Requested replicas are kept between
    1 (0 where the world has it) and the world's ceiling.
    """

    def __init__(
        self, *, world: World, trace: Trace, seed: int, replicas: int, arrivals: Arrivals | None = None
    ) -> None:
        self._world, self._trace, self._seed = world, trace, seed
        self._ceiling = max(world.replica_ceiling, replicas)
        self._physics = physics_of(world)
        self._arrivals = self._day(0) if arrivals is None else arrivals
        self._now = 0
        self._state: State = new_state(
            self._physics,
            partitions=world.partitions,
            ceiling=self._ceiling,
            replicas=replicas,
            duration=trace.duration_seconds,
            seed=seed,
        )
        self._incidents = Incidents(world.incidents)
        self._last_seen = (self._state.partitions.end.copy(), self._state.partitions.committed.copy())
        settle(self._state, self._physics)

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
            if self._now == self._arrivals.end_second:
                self._arrivals = self._day(self._now)
            if self._now % CHUNK_SECONDS == 0:
                self._make_room()
            if self._now >= self._incidents.next_second:
                self._let_incidents_happen()
            border = self._now - self._now % CHUNK_SECONDS + CHUNK_SECONDS
            stop = int(min(until, border, self._incidents.next_second))
            rows = self._arrivals.rows(self._now, stop - self._now)
            run(self._state, self._physics, rows, self._now)
            self._now += len(rows)

    def scale(self, replicas: int) -> None:
        """Request another number of replicas, from now on."""
        wanted = max(0 if self._world.to_zero else 1, min(replicas, self._ceiling))
        day = min(self._now, self._trace.duration_seconds - 1) // SECONDS_PER_DAY
        command_replicas(self._state, self._physics, wanted, float(self._now), day)

    def observation(self) -> Observation:
        """The present state of the group as seen from outside."""
        group, table = self._state.group, self._state.partitions
        ends, committed, unseen = table.end.copy(), table.committed.copy(), self._unseen()
        if unseen:
            ends[list(unseen)] = self._last_seen[0][list(unseen)]
            committed[list(unseen)] = self._last_seen[1][list(unseen)]
        self._last_seen = (ends, committed)
        worked, present = self._state.recent.sum(axis=1).tolist()
        return Observation(
            at=self._trace.start_at + timedelta(seconds=self._now),
            time_seconds=self._now,
            replicas=group["replicas"].item(),
            ready_members=group["members"].item(),
            group_state=GROUP_STATES[group["phase"].item()],
            end_offsets=ends,
            committed_offsets=committed,
            busy_share=worked / present if present > 0.0 else 0.0,
            group_protocol=GROUP_PROTOCOLS[self._world.protocol],
            group_assignor=ASSIGNORS[self._world.protocol],
            static_members=group["members"].item() if self._world.static_membership else 0,
            clients=CLIENTS[self._world.client],
            unseen_partitions=unseen,
        )

    def day_totals(self) -> tuple[DayTotals, ...]:
        """One entry for each day since the start; messages that are waiting and late by now count on the last day."""
        tally = self._state.tally.copy()
        tally["late"][max(0, self._now - 1) // SECONDS_PER_DAY] += self.late_in_backlog
        return day_totals_of(tally)

    @property
    def backlog_messages(self) -> int:
        """Messages that have arrived and were not consumed."""
        table = self._state.partitions
        return int((table.end - table.position - table.replayed).sum())

    @property
    def late_in_backlog(self) -> int:
        """Messages that are waiting, for longer than the objective."""
        cohorts, table = self._state.cohorts, self._state.partitions
        mask = cohorts.seconds.shape[0] - 1
        late = 0
        for partition, (first, after) in enumerate(zip(table.first_cohort, table.next_cohort, strict=True)):
            places = np.arange(first, after) & mask
            waits = self._now - cohorts.seconds[places, partition] - 0.5
            late += int(cohorts.messages[places, partition][waits > self._physics.max_lag].sum())
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

    def _unseen(self) -> tuple[int, ...]:
        """The partitions that the sample of this instant lacks: usually none, else a random quarter."""
        share = self._world.missing_sample_share
        if share == 0.0 or self._now == 0:
            return ()
        random = np.random.default_rng([self._seed, 4, self._now])
        if random.random() >= share:
            return ()
        quarter = max(1, self._world.partitions // 4)
        return tuple(sorted(random.choice(self._world.partitions, quarter, replace=False).tolist()))

    def _let_incidents_happen(self) -> None:
        day = self._now // SECONDS_PER_DAY
        self._incidents.happen(self._state, self._physics, second=self._now, day=day, arrived_since=self._arrived_since)

    def _arrived_since(self, first_second: int) -> IntArray:
        """Arrivals of each partition from a second on until now."""
        drawn = self._arrivals
        if first_second < drawn.first_second:
            begin = first_second - first_second % SECONDS_PER_DAY
            drawn = draw_arrivals(self._world, self._trace, self._seed, first_second=begin, last_second=self._now)
        arrived: IntArray = drawn.rows(first_second, self._now - first_second).sum(axis=0, dtype=np.int64)
        return arrived

    def _day(self, first_second: int) -> Arrivals:
        last = first_second + SECONDS_PER_DAY
        return draw_arrivals(self._world, self._trace, self._seed, first_second=first_second, last_second=last)

    def _make_room(self) -> None:
        """Enlarge the rings so that every partition can hold all messages that may wait at the end of this chunk."""
        table, cohorts = self._state.partitions, self._state.cohorts
        longest = int((table.next_cohort - table.first_cohort).max())
        if longest + CHUNK_SECONDS > cohorts.seconds.shape[0]:
            longer = Cohorts(*(_doubled(ring, table.first_cohort, table.next_cohort) for ring in cohorts))
            self._state = self._state._replace(cohorts=longer)


def _bin_begins() -> FloatArray:
    """The least wait in each place of the histogram."""
    fine = np.arange(FINE_BINS) / 2.0
    coarse = FINE_SECONDS * 2.0 ** (np.arange(WAIT_BINS - FINE_BINS) / BINS_PER_DOUBLING)
    return np.concatenate([fine, coarse])


def _doubled(rings: AnyArray, firsts: AnyArray, nexts: AnyArray) -> AnyArray:
    """Rings of twice the length with the same contents."""
    length = rings.shape[0]
    longer = np.zeros((2 * length, rings.shape[1]), dtype=rings.dtype)
    for partition, (first, after) in enumerate(zip(firsts, nexts, strict=True)):
        places = np.arange(first, after)
        longer[places & (2 * length - 1), partition] = rings[places & (length - 1), partition]
    return longer
