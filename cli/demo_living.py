"""The demo goes on: its simulated group lives in compressed time, and what is advised is carried out."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING

from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.history import GroupInterval
from recommender.deciding.recommendation import due_replicas
from recommender.known_groups import KnownGroups
from recommender.ports import Condensed, Histories, LoopStore
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from replay.contest import Contest
from replay.plant.plant import Plant
from replay.policies.lagcast import profile_of
from replay.sampling import Rows
from replay.workload import orders_workload

if TYPE_CHECKING:
    from recommender.ports import Group

# A minute of the group takes a second: a move that is advised, made and graded is seen within two minutes.
SPEED = 60
# A decision takes 80 ms; with one a minute, as in the league, the demo needs a tenth of a core.
CYCLE_SECONDS = 60
_ROW = timedelta(seconds=BASE_INTERVAL_SECONDS)
# Longer than anybody looks on: four hours.
_DAYS = 10


def loop_over(
    histories: Histories, contest: Contest, *, store: LoopStore, known_groups: KnownGroups | None = None
) -> Recommender:
    """The loop that decides on the demo's group, which is the contest's."""
    watched = WatchedGroups(
        histories=histories,
        profile_of=lambda *_: profile_of(contest.world, contest.names),
        settings=contest.settings,
        store=store,
        timer=time.perf_counter,
    )
    return Recommender(watched=watched, known_groups=KnownGroups() if known_groups is None else known_groups)


class GoingOn:
    """The demo's rows until its end, in `past`, and after them those of the living group."""

    def __init__(self, past: Histories) -> None:
        self.past = past
        self.rows: list[GroupInterval] = []

    def groups(self, *, now: datetime) -> "Sequence[Group]":
        """Those of the past: it is one."""
        return self.past.groups(now=now)

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[GroupInterval]:
        """The rows that end after `since` and no later than `until`, oldest first."""
        new = [
            row
            for row in self.rows
            if (since is None or row.interval_end_at > since) and (until is None or row.interval_end_at <= until)
        ]
        if since is not None and self.rows and since >= self.rows[0].interval_end_at - _ROW:
            return new
        return [*self.past.intervals(cluster, group, since=since, until=until), *new]

    def intervals_in_turn(
        self, groups: "Sequence[Group]", *, since: datetime, until: datetime
    ) -> "Iterator[tuple[Group, Sequence[GroupInterval]]]":
        """The same of each of these groups."""
        return ((each, self.intervals(*each, since=since, until=until)) for each in groups)

    def condensed_in_turns(
        self,
        groups: "Sequence[Group]",
        *,
        newest: timedelta,  # noqa: ARG002  # its rows are objects already
        since: datetime,
        until: datetime,
    ) -> "Iterator[Sequence[tuple[Group, Condensed]]]":
        """The same, each a turn of its own."""
        for each, rows in self.intervals_in_turn(groups, since=since, until=until):
            yield [(each, Condensed(None, (), rows))]


class LivingGroup:
    """The group of `contest` from `start_at` on, with new load of the same shape; `now` is its present."""

    def __init__(self, contest: Contest, histories: GoingOn, loop: Recommender, *, start_at: datetime) -> None:
        load = orders_workload(days=_DAYS, seed=contest.seed, start_at=start_at)
        self.now = start_at
        self._histories = histories
        self._loop = loop
        self._rows = Rows(contest.names)
        self._plant = Plant(world=contest.world, trace=load, seed=contest.seed, replicas=contest.first_replicas)
        self._rows.row(self._plant.observation())

    @property
    def is_over(self) -> bool:
        """True when there is no more load."""
        return self._plant.remaining_seconds == 0

    def cycle(self) -> None:
        """A minute goes by: rows come, a decision is made, and what is due is carried out."""
        for _ in range(CYCLE_SECONDS // BASE_INTERVAL_SECONDS):
            self._plant.advance(BASE_INTERVAL_SECONDS)
            self._histories.rows.append(self._rows.row(self._plant.observation()))
        self.now += timedelta(seconds=CYCLE_SECONDS)
        for decision in self._loop.run_once(now=self.now):
            wanted = due_replicas(decision, now=self.now)
            if isinstance(wanted, int) and wanted != self._plant.observation().replicas:
                self._plant.scale(wanted)


def live_on(group: LivingGroup, stop: Event) -> None:
    """Let the group live, a minute a second, until `stop` is set or its load ends."""
    while not stop.is_set() and not group.is_over:
        began_seconds = time.monotonic()
        group.cycle()
        stop.wait(max(0.0, CYCLE_SECONDS / SPEED - (time.monotonic() - began_seconds)))
