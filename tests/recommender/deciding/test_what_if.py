"""What-if: a decision made again with other figures, from the inputs that are kept with it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest

from cost_model.physics.detected import DetectedPrice
from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History, PackedHistory, PackedSeries
from recommender.deciding.context import day_one
from recommender.deciding.decision import DecisionSettings, priced
from recommender.deciding.inputs import DecisionInputs
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.what_if import Changes, changed, what_if
from tests.recommender.conftest import NOW


@pytest.fixture
def inputs(
    history: Callable[..., History], forecast: Callable[[Sequence[float]], Forecast], profile: GroupProfile
) -> DecisionInputs:
    """8 replicas of 1,000/s each, 4,000/s for an hour and as many expected."""
    assert profile.capacity is not None
    return DecisionInputs(
        history=packed(history(4000.0)),
        forecast=forecast([4000.0]),
        profile=profile,
        settings=DecisionSettings(price_per_replica_hour=0.05),
        previous=None,
        now=NOW,
        learned=day_one(DecisionSettings(price_per_replica_hour=0.05), profile.capacity),
    )


def packed(history: History) -> PackedHistory:
    """The history as a session keeps it."""
    others = (
        history.consume_messages_per_second,
        history.lag_messages,
        history.members,
        history.in_rebalance,
        history.busy_ratio,
    )
    return PackedHistory(
        cluster=history.cluster,
        group=history.group,
        end_at=history.end_at,
        produced=PackedSeries((), history.produce_messages_per_second[None].astype(np.float32), 0),
        others=PackedSeries((), np.stack(others).astype(np.float32), 0),
        recent=history.recent,
    )


def advised(inputs: DecisionInputs, **changes: object) -> Recommendation:
    """The advice with these changes."""
    advice = what_if(changed(inputs, Changes(**changes)))  # type: ignore[arg-type]  # by the fields' names
    assert isinstance(advice, Recommendation)
    return advice


def test_without_changes_the_decision_is_the_same(inputs: DecisionInputs) -> None:
    """The same code on the same inputs: not even the id differs."""
    assert advised(inputs) == inputs.decide()
    same = {"min_replicas": 1, "max_lag_seconds": 10.0, "price_per_replica_hour": 0.05}
    assert advised(inputs, **same) == inputs.decide()


def test_changed_settings_decide_as_if_they_had_been_set(
    inputs: DecisionInputs, history: Callable[..., History], forecast: Callable[[Sequence[float]], Forecast]
) -> None:
    """Prices, promise and policy give the advice of a group that was set up with them."""
    settings = DecisionSettings(policy="stable", price_per_replica_hour=0.5, max_lag_seconds=60.0, risk_weight=0.7)
    expected = recommend(history(4000.0), forecast([4000.0]), inputs.profile, settings, previous=None, now=NOW)
    assert isinstance(expected, Recommendation)
    asked = advised(inputs, policy="stable", price_per_replica_hour=0.5, max_lag_seconds=60.0, risk_weight=0.7)
    assert asked == expected
    assert asked.policy is not None
    assert asked.policy.price_per_move == 4 * 0.5


def test_bounds_and_capacity_are_those_that_were_asked_for(inputs: DecisionInputs) -> None:
    """A minimum of 12 is advised at once; replicas that do twice as much need no more than half of them."""
    assert advised(inputs).desired_replicas == 5
    assert (advised(inputs, min_replicas=12).desired_replicas, advised(inputs, min_replicas=12).binding_rule) == (
        12,
        "minimum",
    )
    assert advised(inputs, max_replicas=6).useful_replicas[-1] == 6
    faster = advised(inputs, capacity_messages_per_second_per_replica=2000.0)
    assert (faster.desired_replicas, faster.capacity.source) == (3, "configured")


def test_a_long_pause_keeps_the_group_as_it_is(inputs: DecisionInputs) -> None:
    """The three replicas are not worth it; a pause that is longer than what polls take is the one that is priced."""
    paused = advised(inputs, rebalance_pause_seconds=600.0)
    assert (paused.action, paused.reason) == ("hold", "cheaper_to_stay")
    assert advised(inputs, rebalance_pause_seconds=20.0).rebalance_impact.rebalance_pause_seconds == pytest.approx(20.0)
    assert advised(inputs, rebalance_pause_seconds=0.1).rebalance_impact.rebalance_pause_seconds > 1.0


def test_a_valley_is_followed_where_moves_cost_nothing(
    inputs: DecisionInputs, forecast: Callable[[Sequence[float]], Forecast]
) -> None:
    """For half an hour three replicas less are enough: not worth two moves, unless they are free."""
    valley = replace(inputs, forecast=forecast([4000.0] * 30 + [6500.0]))
    assert advised(valley).action == "hold"
    assert advised(valley, price_per_move=0.0, price_per_late_message=0.0).action == "scale_in"


def test_what_moves_of_the_group_have_cost_is_priced_again(inputs: DecisionInputs) -> None:
    """Graded moves keep their weight: at ten times the price their lateness costs ten times as much."""
    learned = replace(inputs.learned, moves=5, risk_excess=1.0)  # type: ignore[type-var]  # it has one
    asked = changed(replace(inputs, learned=learned), Changes(price_per_late_message=5e-6)).learned
    assert isinstance(asked, Learned)
    assert asked.moves == 5
    assert asked.risk_excess == pytest.approx(10.0)
    assert asked.risk_prior == 0.1


@pytest.mark.parametrize(("learned", "asked", "used"), [(0.97, 0.99, 0.99), (0.9, 0.99, 0.9), (0.9, 0.8, 0.8)])
def test_quiet_minutes_bound_the_utilization_that_is_asked_for(
    inputs: DecisionInputs, learned: float, asked: float, used: float
) -> None:
    """A setting above what minutes have shown to be too full changes nothing; one below it does."""
    assert inputs.learned is not None
    taught = replace(inputs, learned=replace(inputs.learned, target_utilization=learned))
    asked_for = changed(taught, Changes(target_utilization=asked)).learned
    assert asked_for is not None
    assert asked_for.target_utilization == used


def test_the_inputs_stay_as_they_were(inputs: DecisionInputs) -> None:
    """Asking does not change what the next decision is made from."""
    before = inputs.decide()
    advised(inputs, policy="compact", min_replicas=3, rebalance_pause_seconds=1.0, max_lag_seconds=1.0)
    assert inputs.decide() == before


def test_a_detected_price_changes_costs_by_one_factor_and_no_decision(inputs: DecisionInputs) -> None:
    """Prices that are set beside it were in pod-hours: they become money with it."""
    settings = DecisionSettings(price_per_move=1.5, price_per_late_message=0.001)
    detected = priced(settings, DetectedPrice(price_per_replica_hour=0.028, seen_at=NOW))
    without, found = (replace(inputs, settings=each, learned=None).decide() for each in (settings, detected))
    assert isinstance(without, Recommendation)
    assert isinstance(found, Recommendation)
    assert (without.currency, found.currency) == ("pod-hours", "USD")
    assert without.desired_replicas < without.current_replicas
    assert (found.desired_replicas, found.execute_at) == (without.desired_replicas, without.execute_at)
    assert found.confidence == without.confidence
    for name, cost in asdict(without.chosen).items():
        assert getattr(found.chosen, name) == pytest.approx(0.028 * cost), name
