"""From a decision to the wire: nothing invented, nothing null, nothing lost that the wire promises."""

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.convert import GroupKeyError, group_key, group_of_key, to_summary, to_wire
from api.schemas import DECISION_V1, RecommendationV1, RefusalV1
from cost_model.pricing.price import Cost
from forecasting.refusal import Refusal, RefusalReason
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.deciding.recommendation import Decision, Recommendation, TurningPoint
from recommender.ports import issued_at

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]
OWNED = GroupSettings(mode="apply", target=TargetSettings(namespace="shop", name="orders-consumer"))
BOUND_TO_HAPPEN = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def _document(decision: Decision, group: GroupSettings = OWNED) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        to_wire(decision, group, now=issued_at(decision)).model_dump_json(exclude_none=True)
    )
    return document


def _nulls(value: object) -> bool:
    if isinstance(value, dict):
        return any(_nulls(item) for item in value.values())
    if isinstance(value, list):
        return any(_nulls(item) for item in value)
    return value is None


@given(cluster=st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8")), group=st.text())
def test_a_group_key_leads_back_and_fits_a_path(cluster: str, group: str) -> None:
    """Whatever characters a group id holds, its key consists of those that need no escaping, and names it alone."""
    key = group_key(cluster, group)
    assert group_of_key(key) == (cluster, group)
    assert all(character.isalnum() or character in "-_" for character in key)


@pytest.mark.parametrize("key", ["", "orders", "!!!!", "cHJvZC1ldQBvcmRlcnM=", "cHJvZC1ldQBvcmRlcnM/", "gICA", "é"])
def test_what_is_no_key_is_named(key: str) -> None:
    """A key that was made up is refused with the route that lists the real ones, even if it nearly decodes."""
    with pytest.raises(GroupKeyError, match="GET /api/v1/groups"):
        group_of_key(key)


@given(data=st.data())
@BOUND_TO_HAPPEN
def test_the_wire_reads_back_equal_and_holds_no_null(
    data: st.DataObject, any_decision: st.SearchStrategy[Decision]
) -> None:
    """For every decision: what is sent parses to what was meant, and unknown fields are absent."""
    decision = data.draw(any_decision)
    sent = to_wire(decision, OWNED, now=issued_at(decision))
    document = sent.model_dump_json(exclude_none=True)
    assert DECISION_V1.validate_json(document) == sent
    assert not _nulls(json.loads(document))


@given(data=st.data())
@BOUND_TO_HAPPEN
def test_the_items_of_a_price_add_up_on_the_wire(
    data: st.DataObject, any_decision: st.SearchStrategy[Decision]
) -> None:
    """`total` is the sum of the other items, in their order: of the choice, staying, acting now, each alternative."""
    decision = data.draw(any_decision.filter(lambda d: isinstance(d, Recommendation)))
    document = _document(decision)
    names = [field.name for field in fields(Cost)]
    compared = [document["cost"][name] for name in ("chosen", "stay", "act_now") if name in document["cost"]]
    for price in (*compared, *document["alternatives"]):
        assert price["total"] == sum(price[name] for name in names)


def test_advice_carries_its_target_and_mode(advice: MakeAdvice) -> None:
    """Settings add who may be scaled and whether; without them the group is advice only."""
    owned, unowned = _document(advice()), _document(advice(), GroupSettings())
    assert (owned["mode"], owned["namespace"], owned["target"]["name"]) == ("apply", "shop", "orders-consumer")
    assert unowned["mode"] == "recommend"
    assert {"namespace", "target"}.isdisjoint(unowned)


def test_replicas_fall_due_and_expire(advice: MakeAdvice) -> None:
    """Due are the current replicas before `execute_at`, the desired ones from then on, and none after expiry."""
    given_advice = advice()
    instants = (
        given_advice.execute_at - timedelta(seconds=1),
        given_advice.execute_at,
        given_advice.valid_until,
        given_advice.valid_until + timedelta(microseconds=1),
    )
    due = [to_summary(given_advice, OWNED, now=now) for now in instants]
    assert [row.due_replicas for row in due] == [6, 8, 8, None]
    assert [row.expired for row in due] == [False, False, False, True]


@pytest.mark.parametrize("reason", get_args(RefusalReason))
def test_a_refusal_advises_no_number(reason: RefusalReason, refusal: MakeRefusal) -> None:
    """For each reason: its code in CamelCase, its evidence and remedy, and no replicas to have."""
    document = _document(refusal(reason=reason))
    assert document["kind"] == "Refusal"
    assert document["reason"]["code"].lower() == reason.replace("_", "")
    assert document["evidence"] == {"history_age_seconds": 2400.0, "freshness_limit_seconds": 600.0}
    assert document["remedy"]["sentence"].endswith(".")
    assert {"desired_replicas", "due_replicas", "hold_replicas", "retry_at"}.isdisjoint(document)


def test_both_kinds_are_told_apart_by_kind(advice: MakeAdvice, refusal: MakeRefusal) -> None:
    """A consumer parses either message with one adapter."""
    assert isinstance(DECISION_V1.validate_python(_document(advice())), RecommendationV1)
    assert isinstance(DECISION_V1.validate_python(_document(refusal())), RefusalV1)


def test_a_consumer_outlives_new_fields(advice: MakeAdvice) -> None:
    """A field added in 1.1 does not disturb a consumer of 1.0."""
    document = _document(advice()) | {"schema_version": "1.1", "mood": 0.86}
    assert DECISION_V1.validate_python(document).schema_version == "1.1"


@pytest.mark.parametrize(
    ("confidence", "level"), [(0.8, "high"), (0.79, "medium"), (0.6, "medium"), (0.59, "low"), (None, None)]
)
def test_confidence_has_a_figure_and_a_word(advice: MakeAdvice, confidence: float | None, level: str | None) -> None:
    """High from four scenarios in five, medium from three; both are absent where the share is not known."""
    document = _document(advice(confidence=confidence))
    assert (document.get("confidence"), document.get("confidence_level")) == (confidence, level)


def test_what_would_turn_the_decision_goes_from_a_figure_to_another(advice: MakeAdvice) -> None:
    """Each turning point is read as quantity, from, to; where none was found the field is absent."""
    turning_point = TurningPoint(quantity="rebalance_pause_seconds", present=3.4, turning=41.0)
    assert _document(advice(sensitivity=(turning_point,)))["sensitivity"] == [
        {"quantity": "rebalance_pause_seconds", "from": 3.4, "to": 41.0}
    ]
    assert "sensitivity" not in _document(advice())


def test_what_an_older_decision_does_not_say_is_absent(advice: MakeAdvice) -> None:
    """Advice kept before a field existed is published without it, and complete in everything else."""
    document = _document(advice())
    later = {"desired_replicas_lower", "desired_replicas_upper", "fallback_policy", "learned", "policy", "confidence"}
    assert later.isdisjoint(document)
    assert "act_now" not in document["cost"]
    assert {"skill_vs_persistence", "trusted"}.isdisjoint(document["forecast"])
