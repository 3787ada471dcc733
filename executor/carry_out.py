"""One look at each group: read the advice, check it against the cluster, send the patch where all agrees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

import structlog

from api.schemas import Mode, Target
from executor.advice import AdviceClient
from executor.errors import OutsideError, ScaleConflictError
from executor.plan import Act, Bounds, Held, Move, Scale, due_move, may_act

Outcome = Act | Held | OutsideError
_Identity = dict[str, object]

_log = structlog.get_logger()


class Scales(Protocol):
    """The cluster, as far as an executor may touch it."""

    def read(self, namespace: str, target: Target) -> Scale:
        """How the workload stands. Errors: ScaleError."""
        ...

    def apply(self, act: Act) -> None:
        """Send the patch. Errors: ScaleConflictError, ScaleError."""
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
        return tuple(self._look(key) for key in (self.advice.keys() if keys is None else keys))

    def _look(self, key: str) -> Outcome:
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
            scale = self.scales.read(move.namespace, move.target)
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
            self.scales.apply(act)
        except ScaleConflictError as error:
            return self._held(Held(reason="conflicted", sentence=str(error)), identity)
        self._applied[_place(act.move)] = act.move.desired_replicas
        _log.info("acted", **identity, **change)
        return act

    def _held(self, held: Held, identity: _Identity) -> Held:
        _log.info("held", **identity, reason=held.reason, sentence=held.sentence)
        return held


def _place(move: Move) -> tuple[str, str, str]:
    return move.namespace, move.target.kind, move.target.name
