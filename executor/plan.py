"""May this advice be acted on, now, on what is there? Pure: every instant and every figure is an argument.

An answer is `Act` or `Held(reason)`; whoever reads the log learns from each what was done or what stood in the way.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import from_json

from api.schemas import DECISION_V1, Mode, RecommendationV1, RefusalV1, Target

# Fields of version 1 never change their meaning, so every 1.x is understood; another major version is not.
KNOWN_SCHEMA_MAJOR = "1"
# With clocks further apart than this, "not before" and "not after" mean nothing.
CLOCK_SKEW_LIMIT = timedelta(seconds=2)

HeldReason = Literal[
    "advice_unreadable",
    "schema_unknown",
    "refused",
    "clock_skew",
    "expired",
    "nothing_to_do",
    "no_target",
    "out_of_bounds",
    "not_due",
    "too_late",
    "conflicted",
    "mode",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing is done, and why; `retry_at` where the advice itself says when it may be otherwise."""

    reason: HeldReason
    sentence: str
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The counts that the executor may set, whatever the advice says. `highest` None: the advice's useful maximum."""

    lowest: int = 1
    highest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A change that advice asks for at this instant; what the cluster says of it is not yet known."""

    recommendation_id: str
    mode: Mode
    namespace: str
    target: Target
    seen_replicas: int
    desired_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A workload as the cluster has it: its count, the version that count belongs to, and who else scales it."""

    replicas: int
    resource_version: str
    uid: str | None = None
    other_writers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The patch to send: `move` on a workload that stands at `scale`."""

    move: Move
    scale: Scale

    @property
    def patch(self) -> dict[str, Any]:
        """The body for `/scale`. The version makes the cluster refuse it if anybody wrote in between."""
        return {
            "metadata": {"resourceVersion": self.scale.resource_version},
            "spec": {"replicas": self.move.desired_replicas},
        }


def read_advice(body: bytes) -> RecommendationV1 | RefusalV1 | Held:
    """The advice in an answer of the API, or why it cannot be understood.

    >>> read_advice(b'{"kind": "Recommendation", "schema_version": "2.0"}').reason
    'schema_unknown'
    """
    try:
        document = from_json(body)
    except ValueError as error:
        return Held(reason="advice_unreadable", sentence=f"the answer is no JSON: {error}")
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, str) or version.partition(".")[0] != KNOWN_SCHEMA_MAJOR:
        return Held(
            reason="schema_unknown",
            sentence=f"the advice has schema version {version!r}; only {KNOWN_SCHEMA_MAJOR}.x is known here: upgrade",
        )
    try:
        return DECISION_V1.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        return Held(reason="advice_unreadable", sentence=f"the advice does not read: {field}: {first['msg']}")


def due_move(
    advice: RecommendationV1 | RefusalV1, *, now: datetime, bounds: Bounds, clock_skew: timedelta
) -> Move | Held:
    """The move that `advice` asks for at `now`, judged by the advice alone."""
    if isinstance(advice, RefusalV1):
        return Held(
            reason="refused",
            sentence=f"{advice.reason.code}: {' '.join(advice.reason.sentences)}",
            retry_at=advice.retry_at,
        )
    return (
        _at_the_wrong_time(advice, now=now, clock_skew=clock_skew)
        or _out_of_bounds(advice, bounds)
        or _not_in_window(advice, now=now)
        or _move(advice)
    )


def may_act(move: Move, *, scale: Scale, mode: Mode, last_applied: int | None) -> Act | Held:
    """Whether `move` may be made on a workload that stands at `scale`.

    `mode` is the executor's own; it acts only where the group's mode says `apply` too. `last_applied` is the count that
    this executor set last: a workload that stands elsewhere was changed by somebody, and is left to them.
    """
    if scale.replicas == move.desired_replicas:
        return Held(reason="nothing_to_do", sentence=f"the workload has {scale.replicas} replicas already")
    foreign = _foreign_writer(move, scale, last_applied)
    if foreign is not None:
        return Held(reason="conflicted", sentence=f"{foreign}; nothing is changed")
    if mode != "apply" or move.mode != "apply":
        return Held(
            reason="mode",
            sentence=(
                f"would set {scale.replicas} to {move.desired_replicas} replicas; the executor's mode is {mode}, "
                f"the group's {move.mode}: both have to be apply"
            ),
        )
    return Act(move=move, scale=scale)


def _at_the_wrong_time(advice: RecommendationV1, *, now: datetime, clock_skew: timedelta) -> Held | None:
    # Advice from the future is a clock that differs, whatever the transport says of it.
    skew = max(clock_skew, advice.issued_at - now)
    if skew > CLOCK_SKEW_LIMIT:
        return Held(
            reason="clock_skew",
            sentence=(
                f"the clocks of executor and recommender differ by {skew.total_seconds():.1f} s or more; the limit is "
                f"{CLOCK_SKEW_LIMIT.total_seconds():.0f} s: synchronise them"
            ),
        )
    if now > advice.valid_until:
        age = (now - advice.valid_until).total_seconds()
        return Held(reason="expired", sentence=f"the advice expired {age:,.0f} s ago; a new one is due every cycle")
    return None


def _out_of_bounds(advice: RecommendationV1, bounds: Bounds) -> Held | None:
    if advice.desired_replicas == advice.current_replicas:
        return Held(reason="nothing_to_do", sentence=f"the advice is to stay at {advice.current_replicas} replicas")
    useful = max(advice.useful_replicas)
    highest = useful if bounds.highest is None else min(bounds.highest, useful)
    if bounds.lowest <= advice.desired_replicas <= highest:
        return None
    return Held(
        reason="out_of_bounds",
        sentence=f"{advice.desired_replicas} replicas lie outside of {bounds.lowest} to {highest}; nothing is changed",
    )


def _not_in_window(advice: RecommendationV1, *, now: datetime) -> Held | None:
    if now < advice.execute_at:
        wait = (advice.execute_at - now).total_seconds()
        return Held(reason="not_due", sentence=f"to be carried out in {wait:,.0f} s", retry_at=advice.execute_at)
    if now > advice.execute_window.latest_safe:
        late = (now - advice.execute_window.latest_safe).total_seconds()
        return Held(reason="too_late", sentence=f"the last safe instant was {late:,.0f} s ago; the next advice decides")
    return None


def _move(advice: RecommendationV1) -> Move | Held:
    if advice.target is None or advice.namespace is None:
        return Held(
            reason="no_target",
            sentence=f"no workload is known for this group; set groups.{advice.group_id}.target in the settings",
        )
    return Move(
        recommendation_id=advice.recommendation_id,
        mode=advice.mode,
        namespace=advice.namespace,
        target=advice.target,
        seen_replicas=advice.current_replicas,
        desired_replicas=advice.desired_replicas,
    )


def _foreign_writer(move: Move, scale: Scale, last_applied: int | None) -> str | None:
    if scale.other_writers:
        return f"{', '.join(scale.other_writers)} scales the same workload"
    if last_applied is not None and scale.replicas != last_applied:
        return (
            f"somebody changed the workload from {last_applied} to {scale.replicas} replicas after this executor did; "
            "restart the executor to take over"
        )
    if scale.replicas != move.seen_replicas:
        return f"the advice saw {move.seen_replicas} replicas, the workload has {scale.replicas}"
    return None
