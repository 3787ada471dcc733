"""A hold: the group keeps its replicas, whatever plans, rules and the owner's bounds want, and the advice goes on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile, ScaleToZero
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.units import Replicas
from recommender.deciding.context import DecisionContext
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.guards import pass_guards
from recommender.deciding.hold import Hold, HoldScope, hold_on
from recommender.deciding.proposal import Proposal
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation
from tests.recommender.conftest import NOW

HOUR = timedelta(hours=1)
HOLD = Hold(scope=HoldScope(namespace="shop"), reason="broker upgrade.", placed_at=NOW, until=NOW + HOUR)
NAMES = st.sampled_from([None, "a", "b"])


@pytest.fixture
def decide(
    history: Callable[..., History], forecast: Callable[[Sequence[float]], Forecast], profile: GroupProfile
) -> Callable[..., Recommendation]:
    """`decide(rate, hold=..., previous=..., profile=...)`: advice for 8 replicas of 1,000/s at that rate."""

    def make(
        rate: float,
        *,
        hold: Hold | None,
        previous: Recommendation | None = None,
        profile: GroupProfile = profile,
        **row: object,
    ) -> Recommendation:
        advice = recommend(
            history(rate, **row),
            forecast([rate]),
            profile,
            DecisionSettings(),
            previous=previous,
            now=NOW,
            hold=hold,
            sensitivity="any",
        )
        assert isinstance(advice, Recommendation)
        return advice

    return make


def test_a_held_group_stays_and_its_advice_says_what_would_be_done(decide: Callable[..., Recommendation]) -> None:
    """5 replicas would do; 8 are kept, with the reason and the end of the hold, and with every price."""
    free, held = decide(4000.0, hold=None), decide(4000.0, hold=HOLD)
    assert free.desired_replicas == 5
    assert (held.action, held.desired_replicas, held.due_replicas(now=NOW)) == ("hold", 8, 8)
    assert (held.reason, held.binding_rule) == ("held", "hold")
    assert held.sentences[-1] == (
        "A hold on namespace 'shop' is in force until 2026-01-05T13:00:00Z, nothing is moved: broker upgrade."
    )
    assert (held.uncapped_replicas, held.alternatives) == (5, free.alternatives)


@pytest.mark.parametrize("target", [0, 5, 12])
def test_a_hold_binds_every_rule(context: Callable[..., DecisionContext], profile: GroupProfile, target: int) -> None:
    """The fallback policy and the owner's minimum, which bind every plan, do not move a held group either."""
    bound = context(hold=HOLD, fallback_replicas=4, profile=replace(profile, min_replicas=Replicas(10)))
    held = pass_guards(Proposal(target=target, command_at=NOW, reason="ramp_ahead"), bound)
    assert (held.target, held.reason, held.binding_rule) == (8, "held", "hold")


def test_a_group_at_zero_stays_there(decide: Callable[..., Recommendation], profile: GroupProfile) -> None:
    """Messages wait, and the group is not started while it is held."""
    zero = replace(profile, scale_to_zero=ScaleToZero())
    asleep = {"members": 0, "consume_messages_per_second": 0.0, "lag_messages": 100.0}
    assert decide(1.0, hold=None, profile=zero, **asleep).desired_replicas > 0
    held = decide(1.0, hold=HOLD, profile=zero, **asleep)
    assert (held.desired_replicas, held.reason) == (0, "held")


def test_a_hold_during_an_announced_move_prevents_it(decide: Callable[..., Recommendation]) -> None:
    """A move that is due in two minutes is not made."""
    announced = replace(decide(4000.0, hold=None), execute_at=NOW + timedelta(minutes=2))
    held = decide(4000.0, hold=HOLD, previous=announced)
    assert (held.desired_replicas, held.execute_at, held.supersedes) == (8, NOW, announced.recommendation_id)


def test_a_hold_during_a_commanded_move_turns_nothing_back(decide: Callable[..., Recommendation]) -> None:
    """What is due stays due, so that no autoscaler reverses it half-way; an executor that has not made it is late."""
    commanded = replace(
        decide(4000.0, hold=None),
        issued_at=NOW - timedelta(seconds=30),
        execute_at=NOW - timedelta(seconds=20),
        latest_safe=NOW + timedelta(minutes=2),
    )
    held = decide(4000.0, hold=HOLD, previous=commanded, members=7)
    assert (held.reason, held.binding_rule) == ("warming_up", "hold")
    assert held.due_replicas(now=NOW) == commanded.desired_replicas
    assert held.latest_safe == commanded.execute_at < NOW
    assert held.sentences[-1] == HOLD.sentence
    free = decide(4000.0, hold=None, previous=commanded, members=7)
    assert (free.latest_safe, free.binding_rule) == (commanded.latest_safe, None)


@given(cluster=NAMES, namespace=NAMES, group=NAMES, at=st.sampled_from([None, "a", "b"]))
def test_a_hold_covers_what_all_of_its_names_cover(
    cluster: str | None, namespace: str | None, group: str | None, at: str | None
) -> None:
    """Each name that is given narrows it; a group of no known namespace is in none."""
    scope = HoldScope(cluster=cluster, namespace=namespace, group=group)
    expected = cluster in (None, "a") and group in (None, "a") and namespace in (None, at)
    assert scope.covers("a", "a", namespace=at) is expected


def test_of_several_holds_the_one_that_ends_last_is_named() -> None:
    """One without an end outlasts all; those that are over, or on others, do not count."""

    def placed(reason: str, until: timedelta | None, **scope: str) -> Hold:
        end = None if until is None else NOW + until
        return Hold(scope=HoldScope(**scope), reason=reason, placed_at=NOW - HOUR, until=end)

    holds = [placed("short", HOUR), placed("long", 2 * HOUR), placed("over", -HOUR), placed("theirs", None, group="b")]
    long = hold_on(holds, "c", "a", namespace=None, now=NOW)
    assert long is not None
    assert long.reason == "long"
    endless = hold_on([*holds, placed("endless", None, cluster="c")], "c", "a", namespace=None, now=NOW)
    assert endless is not None
    assert (endless.reason, "until it is released" in endless.sentence) == ("endless", True)
    assert hold_on(holds, "c", "a", namespace=None, now=NOW + 2 * HOUR) is None
