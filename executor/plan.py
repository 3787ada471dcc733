"""May this advice be acted on, now, on what is there? Pure: every instant and every figure is an argument.

An answer is `Act` or `Held(reason)`; whoever reads the log learns from each what was done or what stood in the way.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import from_json

from api.schemas import DECISION_V1, Mode, RecommendationV1, RefusalV1, Target
from executor.owners import FIELD_MANAGER, Owner

# Fields of version 1 never change their meaning, so every 1.x is understood; another major version is not.
KNOWN_SCHEMA_MAJOR = "1"
# The steps with which an owner hands a workload back to an executor after somebody else changed it.
WAY_BACK = "nothing is changed; to hand it over again, set the group's mode to recommend, and a cycle later to apply"
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
    "unseen",
    "zero",
    "mode",
    "no_leader",
]
# Other owners of the count: an owner of the workload has to know them, and reads them in the status.
ConflictReason = Literal["Autoscaled", "DeclaredInGit", "ChangedByOthers", "ChangedSinceAdvice", "LimitedByCluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing is done, and why; `retry_at` where the advice itself says when it may be otherwise.

    `conflict` is set where somebody else is known to have the count.
    """

    reason: HeldReason
    sentence: str
    retry_at: datetime | None = None
    conflict: ConflictReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The counts that the executor may set, whatever the advice says. `highest` None: the advice's useful maximum.

    0 is set only where the owner of the group allows it; `lowest` above 0 forbids it to all of them.
    """

    lowest: int = 0
    highest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueMove:
    """A change that advice requests at this instant; the answer of the cluster is not yet known.

    `seen_replicas` are what the advice was made for, `seen_at` when they were seen. `through_zero` says that a count of
    0 may be set, and may be left.
    """

    recommendation_id: str
    group_id: str
    mode: Mode
    namespace: str
    target: Target
    seen_replicas: int
    seen_at: datetime
    desired_replicas: int
    through_zero: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A workload as the cluster has it: its count, the version that count belongs to, and who else has a say in it.

    `owners` have written the count, `other_writers` are autoscalers, `git_owner` sets it out of Git.
    """

    replicas: int
    resource_version: str
    uid: str | None = None
    owners: tuple[Owner, ...] = ()
    other_writers: tuple[str, ...] = ()
    git_owner: str | None = None

    @property
    def strangers(self) -> tuple[Owner, ...]:
        """Writers of the count, other than an executor of ours."""
        return tuple(owner for owner in self.owners if owner.manager != FIELD_MANAGER)

    @property
    def is_ours(self) -> bool:
        """True if an executor of ours, and nobody else, is recorded as writer of the count."""
        return bool(self.owners) and not self.strangers


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The count that a workload is left with; `set_here` where this executor set it, else it was found so."""

    replicas: int
    set_here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The patch to send: `move` on a workload that stands at `scale`."""

    move: DueMove
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
) -> DueMove | Held:
    """The move that `advice` requests at `now`, judged by the advice alone."""
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


def may_act(move: DueMove, *, scale: Scale, mode: Mode, expected: Expected | None) -> Act | Held:
    """The verdict on `move` for a workload that stands at `scale`.

    `mode` is the executor's own; it acts only where the group's mode says `apply` too. `expected` is what the workload
    was left with: one that stands elsewhere was changed by somebody, and is left to them.
    """
    foreign = conflict_at(scale, expected=expected)
    if foreign is not None:
        return foreign
    if scale.replicas == move.desired_replicas:
        return Held(reason="nothing_to_do", sentence=f"the workload has {scale.replicas} replicas already")
    hindrance = _not_as_seen(move, scale, expected) or _at_zero(move, scale)
    if hindrance is not None:
        return hindrance
    if mode != "apply" or move.mode != "apply":
        return Held(
            reason="mode",
            sentence=(
                f"would set {scale.replicas} to {move.desired_replicas} replicas; the executor's mode is {mode}, "
                f"the group's {move.mode}: both have to be apply"
            ),
        )
    return Act(move=move, scale=scale)


def conflict_at(scale: Scale, *, expected: Expected | None) -> Held | None:
    """Another owner of the count of a workload that stands at `scale`; None where none is known."""
    if scale.other_writers:
        return conflicted(
            "Autoscaled", f"{', '.join(scale.other_writers)} scales the same workload; nothing is changed"
        )
    if scale.git_owner is not None:
        sentence = (
            f"{scale.git_owner} sets the workload's replicas; nothing is changed: leave them out of what it applies"
        )
        return conflicted("DeclaredInGit", sentence)
    if expected is None or scale.is_ours:
        return None
    who = " and ".join(map(str, scale.strangers)) or "somebody"
    if scale.replicas != expected.replicas:
        since = "did" if expected.set_here else "first saw it"
        changed = f"{who} changed the workload from {expected.replicas} to {scale.replicas} replicas"
        return conflicted("ChangedByOthers", f"{changed} after this executor {since}; {WAY_BACK}")
    if expected.set_here and scale.strangers:
        sentence = f"{who} set the count of {scale.replicas} replicas too, after this executor did; {WAY_BACK}"
        return conflicted("ChangedByOthers", sentence)
    return None


def conflicted(reason: ConflictReason, sentence: str) -> Held:
    """Held because of somebody else."""
    return Held(reason="conflicted", sentence=sentence, conflict=reason)


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


def _move(advice: RecommendationV1) -> DueMove | Held:
    if advice.target is None or advice.namespace is None:
        return Held(
            reason="no_target",
            sentence=f"no workload is known for this group; set groups.{advice.group_id}.target in the settings",
        )
    return DueMove(
        recommendation_id=advice.recommendation_id,
        group_id=advice.group_id,
        mode=advice.mode,
        namespace=advice.namespace,
        target=advice.target,
        seen_replicas=advice.current_replicas,
        seen_at=advice.data.as_of,
        desired_replicas=advice.desired_replicas,
        through_zero=advice.scale_to_zero,
    )


def _not_as_seen(move: DueMove, scale: Scale, expected: Expected | None) -> Held | None:
    """The reason why the advice was not made for the workload as it stands; None where it was."""
    if scale.replicas == move.seen_replicas:
        return None
    differs = f"the advice saw {move.seen_replicas} replicas, the workload has {scale.replicas}"
    if scale.is_ours:
        sentence = f"{differs}, set by a lagcast executor; the next advice decides"
        return Held(reason="unseen", sentence=sentence)
    # Notes are cut to the second: what was written in the second of the advice may have come after it.
    seen_at = move.seen_at.replace(microsecond=0)
    since = [owner for owner in scale.strangers if owner.written_at is None or owner.written_at >= seen_at]
    if since and expected is None:
        return conflicted(
            "ChangedSinceAdvice", f"{differs}, set by {' and '.join(map(str, since))}; the next advice decides"
        )
    # The count was the same when it was looked at before: a replica is starting, or fails over and over.
    return Held(reason="conflicted", sentence=f"{differs}; nothing is changed")


def _at_zero(move: DueMove, scale: Scale) -> Held | None:
    if move.through_zero or (scale.replicas and move.desired_replicas):
        return None
    what = "the workload stands at 0 replicas" if scale.replicas == 0 else "the advice is to set 0 replicas"
    setting = f"groups.{move.group_id}.scale_to_zero.enabled"
    sentence = f"{what}; leaving 0 or going there takes scaleToZero.enabled of its ConsumerGroupScaler, or {setting}"
    return Held(reason="zero", sentence=sentence)
