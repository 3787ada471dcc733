"""Probing: replicas that were never at their limit are removed one count at a time, where being wrong is affordable."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest

from cost_model.physics.calibrate import capacity_seen, shown_by_replica, was_behind
from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History, HistoryBuffer
from forecasting.units import MessagesPerSecond, Replicas
from recommender.deciding.context import DecisionContext, read_context
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.guards import pass_guards
from recommender.deciding.limits import Finding
from recommender.deciding.pace import rest_seconds
from recommender.deciding.planned import best_plan
from recommender.deciding.probing import EARNED_WITHIN_HOURS, probed
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.windows import Window
from tests.recommender.conftest import NOW

DAY_MINUTES = 1440
MakeRow = Callable[..., object]
Make = Callable[..., DecisionContext]


@pytest.fixture(name="day")
def day_fixture(row: Callable[..., object]) -> Callable[..., History]:
    """`day(rate, busy)`: a day of minutes with 24 replicas, six hours of it with `busy`, the last quarter in rows."""

    def make(rate: float, *, busy: float, **changes: object) -> History:
        buffer = HistoryBuffer("c", "orders")
        for back in reversed(range(DAY_MINUTES)):
            at = NOW - timedelta(minutes=back)
            produced = busy if 600 <= back < 960 else rate
            buffer.append(row(at, produced, interval_seconds=60, **({"members": 24} | changes)))  # type: ignore[arg-type]
        history = buffer.history()
        assert history is not None
        return history

    return make


@pytest.fixture(name="unproven")
def unproven_fixture(
    day: Callable[..., History], forecast: Callable[..., Forecast], profile: GroupProfile
) -> Callable[..., DecisionContext]:
    """`unproven(rate=, busy=, **changed_fields)`: 24 replicas, of which none has ever been at its limit."""

    def make(
        rate: float = 2000.0, *, busy: float = 2400.0, group: GroupProfile = profile, **changes: object
    ) -> DecisionContext:
        history = day(rate, busy=busy)
        known = replace(group, capacity=capacity_seen(history, group))
        context = read_context(history, forecast([rate]), known, DecisionSettings(), previous=None, now=NOW)
        assert isinstance(context, DecisionContext)
        return replace(context, **changes)  # type: ignore[arg-type]

    return make


def _probed(context: DecisionContext) -> tuple[int, str]:
    """The count that is proposed, and its reason."""
    proposal = probed(best_plan(context), context)
    return proposal.target, proposal.reason


def test_a_group_that_was_never_full_removes_one_useful_count(unproven: Make) -> None:
    """24 replicas have shown 100/s each; at 12, the next useful count, 2,000/s are 167 for each of them."""
    context = unproven()
    assert shown_by_replica(context.capacity) == pytest.approx(100.0)
    proposal = probed(best_plan(context), context)
    assert (proposal.target, proposal.reason, proposal.binding_rule) == (12, "probing", "probing")
    (sentence,) = proposal.sentences
    assert "each has shown 100/s; at 12 each would have to do 167/s" in sentence
    assert "12 replicas less earn" in sentence


def test_a_count_is_held_until_its_minutes_have_shown_something(unproven: Make, profile: GroupProfile) -> None:
    """A group that changed size a minute ago stays, whatever plans would add; later the next count follows."""
    rest = timedelta(seconds=rest_seconds(profile, DecisionSettings(), removing=True))
    assert _probed(unproven(last_move_at=NOW - timedelta(minutes=1))) == (24, "probing")
    assert _probed(unproven(last_move_at=NOW - rest)) == (12, "probing")


@pytest.mark.parametrize(
    "changes",
    [
        {"backlog_messages": 10_000.0},
        {"behind_seconds": 5.0},
        {"finding": Finding(reason="slow_replica", most_replicas=Replicas(24), sentence="One is slow.")},
    ],
)
def test_nothing_is_probed_while_something_is_wrong(unproven: Make, changes: dict[str, object]) -> None:
    """A backlog, a partition that is behind, or a finding: the plan decides."""
    context = unproven(**changes)
    assert probed(best_plan(context), context).reason != "probing"


def test_the_stop_of_its_own_removal_does_not_end_a_probe(unproven: Make) -> None:
    """What waits because the group stopped says nothing of the rest; a second more does, and a later one."""
    removed = unproven(last_move_at=NOW - timedelta(minutes=1))
    stop = removed.learned.pause_scale_in.value
    waits = replace(removed, backlog_messages=(1.9 + stop) * 2000.0)
    assert _probed(waits) == (24, "probing")
    assert _probed(replace(waits, backlog_messages=(2.1 + stop) * 2000.0))[1] != "probing"
    assert _probed(replace(waits, last_move_at=NOW - timedelta(hours=1)))[1] != "probing"
    before, *rest = waits.history.recent
    grown = replace(waits.history, recent=(replace(before, members=23), *rest))
    assert _probed(replace(waits, history=grown))[1] != "probing"


@pytest.mark.parametrize(
    ("removed_ago", "added_ago", "reached", "target"),
    [(59, 53, 12, 24), (40, 31, 8, 24), (40, 20, 12, 12), (66, 62, 12, 12), (40, 38, 20, 12)],
)
def test_a_count_that_was_too_small_is_not_gone_to_again_within_the_hour(
    unproven: Make, removed_ago: int, added_ago: int, reached: int, target: int
) -> None:
    """Replicas were back before twelve minutes had shown what 12 can do. After twenty the load had grown.

    Where fewer than 24 were never 12, as with a scaler that follows each wave of the load, nothing is known of these.
    """
    context = unproven()
    members = context.history.members.copy()
    members[-removed_ago:-added_ago] = reached
    assert _probed(replace(context, history=replace(context.history, members=members)))[0] == target


@pytest.mark.parametrize("source", ["configured", "saturated_windows"])
def test_a_capacity_that_is_known_is_not_probed(unproven: Make, source: str) -> None:
    """Where it was set, or seen at the limit, there is nothing to show."""
    context = unproven()
    context = replace(context, capacity=replace(context.capacity, source=source))  # type: ignore[arg-type]
    assert probed(best_plan(context), context).reason != "probing"


def test_a_busy_hour_is_not_probed(unproven: Make) -> None:
    """2,400/s in the last quarter of an hour are more than a tenth above the middle minute of the day."""
    stops = Learned.assumed(rebalance_pause_seconds=3.0, risk=0.0)
    assert _probed(unproven(2000.0, busy=1500.0, learned=stops))[1] == "probing"
    busy = unproven(2400.0, busy=2000.0)
    rates = busy.history.produce_messages_per_second.copy()
    rates[: DAY_MINUTES - 30] = 1500.0
    busy = replace(busy, history=replace(busy.history, produce_messages_per_second=rates))
    assert _probed(busy)[1] != "probing"


def test_a_probe_that_costs_more_than_it_earns_in_time_is_not_made(unproven: Make) -> None:
    """Late messages a thousand times as expensive: twelve replicas do not earn that in twelve hours."""
    dear = unproven()
    dear = replace(dear, settings=replace(dear.settings, price_per_late_message=1.0))
    assert EARNED_WITHIN_HOURS == 12.0
    assert _probed(dear)[1] != "probing"


def test_the_minimum_is_not_probed_below(unproven: Make, profile: GroupProfile) -> None:
    """With 13 replicas at least, the next useful count below 24 is not legal."""
    group = replace(profile, min_replicas=Replicas(24))
    assert _probed(unproven(group=group)) == (24, best_plan(unproven(group=group)).reason)


def test_the_guards_hold_a_probe(unproven: Make, day: Callable[..., History]) -> None:
    """Missing partitions, a closed window and the owner's pace hold it as any other removal; the fallback does not."""
    context = unproven()
    step = probed(best_plan(context), context)
    partial = replace(context, history=day(2000.0, busy=2400.0, sampled_partitions=23))
    assert pass_guards(step, partial).binding_rule == "partial_data"
    window = Window(schedule="0 0 * * *", duration_seconds=86_400, effect="no_scale_in")
    closed = replace(context, settings=replace(context.settings, windows=(window,)))
    assert pass_guards(step, closed).binding_rule == "window"
    moved = replace(
        context, settings=replace(context.settings, max_moves_per_hour=1), moved_at=(NOW - timedelta(minutes=30),)
    )
    assert pass_guards(step, moved).binding_rule == "max_moves_per_hour"
    assert pass_guards(step, replace(context, fallback_replicas=24)) == step


def test_a_group_that_was_behind_when_it_was_full_is_not_probed(unproven: Make, profile: GroupProfile) -> None:
    """One minute of the day in which about all that was shown was done, with a lag of 30 s at its end: its limit."""
    context = unproven()
    lag = context.history.lag_messages.copy()
    lag[-700] = 30.0 * 2400.0
    behind = replace(context.history, lag_messages=lag)
    shown = shown_by_replica(context.capacity)
    assert not was_behind(context.history, profile, shown=shown)
    assert was_behind(behind, profile, shown=shown)
    assert not was_behind(behind, profile, shown=MessagesPerSecond(2.0 * shown))
    assert _probed(replace(context, history=behind))[1] != "probing"


def test_the_advice_says_that_it_probes(unproven: Make) -> None:
    """The published recommendation has the reason, the count, and the sentence with the figures of the probe."""
    context = unproven()
    advice = recommend(context.history, context.forecast, context.profile, context.settings, previous=None, now=NOW)
    assert isinstance(advice, Recommendation)
    assert (advice.action, advice.desired_replicas, advice.reason) == ("scale_in", 12, "probing")
    assert advice.chosen.total < inf
    assert any(sentence.startswith("Probing: no replica was ever at its limit") for sentence in advice.sentences)
