"""The context of a decision: what is read once from rows, profile and forecast, and the refusals before it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cost_model.physics.profile import GroupProfile, ScaleToZero
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import Replicas
from recommender.deciding.context import DecisionContext, read_context
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation
from tests.recommender.conftest import NOW

MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]
TOO_SHORT = Refusal(
    cluster="c",
    group="orders",
    reason="not_enough_history",
    sentence="Too short.",
    evidence=(),
    remedy="Wait.",
    refused_at=NOW,
)


def read(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    **named: Any,  # noqa: ANN401  # of `read_context`
) -> DecisionContext | Refusal:
    return read_context(history, forecast, profile, DecisionSettings(), **({"previous": None, "now": NOW} | named))


@pytest.mark.parametrize(("least", "most"), [(1, 12), (14, 14)])
def test_plans_go_no_further_up_than_helps_but_for_the_minimum(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, least: int, most: int
) -> None:
    """One partition of 24 with half of the load makes a 13th replica useless; a minimum of 14 stands."""
    hot = replace(profile, partition_weights=(23.0, *[1.0] * 23), min_replicas=Replicas(least))
    context = read(history(900.0), forecast([900.0]), hot)
    assert isinstance(context, DecisionContext)
    assert context.finding is not None
    assert (context.finding.reason, context.finding.most_replicas) == ("hot_partition", 12)
    assert context.profile.max_replicas == most


def test_a_busy_partition_that_rows_show_has_its_share_in_the_profile(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The partition is the busiest in every row, with twice the mean: a twelfth of the load of 24 partitions."""
    busy = history(900.0, busiest_partition="orders-17", partition_skew_ratio=2.0)
    context = read(busy, forecast([900.0]), profile)
    assert isinstance(context, DecisionContext)
    assert context.profile.partition_weights is not None
    assert context.profile.partition_weights[0] == pytest.approx(1.0 / 12.0)


def test_a_group_that_is_awake_is_refused_without_a_forecast(history: MakeHistory, profile: GroupProfile) -> None:
    """The refusal is the forecast's own, with the present count of the group."""
    paused = replace(TOO_SHORT, reason="history_stale")
    assert read(history(900.0), paused, profile) == replace(paused, hold_replicas=8)


def test_without_enough_history_for_a_forecast_the_rate_is_taken_to_stay(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """From the third minute on there is advice; two minutes are refused with the length that is needed."""
    context = read(history(900.0, minutes=3), TOO_SHORT, profile)
    assert isinstance(context, DecisionContext)
    assert (context.forecast.model, context.forecast.paths.tolist()) == ("none", [[900.0]] * 8)
    refused = read(history(900.0, minutes=2), TOO_SHORT, profile)
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.hold_replicas) == ("not_enough_history", 8)
    assert refused.evidence == (("history_seconds", 120.0), ("limit_seconds", 180.0))


def test_a_group_at_zero_needs_no_forecast_and_follows_no_reference(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """With no member for an hour nothing can be forecast, and the reference never goes to 0."""
    lazy = replace(profile, scale_to_zero=ScaleToZero())
    context = read(history(0.0, members=0), TOO_SHORT, lazy, fallback_replicas=4)
    assert isinstance(context, DecisionContext)
    assert (context.at_zero, context.replicas, context.fallback_replicas, context.forecast.steps) == (True, 0, None, 0)


def test_a_group_at_zero_keeps_the_capacity_of_the_advice_in_force(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """If it is active, it is refused without a capacity of its own."""
    unknown = replace(profile, capacity=None, scale_to_zero=ScaleToZero())
    previous = recommend(history(900.0), forecast([900.0]), profile, DecisionSettings(), previous=None, now=NOW)
    assert isinstance(previous, Recommendation)
    at_zero = read(history(0.0, members=0), forecast([0.0]), unknown, previous=previous)
    assert isinstance(at_zero, DecisionContext)
    assert at_zero.capacity == at_zero.profile.capacity == previous.capacity
    awake = read(history(900.0), forecast([900.0]), unknown, previous=previous)
    assert isinstance(awake, Refusal)
    assert (awake.reason, awake.hold_replicas) == ("capacity_unknown", 8)
