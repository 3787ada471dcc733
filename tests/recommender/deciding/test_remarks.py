"""Remarks of advice beyond its move: the partition that limits the group, and changes that its owner could make."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile
from cost_model.pricing.presets import Policy
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.units import Partitions, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTINGS = DecisionSettings(price_per_replica_hour=0.05)
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]


def _advice(history: History, forecast: Forecast, profile: GroupProfile, policy: Policy = "balanced") -> Recommendation:
    decision = recommend(history, forecast, profile, replace(SETTINGS, policy=policy), previous=None, now=NOW)
    assert isinstance(decision, Recommendation), decision
    return decision


def test_a_partition_that_rows_show_to_be_busy_changes_the_count_and_is_named(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """2,400/s are three even replicas' work; with a fifth of it on one of 24 partitions, three carry half of that."""
    calm, busy = (
        history(1500.0, members=3),
        history(1500.0, members=3, busiest_partition="orders-17", partition_skew_ratio=0.2 * 24),
    )
    ramp = forecast([1500.0] * 10 + [2400.0])
    even, skewed = _advice(calm, ramp, profile), _advice(busy, ramp, profile)
    assert skewed.desired_replicas > even.desired_replicas
    assert any("Partition orders-17 carries 20% of the load" in sentence for sentence in skewed.sentences)
    assert not any("falls behind first" in sentence for sentence in even.sentences)


def test_weights_that_were_configured_name_the_partition_by_its_number(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The profile gives the first of 24 partitions a fifth of the load; rows name none."""
    weights = tuple(0.2 if partition == 0 else 0.8 / 23 for partition in range(24))
    advice = _advice(history(1500.0, members=4), forecast([1500.0]), replace(profile, partition_weights=weights))
    assert any(sentence.startswith("Partition 0 carries 20% of the load") for sentence in advice.sentences)


@pytest.mark.parametrize(
    ("members", "partitions", "rate", "desired", "sentence"),
    [
        (5, 4, 3500.0, 4, "4 partitions are fewer than 5 replicas: 1 replica has none."),
        (30, 24, 20_000.0, 24, "24 partitions are fewer than 30 replicas: 6 replicas have none."),
        (
            *(9, 24, 6500.0, 8),
            "9 replicas carry no more than 8, and 1 pod is wasted: the busiest has 3 of 24 partitions either way.",
        ),
        (
            *(23, 24, 9000.0, 12),
            "23 replicas carry no more than 12, and 11 pods are wasted: the busiest has 2 of 24 partitions either way.",
        ),
    ],
)
def test_b9_replicas_that_carry_nothing_more_are_counted(  # noqa: PLR0917  # fixtures and the columns above
    history: MakeHistory,
    forecast: MakeForecast,
    profile: GroupProfile,
    members: int,
    partitions: int,
    rate: float,
    desired: int,
    sentence: str,
) -> None:
    """Five on four partitions, and nine on 24, of which the busiest has as many as the busiest of eight."""
    seen = history(rate, members=members, partitions=partitions, sampled_partitions=partitions)
    advice = _advice(seen, forecast([rate]), replace(profile, partitions=Partitions(partitions)))
    assert sentence in advice.sentences
    assert advice.desired_replicas == desired
    assert (advice.reason == "idle_members") is (members > partitions)


@pytest.mark.parametrize("members", [1, 2, 8, 12, 24])
def test_of_a_useful_count_no_replica_is_wasted(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, members: int
) -> None:
    """Each of these divides 24 partitions so that the busiest has fewer than with one replica less."""
    rate = 700.0 * members
    advice = _advice(history(rate, members=members), forecast([rate]), profile)
    assert not any("wasted" in sentence or "have none" in sentence for sentence in advice.sentences)


def test_the_sentence_of_a_move_with_a_backlog_states_more_duplicates(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Cooperative, 500 records at 1,000/s: 0.5 s instead of 0.1 s for each of three batches that are repeated."""
    cooperative = replace(profile, protocol="cooperative")
    ahead = _advice(history(7000.0), forecast([12_000.0]), cooperative)
    behind = _advice(history(7000.0, lag_messages=7000.0 * 30), forecast([12_000.0]), cooperative)
    assert ahead.desired_replicas == behind.desired_replicas
    moved = 7000.0 * ahead.rebalance_impact.moved_partition_fraction
    assert behind.rebalance_impact.duplicate_messages - ahead.rebalance_impact.duplicate_messages > moved * 3 * 0.4


def _busy(make: MakeHistory, moves_per_hour: int) -> History:
    """An hour at 7,000/s in which the member count changed so often; 8 members now."""
    history = make(7000.0)
    members = np.full(60, 8.0)
    for move in range(moves_per_hour // 2):
        members[2 + 4 * move : 4 + 4 * move] = 12.0
    return replace(history, members=members)


def test_advice_for_a_group_that_moves_often_states_the_worth_of_a_setting(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Static members that wait 45 s at each of 10 scale-ins: the sentence has the remedy and its worth per day."""
    static = replace(profile, static_membership=True)
    advice = _advice(_busy(history, 20), forecast([7000.0]), static)
    (remark,) = (sentence for sentence in advice.sentences if sentence.startswith("Saves about"))
    assert "removeMembersFromConsumerGroup for the leaving instances" in remark
    assert "USD a day, at 20.0 moves a day" in remark
    worth = float(remark.removeprefix("Saves about ").split()[0])
    assert worth > 24.0 * 0.05 / 7.0
    halved = _advice(_busy(history, 10), forecast([7000.0]), static)
    (less,) = (sentence for sentence in halved.sentences if sentence.startswith("Saves about"))
    assert float(less.removeprefix("Saves about ").split()[0]) == pytest.approx(worth / 2.0, abs=0.02)


def test_a_remark_worth_less_than_a_replica_day_a_week_is_left_out(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A group that never moves has none, nor has an eager one whose stops of 2 s always keep the promise of 10 s."""
    still = _advice(history(7000.0), forecast([7000.0]), replace(profile, static_membership=True))
    quick = _advice(_busy(history, 20), forecast([7000.0]), profile)
    for advice in (still, quick):
        assert not any(sentence.startswith("Saves about") for sentence in advice.sentences)


def test_advice_for_long_cooperative_batches_names_a_cheaper_setting(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Batches of 4 s cost a stop of 22 s on the way down and 12 s repeated on the way up, ten times a day each."""
    slow = replace(profile, protocol="cooperative", poll_batch_seconds=Seconds(4.0), max_poll_records=4000)
    advice = _advice(_busy(history, 20), forecast([7000.0]), slow)
    (remark,) = (sentence for sentence in advice.sentences if sentence.startswith("Saves about"))
    assert "max.poll.records 400 instead of 4000" in remark or "an eager assignor" in remark


def test_the_sentence_of_a_plan_that_is_cheaper_on_average_states_why_it_was_not_chosen(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """3,000/s on 8 replicas with upper quantiles up to 15,000/s: a plan that is cheap on average may cost more."""
    plain = forecast([3000.0])
    paths = plain.paths.copy()
    paths[-2:] *= np.linspace(1.0, 5.0, 60)
    uncertain = replace(plain, paths=paths)
    careful = _advice(history(3000.0), uncertain, profile, "stable").sentences
    careless = _advice(history(3000.0), uncertain, profile, "compact").sentences
    (remark,) = (sentence for sentence in careful if "worst tenth" in sentence)
    assert "less on average" in remark
    assert remark.endswith("a weight of 0.3.")
    assert not any("worst tenth" in sentence for sentence in careless)
