"""A group moves at most as often in an hour as its owner allows; the pods of one move count once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.units import Replicas
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.pace import moves_of_the_hour
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]


def moved(history: History, counts: Mapping[int, int | None]) -> History:
    """The history with other member counts from so many minutes before noon on; None: the count is unknown."""
    members = history.members.copy()
    for minutes, count in counts.items():
        members[history.minutes - 1 - minutes :] = np.nan if count is None else count
    return replace(history, members=members)


@pytest.mark.parametrize(
    ("counts", "minutes_ago"),
    [
        ({60: 8}, []),
        ({60: 8, 30: 9}, [30]),
        ({60: 6, 30: 7, 29: 9, 27: 10}, [30]),  # one after the other within three minutes: one move
        ({60: 6, 30: 7, 26: 8}, [30, 26]),
        ({60: 8, 30: 9, 29: 8}, [30, 29]),  # up and back are two
        ({60: 6, 40: None, 30: 8}, [30]),
    ],
)
def test_the_pods_of_one_move_count_once(
    history: MakeHistory, counts: dict[int, int | None], minutes_ago: list[int]
) -> None:
    """Moves are counted from the members of each minute; a minute with an unknown count is no move."""
    seen = moves_of_the_hour(moved(history(1500.0, minutes=90), counts), patience_seconds=180.0)
    assert seen == tuple(NOON - timedelta(minutes=ago) for ago in minutes_ago)


def test_a_move_of_an_hour_ago_no_longer_counts(history: MakeHistory) -> None:
    """A change in the minute that ended an hour ago is outside this hour."""
    assert moves_of_the_hour(moved(history(1500.0, minutes=90), {89: 6, 61: 8}), patience_seconds=180.0) == ()
    assert len(moves_of_the_hour(moved(history(1500.0, minutes=90), {89: 6, 59: 8}), patience_seconds=180.0)) == 1


def advise(
    history: History,
    forecast: Forecast,
    profile: GroupProfile,
    most: int | None,
    *,
    fallback_replicas: int | None = None,
) -> Recommendation:
    """The advice at noon."""
    decision = recommend(
        history,
        forecast,
        profile,
        DecisionSettings(max_moves_per_hour=most),
        previous=None,
        now=NOON,
        fallback_replicas=fallback_replicas,
    )
    assert isinstance(decision, Recommendation), decision
    return decision


def test_a_move_too_many_waits_until_the_hour_has_passed(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """After two moves within the hour a third is made if three are allowed; if two are, the sentence states when."""
    ramp = moved(history(6000.0, minutes=90), {50: 7, 20: 8}), forecast([6000.0] * 5 + [12_000.0]), profile
    assert advise(*ramp, None).action == advise(*ramp, 3).action == "scale_out"
    held = advise(*ramp, 2)
    assert (held.action, held.reason, held.binding_rule) == ("hold", "guarded", "max_moves_per_hour")
    assert held.sentences[-1] == (
        "The group has changed size 2 times since 11:10:00, and max_moves_per_hour is 2; the next move waits until "
        "12:10:00."
    )


def test_a_move_planned_for_later_is_counted_where_it_would_be_made(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A valley in half an hour: by then the move of 11:05 is more than an hour ago."""
    busy = moved(history(20_000.0, members=24, minutes=90), {89: 12, 55: 24})
    valley = busy, forecast([20_000.0] * 30 + [1500.0]), profile
    advice = advise(*valley, 1)
    assert advice.action == "scale_in"
    assert advice.execute_at > NOON + timedelta(minutes=5)


def test_the_fallback_policy_keeps_the_pace_too(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The owner's limit applies to the moves of every policy; the owner's minimum does too, and takes precedence."""
    steady = moved(history(6500.0, minutes=90), {89: 7, 30: 8}), forecast([6500.0])
    held = advise(*steady, profile, 1, fallback_replicas=4)
    assert (held.desired_replicas, held.binding_rule) == (8, "max_moves_per_hour")
    few = replace(profile, min_replicas=Replicas(12))
    assert advise(*steady, few, 1, fallback_replicas=4).desired_replicas == 12
