"""Decides whether advice may be carried out now on a workload. Pure: every instant and every figure is an argument.

A verdict is `Act` or `Held(reason)`; the log shows for each what was done, or why nothing was done. Nothing that an
answer says of itself is believed: it has to be on the group that was asked for, fresh and short-lived, and whatever it
says of workload, mode and bounds can only hold a move back that the ConsumerGroupScaler allows.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import from_json

from api.schemas import DECISION_V1, Mode, RecommendationV1, RefusalV1, Target
from executor.claim import KIND, Claim
from executor.owners import FIELD_MANAGER, Owner

# Fields of version 1 never change their meaning, so every 1.x is understood; another major version is not.
KNOWN_SCHEMA_MAJOR = "1"
# The steps by which an owner hands a workload back to an executor after another owner changed it.
WAY_BACK = "nothing is changed; to hand it over again, set the group's mode to recommend, and a cycle later to apply"
# If clocks differ by more than this, "not before" and "not after" mean nothing.
CLOCK_SKEW_LIMIT = timedelta(seconds=2)
# Advice is made anew in each cycle, by default every minute: what fifteen cycles have not replaced comes from a cache
# or from a recommender that is broken. It is valid for 300 s by default; twelve times that is room for long cycles.
AGE_LIMIT = timedelta(minutes=15)
VALIDITY_LIMIT = timedelta(hours=1)

HeldReason = Literal[
    "advice_unreadable",
    "schema_unknown",
    "not_as_asked",
    "refused",
    "clock_skew",
    "too_old",
    "valid_too_long",
    "expired",
    "nothing_to_do",
    "no_scaler",
    "no_target",
    "paused",
    "out_of_bounds",
    "not_due",
    "too_late",
    "conflicted",
    "unseen",
    "zero",
    "mode",
    "owner_changed",
    "no_leader",
]
# Other owners of the count, as reported in the status of the ConsumerGroupScaler.
ConflictReason = Literal["Autoscaled", "DeclaredInGit", "ChangedByOthers", "ChangedSinceAdvice", "LimitedByCluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The reason why nothing is done; `retry_at` if the advice itself gives the time of the next attempt.

    `conflict` is set if the count is known to have another owner.
    """

    reason: HeldReason
    sentence: str
    retry_at: datetime | None = None
    conflict: ConflictReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The group that advice is requested for, by its key, which names cluster and group.

    Of a group that the API has listed, `listed_id` is the advice it listed, and `listed_at` the instant of that.
    """

    key: str
    cluster: str
    group_id: str
    listed_id: str | None = None
    listed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The counts that the executor may set, regardless of advice and owner; `highest` None: what the owner allows.

    0 is set only if the owner of the group allows it; `lowest` above 0 forbids it for every group.
    """

    lowest: int = 0
    highest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueMove:
    """A change that advice requests at this instant and its owner allows; the workload itself is not checked yet.

    `mode` is apply if the advice was given for that mode too. `seen_replicas` is the count that the advice was made
    for, `seen_at` when it was seen. `through_zero` is true if a count of 0 may be set, and may be left.
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
    """A workload as the cluster has it: its count, the version that the count belongs to, and its writers.

    `owners` have written the count, `other_writers` are autoscalers, `git_owner` sets it from Git.
    """

    replicas: int
    resource_version: str
    uid: str | None = None
    owners: tuple[Owner, ...] = ()
    other_writers: tuple[str, ...] = ()
    git_owner: str | None = None

    @property
    def strangers(self) -> tuple[Owner, ...]:
        """Writers of the count other than lagcast executors."""
        return tuple(owner for owner in self.owners if owner.manager != FIELD_MANAGER)

    @property
    def is_ours(self) -> bool:
        """True if a lagcast executor is recorded as the only writer of the count."""
        return bool(self.owners) and not self.strangers


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The count that a workload was left with; `set_here` is true if this executor set it, false if it was found."""

    replicas: int
    set_here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The patch to send: `move` on a workload with this `scale`."""

    move: DueMove
    scale: Scale

    @property
    def patch(self) -> dict[str, Any]:
        """The body for `/scale`. Its version makes the cluster refuse the patch after a write in between."""
        return {
            "metadata": {"resourceVersion": self.scale.resource_version},
            "spec": {"replicas": self.move.desired_replicas},
        }


def read_advice(body: bytes) -> RecommendationV1 | RefusalV1 | Held:
    """The advice in an answer of the API, or the reason why it cannot be read.

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
        return Held(reason="advice_unreadable", sentence=f"the advice cannot be read: {field}: {first['msg']}")


def due_now(
    advice: RecommendationV1 | RefusalV1, *, asked: Asked, now: datetime, clock_skew: timedelta
) -> RecommendationV1 | Held:
    """`advice` if it requests a change at `now`, decided from the advice alone."""
    mistaken = not_as_asked(advice, asked)
    if mistaken is not None:
        return mistaken
    if isinstance(advice, RefusalV1):
        return Held(
            reason="refused",
            sentence=f"{advice.reason.code}: {' '.join(advice.reason.sentences)}",
            retry_at=advice.retry_at,
        )
    return (
        _at_the_wrong_time(advice, now=now, clock_skew=clock_skew)
        or _nothing_to_do(advice)
        or _not_in_window(advice, now=now)
        or advice
    )


def due_move(advice: RecommendationV1, claim: Claim, *, now: datetime, bounds: Bounds) -> DueMove | Held:
    """The move that `advice`, which is due, requests of the workload in `claim`, if its owner allows it."""
    return _paused(claim, now=now) or _out_of_bounds(advice, claim, bounds) or _move(advice, claim)


def not_as_asked(advice: RecommendationV1 | RefusalV1, asked: Asked) -> Held | None:
    """The hold if an answer is on another group than was asked for, or is older than what the same API has listed."""
    if (advice.cluster, advice.group_id) != (asked.cluster, asked.group_id):
        sentence = (
            f"asked for group {asked.group_id!r} of cluster {asked.cluster!r}, the API answered with advice for "
            f"{advice.group_id!r} of {advice.cluster!r}; is a cache or another service in between?"
        )
        return Held(reason="not_as_asked", sentence=sentence)
    if asked.listed_at is None or advice.recommendation_id == asked.listed_id or advice.issued_at > asked.listed_at:
        return None
    sentence = (
        f"the API listed {asked.listed_id!r} of {asked.listed_at:%Y-%m-%dT%H:%M:%SZ} and answered with "
        f"{advice.recommendation_id!r}, which is not newer; is a cache in between?"
    )
    return Held(reason="not_as_asked", sentence=sentence)


def may_act(move: DueMove, *, scale: Scale, mode: Mode, expected: Expected | None) -> Act | Held:
    """The verdict on `move` for a workload with this `scale`.

    `mode` is the executor's own; it acts only if the group's mode is `apply` too. `expected` is the count that the
    workload was left with: a workload with another count was changed by another owner, and is left to that owner.
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
    """Another owner of the count of a workload with this `scale`, as a hold; None if none is known."""
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
    who = " and ".join(map(str, scale.strangers)) or "another client"
    if scale.replicas != expected.replicas:
        since = "did" if expected.set_here else "first saw it"
        changed = f"{who} changed the workload from {expected.replicas} to {scale.replicas} replicas"
        return conflicted("ChangedByOthers", f"{changed} after this executor {since}; {WAY_BACK}")
    if expected.set_here and scale.strangers:
        sentence = f"{who} set the count of {scale.replicas} replicas too, after this executor did; {WAY_BACK}"
        return conflicted("ChangedByOthers", sentence)
    return None


def conflicted(reason: ConflictReason, sentence: str) -> Held:
    """A hold because the count has another owner."""
    return Held(reason="conflicted", sentence=sentence, conflict=reason)


def _at_the_wrong_time(advice: RecommendationV1, *, now: datetime, clock_skew: timedelta) -> Held | None:
    # Advice from the future shows that the clocks differ, even if the Date header does not.
    skew = max(clock_skew, advice.issued_at - now)
    if skew > CLOCK_SKEW_LIMIT:
        return Held(
            reason="clock_skew",
            sentence=(
                f"the clocks of executor and recommender differ by {skew.total_seconds():.1f} s or more; the limit is "
                f"{CLOCK_SKEW_LIMIT.total_seconds():.0f} s: synchronise them"
            ),
        )
    validity, age = advice.valid_until - advice.issued_at, now - advice.issued_at
    if validity > VALIDITY_LIMIT:
        return _beyond("valid_too_long", f"the advice is to be valid for {validity}", VALIDITY_LIMIT)
    if age > AGE_LIMIT:
        return _beyond("too_old", f"the advice was issued {age} ago", AGE_LIMIT)
    if now > advice.valid_until:
        past = (now - advice.valid_until).total_seconds()
        return Held(reason="expired", sentence=f"the advice expired {past:,.0f} s ago; a new one is due every cycle")
    return None


def _beyond(reason: HeldReason, what: str, limit: timedelta) -> Held:
    return Held(reason=reason, sentence=f"{what}; the limit is {limit.total_seconds():.0f} s, nothing is changed")


def _nothing_to_do(advice: RecommendationV1) -> Held | None:
    if advice.desired_replicas != advice.current_replicas:
        return None
    return Held(reason="nothing_to_do", sentence=f"the advice is to stay at {advice.current_replicas} replicas")


def _paused(claim: Claim, *, now: datetime) -> Held | None:
    if claim.held_until is None or now >= claim.held_until:
        return None
    sentence = f"hold of {KIND} {claim.place} is in force; nothing is changed until it ends or is removed"
    return Held(reason="paused", sentence=sentence)


def _out_of_bounds(advice: RecommendationV1, claim: Claim, bounds: Bounds) -> Held | None:
    """The hold if a count lies outside of what owner, executor and advice allow; 0 is judged with the workload."""
    desired = advice.desired_replicas
    caps = [cap for cap in (claim.highest, bounds.highest) if cap is not None]
    if not caps:
        # To remove replicas only would be a way down without a way back.
        sentence = f"nobody has set a maximum; set maxReplicas of {KIND} {claim.place}, or --max-replicas"
        return Held(reason="out_of_bounds", sentence=sentence)
    highest = min([*caps, max(advice.useful_replicas, default=0)])
    # 0 lies below the minimum of a group that is active: it is a state of its own, and has a permission of its own.
    lowest = bounds.lowest if desired == 0 else max(bounds.lowest, claim.lowest)
    if lowest <= desired <= highest:
        return None
    return Held(
        reason="out_of_bounds",
        sentence=f"{desired} replicas lie outside of {lowest} to {highest}; nothing is changed",
    )


def _not_in_window(advice: RecommendationV1, *, now: datetime) -> Held | None:
    if now < advice.execute_at:
        wait = (advice.execute_at - now).total_seconds()
        return Held(reason="not_due", sentence=f"to be carried out in {wait:,.0f} s", retry_at=advice.execute_at)
    if now > advice.execute_window.latest_safe:
        late = (now - advice.execute_window.latest_safe).total_seconds()
        return Held(reason="too_late", sentence=f"the last safe instant was {late:,.0f} s ago; the next advice decides")
    return None


def _move(advice: RecommendationV1, claim: Claim) -> DueMove | Held:
    target, place = claim.target, f"{KIND} {claim.place}"
    if target is None:
        return Held(reason="no_target", sentence=f"{place} names no workload; set target in its spec")
    if (advice.namespace, advice.target) != (claim.namespace, target):
        found = "none" if advice.target is None else f"{advice.target.kind} {advice.namespace}/{advice.target.name}"
        sentence = (
            f"{place} names {target.kind} {target.name}, the advice is for {found}; nothing is changed until both agree"
        )
        return Held(reason="no_target", sentence=sentence)
    return DueMove(
        recommendation_id=advice.recommendation_id,
        group_id=advice.group_id,
        # Advice that was given for another mode is older than the owner's change, or the settings forbid it.
        mode=claim.mode if advice.mode == "apply" else advice.mode,
        namespace=claim.namespace,
        target=target,
        seen_replicas=advice.current_replicas,
        seen_at=advice.data.as_of,
        desired_replicas=advice.desired_replicas,
        through_zero=claim.through_zero,
    )


def _not_as_seen(move: DueMove, scale: Scale, expected: Expected | None) -> Held | None:
    """The hold if the advice was made for another count than the workload has; None if the counts agree."""
    if scale.replicas == move.seen_replicas:
        return None
    differs = f"the advice saw {move.seen_replicas} replicas, the workload has {scale.replicas}"
    if scale.is_ours:
        sentence = f"{differs}, set by a lagcast executor; the next advice decides"
        return Held(reason="unseen", sentence=sentence)
    # Managed fields have times cut to the second: a write in the second of the advice may have come after it.
    seen_at = move.seen_at.replace(microsecond=0)
    since = [owner for owner in scale.strangers if owner.written_at is None or owner.written_at >= seen_at]
    if since and expected is None:
        return conflicted(
            "ChangedSinceAdvice", f"{differs}, set by {' and '.join(map(str, since))}; the next advice decides"
        )
    # The count was the same at the look before: a replica is starting, or fails repeatedly.
    return Held(reason="conflicted", sentence=f"{differs}; nothing is changed")


def _at_zero(move: DueMove, scale: Scale) -> Held | None:
    if move.through_zero or (scale.replicas and move.desired_replicas):
        return None
    what = "the workload stands at 0 replicas" if scale.replicas == 0 else "the advice is to set 0 replicas"
    sentence = f"{what}; leaving 0 or going there takes scaleToZero.enabled of its {KIND}"
    return Held(reason="zero", sentence=sentence)
