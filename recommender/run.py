"""The loop: read the observed rows, decide, store, publish; for one group after the other, in every cycle.

`now` is an argument of every step. Only `run_forever` waits, by the `instants` that it is given.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

import structlog

from forecasting.refusal import Refusal
from recommender.cluster.leadership import Fence, NotLeadingError
from recommender.deciding.hold import Hold, hold_on
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.kept_account import part_of
from recommender.following.session import Session
from recommender.known_groups import Decided, KnownGroup, KnownGroups
from recommender.obstacles import failure, outage, refused
from recommender.ports import (
    AccountPart,
    AdapterError,
    Group,
    Obstacle,
    Publisher,
    UnavailableError,
    decision_id,
    dedup_key,
)
from recommender.resting import LongDecisions
from recommender.steps import Step, StepTimes
from recommender.watched_groups import Opened, Watched, WatchedGroups

# So many decisions are stored in one transaction, and published after it: with 50 each waits 0.4 s for the others, and
# storing takes a quarter of the time.
STORED_AT_ONCE = 50

# One step of thinning removes an hour of repetitions a group.
TIDY_EVERY = timedelta(hours=1)

_log = structlog.get_logger()


class Report(Protocol):
    """A receiver of all decisions of a cycle at once."""

    def __call__(self, decisions: Sequence[Decision], /, *, now: datetime) -> object:
        """Receive them."""
        ...


@dataclass(slots=True, kw_only=True)
class Recommender:
    """Decides for all groups of `watched`. A failure in one group becomes that group's refusal; the rest are decided.

    A cycle decides the groups of which rows have come, and those of which none came for a cycle. What was decided of
    the others stands: collectors do not read at the same moment, and the rows of each would decide all groups again.

    While the store does not answer, or the histories cannot be read, all known groups are refused with that reason:
    nothing is advised that is not stored. What is known of them stays, so that the first cycle afterwards decides them
    all. What fails is told to the borders of `watched`.

    `obstacles` gives the groups that cannot be read now: they are refused with its sentence. `observe_steps` gets the
    seconds of each step when the cycle is over. What would reverse a new decision is searched for in the first
    `searches_per_cycle` of a cycle, which takes 0.6 s for 40; others are told without it, and searched in a later
    cycle: where there is none, it is infinite. Of the groups for whose opening there was no time, those with an account
    are decided by their newest hour; others have no decision in this cycle, and `early` is set, which asks for the next
    one at once. Holds of the store are in force from the next cycle on. A cycle ends after the group in which it is
    stopped: with 3,000 groups it takes a minute, and a pod is killed half a minute after it was asked to end.
    `namespace_of` has the Kubernetes namespace of a group, for holds on namespaces. `known_groups` has what is known of
    each group, and `deciding` is set during a cycle, for other threads. `owns` is false for the groups that another
    recommender decides: to this one they are as if they were not there.
    """

    watched: WatchedGroups
    publishers: Sequence[Publisher] = ()
    obstacles: Callable[[], Mapping[Group, Obstacle]] = dict
    observe_steps: Callable[[Mapping[Step, float]], object] = lambda _: None
    namespace_of: Callable[[str, str], str | None] = lambda *_: None
    owns: Callable[[str, str], bool] = lambda *_: True
    searches_per_cycle: float = 40
    early: Event = field(default_factory=Event)
    known_groups: KnownGroups = field(default_factory=KnownGroups)
    deciding: Event = field(default_factory=Event)
    _holds: tuple[Hold, ...] = ()
    _tidied_at: datetime | None = None
    _latest_keys: dict[Group, tuple[str | int, ...]] = field(default_factory=dict)
    _rehearsed: bool = False
    _outage: Obstacle | None = None
    _store_is_down: bool = False
    _long_decisions: LongDecisions = field(default_factory=LongDecisions)
    _searches_left: float = 0
    _rest_seconds: float = 0.0

    def run_once(self, *, now: datetime) -> tuple[Decision, ...]:
        """One cycle: a decision for each group, kept and published, in the order of the groups."""
        self.deciding.set()
        try:
            return self._cycle(now=now)
        finally:
            self.deciding.clear()

    def _cycle(self, *, now: datetime) -> tuple[Decision, ...]:
        timer, row_count = self.watched.timer, self.watched.row_count()
        times, began = StepTimes(timer), timer()
        self._searches_left = self.searches_per_cycle
        with times.timing("read"):
            self._outage = None
            self._read_holds(now=now)
            obstacles = self._obstacles()
            groups = self._groups(obstacles, now=now)
            self._forget_all_but(groups)
            opened = self._open_new(groups, obstacles, now=now)
            self.watched.share_lessons()
        decisions: list[Decision] = []
        for begin in range(0, len(groups), STORED_AT_ONCE):
            made: dict[Group, Decision | None] = {}
            for group in groups[begin : begin + STORED_AT_ONCE]:
                if self.watched.is_stopped():
                    break
                if group in opened.waiting:
                    continue
                standing = self._standing(group, obstacles, opened, times, now=now)
                if standing is not None:
                    decisions.append(standing)
                else:
                    made[group] = self._step(group, obstacles.get(group), opened, times, now=now)
            decisions += self._told(made, times, now=now)
        if self.watched.is_stopped() and len(decisions) < len(groups):
            _log.info("cycle_stopped", decisions=len(decisions), of=len(groups))
            return tuple(decisions)
        # Those that are left out, or fail, wait again and again: that is no reason to begin at once.
        if not all(map(self.watched.is_tried, opened.waiting)):
            self.early.set()
        if opened.waiting or opened.unread:
            whole = len(groups) - len(opened.waiting) - len(opened.unread)
            _log.info("opening", groups=whole, first_look=len(opened.unread), of=len(groups))
        self.known_groups.cycle_is_over()
        # After all advice is published, in time that would pass idle, so that none has to wait for it.
        if self._outage is None:
            self.watched.catch_up(times, rest_seconds=self._rest_seconds, row_count=row_count, now=now)
        self._rest_seconds = timer() - began - opened.seconds
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
            watched = self.watched.of(group)
            if watched is not None:
                watched.session.rest()
        return tuple(of_group.values())

    def _read_holds(self, *, now: datetime) -> None:
        """Read the holds in force; while the store does not answer, those of the last reading stay."""
        try:
            self._holds = self.watched.store.holds(now=now)
        except AdapterError as error:
            self.watched.borders.failed("step", "store", error, is_expected=True)
            self._outage, self._store_is_down = outage(error), True
        else:
            self.watched.borders.passed("step", "store")
            self._store_is_down = False

    def _obstacles(self) -> Mapping[Group, Obstacle]:
        """The groups that cannot be read; where even that is not known, no group is decided."""
        obstacles: Mapping[Group, Obstacle] = {}
        try:
            obstacles = self.obstacles()
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # objects that nobody has foreseen must not end the loop
            self.watched.borders.failed("step", "obstacles", error, is_expected=isinstance(error, AdapterError))
            self._outage = self._outage or outage(error)
        else:
            self.watched.borders.passed("step", "obstacles")
        return obstacles

    def _groups(self, obstacles: Mapping[Group, Obstacle], *, now: datetime) -> list[Group]:
        """The own groups of the histories; the known ones where those cannot be read, which are then refused."""
        try:
            found = self.watched.histories.groups(now=now)
        except Exception as error:  # noqa: BLE001  # as above
            self.watched.borders.failed("step", "histories", error, is_expected=isinstance(error, AdapterError))
            self._outage = self._outage or outage(error)
            found = tuple(self._latest_keys)
        else:
            self.watched.borders.passed("step", "histories")
        return sorted(group for group in {*found, *obstacles} if self.owns(*group))

    def _open_new(self, groups: Sequence[Group], obstacles: Collection[Group], *, now: datetime) -> Opened:
        """Open what is new of the groups that can be read; in an outage that is none."""
        readable = [group for group in groups if group not in obstacles] if self._outage is None else []
        return self.watched.open_new(readable, rest_seconds=self._rest_seconds, now=now)

    def _standing(
        self,
        group: Group,
        obstacles: Mapping[Group, Obstacle],
        opened: Opened,
        times: StepTimes,
        *,
        now: datetime,
    ) -> Decision | None:
        """The last decision on the group where no new one is due; else None."""
        # Each of these is told in this cycle, however long the group's decisions take.
        if self._outage is not None or group in obstacles or self._hold_on(group, now=now) is not None:
            return None
        resting = self._long_decisions.resting(group, now=now)
        return self.watched.standing(group, opened.newest, times, now=now) if resting is None else resting

    def _forget_all_but(self, groups: Collection[Group]) -> None:
        """Drop what is kept in memory of groups that are gone; while nothing can be read, none is."""
        if self._outage is None:
            for group in self._latest_keys.keys() - set(groups):
                del self._latest_keys[group]
                self.watched.forget(group)
                self._long_decisions.forget(group)
                self.known_groups.keep(group, None)

    def _step(
        self,
        group: Group,
        obstacle: Obstacle | None,
        opened: Opened,
        times: StepTimes,
        *,
        now: datetime,
    ) -> Decision | None:
        """The group's decision, which is not stored yet; None for a group that is left out."""
        if self._outage is not None:
            return self._kept_but_refused(group, self._outage, now=now)
        if obstacle is not None:
            self.watched.drop(group)
            return self._refusal(group, obstacle, now=now)
        began = self.watched.timer()
        decided = self._decide(group, opened, times, now=now)
        if decided is not None:
            self._long_decisions.note(decided, seconds=self.watched.timer() - began, now=now)
        return decided

    def tidy(self, *, now: datetime) -> None:
        """Once an hour, delete decisions from the store that are no longer needed."""
        if self._tidied_at is not None and now < self._tidied_at + TIDY_EVERY:
            return
        self._tidied_at = now
        try:
            gone = self.watched.store.thin(now=now)
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
        for group in self.watched.histories.groups(now=now):
            if self._rehearsed:
                return
            if group in obstacles:
                continue
            try:
                watched = self.watched.open(group, now=now)
                self._rehearsed = watched is not None and isinstance(watched.session.recommend(now), Recommendation)
            except Exception as error:  # noqa: BLE001  # the leader publishes it as a refusal
                _log.debug("rehearsal_failed", cluster=group[0], group=group[1], error=str(error))
            self.watched.drop(group)

    def start_anew(self) -> None:
        """Drop all state but table and store, as after a restart, because another recommender has led meanwhile."""
        self.watched.clear()
        self.known_groups.clear()
        self._latest_keys.clear()
        self._long_decisions.clear()
        self._rest_seconds = 0.0

    def _decide(self, group: Group, opened: Opened, times: StepTimes, *, now: datetime) -> Decision | None:
        try:
            with times.timing("read"):
                watched = self.watched.up_to_date(group, opened, now=now)
            if watched is None:
                return None
            session = watched.session
            # Before the decision that learns from them. By the newest hour alone a move may be graded wrongly: it is
            # graded once the past is read.
            if not watched.past_unread:
                with self._storing(times):
                    self.watched.store.keep_outcomes(session.drain_outcomes())
            with times.timing("forecast"):
                forecast = session.forecast(now, may_refit=False)
            self._log_failure(group, watched)
            hold = self._hold_on(group, now=now)
            with times.timing("decide"):
                decision = session.decide(
                    forecast,
                    now=now,
                    sensitivity="any" if self._searches_left else "as_before",
                    hold=hold,
                )
            self._searches_left -= _is_searched(decision, session)
            watched.standing = decision if hold is None else None
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # one poisoned group of a thousand must not silence the others
            kept = self.watched.of(group)
            if self._store_is_down and kept is not None:
                self.watched.borders.failed("step", "store", error, is_expected=True)
                kept.session.keep_again()
                return self._kept_but_refused(group, outage(error), now=now)
            return self._failure(group, error, now=now)
        self.watched.borders.passed("group", "/".join(group))
        return decision

    def _failure(self, group: Group, error: Exception, *, now: datetime) -> Refusal:
        """The refusal of a group that has failed; the next cycle reads it anew, as its session may be inconsistent."""
        self.watched.borders.failed("group", "/".join(group), error, is_expected=isinstance(error, AdapterError))
        self.watched.drop(group)
        return self._refusal(group, failure(error), now=now)

    def _hold_on(self, group: Group, *, now: datetime) -> Hold | None:
        return hold_on(self._holds, *group, namespace=self.namespace_of(*group), now=now)

    def _log_failure(self, group: Group, watched: Watched) -> None:
        """Log one line when a forecaster fails, and none while it keeps failing in the same way."""
        before, watched.failure = watched.failure, watched.session.forecaster_failure
        if watched.failure is not None and watched.failure != before:
            _log.warning("failing_forecaster", cluster=group[0], group=group[1], sentence=watched.failure)

    def _refusal(self, group: Group, obstacle: Obstacle, *, now: datetime) -> Refusal:
        return refused(group, obstacle, now=now, retry_seconds=self.watched.settings.cycle_seconds)

    def _kept_but_refused(self, group: Group, obstacle: Obstacle, *, now: datetime) -> Refusal:
        """The refusal of a group in an outage: what is known of it is kept, and the next cycle without one decides."""
        watched = self.watched.of(group)
        if watched is not None:
            watched.standing = None
        return self._refusal(group, obstacle, now=now)

    def _stored(self, decisions: Sequence[Decision], times: StepTimes, *, now: datetime) -> Sequence[Decision]:
        """The decisions once they are stored; a refusal in place of advice that cannot be, which nobody could audit."""
        if self._store_is_down:
            return [self._unstored(each, now=now) for each in decisions]
        decided = [(each, self._account_changes((each.cluster, each.group))) for each in decisions]
        try:
            with self._storing(times):
                self.watched.store.save_all(decided)
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # as in `_decide`
            if self._store_is_down:
                self.watched.borders.failed("step", "store", error, is_expected=True)
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
                self.watched.store.save(decision, account)
        except NotLeadingError:
            raise
        except Exception as error:  # noqa: BLE001  # as in `_decide`
            return self._failure((decision.cluster, decision.group), error, now=now)
        return decision

    def _unstored(self, decision: Decision, *, now: datetime) -> Decision:
        """What is told while the store is away: a refusal, which need not be stored."""
        group = decision.cluster, decision.group
        watched = self.watched.of(group)
        if watched is not None:
            watched.session.retract(decision)
        if self._outage is None or isinstance(decision, Refusal):
            return decision
        return self._kept_but_refused(group, self._outage, now=now)

    def _account_changes(self, group: Group) -> tuple[AccountPart, ...]:
        """The parts of a group's account that the store does not have yet."""
        watched = self.watched.of(group)
        slots = () if watched is None else watched.session.drain_account()
        return tuple(part_of(slot, cluster=group[0], group=group[1]) for slot in slots)

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
        before, watched = self.known_groups.of(group), self.watched.of(group)
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
                with self.watched.borders.around("step", name, expected=(AdapterError,), passing=(NotLeadingError,)):
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
        with recommender.watched.borders.around("step", "cycle", expected=(AdapterError, NotLeadingError)):
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
    if recommender.watched.is_stopped():
        return
    if report is not None:
        with recommender.watched.borders.around("step", "report", expected=(AdapterError,), passing=(NotLeadingError,)):
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
