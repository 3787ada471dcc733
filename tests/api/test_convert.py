"""From a decision to the wire: no field is invented, none is null, and none that the wire promises is lost."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.convert import to_summary, to_wire
from api.keys import GroupKeyError, group_key, group_of_key
from api.schemas import DECISION_V1, RecommendationV1, RefusalV1
from cost_model.pricing.price import Cost
from forecasting.refusal import Refusal, RefusalReason
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.deciding.recommendation import Decision, ForecastValue, Recommendation, TurningPoint
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
    """The key of any group id consists of characters that need no escaping, and stands for that group alone."""
    key = group_key(cluster, group)
    assert group_of_key(key) == (cluster, group)
    assert all(character.isalnum() or character in "-_" for character in key)


@pytest.mark.parametrize("key", ["", "orders", "!!!!", "cHJvZC1ldQBvcmRlcnM=", "cHJvZC1ldQBvcmRlcnM/", "gICA", "é"])
def test_an_unknown_key_is_refused_by_its_name(key: str) -> None:
    """A made-up key, even one that nearly decodes, is refused, and the sentence says where the real ones are."""
    with pytest.raises(GroupKeyError, match="; the list of groups has the keys"):
        group_of_key(key)


@given(data=st.data())
@BOUND_TO_HAPPEN
def test_the_wire_reads_back_equal_and_holds_no_null(
    data: st.DataObject, any_decision: st.SearchStrategy[Decision]
) -> None:
    """Every decision is read back equal to what was sent, and unknown fields are absent."""
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
    """`total` is the sum of the other items in their order: of chosen, stay, act_now and each alternative."""
    decision = data.draw(any_decision.filter(lambda d: isinstance(d, Recommendation)))
    document = _document(decision)
    names = [field.name for field in fields(Cost)]
    compared = [document["cost"][name] for name in ("chosen", "stay", "act_now") if name in document["cost"]]
    for price in (*compared, *document["alternatives"]):
        assert price["total"] == sum(price[name] for name in names)


@given(data=st.data(), later_seconds=st.sampled_from([0.0, 600.0, 1e6]))
@BOUND_TO_HAPPEN
def test_the_row_of_a_group_tells_what_its_document_tells(
    data: st.DataObject, any_decision: st.SearchStrategy[Decision], later_seconds: float
) -> None:
    """A field of a row is that of the whole document, wherever it lies in that, and as absent."""
    decision = data.draw(any_decision)
    now = issued_at(decision) + timedelta(seconds=later_seconds)
    row, whole = (make(decision, OWNED, now=now) for make in (to_summary, to_wire))
    told = row.model_dump(exclude={"group_key", "concern", "expired"}, exclude_none=True)
    document = whole.model_dump(exclude_none=True)
    document |= {"reason_code": document["reason"]["code"], **document.get("observed", {}), **document.get("cost", {})}
    if document["kind"] == "Refusal" and "hold_replicas" in document:
        document["current_replicas"] = document["hold_replicas"]
    names = type(row).model_fields.keys() - {"group_key", "concern", "expired"}
    assert told == {name: document[name] for name in names if name in document}


def test_advice_carries_its_target_and_mode(advice: MakeAdvice) -> None:
    """The target and the mode come from the settings, and without them the group is advice only."""
    owned, unowned = _document(advice()), _document(advice(), GroupSettings())
    assert (owned["mode"], owned["namespace"], owned["target"]["name"]) == ("apply", "shop", "orders-consumer")
    assert unowned["mode"] == "recommend"
    assert {"namespace", "target"}.isdisjoint(unowned)


def test_replicas_fall_due_and_expire(advice: MakeAdvice) -> None:
    """Due replicas are the current ones before `execute_at`, the desired ones from then on, and absent after expiry."""
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
    """A refusal for each reason has its code in CamelCase, its evidence and its remedy, and no desired replicas."""
    document = _document(refusal(reason=reason))
    assert document["kind"] == "Refusal"
    assert document["reason"]["code"].lower() == reason.replace("_", "")
    assert document["evidence"] == {"history_age_seconds": 2400.0, "freshness_limit_seconds": 600.0}
    assert document["remedy"]["sentence"].endswith(".")
    assert {"desired_replicas", "due_replicas", "hold_replicas", "retry_at"}.isdisjoint(document)


def test_both_kinds_are_distinguished_by_kind(advice: MakeAdvice, refusal: MakeRefusal) -> None:
    """One adapter parses both kinds of message."""
    assert isinstance(DECISION_V1.validate_python(_document(advice())), RecommendationV1)
    assert isinstance(DECISION_V1.validate_python(_document(refusal())), RefusalV1)


def test_a_consumer_accepts_new_fields(advice: MakeAdvice) -> None:
    """A consumer of version 1.0 parses a message with a field that was added in 1.1."""
    document = _document(advice()) | {"schema_version": "1.1", "mood": 0.86}
    assert DECISION_V1.validate_python(document).schema_version == "1.1"


@pytest.mark.parametrize(
    ("confidence", "level"), [(0.8, "high"), (0.79, "medium"), (0.6, "medium"), (0.59, "low"), (None, None)]
)
def test_confidence_has_a_figure_and_a_word(advice: MakeAdvice, confidence: float | None, level: str | None) -> None:
    """The level is high from four scenarios in five and medium from three; both are absent where it is unknown."""
    document = _document(advice(confidence=confidence))
    assert (document.get("confidence"), document.get("confidence_level")) == (confidence, level)


def test_sensitivities_have_a_quantity_and_two_figures(advice: MakeAdvice) -> None:
    """Each sensitivity has its quantity, from and to, and the field is absent where none was found."""
    turning_point = TurningPoint(quantity="rebalance_pause_seconds", present=3.4, turning=41.0)
    assert _document(advice(sensitivity=(turning_point,)))["sensitivity"] == [
        {"quantity": "rebalance_pause_seconds", "from": 3.4, "to": 41.0}
    ]
    assert "sensitivity" not in _document(advice())


def test_fields_that_an_older_decision_lacks_are_absent(advice: MakeAdvice) -> None:
    """Advice from before a field existed is published without that field and with all others."""
    document = _document(advice())
    later = {"desired_replicas_lower", "desired_replicas_upper", "fallback_policy", "learned", "policy", "confidence"}
    assert later.isdisjoint(document)
    assert "act_now" not in document["cost"]
    assert "value" not in document["forecast"]


def test_what_a_forecast_is_worth_is_published_with_it(advice: MakeAdvice) -> None:
    """Both costs, whether the forecaster is proven, and whether plans use it."""
    value = ForecastValue(cost_with_forecast=1.25, cost_without_forecast=1.5, forecast_proven=True, forecast_used=True)
    assert _document(advice(forecast=replace(advice().forecast, value=value)))["forecast"]["value"] == {
        "cost_with_forecast": 1.25,
        "cost_without_forecast": 1.5,
        "forecast_proven": True,
        "forecast_used": True,
    }
