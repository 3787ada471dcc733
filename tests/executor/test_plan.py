"""The conditions under which an executor may act: the advice, the clock, the bounds, and the cluster's state."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.convert import to_wire
from api.schemas import Mode, RecommendationV1, RefusalV1, Target
from executor.claim import Claim
from executor.owners import FIELD_MANAGER, Owner
from executor.plan import (
    AGE_LIMIT,
    VALIDITY_LIMIT,
    Act,
    Asked,
    Bounds,
    DueMove,
    Expected,
    Held,
    Scale,
    due_move,
    due_now,
    may_act,
    read_advice,
)
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
ASKED = Asked(key="cHJvZC1ldQBvcmRlcnM", cluster="prod-eu", group_id="orders")
CLAIM = Claim(
    namespace="shop",
    name="orders",
    uid="c95",
    generation=1,
    group=("prod-eu", "orders"),
    mode="apply",
    target=Target(api_version="apps/v1", kind="Deployment", name="orders-consumer"),
    lowest=1,
    highest=24,
    through_zero=False,
    held_until=None,
)


def _wire(decision: Decision, group: GroupSettings = OWNED) -> RecommendationV1 | RefusalV1:
    return to_wire(decision, group, now=issued_at(decision))


def _requested(
    advice: RecommendationV1 | RefusalV1,
    *,
    now: datetime,
    claim: Claim = CLAIM,
    bounds: Bounds | None = None,
    clock_skew: timedelta = NO_SKEW,
) -> DueMove | Held:
    due = due_now(advice, asked=ASKED, now=now, clock_skew=clock_skew)
    return due if isinstance(due, Held) else due_move(due, claim, now=now, bounds=bounds or Bounds())


def _due(decision: Recommendation, *, after: timedelta = timedelta(0), bounds: Bounds | None = None) -> DueMove | Held:
    return _requested(_wire(decision), now=decision.execute_at + after, bounds=bounds)


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
    held = _requested(_wire(refused), now=refused.refused_at)
    assert isinstance(held, Held)
    assert held.reason == "refused"
    assert "HistoryStale" in held.sentence
    assert "2,400 s" in held.sentence


@pytest.mark.parametrize(
    ("bounds", "part_of_sentence"),
    [(Bounds(lowest=9), "9 to 24"), (Bounds(highest=7), "1 to 7")],
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
    late_held = _requested(late, now=before.execute_at + timedelta(seconds=1))
    assert isinstance(held, Held)
    assert isinstance(late_held, Held)
    assert (held.reason, late_held.reason) == ("nothing_to_do", "too_late")


def test_without_a_target_there_is_advice_only(advice: MakeAdvice) -> None:
    """The sentence names the object that has none; a workload that only the advice names is none."""
    given_advice = advice()
    held = _requested(_wire(given_advice), now=given_advice.execute_at, claim=replace(CLAIM, target=None))
    assert isinstance(held, Held)
    assert held.reason == "no_target"
    assert held.sentence == "ConsumerGroupScaler shop/orders names no workload; set target in its spec"


@pytest.mark.parametrize(
    "named",
    [
        {"namespace": "bank", "name": "orders-consumer"},
        {"namespace": "shop", "name": "billing"},
        {"namespace": "shop", "name": "orders-consumer", "kind": "StatefulSet"},
        None,
    ],
)
def test_advice_for_another_workload_than_the_owners_is_held(advice: MakeAdvice, named: dict[str, str] | None) -> None:
    """The workload is that of the object; advice that was made for another one, or for none, says nothing of it."""
    given_advice = advice()
    target = None if named is None else TargetSettings(**named)
    held = _requested(_wire(given_advice, OWNED.model_copy(update={"target": target})), now=given_advice.execute_at)
    assert isinstance(held, Held)
    assert (held.reason, "nothing is changed until both agree" in held.sentence) == ("no_target", True)


@pytest.mark.parametrize("changes", [{"group": "billing"}, {"cluster": "prod-us"}])
def test_an_answer_on_another_group_is_held(advice: MakeAdvice, changes: dict[str, str]) -> None:
    """The answer has to be on the group of the cluster that was asked for."""
    given_advice = advice(**changes)
    held = _requested(_wire(given_advice), now=given_advice.execute_at)
    assert isinstance(held, Held)
    assert held.reason == "not_as_asked"
    assert held.sentence.startswith("asked for group 'orders' of cluster 'prod-eu', the API answered with advice for ")


@pytest.mark.parametrize(("listed", "reason"), [(0, None), (-1, None), (1, "not_as_asked")])
def test_an_answer_is_the_advice_that_was_listed_or_a_newer_one(
    advice: MakeAdvice, listed: int, reason: str | None
) -> None:
    """Other advice than the listed one is followed only if it was issued later: a cache may hold what is old."""
    given_advice = advice()
    wire = _wire(given_advice)
    asked = replace(
        ASKED,
        listed_id=wire.recommendation_id if listed == 0 else "r-other",
        listed_at=given_advice.issued_at + listed * SECOND,
    )
    found = due_now(wire, asked=asked, now=given_advice.execute_at, clock_skew=NO_SKEW)
    assert (found.reason if isinstance(found, Held) else None) == reason


def test_age_and_validity_of_advice_have_a_limit(advice: MakeAdvice) -> None:
    """Advice of more than fifteen minutes, or for more than an hour, is held whatever it says of itself."""
    given_advice = advice()
    long = replace(given_advice, valid_until=given_advice.issued_at + VALIDITY_LIMIT + SECOND)
    for_ever = replace(given_advice, valid_until=given_advice.issued_at + timedelta(days=3650))
    old = given_advice.issued_at + AGE_LIMIT + SECOND
    aged = replace(given_advice, valid_until=given_advice.issued_at + VALIDITY_LIMIT)
    for decision, now, reason in (
        (long, given_advice.execute_at, "valid_too_long"),
        (for_ever, given_advice.issued_at + timedelta(days=300), "valid_too_long"),
        (aged, old, "too_old"),
    ):
        held = _requested(_wire(decision), now=now)
        assert isinstance(held, Held)
        assert held.reason == reason


@pytest.mark.parametrize(
    ("owner", "bounds", "desired", "part_of_sentence"),
    [
        ({"highest": 7}, Bounds(), 8, "8 replicas lie outside of 1 to 7"),
        ({"lowest": 3}, Bounds(), 2, "2 replicas lie outside of 3 to 24"),
        ({"highest": 100}, Bounds(highest=7), 8, "8 replicas lie outside of 1 to 7"),
        ({"highest": None}, Bounds(), 2, "nobody has set a maximum"),
        (
            {"highest": None},
            Bounds(),
            8,
            "nobody has set a maximum; set maxReplicas of ConsumerGroupScaler shop/orders",
        ),
    ],
)
def test_bounds_are_those_of_owner_and_executor(
    *, advice: MakeAdvice, owner: dict[str, int | None], bounds: Bounds, desired: int, part_of_sentence: str
) -> None:
    """The narrower of both holds, and nothing is changed, not even downwards, where neither has a maximum."""
    decision = advice(desired_replicas=desired)
    claim = CLAIM
    for name, count in owner.items():
        claim = replace(claim, **{name: count})  # type: ignore[arg-type]  # of several types
    held = _requested(_wire(decision), now=decision.execute_at, claim=claim, bounds=bounds)
    assert isinstance(held, Held)
    assert (held.reason, part_of_sentence in held.sentence) == ("out_of_bounds", True)


def test_a_hold_of_the_owner_is_kept_whatever_is_advised(advice: MakeAdvice) -> None:
    """While the object has a hold nothing is due; afterwards it is."""
    decision = advice()
    until = decision.execute_at + 10 * SECOND
    held = _requested(_wire(decision), now=decision.execute_at, claim=replace(CLAIM, held_until=until))
    over = _requested(_wire(decision), now=until, claim=replace(CLAIM, held_until=until))
    assert isinstance(held, Held)
    assert held.reason == "paused"
    assert isinstance(over, DueMove)


@pytest.mark.parametrize(("wire", "owner"), [("apply", "recommend"), ("apply", "off"), ("recommend", "apply")])
def test_the_mode_is_the_owners_and_advice_can_only_narrow_it(advice: MakeAdvice, wire: Mode, owner: Mode) -> None:
    """Advice for the mode apply gives no permission that the object does not; that for another mode takes it away."""
    decision = advice()
    answer = _wire(decision, OWNED.model_copy(update={"mode": wire}))
    move = _requested(answer, now=decision.execute_at, claim=replace(CLAIM, mode=owner))
    assert isinstance(move, DueMove)
    held = may_act(move, scale=AS_SEEN, mode="apply", expected=None)
    assert isinstance(held, Held)
    assert held.reason == "mode"


@pytest.mark.parametrize("skew_seconds", [2.5, 3600.0])
def test_clocks_that_differ_hold(advice: MakeAdvice, skew_seconds: float) -> None:
    """Moves are held where clocks differ by more than two seconds, by the transport or by advice from the future."""
    given_advice, skew = advice(), timedelta(seconds=skew_seconds)
    skewed = _requested(_wire(given_advice), now=given_advice.execute_at, clock_skew=skew)
    future = _requested(_wire(given_advice), now=given_advice.issued_at - skew)
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
    """Moves from and to zero need the object's `scaleToZero`, which the sentence names, whatever advice says of it."""
    given_advice = advice(current_replicas=seen, desired_replicas=desired)
    scale = replace(AS_SEEN, replicas=seen)
    verdicts = []
    for claim in (CLAIM, replace(CLAIM, through_zero=True)):
        move = _requested(_wire(given_advice, THROUGH_ZERO), now=given_advice.execute_at, claim=claim)
        assert isinstance(move, DueMove)
        verdicts.append(may_act(move, scale=scale, mode="apply", expected=None))
    held, act = verdicts
    assert isinstance(held, Held)
    assert held.reason == "zero"
    assert "takes scaleToZero.enabled of its ConsumerGroupScaler" in held.sentence
    assert isinstance(act, Act)
    assert act.patch["spec"] == {"replicas": desired}


def test_bounds_of_an_executor_may_exclude_zero(advice: MakeAdvice) -> None:
    """An executor with a lower bound of one never sets zero, whatever the owner of a group allows."""
    decision = advice(desired_replicas=0)
    wire = _wire(decision, THROUGH_ZERO)
    claim = replace(CLAIM, through_zero=True)
    held = _requested(wire, now=decision.execute_at, claim=claim, bounds=Bounds(lowest=1))
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
    move = _requested(_wire(given_advice), now=now, bounds=bounds)
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
