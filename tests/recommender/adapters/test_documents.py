"""A decision outlives the process that made it, bit for bit."""

import json
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.refusal import Refusal
from recommender.adapters.documents import (
    from_document,
    from_outcome_document,
    kind,
    to_document,
    to_outcome_document,
)
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.ports import MalformedError


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_every_decision_comes_back_equal(data: st.DataObject, any_decision: st.SearchStrategy[Decision]) -> None:
    """A decision of any values that is written as a document is read back as the same decision."""
    decision = data.draw(any_decision)
    assert from_document(kind(decision), to_document(decision)) == decision


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_graded_move_comes_back_equal(data: st.DataObject, any_move: st.SearchStrategy[GradedMove]) -> None:
    """A move's effects and expectations are read back to the last bit, so they teach the same again."""
    move = data.draw(any_move)
    assert from_outcome_document(to_outcome_document(move)) == move


def test_a_number_that_is_none_is_never_written(
    refusal: Callable[..., Refusal], graded_move: Callable[..., GradedMove]
) -> None:
    """NaN in a decision or a move is a bug that shows at the write; it is never stored as null."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_document(refusal(evidence=(("lag_messages", float("nan")),)))
    move = graded_move()
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_outcome_document(replace(move, outcome=replace(move.outcome, rebalance_pause_seconds=float("inf"))))


def test_a_move_of_another_version_is_malformed(graded_move: Callable[..., GradedMove]) -> None:
    """A field that cannot be read is named with its path in the document."""
    document = json.loads(to_outcome_document(graded_move()))
    document["outcome"]["rebalance_pause_seconds"] = "long"
    with pytest.raises(MalformedError, match=r"GradedMove cannot be read: field outcome\.rebalance_pause_seconds"):
        from_outcome_document(json.dumps(document))


def test_a_document_of_another_version_is_malformed(advice: Callable[..., Recommendation]) -> None:
    """A field that cannot be read is named, and so is an unknown kind."""
    document = json.loads(to_document(advice())) | {"action": "teleport"}
    with pytest.raises(MalformedError, match="field action"):
        from_document("Recommendation", json.dumps(document))
    with pytest.raises(MalformedError, match="'Forecast'"):
        from_document("Forecast", "{}")


def test_advice_kept_before_a_field_existed_still_reads(advice: Callable[..., Recommendation]) -> None:
    """A document without later fields is read, and these fields are unknown."""
    added = [field.name for field in fields(Recommendation) if field.default is None or field.default == ()]
    document = {name: value for name, value in json.loads(to_document(advice())).items() if name not in added}
    read = from_document("Recommendation", json.dumps(document))
    assert isinstance(read, Recommendation)
    assert {"confidence", "fallback_policy", "learned", "policy", "sensitivity"} <= set(added)
    assert read == advice()


def test_the_sum_of_a_price_survives(advice: Callable[..., Recommendation]) -> None:
    """Thirds of a cent add up to the same total after reading back."""
    given_cost = replace(advice().chosen, late=1 / 3, risk=0.1 + 0.2)
    decision = advice(chosen=given_cost)
    read = from_document("Recommendation", to_document(decision))
    assert isinstance(read, Recommendation)
    assert read.chosen.total == given_cost.total
