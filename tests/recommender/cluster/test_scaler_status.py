"""The statuses and Events written for objects: everything at the first visit, then only changes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forecasting.refusal import Refusal
from recommender.cluster.scaler import GroupRequest, InvalidScaler, read_scaler, request_of
from recommender.cluster.scaler_status import CONDITIONS, is_news, rejected_status, status_of, transition
from recommender.configuring.settings import Settings
from recommender.deciding.recommendation import Decision, Recommendation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CYCLE_SECONDS = 60.0


def seen(status: Any = None, **spec: Any) -> tuple[dict[str, Any], GroupRequest]:  # noqa: ANN401  # YAML
    """An object as the cluster has it, and what it asks for."""
    metadata = {"namespace": "shop", "name": "orders", "uid": "u", "generation": 4}
    document: dict[str, Any] = {
        "metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"cluster": "prod-eu", "groupId": "orders"} | spec,
        "status": status or {},
    }
    return document, request_of(Settings(state_dir=Path("nowhere")), read_scaler(document))


def told(decision: Decision | None, before: Any = None, *, now: datetime = NOW, **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """The status after a visit."""
    return dict(status_of(*seen(before, **spec), decision, now=now))


def within_an_hour(decision: Decision) -> Decision:
    """The same with a horizon that plans may have."""
    return replace(decision, horizon_seconds=3600.0) if isinstance(decision, Recommendation) else decision


def verdicts(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_advice_is_told_in_full(advice: Callable[..., Recommendation]) -> None:
    """Counts, instants and prices of the advice, in decimal strings where they are not whole; and every condition."""
    status = told(advice(confidence=0.86))
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
        "ForecastTrusted": ("Unknown", "TooFewScored"),
        "Executing": ("False", "ModeRecommend"),
        "Conflicted": ("False", "OnlyScaler"),
        "Paused": ("False", "NotHeld"),
    }


def test_without_a_decision_nothing_is_claimed() -> None:
    """A group that is off says so; of any other one nobody can say anything yet."""
    assert verdicts(told(None, mode="Off"))["Ready"] == ("False", "Off")
    assert verdicts(told(None))["Ready"] == ("Unknown", "NoDecision")


def test_a_refusal_is_told_without_a_number(refusal: Callable[..., Refusal]) -> None:
    """There is no count to read by mistake, but the sentence, and what to do next."""
    status = told(refusal(), told(None))
    assert "recommendation" not in status
    ready = status["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("False", "HistoryStale")
    assert ready["message"].endswith("the freshness limit is 600 s. Check that samples are collected.")
    assert verdicts(status)["DataSufficient"] == ("False", "HistoryStale")
    assert verdicts(status)["CapacityKnown"][0] == "Unknown"


@given(st.data())
def test_every_condition_is_there_at_the_first_visit(any_decision: st.SearchStrategy[Decision], data: Any) -> None:  # noqa: ANN401  # hypothesis does not export its type
    """Whatever was decided, or nothing at all; also for an object that is not followed."""
    status = told(data.draw(st.one_of(any_decision.map(within_an_hour), st.none())))
    assert tuple(each["type"] for each in status["conditions"]) == CONDITIONS
    document, _ = seen()
    invalid = InvalidScaler(reason="ConfigInvalid", sentence="no", group=None)
    rejected = rejected_status(document, invalid, now=NOW)
    assert tuple(each["type"] for each in rejected["conditions"]) == CONDITIONS


@given(st.data())
def test_what_was_just_told_is_no_news(any_decision: st.SearchStrategy[Decision], data: Any) -> None:  # noqa: ANN401  # the same
    """The same decision again changes nothing that is written, and is no Event, whatever it is."""
    decision = data.draw(st.one_of(any_decision.map(within_an_hour), st.none()))
    before = told(decision)
    after = told(decision, before)
    assert after == before
    assert transition(before, after) is None


def test_a_minute_later_the_same_is_no_news(advice: Callable[..., Recommendation]) -> None:
    """New id, new instants, new figures: nobody is told; a plan for later that keeps its instant is no news either."""
    before = told(advice())
    later = NOW + timedelta(seconds=60)
    again = advice(recommendation_id="r-2", issued_at=later, valid_until=later + timedelta(seconds=300))
    again = replace(again, observed=replace(again.observed, lag_messages=9.0))
    after = told(again, before, now=later)
    assert not is_news(before, after, now=later, cycle_seconds=CYCLE_SECONDS)


def test_a_move_that_stays_due_is_no_news(advice: Callable[..., Recommendation]) -> None:
    """Nobody carries it out, and it is due at each new present: the instant that was told first stays."""
    before = told(advice(execute_at=NOW))
    later = NOW + timedelta(seconds=60)
    after = told(advice(issued_at=later, execute_at=later), before, now=later)
    assert after["recommendation"]["executeAt"] == "2026-01-05T12:00:00Z"
    assert not is_news(before, after, now=later, cycle_seconds=CYCLE_SECONDS)


def test_advice_is_renewed_before_it_lapses(advice: Callable[..., Recommendation]) -> None:
    """Valid for 300 s and decided each 60 s, it is written again once it has less than 90 s left: after 240 s."""
    before = told(advice())
    cycles = [NOW + timedelta(seconds=60 * cycle) for cycle in range(1, 6)]
    news = [is_news(before, told(advice(), before), now=now, cycle_seconds=CYCLE_SECONDS) for now in cycles]
    assert news == [False, False, False, True, True]


def test_what_changes_is_news(advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]) -> None:
    """Another count, another reason, another instant ahead, a refusal, a hold, a new generation: each is written."""
    before = told(advice())
    changed = [
        told(advice(desired_replicas=9), before),
        told(advice(reason="backlog_drain"), before),
        told(advice(execute_at=NOW + timedelta(seconds=300)), before),
        told(refusal(), before),
        told(advice(), before, hold={"replicas": 6}),
        told(advice(), before, mode="Apply"),
        before | {"observedGeneration": 3},
    ]
    assert all(is_news(before, after, now=NOW, cycle_seconds=CYCLE_SECONDS) for after in changed)


def test_conditions_remember_since_when(advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]) -> None:
    """The instant moves with the status, and with nothing else."""
    later = NOW + timedelta(hours=1)
    stale = told(refusal(), told(refusal()), now=later)
    back = told(advice(), stale, now=later)
    since = [status["conditions"][0]["lastTransitionTime"] for status in (stale, back)]
    assert since == ["2026-01-05T12:00:00Z", "2026-01-05T13:00:00Z"]


def test_events_are_transitions(advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]) -> None:
    """From nothing to advice, from advice to a refusal, and to another count; not from one reason to another."""
    first, refused = told(advice()), told(refusal())
    steps = [
        ({}, first, "RecommendationChanged"),
        (first, told(advice(reason="backlog_drain")), None),
        (first, told(advice(desired_replicas=9)), "RecommendationChanged"),
        (first, refused, "RecommendationWithheld"),
        (refused, told(refusal(reason="rebalancing")), "RecommendationWithheld"),
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
    """The status does not claim that anybody acts: without a target nobody can, with one it is not seen from here."""
    assert verdicts(told(advice(), mode="Apply"))["Executing"] == ("False", "NoTarget")
    ready = told(advice(), mode="Apply", target={"name": "orders"})
    assert verdicts(ready)["Executing"] == ("Unknown", "LeftToExecutor")


def test_a_hold_is_a_pause(advice: Callable[..., Recommendation]) -> None:
    """While it is in force, and it says until when."""
    status = told(advice(), hold={"replicas": 6, "until": "2026-01-05T13:00:00Z"})
    paused = status["conditions"][-1]
    assert (paused["type"], paused["status"], paused["reason"]) == ("Paused", "True", "Held")
    assert paused["message"] == "Held at 6 replicas until 2026-01-05T13:00:00Z."
    assert verdicts(told(None, mode="Off"))["Paused"] == ("True", "ModeOff")
