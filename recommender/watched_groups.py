"""The groups that the loop follows: what is kept of each between two cycles, and how it is made from weeks of rows.

`now` is an argument of every step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from math import inf
from typing import NamedTuple

import structlog

from cost_model.physics.detected import ObservedGroup, ObservedWorkload, observed_in
from cost_model.physics.learned import Learned
from cost_model.physics.pods import MembersChange, changes_in, start_up_of
from cost_model.physics.pooling import pooled_by_kind, steadied
from cost_model.physics.profile import GroupProfile
from cost_model.physics.similar import GroupKind, SimilarGroups, kind_of
from forecasting.columns import BASE_INTERVAL_SECONDS
from recommender.borders import Borders
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision
from recommender.following.careful import Caller, call
from recommender.following.grading import MeasuredPause
from recommender.following.kept_account import AccountSlot, account_of, kept_since
from recommender.following.session import Session
from recommender.newest_rows import NewestRows
from recommender.ports import Condensed, Group, Histories, LoopStore
from recommender.steps import StepTimes, Timer

# The profile of (cluster, group, what its rows tell of it); None leaves the group out.
ProfileOf = Callable[[str, str, ObservedGroup], GroupProfile | None]
# What the cluster tells of the workload of (cluster, group); None where it tells nothing.
WorkloadOf = Callable[[str, str], ObservedWorkload | None]
# From what each group has learned from its own moves, by its kind, to what each kind begins from.
Pooling = Callable[[Iterable[tuple[GroupKind, Learned]]], Mapping[GroupKind, SimilarGroups | None]]
# Settings of decisions on (cluster, group).
SettingsOf = Callable[[str, str], DecisionSettings]

# Forecasts look back four weeks at most: the long season is a week, and three of them outvote an odd one.
LOOK_BACK = timedelta(days=28)
# Where an account was kept, what came before it is known by its outcomes and as minutes. Of the rest accounts, the
# ledger and drains of a backlog go back a day. Observing 28 days of rows is most of a first start (`python -m
# benchmarks.speed.restart`).
ROWS_BESIDE_ACCOUNT = timedelta(hours=25)
# Moves of every age are used for learning, since a group that moves once a week has no others. This many outweigh the
# prior, which counts as three, 166 to 1, and are read in 6 ms.
OUTCOMES_KEPT_IN_MIND = 500

# What is long and may wait has this share of a cycle, or of the 15 s in which rows come: fits of forecasters that are
# due again, and replays of a day of shadows after an estimate has changed. A thousand groups that began together are
# due together, and what similar groups have learned changes for all of them at once, which took minutes of one cycle,
# and 45 s. Those that have waited longest come first.
LATER_SHARE = 0.2
# Where rows have come meanwhile, it waits for the next cycle, unless it is overdue for longer: in a run with a thousand
# groups 2 s of it kept the rows of a surge waiting.
PUT_OFF_AT_MOST = timedelta(minutes=10)

# Groups that are new to a service, all of them after a start, are read and observed for so long in a cycle, and those
# that are left in the next ones: with four weeks of rows each takes seconds, and a thousand of them would be without
# advice until the last one is read.
OPENING_SECONDS = 15.0
# Where the rest of the last cycle took longer, for as long as that, up to twice the time: by 15 s alone a thousand were
# read after an hour, of which other decisions took more than half. Without a limit, a cycle took 5 min in a trial,
# because those that were opened have to be fitted in it.
OPENING_TIMES_AT_MOST = 2.0
# Until then a group that was followed before is decided by its newest hour and by what was kept of it, in a trial in
# 0.2 s instead of 3: enough for a forecast that the load stays, and for the errors of that forecast.
FIRST_LOOK = timedelta(hours=1)

# A decision stands while no row of its group has come, for less than a cycle: one without any rows decides all groups.
STANDS_CYCLES = 0.9

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Watched:
    """The state that the loop keeps of one group between two cycles.

    `news_at` is the cycle in which its newest row came, and `standing` the decision on it, unless a hold was in force.
    `past_unread`: of its past only the newest hour was read so far; `stops` were measured since then, and are told
    again to the session that comes after.
    """

    session: Session
    profile: GroupProfile
    settings: DecisionSettings
    observed: ObservedGroup
    changes: tuple[MembersChange, ...]
    seen_until: datetime
    news_at: datetime
    standing: Decision | None = None
    failure: str | None = None
    past_unread: bool = False
    stops: list[MeasuredPause] = field(default_factory=list)

    @property
    def lesson(self) -> tuple[GroupKind, Learned]:
        """The group's kind, and what its own moves may teach other groups of it."""
        return kind_of(self.profile), self.session.own_lessons


class Opened(NamedTuple):
    """What a cycle begins with.

    The groups that are `new`, None for one that is left out; one whose session could not be made is in none of these.
    Those that are `waiting` for a later cycle have no session yet. Those that are `unread` would wait too, but are
    decided by their `newest` rows until then. `seconds` went into opening.
    """

    new: Mapping[Group, Watched | None]
    waiting: frozenset[Group]
    unread: frozenset[Group]
    newest: NewestRows
    seconds: float


@dataclass(slots=True, kw_only=True)
class WatchedGroups:
    """The groups of `histories` that the loop follows. A group whose state is dropped is read anew.

    `settings_of` has the groups with settings other than `settings`; it, `profile_of` and `workload_of` are called
    again in each cycle. `stops` gives the measured stops of a group's rebalances since its last call. Forecasters are
    called through `caller`: without a time limit, a group whose forecaster hangs delays all others. `pooling` makes one
    prior of what groups of a kind have learned. Groups that are new are opened for `opening_seconds_per_cycle`, or up
    to twice as long where the last cycle took longer without opening any; those that are left are opened in the next
    cycles. Opening and catching up end once `is_stopped`. `row_count` changes when rows come. An account that cannot be
    read is told to `borders`.
    """

    histories: Histories
    profile_of: ProfileOf
    settings: DecisionSettings
    store: LoopStore
    timer: Timer
    settings_of: SettingsOf | None = None
    stops: Callable[[Group], Sequence[MeasuredPause]] = lambda _: ()
    workload_of: WorkloadOf = lambda _cluster, _group: None
    caller: Caller = call
    pooling: Pooling = pooled_by_kind
    is_stopped: Callable[[], bool] = lambda: False
    row_count: Callable[[], int | None] = lambda: None
    opening_seconds_per_cycle: float = inf
    borders: Borders = field(default_factory=Borders)
    _watched: dict[Group, Watched] = field(default_factory=dict)
    _similar: Mapping[GroupKind, SimilarGroups | None] = field(default_factory=dict)
    _tried_at: dict[Group, datetime] = field(default_factory=dict)
    _replay_seconds_left: float = 0.0

    def of(self, group: Group) -> Watched | None:
        """What is kept of the group; None until it is opened, and where it was dropped."""
        return self._watched.get(group)

    def drop(self, group: Group) -> None:
        """Keep nothing of the group, which is then read anew: what is kept may not be consistent."""
        self._watched.pop(group, None)

    def forget(self, group: Group) -> None:
        """Keep nothing of a group that is gone."""
        self.drop(group)
        self._tried_at.pop(group, None)

    def clear(self) -> None:
        """Keep nothing of any group, as after a restart."""
        self._watched.clear()
        self._similar = {}
        self._tried_at.clear()

    def is_tried(self, group: Group) -> bool:
        """True if it was tried to open the group, in this cycle or before."""
        return group in self._tried_at

    def open_new(self, groups: Sequence[Group], *, rest_seconds: float, now: datetime) -> Opened:
        """Open those of these groups that are new, before a cycle whose rest takes about `rest_seconds`.

        That is before the first decision of the cycle, which the lessons of all groups may change.
        """
        new: dict[Group, Watched | None] = {}
        unread: frozenset[Group] = frozenset()
        wanted = [group for group in groups if group not in self._watched or self._watched[group].past_unread]
        limit_seconds = max(
            self.opening_seconds_per_cycle,
            min(rest_seconds, OPENING_TIMES_AT_MOST * self.opening_seconds_per_cycle),
        )
        left, seconds = self._open_in_turns(wanted, new, limit_seconds=limit_seconds, now=now)
        if left:
            unread = self.store.groups_with_account(since=kept_since(now)) & left
        seen = {group: watched.seen_until for group, watched in self._watched.items()}
        newest = NewestRows(self.histories, seen=dict.fromkeys(unread, now - FIRST_LOOK) | seen, until=now)
        return Opened(new, left - unread, unread, newest, seconds)

    def _open_in_turns(
        self, groups: Sequence[Group], new: dict[Group, Watched | None], *, limit_seconds: float, now: datetime
    ) -> tuple[frozenset[Group], float]:
        """Open these groups while there is time; returns those that are left, and the seconds that it took."""
        left, seconds = dict.fromkeys(groups), 0.0
        if not groups:
            return frozenset(left), seconds
        began = turn_began = self.timer()
        try:
            for turn in self._pasts_in_turns(groups, now=now):
                for group, past in turn:
                    if self.is_stopped():
                        return frozenset(left), seconds
                    self._tried_at[group] = now
                    del left[group]
                    try:
                        watched = self._begun(group, past, now=now)
                        # The first fit, before the limit is looked at: it takes a quarter of the time of reading.
                        if watched is not None:
                            watched.session.catch_up()
                        new[group] = watched
                    except Exception:  # noqa: BLE001  # reading again for the decision gives the group's refusal
                        self.drop(group)
                # The next turn takes as long as this one, and what is read of it is lost if it is not used up: it is
                # begun where its end is closer to the limit than its beginning.
                turn_ended = self.timer()
                seconds = turn_ended - began
                if seconds + 0.5 * (turn_ended - turn_began) >= limit_seconds:
                    return frozenset(left), seconds
                turn_began = turn_ended
        except Exception as error:  # noqa: BLE001  # as above, for each of those that are left
            _log.debug("opening_failed", error=str(error))
        return frozenset(), seconds

    def _pasts_in_turns(self, groups: Sequence[Group], *, now: datetime) -> Iterator[Iterable[tuple[Group, Condensed]]]:
        """The last weeks of each of these groups, first of those that were never tried, then by how long ago that was.

        Groups that are left out, or fail, are new in each cycle: they must not keep the others waiting for ever.
        """
        never = datetime.min.replace(tzinfo=UTC)

        def tried_at(group: Group) -> datetime:
            return self._tried_at.get(group, never)

        for _, together in groupby(sorted(groups, key=tried_at), key=tried_at):
            yield from self._pasts(list(together), now=now)

    def catch_up(self, times: StepTimes, *, rest_seconds: float, row_count: int | None, now: datetime) -> None:
        """Let sessions do what was put off, those that have waited longest first, for a share of `rest_seconds`.

        There is no time where rows came since `row_count`, but for what is overdue by `PUT_OFF_AT_MOST`.
        In the next cycle rows are observed with replays for as long, or with none where one still waits here: those
        that come first by name must not take the turns of the others.
        """
        limit_seconds = LATER_SHARE * max(BASE_INTERVAL_SECONDS, rest_seconds)
        behind = [(each.session.behind_since, group) for group, each in self._watched.items()]
        waiting = sorted(((since, group) for since, group in behind if since is not None), reverse=True)
        seconds = 0.0
        while waiting and seconds < limit_seconds and not self.is_stopped():
            since, group = waiting[-1]
            if self.row_count() != row_count and now - since < PUT_OFF_AT_MOST:
                break
            waiting.pop()
            began = self.timer()
            with times.timing("catch_up"):
                try:
                    self._watched[group].session.catch_up()
                    self._watched[group].session.rest()
                except Exception as error:  # noqa: BLE001  # reading it again for the decision gives the refusal
                    _log.debug("catching_up_failed", cluster=group[0], group=group[1], error=str(error))
                    self.drop(group)
            seconds += self.timer() - began
        self._replay_seconds_left = 0.0 if waiting else limit_seconds

    def share_lessons(self) -> None:
        """Let each group begin from what groups of its kind had learned when the cycle began, in any order of them."""
        with self.borders.around("step", "lessons"):
            found = self.pooling(watched.lesson for watched in self._watched.values())
            self._similar = steadied(found, before=self._similar)
            for watched in self._watched.values():
                watched.session.start_from(self._similar[kind_of(watched.profile)])

    def open(self, group: Group, *, now: datetime) -> Watched | None:
        """The group as its rows, which are read alone, tell of it; None for one that is left out.

        Errors: whatever makes the decision a refusal.
        """
        begin = now - LOOK_BACK
        if self.store.account(*group, since=kept_since(now)):
            turns = self.histories.condensed_in_turns([group], newest=ROWS_BESIDE_ACCOUNT, since=begin, until=now)
            ((_, past),) = chain.from_iterable(turns)
        else:
            past = Condensed(None, (), self.histories.intervals(*group, since=begin, until=now))
        return self._begun(group, past, now=now)

    def resume(self, group: Group, watched: Watched) -> None:
        """Go on with the state of a group that another process, of the same settings, has opened at this instant."""
        self._watched[group] = watched

    def standing(self, group: Group, newest: NewestRows, times: StepTimes, *, now: datetime) -> Decision | None:
        """The last decision on the group where no row of it has come, nor another reason for a new one; else None."""
        watched = self._watched.get(group)
        if watched is None or watched.standing is None:
            return None
        settings = self._settings(group)
        stands = timedelta(seconds=STANDS_CYCLES * settings.cycle_seconds)
        if not watched.news_at <= now < watched.news_at + stands or not self._as_before(watched, group, settings):
            return None
        with times.timing("read"):
            return None if newest.has_any(group, since=watched.seen_until) else watched.standing

    def up_to_date(self, group: Group, opened: Opened, *, now: datetime) -> Watched | None:
        """The group with every row that has come since the last cycle and none from after `now`; None: it is left out.

        Errors: whatever makes the decision a refusal.
        """
        if group in opened.new:
            return opened.new[group]
        watched = self._watched.get(group)
        settings = self._settings(group)
        if watched is not None and watched.seen_until <= now and self._as_before(watched, group, settings):
            for stop in self.stops(group):
                watched.session.measured(stop)
                if watched.past_unread:
                    watched.stops.append(stop)
            rows = opened.newest.of(group, since=watched.seen_until)
            watched.news_at = now if rows else watched.news_at
            began = self.timer()
            for row in rows:
                watched.session.observe(row, may_replay=self._replay_seconds_left > 0.0)
                watched.seen_until = row.interval_end_at
            self._replay_seconds_left -= self.timer() - began
            watched.observed = observed_in(rows, before=watched.observed)
            watched.changes = changes_in(rows, before=watched.changes)
            self._show_workload(group, watched)
            return watched
        if group in opened.unread:
            rows = opened.newest.of(group, since=now - FIRST_LOOK)
            # One that has been silent for so long waits: what to say of it depends on its last row.
            return self._begun(group, Condensed(None, (), rows), now=now, past_unread=True) if rows else None
        return self.open(group, now=now)

    def _pasts(self, groups: Sequence[Group], *, now: datetime) -> Iterator[Iterable[tuple[Group, Condensed]]]:
        """The last weeks of each of these groups; where an account was kept, as minutes but for the last day.

        In turns of groups that are read together.
        """
        begin, kept = now - LOOK_BACK, self.store.groups_with_account(since=kept_since(now))
        followed = [group for group in groups if group in kept]
        others = [group for group in groups if group not in kept]
        # Until their turn comes, these have no advice.
        if others:
            for group, rows in self.histories.intervals_in_turn(others, since=begin, until=now):
                yield [(group, Condensed(None, (), rows))]
        if followed:
            yield from self.histories.condensed_in_turns(followed, newest=ROWS_BESIDE_ACCOUNT, since=begin, until=now)

    def _begun(self, group: Group, past: Condensed, *, now: datetime, past_unread: bool = False) -> Watched | None:
        """The group with a new session from its last weeks; with `past_unread` from its newest rows alone."""
        settings = self._settings(group)
        account = self._account(group, now=now)
        before, telling, rows = past
        if before is not None and not account:  # it cannot be read
            before, telling, rows = None, (), self.histories.intervals(*group, since=now - LOOK_BACK, until=now)
        # A group that has been silent for longer is refused as stale, with its age, instead of unknown.
        rows = rows or self.histories.intervals(*group, until=now)
        observed = observed_in(chain(telling, rows))
        profile = self.profile_of(*group, observed)
        if profile is None:
            self.drop(group)
            return None
        previous = self.store.latest_recommendation(*group)
        if previous is not None and previous.issued_at >= now:
            previous = None
        graded = self.store.outcomes(*group, limit=OUTCOMES_KEPT_IN_MIND)
        outcomes = [move for move in reversed(graded) if move.graded_at <= now]
        session = Session(
            *(profile, settings, rows),
            before=before,
            previous=previous,
            outcomes=outcomes,
            account=account,
            caller=self.caller,
            past_unread=past_unread,
        )
        session.start_from(self._similar.get(kind_of(profile)))
        first_look = self._watched.get(group)
        stops = [*(() if first_look is None else first_look.stops), *self.stops(group)]
        for stop in stops:
            session.measured(stop)
        seen_until = rows[-1].interval_end_at if rows else now - LOOK_BACK
        changes = changes_in(chain(telling, rows))
        self._watched[group] = watched = Watched(
            *(session, profile, settings, observed, changes, seen_until),
            news_at=now,
            past_unread=past_unread,
            stops=stops if past_unread else [],
        )
        self._show_workload(group, watched)
        return watched

    def _show_workload(self, group: Group, watched: Watched) -> None:
        """Let the session know how long the pods of the group's workload take to start."""
        workload = self.workload_of(*group)
        if workload is None:
            watched.session.see_workload(None, seen_at=None)
        else:
            watched.session.see_workload(start_up_of(workload.starts, watched.changes), seen_at=workload.seen_at)

    def _settings(self, group: Group) -> DecisionSettings:
        return self.settings if self.settings_of is None else self.settings_of(*group)

    def _as_before(self, watched: Watched, group: Group, settings: DecisionSettings) -> bool:
        """True if the profile and settings of the group have not changed since its session began."""
        return watched.settings == settings and self.profile_of(*group, watched.observed) == watched.profile

    def _account(self, group: Group, *, now: datetime) -> Sequence[AccountSlot]:
        """The account that was kept of a group; none where it cannot be read, and a new one begins."""
        parts = self.store.account(*group, since=kept_since(now))
        with self.borders.around("document", f"account of {'/'.join(group)}", expected=(ValueError,)):
            return [each for each in account_of(parts) if each.state.seen_until <= now]
        return ()
