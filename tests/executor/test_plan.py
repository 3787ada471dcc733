"""The conditions under which an executor may act: the advice, the clock, the bounds, and the cluster's state."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.convert import to_wire
from api.schemas import Mode, RecommendationV1, RefusalV1
from executor.owners import FIELD_MANAGER, Owner
from executor.plan import Act, Bounds, DueMove, Expected, Held, Scale, due_move, may_act, read_advice
from forecasting.refusal import Refusal
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.configuring.settings_group import ScaleToZeroSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.ports import issued_at

MakeAdvice = Callable[..., Recommendation]
OWNED = GroupSettings(mode="apply", target=TargetSettings(namespace="shop", name="orders-consumer"))
SECOND = timedelta(seconds=1)
NO_SKEW = timedelta(0)
THROUGH_ZERO = OWNED.model_copy(update={"scale_to_zero": ScaleToZeroSettings(enabled=True)})
AS_SEEN = Scale(replicas=6, resource_version="41")
THEIRS_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
OURS, THEIRS = Owner(manager=FIELD_MANAGER, written_at=THEIRS_AT), Owner(manager="kubectl", written_at=THEIRS_AT)
LEFT = Expected(replicas=8, set_here=True)


def _wire(decision: Decision, group: GroupSettings = OWNED) -> RecommendationV1 | RefusalV1:
    return to_wire(decision, group, now=issued_at(decision))


def _due(decision: Recommendation, *, after: timedelta = timedelta(0), bounds: Bounds | None = None) -> DueMove | Held:
    return due_move(_wire(decision), now=decision.execute_at + after, bounds=bounds or Bounds(), clock_skew=NO_SKEW)


def _move(decision: Recommendation) -> DueMove:
    move = _due(decision)
    assert isinstance(move, DueMove)
    return move


def test_due_advice_is_carried_out_as_a_patch_of_the_version_that_was_read(advice: MakeAdvice) -> None:
    """The patch sets the desired count on the version of the workload that was read."""
    act = may_act(_move(advice()), scale=AS_SEEN, mode="apply", expected=None)
    assert isinstance(act, Act)
    assert act.patch == {"metadata": {"resourceVersion": "41"}, "spec": {"replicas": 8}}
    assert (act.move.namespace, act.move.target.kind, act.move.target.name) == ("shop", "Deployment", "orders-consumer")


def test_the_window_is_kept_to_the_second(advice: MakeAdvice) -> None:
    """A move is made from `execute_at` to `latest_safe` and never after `valid_until`, each of them included."""
    given_advice = advice()
    safe_for = given_advice.latest_safe - given_advice.execute_at
    valid_for = given_advice.valid_until - given_advice.execute_at
    early = _due(given_advice, after=-SECOND)
    assert isinstance(early, Held)
    assert (early.reason, early.retry_at) == ("not_due", given_advice.execute_at)
    assert isinstance(_due(given_advice), DueMove)
    assert isinstance(_due(given_advice, after=safe_for), DueMove)
    late, expired = _due(given_advice, after=safe_for + SECOND), _due(given_advice, after=valid_for + SECOND)
    assert isinstance(late, Held)
    assert isinstance(expired, Held)
    assert (late.reason, expired.reason) == ("too_late", "expired")


def test_a_refusal_changes_nothing(refusal: Callable[..., Refusal]) -> None:
    """A refusal is held with its sentence."""
    refused = refusal()
    held = due_move(_wire(refused), now=refused.refused_at, bounds=Bounds(), clock_skew=NO_SKEW)
    assert isinstance(held, Held)
    assert held.reason == "refused"
    assert "HistoryStale" in held.sentence
    assert "2,400 s" in held.sentence


@pytest.mark.parametrize(
    ("bounds", "part_of_sentence"),
    [(Bounds(lowest=9), "9 to 24"), (Bounds(highest=7), "0 to 7")],
)
def test_the_executors_own_bounds_hold(advice: MakeAdvice, bounds: Bounds, part_of_sentence: str) -> None:
    """Eight advised replicas are held by an executor whose bounds are from nine on or up to seven."""
    held = _due(advice(), bounds=bounds)
    assert isinstance(held, Held)
    assert (held.reason, part_of_sentence in held.sentence) == ("out_of_bounds", True)


def test_more_replicas_than_useful_are_never_set(advice: MakeAdvice) -> None:
    """25 replicas for 24 partitions are out of bounds, whatever bounds the executor has."""
    held = _due(advice(desired_replicas=25), bounds=Bounds(highest=100))
    assert isinstance(held, Held)
    assert held.reason == "out_of_bounds"


def test_advice_to_hold_is_nothing_to_do(advice: MakeAdvice) -> None:
    """Advice to hold, and a workload that has the desired count already, need no move."""
    held = _due(advice(action="hold", desired_replicas=6))
    there = may_act(_move(advice()), scale=replace(AS_SEEN, replicas=8), mode="apply", expected=None)
    assert isinstance(held, Held)
    assert isinstance(there, Held)
    assert held.reason == there.reason == "nothing_to_do"


def test_nothing_is_carried_out_under_a_hold(advice: MakeAdvice) -> None:
    """Neither a new move, nor one that was due when the hold began and was not made: its window is over."""
    before = advice()
    held = _due(advice(action="hold", reason="held", desired_replicas=before.current_replicas))
    late = _wire(
        replace(before, reason="warming_up", latest_safe=before.execute_at, issued_at=before.execute_at),
        GroupSettings(mode="apply"),
    )
    late_held = due_move(late, now=before.execute_at + timedelta(seconds=1), bounds=Bounds(), clock_skew=NO_SKEW)
    assert isinstance(held, Held)
    assert isinstance(late_held, Held)
    assert (held.reason, late_held.reason) == ("nothing_to_do", "too_late")


def test_without_a_target_there_is_advice_only(advice: MakeAdvice) -> None:
    """The sentence names the setting for the workload."""
    given_advice = advice()
    unowned = _wire(given_advice, GroupSettings(mode="apply"))
    held = due_move(unowned, now=given_advice.execute_at, bounds=Bounds(), clock_skew=NO_SKEW)
    assert isinstance(held, Held)
    assert (held.reason, "groups.orders.target" in held.sentence) == ("no_target", True)


@pytest.mark.parametrize("skew_seconds", [2.5, 3600.0])
def test_clocks_that_differ_hold(advice: MakeAdvice, skew_seconds: float) -> None:
    """Moves are held where clocks differ by more than two seconds, by the transport or by advice from the future."""
    given_advice, skew = advice(), timedelta(seconds=skew_seconds)
    skewed = due_move(_wire(given_advice), now=given_advice.execute_at, bounds=Bounds(), clock_skew=skew)
    future = due_move(_wire(given_advice), now=given_advice.issued_at - skew, bounds=Bounds(), clock_skew=NO_SKEW)
    assert isinstance(skewed, Held)
    assert isinstance(future, Held)
    assert skewed.reason == future.reason == "clock_skew"


@pytest.mark.parametrize(
    ("scale", "expected", "reason", "part_of_sentence"),
    [
        (replace(AS_SEEN, replicas=5), None, None, "the advice saw 6 replicas, the workload has 5"),
        (
            replace(AS_SEEN, replicas=5, owners=(THEIRS,)),
            None,
            "ChangedSinceAdvice",
            "the workload has 5, set by kubectl (at 2026-01-05T12:00:00Z); the next advice decides",
        ),
        (
            AS_SEEN,
            LEFT,
            "ChangedByOthers",
            "another client changed the workload from 8 to 6 replicas after this executor did",
        ),
        (replace(AS_SEEN, owners=(OURS, THEIRS)), LEFT, "ChangedByOthers", "kubectl (at 2026-01-05T12:00:00Z) changed"),
        (
            replace(AS_SEEN, replicas=8, owners=(OURS, THEIRS)),
            LEFT,
            "ChangedByOthers",
            "kubectl (at 2026-01-05T12:00:00Z) set the count of 8 replicas too",
        ),
        (
            AS_SEEN,
            replace(LEFT, set_here=False),
            "ChangedByOthers",
            "from 8 to 6 replicas after this executor first saw",
        ),
        (
            replace(AS_SEEN, other_writers=("HorizontalPodAutoscaler shop/orders",)),
            None,
            "Autoscaled",
            "HorizontalPodAutoscaler shop/orders scales the same workload",
        ),
        (replace(AS_SEEN, git_owner="Flux (x: y)"), None, "DeclaredInGit", "Flux (x: y) sets the workload's replicas"),
    ],
)
def test_foreign_writers_are_reported_not_fought(
    *, advice: MakeAdvice, scale: Scale, expected: Expected | None, reason: str | None, part_of_sentence: str
) -> None:
    """A change after the last move, a second manifest, an autoscaler and a tool of GitOps each hold the move."""
    held = may_act(_move(advice()), scale=scale, mode="apply", expected=expected)
    assert isinstance(held, Held)
    assert (held.reason, held.conflict) == ("conflicted", reason)
    assert part_of_sentence in held.sentence


def test_a_count_that_a_lagcast_executor_set_is_no_conflict(advice: MakeAdvice) -> None:
    """Advice from before the last move of an executor is held as unseen, without a conflict."""
    scale = replace(AS_SEEN, replicas=7, owners=(OURS,))
    held = may_act(_move(advice()), scale=scale, mode="apply", expected=LEFT)
    assert isinstance(held, Held)
    assert (held.reason, held.conflict) == ("unseen", None)
    assert "the advice saw 6 replicas, the workload has 7, set by a lagcast executor" in held.sentence


def test_a_replica_that_is_no_member_is_no_conflict(advice: MakeAdvice) -> None:
    """A count that was there before, or was written long before the advice, is held without a conflict."""
    as_before = Expected(replicas=7, set_here=False)
    long_ago = replace(THEIRS, written_at=THEIRS_AT - timedelta(days=1))
    for owner, expected in ((THEIRS, as_before), (long_ago, None)):
        scale = replace(AS_SEEN, replicas=7, owners=(owner,))
        held = may_act(_move(advice()), scale=scale, mode="apply", expected=expected)
        assert isinstance(held, Held)
        assert (held.reason, held.conflict) == ("conflicted", None)


@pytest.mark.parametrize(("seen", "desired"), [(0, 3), (3, 0)])
def test_zero_is_left_and_reached_only_where_the_owner_allows_it(advice: MakeAdvice, seen: int, desired: int) -> None:
    """Moves from and to zero need `scale_to_zero`, and the sentence names the setting and the field of the object."""
    given_advice, bounds = advice(current_replicas=seen, desired_replicas=desired), Bounds()
    scale = replace(AS_SEEN, replicas=seen)
    verdicts = []
    for group in (OWNED, THROUGH_ZERO):
        wire = _wire(given_advice, group)
        move = due_move(wire, now=given_advice.execute_at, bounds=bounds, clock_skew=NO_SKEW)
        assert isinstance(move, DueMove)
        verdicts.append(may_act(move, scale=scale, mode="apply", expected=None))
    held, act = verdicts
    assert isinstance(held, Held)
    assert held.reason == "zero"
    assert "scaleToZero.enabled of its ConsumerGroupScaler, or groups.orders.scale_to_zero" in held.sentence
    assert isinstance(act, Act)
    assert act.patch["spec"] == {"replicas": desired}


def test_bounds_of_an_executor_may_exclude_zero(advice: MakeAdvice) -> None:
    """An executor with a lower bound of one never sets zero, whatever the owner of a group allows."""
    decision = advice(desired_replicas=0)
    wire = _wire(decision, THROUGH_ZERO)
    held = due_move(wire, now=decision.execute_at, bounds=Bounds(lowest=1), clock_skew=NO_SKEW)
    assert isinstance(held, Held)
    assert (held.reason, "0 replicas lie outside of 1 to 24" in held.sentence) == ("out_of_bounds", True)


@pytest.mark.parametrize(("own", "groups"), [("recommend", "apply"), ("apply", "recommend"), ("apply", "off")])
def test_acting_takes_both_modes(advice: MakeAdvice, own: Mode, groups: Mode) -> None:
    """Unless both the executor and the owner of the group have the mode apply, the move is held and described."""
    move = replace(_move(advice()), mode=groups)
    held = may_act(move, scale=AS_SEEN, mode=own, expected=None)
    assert isinstance(held, Held)
    assert (held.reason, "would set 6 to 8" in held.sentence) == ("mode", True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"kind": "Recommendation", "schema_version": "2.0", "recommendation_id": "r-1"}', "schema_unknown"),
        (b'{"kind": "Recommendation"}', "schema_unknown"),
        (b'{"kind": "Recommendation", "schema_version": 1}', "schema_unknown"),
        (b"[]", "schema_unknown"),
        (b'{"kind": "Recommendation", "schema_version": "1.0"}', "advice_unreadable"),
        (b'{"kind": "Advert", "schema_version": "1.0"}', "advice_unreadable"),
        (b"<html>", "advice_unreadable"),
    ],
)
def test_an_unknown_message_is_held(body: bytes, reason: str) -> None:
    """Another major version, another kind and half a document are held with the reason."""
    held = read_advice(body)
    assert isinstance(held, Held)
    assert held.reason == reason


def test_a_later_minor_version_is_understood(advice: MakeAdvice) -> None:
    """Advice of schema version 1.x, which only adds fields, is parsed."""
    body = _wire(advice()).model_copy(update={"schema_version": "1.3"}).model_dump_json(exclude_none=True)
    assert isinstance(read_advice(body.encode()), RecommendationV1)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_act_escapes_any_rule(data: st.DataObject, advice: MakeAdvice) -> None:
    """At any instant a move lies in the window and in the bounds, and starts from the count of the advice."""
    base = advice()
    instant = st.integers(-400, 400).map(lambda seconds: base.issued_at + timedelta(seconds=seconds))
    count = st.integers(0, 30)
    given_advice = advice(
        execute_at=data.draw(instant),
        latest_safe=data.draw(instant),
        valid_until=data.draw(instant),
        current_replicas=data.draw(count),
        desired_replicas=data.draw(count),
    )
    now, bounds = data.draw(instant), Bounds(lowest=data.draw(count), highest=data.draw(st.none() | count))
    scale = replace(
        AS_SEEN, replicas=data.draw(count), owners=data.draw(st.sampled_from([(), (OURS,), (OURS, THEIRS)]))
    )
    expected = st.builds(Expected, replicas=count, set_here=st.booleans())
    move = due_move(_wire(given_advice), now=now, bounds=bounds, clock_skew=NO_SKEW)
    if isinstance(move, Held):
        return
    act = may_act(move, scale=scale, mode="apply", expected=data.draw(st.none() | expected))
    if isinstance(act, Held):
        return
    assert given_advice.execute_at <= now <= min(given_advice.latest_safe, given_advice.valid_until)
    assert bounds.lowest <= act.patch["spec"]["replicas"] <= min(24, bounds.highest or 24)
    assert scale.replicas == given_advice.current_replicas != act.patch["spec"]["replicas"]
    assert scale.replicas
    assert act.patch["spec"]["replicas"]
