"""How much a group needs somebody's eyes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.refusal import Refusal
from recommender.concern import Urgency, concern_of, paid_per_hour, saving_per_hour, urgency_of
from recommender.deciding.recommendation import Decision, LedgerStanding, PolicyFigures, Recommendation
from recommender.ports import place_of

MakeAdvice = Callable[..., Recommendation]
PROMISE = PolicyFigures(
    name="balanced",
    price_per_replica_hour=0.05,
    price_per_late_message=1e-6,
    price_per_duplicate_message=0.0,
    price_per_move=0.0,
    risk_weight=0.0,
    max_lag_seconds=10.0,
)


def test_the_worst_of_a_group_is_what_counts(advice: MakeAdvice, refusal: Callable[..., Refusal]) -> None:
    """A promise that is missed counts more than the saving of the move that would keep it."""
    late = replace(advice().observed, lag_seconds=25.0)
    assert urgency_of(refusal()) == Urgency(0, "", 0.0)
    assert urgency_of(advice(observed=late, policy=PROMISE)) == Urgency(1, "", -2.5)
    assert tuple(urgency_of(advice(policy=PROMISE))) == (2, "USD", pytest.approx(-0.89))
    assert urgency_of(advice(desired_replicas=6, action="hold")) == Urgency(3, "", 0.0)


def test_a_lag_as_long_as_promised_is_on_time(advice: MakeAdvice) -> None:
    """And one whose promise is not known misses none."""
    on_time, late = (replace(advice().observed, lag_seconds=seconds) for seconds in (10.0, 10.1))
    stays = advice(desired_replicas=6, action="hold", policy=PROMISE)
    assert concern_of(replace(stays, observed=on_time)) is None
    assert concern_of(replace(stays, observed=late)) == "promise_missed"
    assert concern_of(replace(stays, observed=late, policy=None)) is None
    assert concern_of(replace(stays, observed=replace(late, lag_seconds=None))) is None


def test_a_move_that_costs_is_no_saving_forgone(advice: MakeAdvice) -> None:
    """Guards may demand one."""
    assert concern_of(advice(stay=advice().chosen, chosen=advice().stay)) is None


def test_money_is_told_by_the_hour(advice: MakeAdvice, ledger: LedgerStanding) -> None:
    """Of a ledger of 7.50 in a day; one in another currency than the advice, or of no time at all, is not told."""
    assert saving_per_hour(advice(horizon_seconds=1800.0)) == pytest.approx(2 * 0.89)
    assert paid_per_hour(advice(ledger=ledger)) == pytest.approx(7.5 / 24)
    assert paid_per_hour(advice(ledger=ledger, currency="EUR")) is None
    assert paid_per_hour(advice(ledger=ledger, issued_at=ledger.since_at)) is None
    assert paid_per_hour(advice(ledger=ledger, issued_at=ledger.since_at - timedelta(hours=1))) is None
    assert paid_per_hour(advice()) is None


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_no_two_groups_have_one_place(data: st.DataObject, any_decision: st.SearchStrategy[Decision]) -> None:
    """Whatever the decisions are, groups have an order."""
    one, other = data.draw(any_decision), data.draw(any_decision)
    same = (one.cluster, one.group) == (other.cluster, other.group)
    assert (place_of(one) < place_of(other)) != (place_of(other) < place_of(one)) or same
