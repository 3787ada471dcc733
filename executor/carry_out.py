"""One look at each group: read the advice, check it against the cluster, send the patch where all agrees."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Protocol

import structlog

from api.schemas import Mode, Target
from executor.advice import AdviceClient
from executor.errors import OutsideError, ScaleConflictError
from executor.plan import Act, Bounds, Held, Move, Scale, due_move, may_act

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
        """How the workload stands; `other_writers` are not looked for. Errors: ScaleError."""
        ...

    def writers(self, namespace: str) -> Writers:
        """Which workloads of the namespace autoscalers claim. Errors: ScaleError."""
        ...

    def apply(self, act: Act) -> int:
        """Send the patch; the count that the workload then has. Errors: ScaleConflictError, ScaleError."""
        ...

    def tell(self, act: Act, *, now: datetime) -> None:
        """Leave an Event at the workload, for whoever looks there. Errors: ScaleError."""
        ...


@dataclass(slots=True, kw_only=True)
class Executor:
    """Carries out advice; remembers what it set, so that it never fights somebody who changes it back.

    `dry_run` shows the patches that would be sent if both modes were apply, and sends none.
    """

    advice: AdviceClient
    scales: Scales
    clock: Callable[[], datetime]
    mode: Mode
    bounds: Bounds
    dry_run: bool
    show_patch: Callable[[Act], None]
    _applied: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def run_once(self, keys: Sequence[str] | None) -> tuple[Outcome, ...]:
        """One look at each group of `keys` (None: at all). What fails for one group is its outcome; the rest go on.

        Errors: AdviceError where the groups themselves cannot be listed.
        """
        known = self.advice.keys() if keys is None else keys
        look = partial(self._look, writers=_WritersOnce(self.scales))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look") as threads:
            return tuple(threads.map(look, known))

    def _look(self, key: str, *, writers: "_WritersOnce") -> Outcome:
        identity: _Identity = {"group_key": key}
        try:
            advice, skew = self.advice.advice(key, now=self.clock())
            if isinstance(advice, Held):
                return self._held(advice, identity)
            identity |= {
                "cluster": advice.cluster,
                "group_id": advice.group_id,
                "recommendation_id": advice.recommendation_id,
            }
            move = due_move(advice, now=self.clock(), bounds=self.bounds, clock_skew=skew)
            if isinstance(move, Held):
                return self._held(move, identity)
            others = writers.of(move.namespace).get((move.target.kind, move.target.name), ())
            scale = replace(self.scales.read(move.namespace, move.target), other_writers=others)
            # Reading took time: what was due may be too late by now.
            move = due_move(advice, now=self.clock(), bounds=self.bounds, clock_skew=skew)
            verdict = move if isinstance(move, Held) else self._judged(move, scale)
            return self._held(verdict, identity) if isinstance(verdict, Held) else self._carried_out(verdict, identity)
        except OutsideError as error:
            _log.error("failed", **identity, error=str(error))
            return error

    def _judged(self, move: Move, scale: Scale) -> Act | Held:
        if self.dry_run:
            move = replace(move, mode="apply")
        mode: Mode = "apply" if self.dry_run else self.mode
        return may_act(move, scale=scale, mode=mode, last_applied=self._applied.get(_place(move)))

    def _carried_out(self, act: Act, identity: _Identity) -> Act | Held:
        change: _Identity = {
            "namespace": act.move.namespace,
            "target": f"{act.move.target.kind}/{act.move.target.name}",
            "replicas_before": act.scale.replicas,
            "replicas_after": act.move.desired_replicas,
        }
        if self.dry_run:
            self.show_patch(act)
            _log.info("would_act", **identity, **change)
            return act
        try:
            replicas = self.scales.apply(act)
        except ScaleConflictError as error:
            return self._held(Held(reason="conflicted", sentence=str(error)), identity)
        self._applied[_place(act.move)] = act.move.desired_replicas
        if replicas != act.move.desired_replicas:
            sentence = f"the cluster made {replicas} replicas of the {act.move.desired_replicas} that were asked for"
            return self._held(Held(reason="conflicted", sentence=sentence), identity)
        _log.info("acted", **identity, **change)
        try:
            self.scales.tell(act, now=self.clock())
        except OutsideError as error:
            _log.warning("untold", **identity, error=str(error))
        return act

    def _held(self, held: Held, identity: _Identity) -> Held:
        _log.info("held", **identity, reason=held.reason, sentence=held.sentence)
        return held


class _WritersOnce:
    """Who scales what, asked once for each namespace however many of its workloads are looked at."""

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


def _place(move: Move) -> tuple[str, str, str]:
    return move.namespace, move.target.kind, move.target.name
