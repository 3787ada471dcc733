"""One look at each group: read the advice, check it against the cluster, send the patch where all agrees."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import NamedTuple, Protocol

import structlog

from api.schemas import Mode, RecommendationV1, RefusalV1, Target
from executor.advice import AdviceClient
from executor.errors import OutsideError, ScaleConflictError
from executor.plan import WAY_BACK, Act, Bounds, DueMove, Held, Scale, conflict_at, conflicted, due_move, may_act
from executor.standing import Applied, Records, Spot, Standings, spot_of

# Looks at one time. Two hundred moves that are due in one second wait for answers most of the time.
AT_ONCE = 8

Outcome = Act | Held | OutsideError
# Kind and name of a workload, and who else scales it.
Writers = Mapping[tuple[str, str], tuple[str, ...]]
_Identity = dict[str, object]

_log = structlog.get_logger()


class Scales(Protocol):
    """The cluster, as far as an executor may touch it."""

    def read(self, namespace: str, target: Target) -> Scale:
        """The scale of the workload; `other_writers` are not looked for. Errors: ScaleError."""
        ...

    def writers(self, namespace: str) -> Writers:
        """The workloads of the namespace that autoscalers claim. Errors: ScaleError."""
        ...

    def apply(self, act: Act) -> int:
        """Send the patch; the count that the workload then has. Errors: ScaleConflictError, ScaleError."""
        ...

    def record_event(self, act: Act, *, now: datetime) -> None:
        """Leave an Event at the workload, for whoever looks there. Errors: ScaleError."""
        ...

    def warn(self, namespace: str, target: Target, scale: Scale, held: Held, *, now: datetime) -> None:
        """Leave an Event at a workload that somebody else has. Errors: ScaleError."""
        ...


@dataclass(slots=True, kw_only=True)
class Executor:
    """Carries out advice; knows what it left each workload with, so that it never fights somebody who changes it back.

    `dry_run` shows the patches that would be sent if both modes were apply, and sends none. `leaderless` says why no
    recommender is known to lead, checked last before each patch.
    """

    advice: AdviceClient
    scales: Scales
    records: Records
    clock: Callable[[], datetime]
    mode: Mode
    bounds: Bounds
    dry_run: bool
    show_patch: Callable[[Act], None]
    leaderless: Callable[[], Held | None] = lambda: None
    _standings: Standings = field(init=False)
    _made: "list[_Made]" = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._standings = Standings(self.records)

    def run_once(self, keys: Sequence[str] | None) -> tuple[Outcome, ...]:
        """One look at each group of `keys` (None: at all). What fails for one group is its outcome; the rest go on.

        Errors: AdviceError where the groups themselves cannot be listed.
        """
        known = self.advice.keys() if keys is None else keys
        self._standings.begin()
        look = partial(self._look, writers=_WritersOnce(self.scales))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look") as threads:
            outcomes = tuple(threads.map(look, known))
            # Of two hundred moves that are due in one second none waits for the reports on another.
            made, self._made = self._made, []
            list(threads.map(self._report, made))
        self._standings.keep_unwritten()
        return outcomes

    def _look(self, key: str, *, writers: "_WritersOnce") -> Outcome:
        identity: _Identity = {"group_key": key}
        try:
            advice, skew = self.advice.advice(key, clock=self.clock)
            if isinstance(advice, Held):
                return self._held(advice, identity)
            identity |= {
                "cluster": advice.cluster,
                "group_id": advice.group_id,
                "recommendation_id": advice.recommendation_id,
            }
            spot = self._spot_to_act_on(advice)
            lost = None if spot is None else self._standings.lost(spot)
            if lost is not None:
                return self._held(lost, identity)
            move = due_move(advice, now=self.clock(), bounds=self.bounds, clock_skew=skew)
            if isinstance(move, Held):
                return self._held(self._watched(spot, advice, writers, identity) or move, identity)
            scale = self._scale(move.namespace, move.target, writers)
            # Reading took time: what was due may be too late by now.
            move = due_move(advice, now=self.clock(), bounds=self.bounds, clock_skew=skew)
            return self._held(move, identity) if isinstance(move, Held) else self._moved(move, scale, spot, identity)
        except OutsideError as error:
            _log.error("failed", **identity, error=str(error))
            return error

    def _spot_to_act_on(self, advice: RecommendationV1 | RefusalV1) -> Spot | None:
        """The workload that this executor may act on; one whose owner says otherwise is forgotten."""
        spot = spot_of(advice)
        if spot is None or self.dry_run or self.mode != "apply":
            return None
        if advice.mode == "apply":
            return spot
        self._standings.forget(spot)
        return None

    def _scale(self, namespace: str, target: Target, writers: "_WritersOnce") -> Scale:
        others = writers.of(namespace).get((target.kind, target.name), ())
        return replace(self.scales.read(namespace, target), other_writers=others)

    def _watched(
        self, spot: Spot | None, advice: RecommendationV1 | RefusalV1, writers: "_WritersOnce", identity: _Identity
    ) -> Held | None:
        """Other writers of the count of a workload with nothing due: checked once for each advice, once in a cycle."""
        if spot is None or not self._standings.is_unchecked(spot, advice.recommendation_id):
            return None
        scale = self._scale(spot.namespace, spot.target, writers)
        found = conflict_at(scale, expected=self._standings.expected(spot))
        self._note(spot, scale, found, identity)
        return found

    def _note(self, spot: Spot | None, scale: Scale, held: Held | None, identity: _Identity) -> None:
        """Take down how the workload stands, and leave an Event there where somebody else has it by now."""
        if spot is None or not self._standings.found(spot, held, scale, now=self.clock()):
            return
        try:
            if held is not None:
                self.scales.warn(spot.namespace, spot.target, scale, held, now=self.clock())
        except OutsideError as error:
            _log.warning("untold", **identity, error=str(error))

    def _moved(self, move: DueMove, scale: Scale, spot: Spot | None, identity: _Identity) -> Act | Held:
        """Make the move where nothing stands in its way; in a dry run, where nothing would if both modes were apply."""
        if self.dry_run:
            move = replace(move, mode="apply")
        expected = None if spot is None else self._standings.expected(spot)
        verdict = may_act(move, scale=scale, mode="apply" if self.dry_run else self.mode, expected=expected)
        if isinstance(verdict, Act):
            return self._carried_out(verdict, spot, identity)
        self._note(spot, scale, verdict, identity)
        return self._held(verdict, identity)

    def _carried_out(self, act: Act, spot: Spot | None, identity: _Identity) -> Act | Held:
        if (held := self.leaderless()) is not None:
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
        """Keep for the next executor what was made, and leave an Event at the workload."""
        self._standings.keep(made.spot)
        try:
            self.scales.record_event(made.act, now=made.at)
        except OutsideError as error:
            _log.warning("untold", **made.identity, error=str(error))

    def _held(self, held: Held, identity: _Identity) -> Held:
        _log.info("held", **identity, reason=held.reason, sentence=held.sentence)
        return held


class _Made(NamedTuple):
    """A move that was made, and has still to be reported."""

    act: Act
    spot: Spot
    at: datetime
    identity: _Identity


class _WritersOnce:
    """The workloads that autoscalers claim, read once for each namespace, for any number of its workloads."""

    def __init__(self, scales: Scales) -> None:
        self._scales = scales
        self._known: dict[str, Writers] = {}
        self._lock = Lock()

    def of(self, namespace: str) -> Writers:
        """Of one namespace. Errors: ScaleError."""
        with self._lock:
            if namespace not in self._known:
                self._known[namespace] = self._scales.writers(namespace)
            return self._known[namespace]
