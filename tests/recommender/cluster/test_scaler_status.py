"""The statuses and Events written for objects: everything at the first visit, then only changes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.refusal import Refusal
from recommender.cluster.scaler import GroupRequest, InvalidScaler, read_scaler, request_of
from recommender.cluster.scaler_status import CONDITIONS, is_news, rejected_status, status_of, transition
from recommender.configuring.settings import Settings
from recommender.deciding.recommendation import Decision, ForecastValue, Recommendation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CYCLE_SECONDS = 60.0


def seen(status: Any = None, **spec: Any) -> tuple[dict[str, Any], GroupRequest]:  # noqa: ANN401  # YAML
    """An object as the cluster has it, and its request."""
    metadata = {"namespace": "shop", "name": "orders", "uid": "u", "generation": 4}
    document: dict[str, Any] = {
        "metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"cluster": "prod-eu", "groupId": "orders"} | spec,
        "status": status or {},
    }
    return document, request_of(Settings(state_dir=Path("nowhere")), read_scaler(document))


def status_after(decision: Decision | None, before: Any = None, *, now: datetime = NOW, **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """The status after a visit."""
    return dict(status_of(*seen(before, **spec), decision, now=now))


def within_an_hour(decision: Decision) -> Decision:
    """The same decision with a horizon that plans may have."""
    return replace(decision, horizon_seconds=3600.0) if isinstance(decision, Recommendation) else decision


def verdicts(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_hold_of_the_store_is_in_the_status_of_the_object(advice: Callable[..., Recommendation]) -> None:
    """Paused is True, with the sentence of the hold, while the advice is there and says to stay."""
    held = "A hold on all groups is in force until it is released, nothing is moved: upgrade."
    status = status_after(advice(reason="held", action="hold", desired_replicas=6, sentences=("x.", held)))
    paused = next(condition for condition in status["conditions"] if condition["type"] == "Paused")
    assert (paused["status"], paused["reason"], paused["message"]) == ("True", "Held", held)
    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    assert ready["status"] == "True"


def test_the_status_has_all_of_the_advice(advice: Callable[..., Recommendation]) -> None:
    """It has counts, instants and prices of the advice, as decimal strings if not whole, and every condition."""
    status = status_after(advice(confidence=0.86))
    assert status["recommendation"] == {
        "recommendationId": "r-1",
        "action": "ScaleOut",
        "reason": "RampAhead",
        "currentReplicas": 6,
        "desiredReplicas": 8,
        "executeAt": "2026-01-05T12:02:00Z",
        "validUntil": "2026-01-05T12:05:00Z",
        "confidence": "0.86",
        "confidenceLevel": "High",
    }
    assert status["observed"]["lagMessages"] == 5200
    assert status["observed"]["lagSeconds"] == "0.3"
    # The horizon is an hour: the plan's 0.38 + 0.05 + 0.01 + 0.05 + 0.1, and 0.3 + 1.18 for staying.
    assert status["costPerHour"] == {"currency": "USD", "chosen": "0.59", "stay": "1.48"}
    assert (status["observedGeneration"], status["mode"]) == (4, "Recommend")
    assert verdicts(status) == {
        "Ready": ("True", "Advised"),
        "DataSufficient": ("True", "Weekly"),
        "CapacityKnown": ("True", "Configured"),
        "ForecastTrusted": ("Unknown", "NotCompared"),
        "Executing": ("False", "ModeRecommend"),
        "Conflicted": ("False", "OnlyScaler"),
        "Paused": ("False", "NotHeld"),
    }


@pytest.mark.parametrize(
    ("proven", "used", "verdict"),
    [
        (True, True, ("True", "NoMoreExpensive")),
        (True, False, ("False", "MoreExpensive")),
        (False, False, ("False", "NotProven")),
    ],
)
def test_a_forecast_is_trusted_where_plans_use_it(
    advice: Callable[..., Recommendation],
    proven: bool,  # noqa: FBT001  # a case of the table
    used: bool,  # noqa: FBT001  # the same
    verdict: tuple[str, str],
) -> None:
    """It has beaten none out of sample, and has not made plans more expensive; the reason says which is missing."""
    value = ForecastValue(cost_with_forecast=1.0, cost_without_forecast=1.0, forecast_proven=proven, forecast_used=used)
    status = status_after(advice(forecast=replace(advice().forecast, value=value)))
    assert verdicts(status)["ForecastTrusted"] == verdict


def test_without_a_decision_the_status_has_no_advice() -> None:
    """A group that is off has the reason Off; any other group has Ready unknown."""
    assert verdicts(status_after(None, mode="Off"))["Ready"] == ("False", "Off")
    assert verdicts(status_after(None))["Ready"] == ("Unknown", "NoDecision")


def test_the_status_of_a_refusal_has_no_count(refusal: Callable[..., Refusal]) -> None:
    """It has the sentence and the next step, and no count that could be read by mistake."""
    status = status_after(refusal(), status_after(None))
    assert "recommendation" not in status
    ready = status["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("False", "HistoryStale")
    assert ready["message"].endswith("the freshness limit is 600 s. Check that samples are collected.")
    assert verdicts(status)["DataSufficient"] == ("False", "HistoryStale")
    assert verdicts(status)["CapacityKnown"][0] == "Unknown"


@given(st.data())
def test_every_condition_is_there_at_the_first_visit(any_decision: st.SearchStrategy[Decision], data: Any) -> None:  # noqa: ANN401  # hypothesis does not export its type
    """This holds for any decision or none, and for an object that is not followed."""
    status = status_after(data.draw(st.one_of(any_decision.map(within_an_hour), st.none())))
    assert tuple(each["type"] for each in status["conditions"]) == CONDITIONS
    document, _ = seen()
    invalid = InvalidScaler(reason="ConfigInvalid", sentence="no", group=None)
    rejected = rejected_status(document, invalid, now=NOW)
    assert tuple(each["type"] for each in rejected["conditions"]) == CONDITIONS


@given(st.data())
def test_an_unchanged_status_is_no_news(any_decision: st.SearchStrategy[Decision], data: Any) -> None:  # noqa: ANN401  # the same
    """The same decision again changes nothing that is written, and causes no Event, for any decision."""
    decision = data.draw(st.one_of(any_decision.map(within_an_hour), st.none()))
    before = status_after(decision)
    after = status_after(decision, before)
    assert after == before
    assert transition(before, after) is None


def test_a_minute_later_the_same_is_no_news(advice: Callable[..., Recommendation]) -> None:
    """A new id, new instants and new figures are not written, nor is a later plan that keeps its instant."""
    before = status_after(advice())
    later = NOW + timedelta(seconds=60)
    again = advice(recommendation_id="r-2", issued_at=later, valid_until=later + timedelta(seconds=300))
    again = replace(again, observed=replace(again.observed, lag_messages=9.0))
    after = status_after(again, before, now=later)
    assert not is_news(before, after, now=later, cycle_seconds=CYCLE_SECONDS)


def test_a_move_that_stays_due_is_no_news(advice: Callable[..., Recommendation]) -> None:
    """If a move is not carried out, it is due at each new present: the first reported instant stays."""
    before = status_after(advice(execute_at=NOW))
    later = NOW + timedelta(seconds=60)
    after = status_after(advice(issued_at=later, execute_at=later), before, now=later)
    assert after["recommendation"]["executeAt"] == "2026-01-05T12:00:00Z"
    assert not is_news(before, after, now=later, cycle_seconds=CYCLE_SECONDS)


def test_advice_is_renewed_before_it_lapses(advice: Callable[..., Recommendation]) -> None:
    """Valid for 300 s and decided each 60 s, it is written again once it has less than 90 s left: after 240 s."""
    before = status_after(advice())
    cycles = [NOW + timedelta(seconds=60 * cycle) for cycle in range(1, 6)]
    news = [is_news(before, status_after(advice(), before), now=now, cycle_seconds=CYCLE_SECONDS) for now in cycles]
    assert news == [False, False, False, True, True]


def test_a_change_is_news(advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]) -> None:
    """Another count, reason or later instant, a refusal, a hold and a new generation are each written."""
    before = status_after(advice())
    changed = [
        status_after(advice(desired_replicas=9), before),
        status_after(advice(reason="backlog_drain"), before),
        status_after(advice(execute_at=NOW + timedelta(seconds=300)), before),
        status_after(refusal(), before),
        status_after(advice(), before, hold={"replicas": 6}),
        status_after(advice(), before, mode="Apply"),
        before | {"observedGeneration": 3},
    ]
    assert all(is_news(before, after, now=NOW, cycle_seconds=CYCLE_SECONDS) for after in changed)


def test_conditions_keep_the_instant_of_their_last_change(
    advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]
) -> None:
    """The instant changes with the status, and with nothing else."""
    later = NOW + timedelta(hours=1)
    stale = status_after(refusal(), status_after(refusal()), now=later)
    back = status_after(advice(), stale, now=later)
    since = [status["conditions"][0]["lastTransitionTime"] for status in (stale, back)]
    assert since == ["2026-01-05T12:00:00Z", "2026-01-05T13:00:00Z"]


def test_events_are_transitions(advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]) -> None:
    """From nothing to advice, from advice to a refusal, and to another count; not from one reason to another."""
    first, refused = status_after(advice()), status_after(refusal())
    steps = [
        ({}, first, "RecommendationChanged"),
        (first, status_after(advice(reason="backlog_drain")), None),
        (first, status_after(advice(desired_replicas=9)), "RecommendationChanged"),
        (first, refused, "RecommendationWithheld"),
        (refused, status_after(refusal(reason="rebalancing")), "RecommendationWithheld"),
        (refused, first, "RecommendationChanged"),
    ]
    assert [getattr(transition(before, after), "reason", None) for before, after, _ in steps] == [
        reason for *_, reason in steps
    ]
    document, _ = seen()
    bad = rejected_status(document, InvalidScaler(reason="ConfigInvalid", sentence="no", group=None), now=NOW)
    event = transition(first, bad)
    assert event is not None
    assert (event.kind, event.reason, event.note) == ("Warning", "ScalerRejected", "no")


def test_apply_is_left_to_the_executor(advice: Callable[..., Recommendation]) -> None:
    """The status does not claim that an executor acts: without a target none can, with one it is not known here."""
    assert verdicts(status_after(advice(), mode="Apply"))["Executing"] == ("False", "NoTarget")
    ready = status_after(advice(), mode="Apply", target={"name": "orders"})
    assert verdicts(ready)["Executing"] == ("Unknown", "LeftToExecutor")


def test_a_hold_is_a_pause(advice: Callable[..., Recommendation]) -> None:
    """It is while the hold is in force, and the message has its end."""
    status = status_after(advice(), hold={"replicas": 6, "until": "2026-01-05T13:00:00Z"})
    paused = status["conditions"][-1]
    assert (paused["type"], paused["status"], paused["reason"]) == ("Paused", "True", "Held")
    assert paused["message"] == "Held at 6 replicas until 2026-01-05T13:00:00Z."
    assert verdicts(status_after(None, mode="Off"))["Paused"] == ("True", "ModeOff")
