"""The `status` of a ConsumerGroupScaler, the changes of it that are written, and those that are an Event.

Numbers that are not whole are decimal strings, as the API conventions of Kubernetes require.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from cost_model.physics.profile import CapacitySource
from forecasting.refusal import Refusal, RefusalReason
from recommender.cluster.scaler import Document, GroupRequest, InvalidScaler
from recommender.deciding.recommendation import Decision, ForecastValue, Recommendation
from recommender.ports import decision_id, wire_code

Status = Mapping[str, Any]
# Every condition stands on an object from its first visit on; adjectives, so that each reads as a statement.
CONDITIONS = ("Ready", "DataSufficient", "CapacityKnown", "ForecastTrusted", "Executing", "Conflicted", "Paused")
CAPACITY_SENTENCES: Mapping[CapacitySource, str] = {
    "configured": "What one replica carries is known.",
    "saturated_windows": "What one replica carries is known.",
    "busy_time": "What one replica carries is known from the time in which its members work.",
    "unsaturated_windows": "One replica was never seen at its limit; plans go a step beyond what it has carried.",
    "lower_bound": "Replicas were not seen at their limit yet; plans rely on what they have carried, and add none.",
}
# A status is renewed while its advice is good for another cycle and a half, so that it never lapses between two cycles.
RENEWED_BEFORE_CYCLES = 1.5
NOTE_LIMIT = 1000  # an Event's note may have 1,024 bytes

_ABOUT_DATA: frozenset[RefusalReason] = frozenset(
    {"source_unreachable", "no_data", "history_stale", "partial_data", "not_enough_history"}
)
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One condition: does it hold, why in one word, and in one sentence. None: unknown."""

    holds: bool | None
    reason: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change that is published as an Event."""

    kind: Literal["Normal", "Warning"]
    reason: Literal["RecommendationChanged", "RecommendationWithheld", "ScalerRejected"]
    note: str


def status_of(document: Document, request: GroupRequest, decision: Decision | None, *, now: datetime) -> Status:
    """The status of an object that is followed; `decision` is the newest on its group, None where none is made."""
    before = document.get("status", {})
    status: dict[str, Any] = {
        "observedGeneration": document["metadata"]["generation"],
        "mode": request.group.mode.capitalize(),
    }
    if isinstance(decision, Recommendation):
        status |= {
            "recommendation": _recommendation(decision, before.get("recommendation", {})),
            "observed": _observed(decision),
            "costPerHour": _cost_per_hour(decision),
        }
    verdicts = _verdicts(request, decision, now=now) | {"Conflicted": _conflicted(request, before)}
    status["conditions"] = _conditions(document, verdicts, now=now)
    return status


def rejected_status(document: Document, invalid: InvalidScaler, *, now: datetime) -> Status:
    """The status of an object that is not followed: one sentence, and nothing known of the rest."""
    unknown = Verdict(holds=None, reason="NotFollowed", sentence="The object is not followed; see Ready.")
    verdicts = dict.fromkeys(CONDITIONS, unknown)
    verdicts["Ready"] = Verdict(holds=False, reason=invalid.reason, sentence=invalid.sentence)
    if invalid.reason == "Conflicted":
        what = "SameGroup" if invalid.group is None else "SameTarget"
        verdicts["Conflicted"] = Verdict(holds=True, reason=what, sentence=invalid.sentence)
    generation = document["metadata"]["generation"]
    return {"observedGeneration": generation, "conditions": _conditions(document, verdicts, now=now)}


def is_news(before: Status, after: Status, *, now: datetime, cycle_seconds: float) -> bool:
    """True if `after` informs its reader of anything new, or keeps its advice from expiring.

    Figures that move with every sample are not news; they are written along with what is.
    """
    if _dedup_key(before) != _dedup_key(after):
        return True
    valid_until = before.get("recommendation", {}).get("validUntil")
    renewal = timedelta(seconds=RENEWED_BEFORE_CYCLES * cycle_seconds)
    return valid_until is not None and datetime.fromisoformat(valid_until) - now < renewal


def transition(before: Status, after: Status) -> Transition | None:
    """The Event that the step from `before` to `after` deserves; None where the reader has it already."""
    ready = _by_type(after)["Ready"]
    same_ready = (_by_type(before).get("Ready", {}).get("reason") or None) == ready["reason"]
    advice, known = after.get("recommendation"), before.get("recommendation", {})
    if advice is None:
        if same_ready:
            return None
        rejected = ready["reason"] in {"ConfigInvalid", "Conflicted", "NotGranted"} and "mode" not in after
        reason: Literal["ScalerRejected", "RecommendationWithheld"] = (
            "ScalerRejected" if rejected else "RecommendationWithheld"
        )
        return Transition(kind="Warning", reason=reason, note=ready["message"][:NOTE_LIMIT])
    if same_ready and known.get("desiredReplicas") == advice["desiredReplicas"]:
        return None
    return Transition(kind="Normal", reason="RecommendationChanged", note=ready["message"][:NOTE_LIMIT])


def _recommendation(advice: Recommendation, before: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        "recommendationId": decision_id(advice),
        "action": wire_code(advice.action),
        "reason": wire_code(advice.reason),
        "currentReplicas": advice.current_replicas,
        "desiredReplicas": advice.desired_replicas,
        "desiredReplicasLower": advice.desired_replicas_lower,
        "desiredReplicasUpper": advice.desired_replicas_upper,
        "executeAt": _execute_at(advice, before),
        "validUntil": _instant(advice.valid_until),
        "confidence": None if advice.confidence is None else _decimal(advice.confidence),
        "confidenceLevel": None if advice.confidence_level is None else advice.confidence_level.capitalize(),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _execute_at(advice: Recommendation, before: Mapping[str, Any]) -> str | None:
    """Instant of the move; None for a hold.

    A move that is due and was published as due keeps its instant: "now" would change the status each minute.
    """
    if advice.action == "hold":
        return None
    published: str | None = before.get("executeAt")
    if published is not None and before["desiredReplicas"] == advice.desired_replicas:
        was_due = datetime.fromisoformat(published) <= advice.issued_at
        if was_due and advice.execute_at <= advice.issued_at:
            return published
    return _instant(advice.execute_at)


def _observed(advice: Recommendation) -> dict[str, Any]:
    seen = advice.observed
    fields = {
        "lagMessages": round(seen.lag_messages),
        "lagSeconds": None if seen.lag_seconds is None else _decimal(seen.lag_seconds),
        "produceMessagesPerSecond": _decimal(seen.produce_messages_per_second),
        "capacityMessagesPerSecondPerReplica": _decimal(advice.capacity.p50),
        "asOf": _instant(seen.as_of),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _cost_per_hour(advice: Recommendation) -> dict[str, str]:
    per_hour = _SECONDS_PER_HOUR / advice.horizon_seconds
    return {
        "currency": advice.currency,
        "chosen": _decimal(advice.chosen.total * per_hour),
        "stay": _decimal(advice.stay.total * per_hour),
    }


def _verdicts(request: GroupRequest, decision: Decision | None, *, now: datetime) -> dict[str, Verdict]:
    if isinstance(decision, Recommendation):
        known = _of_advice(decision)
    elif decision is not None:
        known = _of_refusal(decision)
    else:
        none = Verdict(holds=None, reason="NoDecision", sentence="No decision is made for this group.")
        known = dict.fromkeys(("Ready", "DataSufficient", "CapacityKnown", "ForecastTrusted"), none)
        if request.group.mode == "off":
            known["Ready"] = Verdict(
                holds=False,
                reason="Off",
                sentence="mode is Off: no advice is given for the group; Recommend resumes it.",
            )
    return known | {
        "Executing": _executing(request),
        "Paused": _paused(request, decision, now=now),
    }


def _of_advice(advice: Recommendation) -> dict[str, Verdict]:
    value, source = advice.forecast.value, advice.capacity.source
    move = f"{advice.current_replicas} -> {advice.desired_replicas} replicas at {_instant(advice.execute_at)}"
    what = f"stay at {advice.current_replicas} replicas" if advice.action == "hold" else move
    return {
        "Ready": Verdict(
            holds=True, reason="Advised", sentence=f"{what} ({wire_code(advice.reason)}): {' '.join(advice.sentences)}"
        ),
        "DataSufficient": Verdict(
            holds=True,
            reason=wire_code(advice.forecast.history_tier),
            sentence=f"{advice.history_seconds:.0f} s of history.",
        ),
        "CapacityKnown": Verdict(
            holds=source in ("configured", "saturated_windows", "busy_time"),
            reason=wire_code(source),
            sentence=CAPACITY_SENTENCES[source],
        ),
        "ForecastTrusted": Verdict(
            holds=None if value is None else value.forecast_used,
            reason=_forecast_reason(value),
            sentence=f"Forecast by {advice.forecast.model}.",
        ),
    }


def _forecast_reason(value: ForecastValue | None) -> str:
    """Why plans use the forecast or not, as one word."""
    if value is None:
        return "NotCompared"
    if not value.forecast_proven:
        return "NotProven"
    return "NoMoreExpensive" if value.forecast_used else "MoreExpensive"


def _of_refusal(refusal: Refusal) -> dict[str, Verdict]:
    code = wire_code(refusal.reason)
    no = Verdict(holds=False, reason=code, sentence=f"{refusal.sentence} {refusal.remedy}")
    unknown = Verdict(holds=None, reason=code, sentence="There is no advice; see Ready.")
    return {
        "Ready": no,
        "DataSufficient": no if refusal.reason in _ABOUT_DATA else unknown,
        "CapacityKnown": no if refusal.reason == "capacity_unknown" else unknown,
        "ForecastTrusted": unknown,
    }


def _executing(request: GroupRequest) -> Verdict:
    mode = request.group.mode
    if mode != "apply":
        sentence = f"mode is {mode.capitalize()}: nothing is scaled."
        return Verdict(holds=False, reason=f"Mode{mode.capitalize()}", sentence=sentence)
    if request.group.target is None:
        return Verdict(holds=False, reason="NoTarget", sentence="No target is named: there is nothing to scale.")
    sentence = "An executor may act on this advice; whether one runs is not known here."
    return Verdict(holds=None, reason="LeftToExecutor", sentence=sentence)


def _conflicted(request: GroupRequest, before: Status) -> Verdict:
    """Another target in the settings; else another writer of the workload's count, while mode is Apply.

    The latter is as an executor keeps it in `status.conflict`.
    """
    if request.overruled is not None:
        return Verdict(holds=True, reason="TargetInSettings", sentence=request.overruled)
    found = before.get("conflict")
    if found is None or request.group.mode != "apply":
        sentence = (
            "No other ConsumerGroupScaler names this group or its target, and no executor reports another writer."
        )
        return Verdict(holds=False, reason="OnlyScaler", sentence=sentence)
    return Verdict(holds=True, reason=found["reason"], sentence=found["message"])


def _paused(request: GroupRequest, decision: Decision | None, *, now: datetime) -> Verdict:
    hold = request.scaler.hold
    if request.group.mode == "off":
        return Verdict(holds=True, reason="ModeOff", sentence="mode is Off.")
    if hold is not None and hold.holds(now):
        return Verdict(holds=True, reason="Held", sentence=hold.sentence)
    if isinstance(decision, Recommendation) and decision.reason == "held":
        return Verdict(holds=True, reason="Held", sentence=" ".join(decision.sentences[-1:]))
    return Verdict(holds=False, reason="NotHeld", sentence="No hold is in force.")


def _conditions(document: Document, verdicts: Mapping[str, Verdict], *, now: datetime) -> list[dict[str, Any]]:
    before = _by_type(document.get("status", {}))
    conditions = []
    for kind in CONDITIONS:
        verdict = verdicts[kind]
        status = {True: "True", False: "False", None: "Unknown"}[verdict.holds]
        known = before.get(kind, {})
        since = known["lastTransitionTime"] if known.get("status") == status else _instant(now)
        conditions.append(
            {
                "type": kind,
                "status": status,
                "reason": verdict.reason,
                "message": verdict.sentence,
                "observedGeneration": document["metadata"]["generation"],
                "lastTransitionTime": since,
            }
        )
    return conditions


def _dedup_key(status: Status) -> object:
    advice = status.get("recommendation", {})
    said = tuple(advice.get(name) for name in ("action", "reason", "currentReplicas", "desiredReplicas", "executeAt"))
    held = {kind: (each["status"], each["reason"]) for kind, each in _by_type(status).items()}
    return status.get("observedGeneration"), status.get("mode"), said, held


def _by_type(status: Status) -> dict[str, Mapping[str, Any]]:
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions", ())
    return {condition["type"]: condition for condition in conditions}


def _instant(instant: datetime) -> str:
    """RFC 3339 in UTC, to the second, as Kubernetes writes its own."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _decimal(value: float) -> str:
    """Six digits behind the point at most, and no exponent.

    >>> _decimal(0.5), _decimal(18400.0), _decimal(1e-7)
    ('0.5', '18400', '0')
    """
    return format(Decimal(str(round(value, 6))).normalize(), "f") if round(value, 6) else "0"
