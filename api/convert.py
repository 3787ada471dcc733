"""From the domain's values to the wire, field by field, and the cursors of pages."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import asdict
from datetime import UTC, datetime

from api import parts
from api import schemas as wire
from api.keys import GroupKeyError, group_key, group_of_key
from cost_model.pricing.price import Cost
from forecasting.refusal import Refusal
from recommender.concern import CONCERNS, Urgency, concern_of
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.deciding.beliefs import beliefs, outcome_sentence, reversals
from recommender.deciding.hold import Hold
from recommender.deciding.recommendation import (
    Decision,
    ForecastValue,
    GradedMove,
    LearnedMoves,
    LedgerAccount,
    LedgerStanding,
    PricedPlan,
    Recommendation,
)
from recommender.ledger_totals import LedgerTotal
from recommender.ports import FleetTotal, GroupLoads, Place, decision_id, issued_at, wire_code


class CursorError(ValueError):
    """The cursor of a requested page is not valid."""


def cursor_of_instant(instant: datetime) -> str:
    """The cursor of the page of what was recorded before `instant`.

    >>> from datetime import UTC
    >>> cursor_of_instant(datetime(2026, 1, 5, 12, tzinfo=UTC))
    'MjAyNi0wMS0wNVQxMjowMDowMCswMDowMA'
    """
    return urlsafe_b64encode(instant.astimezone(UTC).isoformat().encode()).decode().rstrip("=")


def group_of_cursor(cursor: str) -> tuple[str, str]:
    """The (cluster, group) that a page of groups begins behind: its cursor is a group's key. Errors: CursorError."""
    try:
        return group_of_key(cursor)
    except GroupKeyError as error:
        message = f"'{cursor}' is no cursor; take `next` of the page before"
        raise CursorError(message) from error


def cursor_of_place(place: Place) -> str:
    """The cursor of the page of what is less urgent than the group of this place.

    >>> place_of_cursor(cursor_of_place(Place(Urgency(2, "USD", -0.97), ("prod-eu", "orders"))))
    Place(urgency=Urgency(rank=2, currency='USD', minus_weight=-0.97), group=('prod-eu', 'orders'))
    """
    text = json.dumps([*place.urgency, *place.group], ensure_ascii=False, allow_nan=False)
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of_cursor(cursor: str) -> Place:
    """The place of a cursor of `cursor_of_place`. Errors: CursorError."""
    try:
        rank, currency, minus_weight, cluster, group = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        place = Place(Urgency(int(rank), str(currency), float(minus_weight)), (str(cluster), str(group)))
        known = 0 <= rank <= len(CONCERNS) and cursor_of_place(place) == cursor
    except (Base64Error, ValueError, TypeError, OverflowError, RecursionError):  # the last: of brackets by the thousand
        known = False
    if not known:
        message = f"'{cursor}' is no cursor of groups with the worst first; take `next` of the page before"
        raise CursorError(message)
    return place


def instant_of_cursor(cursor: str) -> datetime:
    """The instant of a cursor of `cursor_of_instant`. Errors: CursorError."""
    try:
        instant = datetime.fromisoformat(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode())
        known = instant.tzinfo is not None and cursor_of_instant(instant) == cursor
    except (Base64Error, ValueError, OverflowError):  # the last: in UTC it lies before the year 1
        known = False
    if not known:
        message = f"'{cursor}' is no cursor; take `next` of the page before"
        raise CursorError(message)
    return instant


def to_outcome(move: GradedMove) -> wire.Outcome:
    """The graded move as it is published."""
    outcome, promised = move.outcome, move.promised
    money = {} if promised is None else {**asdict(promised), "saving": promised.saving}
    expected = parts.Expected.model_validate(
        {
            "rebalance_pause_seconds": outcome.expected_rebalance_pause_seconds,
            "late_messages": outcome.expected_late_messages,
            **money,
        }
    )
    return wire.Outcome(
        graded_at=move.graded_at,
        from_replicas=outcome.from_replicas,
        to_replicas=outcome.to_replicas,
        recommendation_id=outcome.advised_as,
        expected=expected if outcome.advised_as is not None else None,
        happened=parts.Happened(
            rebalance_pause_seconds=outcome.rebalance_pause_seconds,
            late_messages=outcome.late_messages,
            start_up_seconds=outcome.start_up_seconds,
            left_ungracefully=outcome.ungraceful,
        ),
        sentence=outcome_sentence(move),
    )


def to_learned(learned: LearnedMoves | None) -> parts.Learned | None:
    """Beliefs about the group's moves, as they are published; None if the advice is too old to have them."""
    return None if learned is None else parts.Learned(**asdict(learned))


def to_explanation(decision: Decision) -> wire.Explanation:
    """The decision in the sentences that `lagcast explain` prints."""
    if isinstance(decision, Refusal):
        return wire.Explanation(
            recommendation_id=decision_id(decision),
            kind="Refusal",
            sentences=(decision.sentence,),
            known=(),
            reversals=(),
            remedy=decision.remedy,
        )
    return wire.Explanation(
        recommendation_id=decision.recommendation_id,
        kind="Recommendation",
        sentences=decision.sentences,
        known=beliefs(decision),
        reversals=reversals(decision),
    )


def to_hold(hold: Hold) -> wire.Hold:
    """The hold as it is published."""
    return wire.Hold(
        cluster=hold.scope.cluster,
        namespace=hold.scope.namespace,
        group_id=hold.scope.group,
        reason=hold.reason,
        placed_at=hold.placed_at,
        until=hold.until,
    )


def to_ledger(standing: LedgerStanding) -> parts.Ledger:
    """The ledger as it is published."""
    return parts.Ledger(
        since_at=standing.since_at,
        currency=standing.currency,
        error_ratio=standing.error_ratio,
        paid=_items_of(standing.paid),
        regret=standing.regret,
        accounts=tuple(
            parts.LedgerAccount(
                **_items_of(account).model_dump(),
                scaler=account.scaler,
                distinguishable=account.distinguishable,
                saving=standing.saving_against(account),
            )
            for account in standing.accounts
        ),
    )


def to_ledger_total(total: LedgerTotal) -> parts.LedgerTotal:
    """Ledgers together, as they are published."""
    return parts.LedgerTotal(
        currency=total.currency,
        groups=total.groups,
        group_hours=total.group_hours,
        since_at=total.since_at,
        error_ratio=total.error_ratio,
        paid=_items_of(total.paid),
        regret=total.regret,
        accounts=tuple(
            parts.ScalerTotal(**asdict(account), total=account.replicas + account.late) for account in total.accounts
        ),
    )


def to_partitions(
    key: str, latest: Decision, advice: Recommendation | None, found: GroupLoads, *, most: int
) -> wire.GroupPartitions:
    """The `most` busiest partitions of a group as they are published; those of unknown rate are last."""
    busiest = sorted(
        found.partitions,
        key=lambda each: (each.produce_messages_per_second is None, -(each.produce_messages_per_second or 0.0)),
    )
    return wire.GroupPartitions(
        group_key=key,
        cluster=latest.cluster,
        group_id=latest.group,
        since_at=found.since_at,
        until_at=found.until_at,
        capacity_messages_per_second_per_replica=None if advice is None else advice.capacity.p50,
        partitions=len(busiest),
        loads=tuple(parts.PartitionLoad(**each._asdict()) for each in busiest[:most]),
    )


def to_fleet_total(total: FleetTotal) -> parts.FleetTotal:
    """The groups of one currency together, as they are published."""
    known = total._asdict()
    if not total.groups_with_ledger:
        known["paid_per_hour"] = None
    return parts.FleetTotal.model_validate(known)


def _items_of(account: LedgerAccount) -> parts.LedgerItems:
    return parts.LedgerItems(replicas=account.replicas, late=account.late, total=account.total)


def to_wire(decision: Decision, group: GroupSettings, *, now: datetime) -> wire.RecommendationV1 | wire.RefusalV1:
    """The decision as it is published at `now`, with the target and the mode of its group."""
    if isinstance(decision, Refusal):
        return _refusal(decision, group)
    return _recommendation(decision, group, now=now)


def to_what_if(asked: Decision, in_force: Recommendation, *, changes: wire.WhatIfChanges) -> wire.WhatIf:
    """The decision that was asked for beside the one in force."""
    return wire.WhatIf(
        group_key=group_key(in_force.cluster, in_force.group),
        cluster=in_force.cluster,
        group_id=in_force.group,
        recommendation_id=in_force.recommendation_id,
        issued_at=in_force.issued_at,
        changes=changes,
        in_force=wire.Advised.model_validate(_in_part(in_force, wire.Advised)),
        what_if=wire.Refused.model_validate(_in_part(asked, wire.Refused))
        if isinstance(asked, Refusal)
        else wire.Advised.model_validate(_in_part(asked, wire.Advised)),
    )


def _in_part(decision: Decision, part: type[wire.Advised | wire.Refused]) -> dict[str, object]:
    """Those fields of the published decision that `part` has."""
    full = to_wire(decision, GroupSettings(), now=issued_at(decision))
    return {name: getattr(full, name) for name in part.model_fields}


def to_summary(decision: Decision, group: GroupSettings, *, now: datetime) -> wire.GroupSummary:
    """The decision in short, as one row of a page of groups: its fields mean what they do in the whole document.

    That is not made for it: one takes 0.3 ms, which a page of 50 would take each time.
    """
    common = {
        "group_key": group_key(decision.cluster, decision.group),
        "cluster": decision.cluster,
        "namespace": _namespace(group.target),
        "group_id": decision.group,
        "kind": "Refusal" if isinstance(decision, Refusal) else "Recommendation",
        "recommendation_id": decision_id(decision),
        "reason_code": wire_code(decision.reason),
        "issued_at": issued_at(decision),
        "concern": concern_of(decision),
    }
    if isinstance(decision, Refusal):
        return wire.GroupSummary.model_validate({**common, "current_replicas": decision.hold_replicas})
    expired = now > decision.valid_until
    return wire.GroupSummary.model_validate(
        {
            **common,
            "valid_until": decision.valid_until,
            "expired": expired,
            "action": decision.action,
            "current_replicas": decision.current_replicas,
            "desired_replicas": decision.desired_replicas,
            "due_replicas": None if expired else decision.due_replicas(now=now),
            "execute_at": decision.execute_at,
            "lag_seconds": decision.observed.lag_seconds,
            "saving": decision.saving,
            "currency": decision.currency,
        }
    )


def _refusal(refusal: Refusal, group: GroupSettings) -> wire.RefusalV1:
    return wire.RefusalV1(
        recommendation_id=decision_id(refusal),
        issued_at=refusal.refused_at,
        cluster=refusal.cluster,
        namespace=_namespace(group.target),
        group_id=refusal.group,
        target=_target(group.target),
        mode=group.mode,
        reason=parts.Reason(code=wire_code(refusal.reason), sentences=(refusal.sentence,)),
        evidence=dict(refusal.evidence),
        hold_replicas=refusal.hold_replicas,
        remedy=wire.Remedy(sentence=refusal.remedy),
        retry_at=refusal.retry_at,
    )


def _recommendation(advice: Recommendation, group: GroupSettings, *, now: datetime) -> wire.RecommendationV1:
    return wire.RecommendationV1(
        recommendation_id=advice.recommendation_id,
        supersedes=advice.supersedes,
        issued_at=advice.issued_at,
        valid_until=advice.valid_until,
        cluster=advice.cluster,
        namespace=_namespace(group.target),
        group_id=advice.group,
        topics=advice.topics,
        target=_target(group.target),
        mode=group.mode,
        scale_to_zero=group.scale_to_zero.enabled,
        action=advice.action,
        current_replicas=advice.current_replicas,
        desired_replicas=advice.desired_replicas,
        due_replicas=advice.due_replicas(now=now) if now <= advice.valid_until else None,
        uncapped_replicas=advice.uncapped_replicas,
        useful_replicas=advice.useful_replicas,
        execute_at=advice.execute_at,
        execute_window=parts.ExecuteWindow(not_before=advice.not_before, latest_safe=advice.latest_safe),
        effective_at=advice.effective_at,
        lead_time_seconds=advice.lead_time_seconds,
        data=_data(advice),
        observed=_observed(advice),
        capacity_messages_per_second_per_replica=parts.Capacity(**asdict(advice.capacity)),
        forecast=_forecast(advice),
        rebalance_impact=parts.RebalanceImpact(**asdict(advice.rebalance_impact)),
        cost=_cost(advice),
        alternatives=tuple(_alternative(plan) for plan in advice.alternatives),
        reason=parts.Reason(code=wire_code(advice.reason), sentences=advice.sentences, cause=advice.cause),
        binding_rule=advice.binding_rule,
        desired_replicas_lower=advice.desired_replicas_lower,
        desired_replicas_upper=advice.desired_replicas_upper,
        fallback_policy=None
        if advice.fallback_policy is None
        else parts.FallbackPolicy(**asdict(advice.fallback_policy)),
        sensitivity=tuple(parts.TurningPoint(**asdict(turning_point)) for turning_point in advice.sensitivity or ())
        or None,
        confidence=advice.confidence,
        confidence_level=advice.confidence_level,
        learned=to_learned(advice.learned),
        profile=tuple(parts.ProfileFigure(**asdict(figure)) for figure in advice.profile),
        policy=None if advice.policy is None else parts.Policy(**asdict(advice.policy)),
        ledger=None if advice.ledger is None else to_ledger(advice.ledger),
    )


def _data(advice: Recommendation) -> parts.DataQuality:
    return parts.DataQuality(
        as_of=advice.observed.as_of,
        age_seconds=(advice.issued_at - advice.observed.as_of).total_seconds(),
        history_seconds=advice.history_seconds,
        history_tier=advice.forecast.history_tier,
        counts=dict(advice.data_counts),
    )


def _observed(advice: Recommendation) -> parts.Observed:
    seen = advice.observed
    return parts.Observed(
        produce_messages_per_second=seen.produce_messages_per_second,
        consume_messages_per_second=seen.consume_messages_per_second,
        lag_messages=seen.lag_messages,
        lag_seconds=seen.lag_seconds,
    )


def _forecast(advice: Recommendation) -> parts.Forecast:
    forecast = advice.forecast
    return parts.Forecast(
        model=forecast.model,
        horizon_seconds=len(forecast.p50) * forecast.step_seconds,
        step_seconds=forecast.step_seconds,
        produce_messages_per_second=parts.QuantilePaths(p05=forecast.p05, p50=forecast.p50, p95=forecast.p95),
        value=None if forecast.value is None else _value(forecast.value),
    )


def _value(value: ForecastValue) -> parts.ForecastValue:
    return parts.ForecastValue(
        cost_with_forecast=value.cost_with_forecast,
        cost_without_forecast=value.cost_without_forecast,
        forecast_proven=value.forecast_proven,
        forecast_used=value.forecast_used,
    )


def _cost(advice: Recommendation) -> parts.CostComparison:
    return parts.CostComparison(
        currency=advice.currency,
        horizon_seconds=advice.horizon_seconds,
        chosen=parts.CostItems(**_items(advice.chosen)),
        stay=parts.CostItems(**_items(advice.stay)),
        saving=advice.saving,
        break_even_seconds=advice.break_even_seconds,
        act_now=None if advice.act_now is None else parts.CostItems(**_items(advice.act_now)),
    )


def _alternative(plan: PricedPlan) -> parts.Alternative:
    return parts.Alternative(desired_replicas=plan.desired_replicas, execute_at=plan.execute_at, **_items(plan.cost))


def _items(cost: Cost) -> dict[str, float]:
    return {**asdict(cost), "total": cost.total}


def _target(target: TargetSettings | None) -> parts.Target | None:
    if target is None:
        return None
    return parts.Target(api_version=target.api_version, kind=target.kind, name=target.name)


def _namespace(target: TargetSettings | None) -> str | None:
    return None if target is None else target.namespace
