"""The loop: read the observed rows, decide, store, publish; for one group after the other, in every cycle.

`now` is an argument of every step. Only `run_forever` waits, by the `instants` that it is given.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from math import inf
from threading import Event
from typing import Protocol

import structlog

from cost_model.physics.detected import ObservedGroup, ObservedWorkload, observed_in
from cost_model.physics.learned import Learned
from cost_model.physics.pods import MembersChange, changes_in, start_up_of
from cost_model.physics.pooling import pooled_by_kind, steadied
from cost_model.physics.profile import GroupProfile
from cost_model.physics.similar import GroupKind, SimilarGroups, kind_of
from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.refusal import Refusal
from recommender.borders import Borders
from recommender.cluster.leadership import Fence, NotLeadingError
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.hold import Hold, hold_on
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.careful import Caller, call
from recommender.following.grading import MeasuredPause
from recommender.following.kept_account import AccountSlot, account_of, kept_since, part_of
from recommender.following.session import Session
from recommender.known_groups import Decided, KnownGroup, KnownGroups
from recommender.newest_rows import NewestRows
from recommender.obstacles import failure, outage, refused
from recommender.ports import (
    AccountPart,
    AdapterError,
    Condensed,
    Group,
    Histories,
    LoopStore,
    Obstacle,
    Publisher,
    UnavailableError,
    decision_id,
    dedup_key,
)
from recommender.resting import LongDecisions
from recommender.steps import Step, StepTimes, Timer

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

# So many decisions are stored in one transaction, and published after it: with 50 each waits 0.4 s for the others, and
# storing takes a quarter of the time.
STORED_AT_ONCE = 50
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

# One step of thinning removes an hour of repetitions a group.
TIDY_EVERY = timedelta(hours=1)

_log = structlog.get_logger()


class Report(Protocol):
    """A receiver of all decisions of a cycle at once."""

    def __call__(self, decisions: Sequence[Decision], /, *, now: datetime) -> object:
        """Receive them."""
        ...


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


@dataclass(slots=True, kw_only=True)
class Recommender:
    """Decides for all groups of `histories`. A failure in one group becomes that group's refusal; the rest are decided.

    A cycle decides the groups of which rows have come, and those of which none came for a cycle. What was decided of
    the others stands: collectors do not read at the same moment, and the rows of each would decide all groups again.

    While the store does not answer, or the histories cannot be read, all known groups are refused with that reason:
    nothing is advised that is not stored. What is known of them stays, so that the first cycle afterwards decides them
    all. What fails is told to `borders`.
    `settings_of` has the groups with settings other than `settings`; it, `profile_of` and `workload_of` are called
    again in each cycle. `obstacles` gives the groups that cannot be read now: they are refused with its sentence.
    `stops` gives the measured stops of a group's rebalances since its last call. Forecasters are called through
    `caller`: without a time limit, a group whose forecaster hangs delays all others. `timer` times the steps of a
    cycle, and `observe_steps` gets the seconds of each when the cycle is over. `pooling` makes one prior of what groups
    of a kind have learned. What would reverse a new decision is searched for in the first `searches_per_cycle` of a
    cycle, which takes 0.6 s for 40; others are told without it, and searched in a later cycle: where there is none, it
    is infinite. Groups that are new are opened for `opening_seconds_per_cycle`, or up to twice as long where the last
    cycle took longer without opening any. Those that are left are opened in the next cycles: what has an account is
    decided by its newest hour until then, others have no decision in this cycle, and `early` is set, which asks for the
    next one at once. Holds of the store are in force from the next cycle on. A cycle ends after the group in which
    `is_stopped` becomes true: with 3,000 groups it takes a minute, and a pod is killed half a minute after it was asked
    to end. `row_count` changes when rows come. `namespace_of` has the Kubernetes namespace of a group, for those on
    namespaces. `known_groups` has what is known of each group, and `deciding` is set during a cycle, for other
    threads. `owns` is false for the groups that another recommender decides: to this one they are as if they were not
    there.
    """

    histories: Histories
    profile_of: ProfileOf
    settings: DecisionSettings
    store: LoopStore
    timer: Timer
    settings_of: SettingsOf | None = None
    publishers: Sequence[Publisher] = ()
    obstacles: Callable[[], Mapping[Group, Obstacle]] = dict
    stops: Callable[[Group], Sequence[MeasuredPause]] = lambda _: ()
    workload_of: WorkloadOf = lambda _cluster, _group: None
    caller: Caller = call
    pooling: Pooling = pooled_by_kind
    observe_steps: Callable[[Mapping[Step, float]], object] = lambda _: None
    namespace_of: Callable[[str, str], str | None] = lambda *_: None
    owns: Callable[[str, str], bool] = lambda *_: True
    is_stopped: Callable[[], bool] = lambda: False
    row_count: Callable[[], int | None] = lambda: None
    searches_per_cycle: float = 40
    opening_seconds_per_cycle: float = inf
    early: Event = field(default_factory=Event)
    known_groups: KnownGroups = field(default_factory=KnownGroups)
    borders: Borders = field(default_factory=Borders)
    deciding: Event = field(default_factory=Event)
    _watched: dict[Group, Watched] = field(default_factory=dict)
    _similar: Mapping[GroupKind, SimilarGroups | None] = field(default_factory=dict)
    _holds: tuple[Hold, ...] = ()
    _tidied_at: datetime | None = None
    _latest_keys: dict[Group, tuple[str | int, ...]] = field(default_factory=dict)
    _rehearsed: bool = False
    _outage: Obstacle | None = None
    _store_is_down: bool = False
    _long_decisions: LongDecisions = field(default_factory=LongDecisions)
    _tried_at: dict[Group, datetime] = field(default_factory=dict)
    _searches_left: float = 0
    _opening_seconds: float = 0.0
    _rest_seconds: float = 0.0
    _replay_seconds_left: float = 0.0
    _unread: frozenset[Group] = frozenset()

    def run_once(self, *, now: datetime) -> tuple[Decision, ...]:
        """One cycle: a decision for each group, kept and published, in the order of the groups."""
        self.deciding.set()
        try:
            return self._cycle(now=now)
        finally:
            self.deciding.clear()

    def _cycle(self, *, now: datetime) -> tuple[Decision, ...]:
        times, began, row_count = StepTimes(self.timer), self.timer(), self.row_count()
        self._searches_left = self.searches_per_cycle
        with times.timing("read"):
            self._outage = None
            self._read_holds(now=now)
            obstacles = self._obstacles()
            groups = self._groups(obstacles, now=now)
            self._forget_all_but(groups)
            opened, waiting = self._opened([group for group in groups if group not in obstacles], now=now)
            newest = self._newest_rows(now=now)
            self._share_lessons()
        decisions: list[Decision] = []
        for begin in range(0, len(groups), STORED_AT_ONCE):
            made: dict[Group, Decision | None] = {}
            for group in groups[begin : begin + STORED_AT_ONCE]:
                if self.is_stopped():
                    break
                if group in waiting:
                    continue
                standing = None
                if not self._has_to_be_told(group, obstacles, now=now):
                    standing = self._standing(group, newest, times, now=now)
                if standing is not None:
                    decisions.append(standing)
                else:
                    made[group] = self._step(group, obstacles.get(group), times, now=now, opened=opened, newest=newest)
            decisions += self._told(made, times, now=now)
        if self.is_stopped() and len(decisions) < len(groups):
            _log.info("cycle_stopped", decisions=len(decisions), of=len(groups))
            return tuple(decisions)
        # Those that are left out, or fail, wait again and again: that is no reason to begin at once.
        if any(group not in self._tried_at for group in waiting):
            self.early.set()
        if waiting or self._unread:
            whole = len(groups) - len(waiting) - len(self._unread)
            _log.info("opening", groups=whole, first_look=len(self._unread), of=len(groups))
        self.known_groups.cycle_is_over()
        # After all advice is published, in time that would pass idle, so that none has to wait for it.
        self._catch_up(times, row_count=row_count, now=now)
        self._rest_seconds = self.timer() - began - self._opening_seconds
        decisions.sort(key=lambda each: (each.cluster, each.group))
        _log.info("cycle", decisions=len(decisions), **times.log_fields())
        self.observe_steps(times.seconds)
        return tuple(decisions)

    def _told(self, made: Mapping[Group, Decision | None], times: StepTimes, *, now: datetime) -> Sequence[Decision]:
        """The decisions once they are stored and published, and known to readers."""
        stored = self._stored([each for each in made.values() if each is not None], times, now=now)
        of_group = {(each.cluster, each.group): self._published(each, times) for each in stored}
        for group in made:
            self.known_groups.keep(group, self._known(group, of_group.get(group)))
            if group in self._watched:
                self._watched[group].session.rest()
        return tuple(of_group.values())

    def _read_holds(self, *, now: datetime) -> None:
        """Read the holds in force; while the store does not answer, those of the last reading stay."""
        try:
            self._holds = self.store.holds(now=now)
        except AdapterError as error:
            self.borders.failed("step", "store", error, is_expected=True)
            self._outage, self._store_is_down = outage(error), True
        else:
            self.borders.passed("step", "store")
            self._store_is_down = False

    def _obstacles(self) -> Mapping[Group, Obstacle]:
        """The groups that cannot be read; where even that is not known, no group is decided."""
        obstacles: Mapping[Group, Obstacle] = {}
        try:
            obstacles = self.obstacles()
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # objects that nobody has foreseen must not end the loop
            self.borders.failed("step", "obstacles", error, is_expected=isinstance(error, AdapterError))
            self._outage = self._outage or outage(error)
        else:
            self.borders.passed("step", "obstacles")
        return obstacles

    def _groups(self, obstacles: Mapping[Group, Obstacle], *, now: datetime) -> list[Group]:
        """The own groups of the histories; the known ones where those cannot be read, which are then refused."""
        try:
            found = self.histories.groups(now=now)
        except Exception as error:  # noqa: BLE001  # as above
            self.borders.failed("step", "histories", error, is_expected=isinstance(error, AdapterError))
            self._outage = self._outage or outage(error)
            found = tuple(self._latest_keys)
        else:
            self.borders.passed("step", "histories")
        return sorted(group for group in {*found, *obstacles} if self.owns(*group))

    def _has_to_be_told(self, group: Group, obstacles: Mapping[Group, Obstacle], *, now: datetime) -> bool:
        """True if this cycle has to say so of the group, however long its decisions take."""
        return bool(self._outage) or group in obstacles or self._hold_on(group, now=now) is not None

    def _standing(self, group: Group, newest: NewestRows, times: StepTimes, *, now: datetime) -> Decision | None:
        """The last decision on the group where none is due; else None."""
        resting = self._long_decisions.resting(group, now=now)
        watched = self._watched.get(group)
        if resting is not None or watched is None or watched.standing is None:
            return resting
        settings = self._settings(group)
        stands = timedelta(seconds=STANDS_CYCLES * settings.cycle_seconds)
        if not watched.news_at <= now < watched.news_at + stands or not self._as_before(watched, group, settings):
            return None
        with times.timing("read"):
            return None if newest.has_any(group, since=watched.seen_until) else watched.standing

    def _settings(self, group: Group) -> DecisionSettings:
        return self.settings if self.settings_of is None else self.settings_of(*group)

    def _forget_all_but(self, groups: Collection[Group]) -> None:
        """Drop what is kept in memory of groups that are gone; while nothing can be read, none is."""
        if self._outage is None:
            for group in self._latest_keys.keys() - set(groups):
                del self._latest_keys[group]
                self._watched.pop(group, None)
                self._long_decisions.forget(group)
                self._tried_at.pop(group, None)
                self.known_groups.keep(group, None)

    def _step(
        self,
        group: Group,
        obstacle: Obstacle | None,
        times: StepTimes,
        *,
        now: datetime,
        opened: Mapping[Group, Session | None],
        newest: NewestRows,
    ) -> Decision | None:
        """The group's decision, which is not stored yet; None for a group that is left out."""
        if self._outage is not None:
            return self._kept_but_refused(group, self._outage, now=now)
        if obstacle is not None:
            self._watched.pop(group, None)
            return self._refusal(group, obstacle, now=now)
        began = self.timer()
        decided = self._decide(group, times, now=now, opened=opened, newest=newest)
        if decided is not None:
            self._long_decisions.note(decided, seconds=self.timer() - began, now=now)
        return decided

    def _opened(
        self, groups: Sequence[Group], *, now: datetime
    ) -> tuple[Mapping[Group, Session | None], Collection[Group]]:
        """The new sessions, and the groups that have to wait for the next cycle.

        Sessions begin before the first decision of the cycle, which the lessons of all groups may change. Those that
        fail are in neither. `_unread` are then the groups that do not wait, though their past is left unread.
        """
        opened: dict[Group, Session | None] = {}
        self._unread, self._opening_seconds = frozenset(), 0.0
        new = [group for group in groups if group not in self._watched or self._watched[group].past_unread]
        if not new or self._outage is not None:
            return opened, ()
        left = self._open_in_turns(new, opened, now=now)
        if left:
            self._unread = frozenset(self.store.groups_with_account(since=kept_since(now))) & left.keys()
        return opened, left.keys() - self._unread

    def _open_in_turns(
        self, new: Sequence[Group], opened: dict[Group, Session | None], *, now: datetime
    ) -> Mapping[Group, None]:
        """Open these groups while there is time; returns those that are left."""
        began, left = self.timer(), dict.fromkeys(new)
        least_seconds = self.opening_seconds_per_cycle
        limit_seconds = max(least_seconds, min(self._rest_seconds, OPENING_TIMES_AT_MOST * least_seconds))
        turn_began = began
        try:
            for turn in self._pasts_in_turns(new, now=now):
                for group, past in turn:
                    if self.is_stopped():
                        return left
                    self._tried_at[group] = now
                    del left[group]
                    try:
                        session = self._begun(group, past, now=now)
                        # The first fit, before the limit is looked at: it takes a quarter of the time of reading.
                        if session is not None:
                            session.catch_up()
                        opened[group] = session
                    except Exception:  # noqa: BLE001  # reading again for the decision gives the group's refusal
                        self._watched.pop(group, None)
                # The next turn takes as long as this one, and what is read of it is lost if it is not used up: it is
                # begun where its end is closer to the limit than its beginning.
                turn_ended = self.timer()
                self._opening_seconds = turn_ended - began
                if self._opening_seconds + 0.5 * (turn_ended - turn_began) >= limit_seconds:
                    return left
                turn_began = turn_ended
        except Exception as error:  # noqa: BLE001  # as above, for each of those that are left
            _log.debug("opening_failed", error=str(error))
        return {}

    def _pasts_in_turns(self, groups: Sequence[Group], *, now: datetime) -> Iterator[Iterable[tuple[Group, Condensed]]]:
        """The last weeks of each of these groups, first of those that were never tried, then by how long ago that was.

        Groups that are left out, or fail, are new in each cycle: they must not keep the others waiting for ever.
        """
        never = datetime.min.replace(tzinfo=UTC)

        def tried_at(group: Group) -> datetime:
            return self._tried_at.get(group, never)

        for _, together in groupby(sorted(groups, key=tried_at), key=tried_at):
            yield from self._pasts(list(together), now=now)

    def _catch_up(self, times: StepTimes, *, row_count: int | None, now: datetime) -> None:
        """Let sessions do what was put off, those that have waited longest first, while there is time for it.

        There is none where rows came since `row_count`, but for what is overdue by `PUT_OFF_AT_MOST`.
        In the next cycle rows are observed with replays for as long, or with none where one still waits here: those
        that come first by name must not take the turns of the others.
        """
        limit_seconds = LATER_SHARE * max(BASE_INTERVAL_SECONDS, self._rest_seconds)
        behind = [(each.session.behind_since, group) for group, each in self._watched.items()]
        waiting = sorted(((since, group) for since, group in behind if since is not None), reverse=True)
        seconds = 0.0
        while waiting and seconds < limit_seconds and not self.is_stopped() and self._outage is None:
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
                    del self._watched[group]
            seconds += self.timer() - began
        self._replay_seconds_left = 0.0 if waiting else limit_seconds

    def _share_lessons(self) -> None:
        """Let each group begin from what groups of its kind had learned when the cycle began, in any order of them."""
        with self.borders.around("step", "lessons"):
            found = self.pooling(watched.lesson for watched in self._watched.values())
            self._similar = steadied(found, before=self._similar)
            for watched in self._watched.values():
                watched.session.start_from(self._similar[kind_of(watched.profile)])

    def open(self, group: Group, *, now: datetime) -> Watched | None:
        """The state of a group before its first decision, of which `resume` makes it; None for one that is left out.

        Errors: whatever makes the decision a refusal.
        """
        self._begun_anew(group, now=now)
        return self._watched.get(group)

    def resume(self, group: Group, watched: Watched) -> None:
        """Go on with the state that another recommender, of the same settings, has opened at the same instant."""
        self._watched[group] = watched

    def tidy(self, *, now: datetime) -> None:
        """Once an hour, delete decisions from the store that are no longer needed."""
        if self._tidied_at is not None and now < self._tidied_at + TIDY_EVERY:
            return
        self._tidied_at = now
        try:
            gone = self.store.thin(now=now)
        except AdapterError as error:
            _log.warning("tidying_failed", error=str(error))
        else:
            _log.info("tidied", decisions_forgotten=gone)

    @property
    def store_answers(self) -> bool:
        """False if the store has not answered in the last cycle, leading or standing by."""
        return not self._store_is_down

    def stand_by(self, *, now: datetime) -> None:
        """A cycle of a standby: holds and obstacles are read, and nothing is stored, published or kept in memory.

        Until this has succeeded once, one group's advice is made and dropped, which compiles the loops; otherwise
        compiling would take the first cycle of a new leader 10 s and more.
        """
        self.known_groups.clear()
        self._read_holds(now=now)
        obstacles = self.obstacles()
        for group in self.histories.groups(now=now):
            if self._rehearsed:
                return
            if group in obstacles:
                continue
            try:
                session = self._begun_anew(group, now=now)
                self._rehearsed = session is not None and isinstance(session.recommend(now), Recommendation)
            except Exception as error:  # noqa: BLE001  # the leader publishes it as a refusal
                _log.debug("rehearsal_failed", cluster=group[0], group=group[1], error=str(error))
            self._watched.pop(group, None)

    def start_anew(self) -> None:
        """Drop all state but table and store, as after a restart, because another recommender has led meanwhile."""
        self._watched.clear()
        self._similar = {}
        self.known_groups.clear()
        self._latest_keys.clear()
        self._long_decisions.clear()
        self._tried_at.clear()
        self._rest_seconds = 0.0

    def _decide(
        self,
        group: Group,
        times: StepTimes,
        *,
        now: datetime,
        opened: Mapping[Group, Session | None],
        newest: NewestRows,
    ) -> Decision | None:
        try:
            with times.timing("read"):
                session = opened[group] if group in opened else self._session(group, newest, now=now)
            if session is None:
                return None
            # Before the decision that learns from them. By the newest hour alone a move may be graded wrongly: it is
            # graded once the past is read.
            if not self._watched[group].past_unread:
                with self._storing(times):
                    self.store.keep_outcomes(session.drain_outcomes())
            with times.timing("forecast"):
                forecast = session.forecast(now, may_refit=False)
            self._log_failure(group)
            hold = self._hold_on(group, now=now)
            with times.timing("decide"):
                decision = session.decide(
                    forecast,
                    now=now,
                    sensitivity="any" if self._searches_left else "as_before",
                    hold=hold,
                )
            self._searches_left -= _is_searched(decision, session)
            self._watched[group].standing = decision if hold is None else None
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # one poisoned group of a thousand must not silence the others
            if self._store_is_down and group in self._watched:
                self.borders.failed("step", "store", error, is_expected=True)
                self._watched[group].session.keep_again()
                return self._kept_but_refused(group, outage(error), now=now)
            return self._failure(group, error, now=now)
        self.borders.passed("group", "/".join(group))
        return decision

    def _failure(self, group: Group, error: Exception, *, now: datetime) -> Refusal:
        """The refusal of a group that has failed; the next cycle reads it anew, as its session may be inconsistent."""
        self.borders.failed("group", "/".join(group), error, is_expected=isinstance(error, AdapterError))
        self._watched.pop(group, None)
        return self._refusal(group, failure(error), now=now)

    def _hold_on(self, group: Group, *, now: datetime) -> Hold | None:
        return hold_on(self._holds, *group, namespace=self.namespace_of(*group), now=now)

    def _newest_rows(self, *, now: datetime) -> NewestRows:
        """The rows of this cycle, and the newest hour of groups that begin with it; none in an outage."""
        known = {} if self._outage is not None else self._watched
        seen = {group: watched.seen_until for group, watched in known.items()}
        return NewestRows(self.histories, seen=dict.fromkeys(self._unread, now - FIRST_LOOK) | seen, until=now)

    def _session(self, group: Group, newest: NewestRows, *, now: datetime) -> Session | None:
        """The group's session, with every row that has come since the last cycle and none from after `now`."""
        watched = self._watched.get(group)
        settings = self._settings(group)
        if watched is not None and watched.seen_until <= now and self._as_before(watched, group, settings):
            for stop in self.stops(group):
                watched.session.measured(stop)
                if watched.past_unread:
                    watched.stops.append(stop)
            rows = newest.of(group, since=watched.seen_until)
            watched.news_at = now if rows else watched.news_at
            began = self.timer()
            for row in rows:
                watched.session.observe(row, may_replay=self._replay_seconds_left > 0.0)
                watched.seen_until = row.interval_end_at
            self._replay_seconds_left -= self.timer() - began
            watched.observed = observed_in(rows, before=watched.observed)
            watched.changes = changes_in(rows, before=watched.changes)
            self._show_workload(group, watched)
            return watched.session
        if group in self._unread:
            rows = newest.of(group, since=now - FIRST_LOOK)
            # One that has been silent for so long waits: what to say of it depends on its last row.
            return self._begun(group, Condensed(None, (), rows), now=now, past_unread=True) if rows else None
        return self._begun_anew(group, now=now)

    def _begun_anew(self, group: Group, *, now: datetime) -> Session | None:
        """A new session of the group, whose rows are read alone."""
        begin = now - LOOK_BACK
        if self.store.account(*group, since=kept_since(now)):
            turns = self.histories.condensed_in_turns([group], newest=ROWS_BESIDE_ACCOUNT, since=begin, until=now)
            ((_, past),) = chain.from_iterable(turns)
        else:
            past = Condensed(None, (), self.histories.intervals(*group, since=begin, until=now))
        return self._begun(group, past, now=now)

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

    def _begun(self, group: Group, past: Condensed, *, now: datetime, past_unread: bool = False) -> Session | None:
        """A new session of the group from its last weeks; with `past_unread` from its newest rows alone."""
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
            self._watched.pop(group, None)
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
        self._watched[group] = Watched(
            *(session, profile, settings, observed, changes, seen_until),
            news_at=now,
            past_unread=past_unread,
            stops=stops if past_unread else [],
        )
        self._show_workload(group, self._watched[group])
        return session

    def _show_workload(self, group: Group, watched: Watched) -> None:
        """Let the session know how long the pods of the group's workload take to start."""
        workload = self.workload_of(*group)
        if workload is None:
            watched.session.see_workload(None, seen_at=None)
        else:
            watched.session.see_workload(start_up_of(workload.starts, watched.changes), seen_at=workload.seen_at)

    def _log_failure(self, group: Group) -> None:
        """Log one line when a forecaster fails, and none while it keeps failing in the same way."""
        watched = self._watched[group]
        before, watched.failure = watched.failure, watched.session.forecaster_failure
        if watched.failure is not None and watched.failure != before:
            _log.warning("failing_forecaster", cluster=group[0], group=group[1], sentence=watched.failure)

    def _as_before(self, watched: Watched, group: Group, settings: DecisionSettings) -> bool:
        """True if the profile and settings of the group have not changed since its session began."""
        return watched.settings == settings and self.profile_of(*group, watched.observed) == watched.profile

    def _refusal(self, group: Group, obstacle: Obstacle, *, now: datetime) -> Refusal:
        return refused(group, obstacle, now=now, retry_seconds=self.settings.cycle_seconds)

    def _kept_but_refused(self, group: Group, obstacle: Obstacle, *, now: datetime) -> Refusal:
        """The refusal of a group in an outage: what is known of it is kept, and the next cycle without one decides."""
        if group in self._watched:
            self._watched[group].standing = None
        return self._refusal(group, obstacle, now=now)

    def _stored(self, decisions: Sequence[Decision], times: StepTimes, *, now: datetime) -> Sequence[Decision]:
        """The decisions once they are stored; a refusal in place of advice that cannot be, which nobody could audit."""
        if self._store_is_down:
            return [self._unstored(each, now=now) for each in decisions]
        decided = [(each, self._account_changes((each.cluster, each.group))) for each in decisions]
        try:
            with self._storing(times):
                self.store.save_all(decided)
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # as in `_decide`
            if self._store_is_down:
                self.borders.failed("step", "store", error, is_expected=True)
                return [self._unstored(each, now=now) for each in decisions]
            return [self._stored_alone(*each, times, now=now) for each in decided]
        return decisions

    def _stored_alone(
        self, decision: Decision, account: Sequence[AccountPart], times: StepTimes, *, now: datetime
    ) -> Decision:
        """The decision, or the refusal of a group whose decision kept others from being stored."""
        if self._store_is_down:
            return self._unstored(decision, now=now)
        try:
            with self._storing(times):
                self.store.save(decision, account)
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # as in `_decide`
            return self._failure((decision.cluster, decision.group), error, now=now)
        return decision

    def _unstored(self, decision: Decision, *, now: datetime) -> Decision:
        """What is told while the store is away: a refusal, which need not be stored."""
        group = decision.cluster, decision.group
        if group in self._watched:
            self._watched[group].session.retract(decision)
        if self._outage is None or isinstance(decision, Refusal):
            return decision
        return self._kept_but_refused(group, self._outage, now=now)

    def _account_changes(self, group: Group) -> tuple[AccountPart, ...]:
        """The parts of a group's account that the store does not have yet."""
        watched = self._watched.get(group)
        slots = () if watched is None else watched.session.drain_account()
        return tuple(part_of(slot, cluster=group[0], group=group[1]) for slot in slots)

    def _account(self, group: Group, *, now: datetime) -> Sequence[AccountSlot]:
        """The account that was kept of a group; none where it cannot be read, and a new one begins."""
        parts = self.store.account(*group, since=kept_since(now))
        with self.borders.around("document", f"account of {'/'.join(group)}", expected=(ValueError,)):
            return [each for each in account_of(parts) if each.state.seen_until <= now]
        return ()

    @contextmanager
    def _storing(self, times: StepTimes) -> Iterator[None]:
        """Times a write to the store; where it does not answer, the other groups of this cycle do not ask it again."""
        try:
            with times.timing("store"):
                yield
        except UnavailableError as error:
            self._outage, self._store_is_down = outage(error), True
            raise

    def _known(self, group: Group, decision: Decision | None) -> KnownGroup | None:
        """The group after its decision; what was seen of it stays known while it cannot be read."""
        if decision is None:
            return None
        before, watched = self.known_groups.of(group), self._watched.get(group)
        if watched is None:
            seen = (None, None) if before is None else (before.history, before.day)
            return KnownGroup(decision_id(decision), None, *seen)
        session, decided = watched.session, None
        if session.inputs is not None and isinstance(decision, Recommendation):
            decided = Decided(decision, session.inputs)
        return KnownGroup(decision_id(decision), decided, session.history, session.ledger_day)

    def _published(self, decision: Decision, times: StepTimes) -> Decision:
        with times.timing("publish"):
            for publisher in self.publishers:
                name = f"publish {type(publisher).__name__}"
                with self.borders.around("step", name, expected=(AdapterError,), passing=(NotLeadingError,)):
                    publisher.publish(decision)
        self._log_decision(decision)
        return decision

    def _log_decision(self, decision: Decision) -> None:
        # Only a change is logged: for 20 groups with a decision every 15 s, repetitions would make 115,200 lines a day.
        group, key = (decision.cluster, decision.group), dedup_key(decision)
        log = _log.debug if self._latest_keys.get(group) == key else _log.info
        log("decided", **log_fields(decision))
        self._latest_keys[group] = key


def run_forever(
    recommender: Recommender, *, instants: Iterator[datetime], report: Report | None = None, fence: Fence | None = None
) -> None:
    """Run a cycle at each of `instants`, which ends when the process is stopped.

    `report` gets all decisions of a cycle at once. With a `fence`, cycles are those of a leader or a standby; a cycle
    in which leadership is lost ends where that is detected, and one whose store has not answered may end the lead. No
    other error ends the loop: what fails is told to the borders of `recommender`, and the next cycle begins anew.
    """
    for now in instants:
        with recommender.borders.around("step", "cycle", expected=(AdapterError, NotLeadingError)):
            _lead_or_stand_by(recommender, report, fence, now=now)
        if fence is not None and fence.leave(store_answers=recommender.store_answers, now=now):
            _log.warning("handing_over", reason="the store does not answer; another recommender may reach it")


def _lead_or_stand_by(recommender: Recommender, report: Report | None, fence: Fence | None, *, now: datetime) -> None:
    if fence is not None:
        try:
            if fence.enter():
                recommender.start_anew()
        except NotLeadingError:
            recommender.stand_by(now=now)
            return
    decisions = recommender.run_once(now=now)
    if recommender.is_stopped():
        return
    if report is not None:
        with recommender.borders.around("step", "report", expected=(AdapterError,), passing=(NotLeadingError,)):
            report(decisions, now=now)
    recommender.tidy(now=now)


def _is_searched(decision: Decision, session: Session) -> bool:
    """True if it was searched for what would reverse the decision, and not taken from the one before."""
    if not isinstance(decision, Recommendation) or decision.sensitivity is None or session.inputs is None:
        return False
    previous = session.inputs.previous
    return previous is None or previous.sensitivity is not decision.sensitivity


def log_fields(decision: Decision) -> dict[str, object]:
    """One decision as the fields of a log line: its price where it has one, else its evidence."""
    fields: dict[str, object] = {"cluster": decision.cluster, "group": decision.group}
    if isinstance(decision, Recommendation):
        return fields | {
            "action": decision.action,
            "current_replicas": decision.current_replicas,
            "desired_replicas": decision.desired_replicas,
            "execute_at": decision.execute_at.isoformat(),
            "reason": decision.reason,
            "total": round(decision.chosen.total, 6),
            "saving": round(decision.saving, 6),
            "currency": decision.currency,
        }
    return fields | {"refused": decision.reason, "sentence": decision.sentence, **dict(decision.evidence)}
