"""One look at each group: read the advice, check it against the cluster, send the patch if every check passes."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import NamedTuple, Protocol

import structlog

from api.schemas import Mode, RecommendationV1, RefusalV1, Target
from executor.advice import AdviceClient, group_asked
from executor.claim import KIND, Claim, Claims, Group, TargetTaken
from executor.errors import AdviceError, OutsideError, ScaleConflictError
from executor.plan import (
    WAY_BACK,
    Act,
    Asked,
    Bounds,
    DueMove,
    Held,
    Scale,
    conflict_at,
    conflicted,
    due_move,
    due_now,
    may_act,
    not_as_asked,
)
from executor.standing import Applied, Records, Spot, Standings, spot_of

# Looks that run at the same time. Two hundred moves that are due in one second mostly wait for answers.
AT_ONCE = 8

Outcome = Act | Held | OutsideError
# Kind and name of a workload, and the autoscalers that scale it.
Writers = Mapping[tuple[str, str], tuple[str, ...]]
_Identity = dict[str, object]

_log = structlog.get_logger()


class Scales(Protocol):
    """The operations of an executor in a cluster."""

    def read(self, namespace: str, target: Target) -> Scale:
        """The scale of the workload, without `other_writers`. Errors: ScaleError."""
        ...

    def writers(self, namespace: str) -> Writers:
        """The workloads of the namespace that autoscalers claim. Errors: ScaleError."""
        ...

    def apply(self, act: Act) -> int:
        """Send the patch; returns the new replica count. Errors: ScaleConflictError, ScaleError."""
        ...

    def record_event(self, act: Act, *, now: datetime) -> None:
        """Create an Event on the workload. Errors: ScaleError."""
        ...

    def warn(self, namespace: str, target: Target, scale: Scale, held: Held, *, now: datetime) -> None:
        """Create an Event on a workload that another owner scales. Errors: ScaleError."""
        ...


class Owners(Protocol):
    """What the owners of groups allow in a cluster."""

    def read(self, namespace: str) -> Claims:
        """The claims of a namespace. Errors: ScaleError."""
        ...

    def is_current(self, claim: Claim) -> bool:
        """True if the object is still as `claim` has it. Errors: ScaleError."""
        ...


@dataclass(slots=True, kw_only=True)
class Executor:
    """Carries out advice; keeps the count that each workload was left with, so that it never undoes another's change.

    Whether a workload may be set, and to what, is what `owners` has of it, once in a look and again before each patch.
    `dry_run` shows the patches that would be sent if both modes were apply, and sends none. `leaderless` returns the
    reason why no recommender is known to lead that has the group; it is checked last before each patch. `on_conflict`
    gets the workload and the hold where another owner of its count is found.
    """

    advice: AdviceClient
    scales: Scales
    owners: Owners
    records: Records
    clock: Callable[[], datetime]
    mode: Mode
    bounds: Bounds
    dry_run: bool
    show_patch: Callable[[Act], None]
    leaderless: Callable[[Group], Held | None] = lambda _: None
    on_conflict: Callable[[Scale, Held], object] = lambda *_: None
    _standings: Standings = field(init=False)
    _made: "list[_Made]" = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._standings = Standings(self.records)

    def run_once(self, keys: Sequence[str] | None) -> tuple[Outcome, ...]:
        """One look at each group of `keys` (None: at all). A group's error is its outcome; the other groups go on.

        Errors: AdviceError if the groups cannot be listed.
        """
        known = self.advice.groups() if keys is None else tuple(map(group_asked, keys))
        self._standings.begin()
        look = partial(self._look, once=_Once(self.scales, self.owners))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look") as threads:
            outcomes = tuple(threads.map(look, known))
            # Reports are written after all moves: no move waits for the reports on another.
            made, self._made = self._made, []
            list(threads.map(self._report, made))
        self._standings.keep_unwritten()
        return outcomes

    def _look(self, asked: Asked | AdviceError, *, once: "_Once") -> Outcome:
        if isinstance(asked, AdviceError):
            _log.error("failed", error=str(asked))
            return asked
        identity: _Identity = {"group_key": asked.key, "cluster": asked.cluster, "group_id": asked.group_id}
        try:
            return self._looked(asked, once, identity)
        except OutsideError as error:
            _log.error("failed", **identity, error=str(error))
            return error
        except Exception as error:  # noqa: BLE001  # one poisoned group must not end the looks at all others
            _log.exception("failed", **identity)
            return OutsideError(f"{type(error).__name__}: {error}; nothing was changed; the log has the whole of it")

    def _looked(self, asked: Asked, once: "_Once", identity: _Identity) -> Act | Held:
        advice, skew = self.advice.advice(asked, clock=self.clock)
        if isinstance(advice, Held):
            return self._held(advice, identity)
        identity["recommendation_id"] = advice.recommendation_id
        due = due_now(advice, asked=asked, now=self.clock(), clock_skew=skew)
        if isinstance(due, Held) and (not self._acts or not_as_asked(advice, asked)):
            return self._held(due, identity)
        claim = once.claim(asked, advice.namespace)
        if isinstance(claim, Held):
            return self._held(due if isinstance(due, Held) else claim, identity)
        spot = self._spot_to_act_on(claim)
        lost = None if spot is None else self._standings.lost(spot)
        if lost is not None:
            return self._held(lost, identity)
        move = self._move(due, claim)
        if isinstance(move, Held):
            return self._held(self._watched(spot, advice, once, identity) or move, identity)
        scale = self._scale(move.namespace, move.target, once)
        # Reading took time: a due move may be too late by now.
        move = self._move(due_now(advice, asked=asked, now=self.clock(), clock_skew=skew), claim)
        return self._held(move, identity) if isinstance(move, Held) else self._moved(move, claim, scale, spot, identity)

    @property
    def _acts(self) -> bool:
        return self.mode == "apply" and not self.dry_run

    def _move(self, due: RecommendationV1 | Held, claim: Claim) -> DueMove | Held:
        if isinstance(due, Held):
            return due
        return due_move(due, claim, now=self.clock(), bounds=self.bounds)

    def _spot_to_act_on(self, claim: Claim) -> Spot | None:
        """The workload that this executor may act on; records of a workload in another mode are removed."""
        spot = spot_of(claim)
        if spot is None or not self._acts:
            return None
        if claim.mode == "apply":
            return spot
        self._standings.forget(spot)
        return None

    def _scale(self, namespace: str, target: Target, once: "_Once") -> Scale:
        others = once.writers(namespace).get((target.kind, target.name), ())
        return replace(self.scales.read(namespace, target), other_writers=others)

    def _watched(
        self, spot: Spot | None, advice: RecommendationV1 | RefusalV1, once: "_Once", identity: _Identity
    ) -> Held | None:
        """Other writers of the count of a workload without a due move: checked once per advice, so once in a cycle."""
        if spot is None or not self._standings.is_unchecked(spot, advice.recommendation_id):
            return None
        scale = self._scale(spot.namespace, spot.target, once)
        found = conflict_at(scale, expected=self._standings.expected(spot))
        self._note(spot, scale, found, identity)
        return found

    def _note(self, spot: Spot | None, scale: Scale, held: Held | None, identity: _Identity) -> None:
        """Record the state of the workload, and create an Event if another owner scales it by now."""
        if spot is None or not self._standings.found(spot, held, scale, now=self.clock()):
            return
        try:
            if held is not None:
                self.on_conflict(scale, held)
                self.scales.warn(spot.namespace, spot.target, scale, held, now=self.clock())
        except OutsideError as error:
            _log.warning("event_not_recorded", **identity, error=str(error))

    def _moved(self, move: DueMove, claim: Claim, scale: Scale, spot: Spot | None, identity: _Identity) -> Act | Held:
        """Make the move if every check passes; in a dry run, print it if every check would pass in mode apply."""
        if self.dry_run:
            move = replace(move, mode="apply")
        expected = None if spot is None else self._standings.expected(spot)
        verdict = may_act(move, scale=scale, mode="apply" if self.dry_run else self.mode, expected=expected)
        if isinstance(verdict, Act):
            return self._carried_out(verdict, claim, spot, identity)
        self._note(spot, scale, verdict, identity)
        return self._held(verdict, identity)

    def _carried_out(self, act: Act, claim: Claim, spot: Spot | None, identity: _Identity) -> Act | Held:
        if not self.owners.is_current(claim):
            sentence = f"{KIND} {claim.place} was changed since it was read; the next look decides"
            return self._held(Held(reason="owner_changed", sentence=sentence), identity)
        if (held := self.leaderless(claim.group)) is not None:
            return self._held(held, identity)
        change: _Identity = {
            "namespace": act.move.namespace,
            "target": f"{act.move.target.kind}/{act.move.target.name}",
            "replicas_before": act.scale.replicas,
            "replicas_after": act.move.desired_replicas,
        }
        if spot is None:
            self.show_patch(act)
            _log.info("would_act", **identity, **change)
            return act
        try:
            replicas = self.scales.apply(act)
        except ScaleConflictError as error:
            return self._held(Held(reason="conflicted", sentence=str(error)), identity)
        applied = Applied(recommendation_id=act.move.recommendation_id, replicas=replicas, at=self.clock())
        self._standings.acted(spot, applied)
        if replicas != act.move.desired_replicas:
            made = f"the cluster made {replicas} replicas of the {act.move.desired_replicas} that were requested"
            limited = conflicted("LimitedByCluster", f"{made}; {WAY_BACK}")
            self._note(spot, act.scale, limited, identity)
            return self._held(limited, identity)
        _log.info("acted", **identity, **change)
        self._made.append(_Made(act, spot, applied.at, identity))
        return act

    def _report(self, made: "_Made") -> None:
        """Record the move for the next executor, and create an Event on the workload."""
        self._standings.keep(made.spot)
        try:
            self.scales.record_event(made.act, now=made.at)
        except OutsideError as error:
            _log.warning("event_not_recorded", **made.identity, error=str(error))

    def _held(self, held: Held, identity: _Identity) -> Held:
        _log.info("held", **identity, reason=held.reason, sentence=held.sentence)
        return held


class _Made(NamedTuple):
    """A move that was made and is not reported yet."""

    act: Act
    spot: Spot
    at: datetime
    identity: _Identity


class _Once:
    """What a look reads once for each namespace, for any number of its workloads: autoscalers and claims of owners."""

    def __init__(self, scales: Scales, owners: Owners) -> None:
        self._scales, self._owners = scales, owners
        self._writers: dict[str, Writers] = {}
        self._claims: dict[str, Claims] = {}
        self._lock = Lock()

    def writers(self, namespace: str) -> Writers:
        """The workloads that autoscalers claim. Errors: ScaleError."""
        with self._lock:
            if namespace not in self._writers:
                self._writers[namespace] = self._scales.writers(namespace)
            return self._writers[namespace]

    def claim(self, asked: Asked, namespace: str | None) -> Claim | Held:
        """What the owner of the group allows, or that nobody allows anything. Errors: ScaleError.

        `namespace` is that of the advice: where to look, and no more.
        """
        group = (asked.cluster, asked.group_id)
        if namespace is None:
            return _no_scaler(f"no namespace is known for group {group[1]!r} of cluster {group[0]!r}")
        with self._lock:
            if namespace not in self._claims:
                self._claims[namespace] = self._owners.read(namespace)
            claim = self._claims[namespace].get(group)
        if claim is None:
            return _no_scaler(f"no {KIND} of namespace {namespace!r} names group {group[1]!r} of cluster {group[0]!r}")
        if isinstance(claim, TargetTaken):
            return _no_scaler(f"{claim.holder} has the target of {KIND} {claim.place} already")
        if isinstance(claim, Claim):
            return claim
        raise claim


def _no_scaler(sentence: str) -> Held:
    what = f"{sentence}; nothing is scaled without the {KIND} of its owner"
    return Held(reason="no_scaler", sentence=what)
