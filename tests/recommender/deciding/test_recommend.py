"""The decision, from rows and a forecast to priced advice, as people who run consumers would expect it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.forecast import Forecast
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.refusal import Refusal
from forecasting.units import Fraction, Partitions, Replicas
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import day_one, recommend
from recommender.deciding.recommendation import Recommendation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTINGS = DecisionSettings()
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]


def advise(
    history: History,
    forecast: Forecast,
    profile: GroupProfile,
    *,
    settings: DecisionSettings = SETTINGS,
    previous: Recommendation | None = None,
    now: datetime = NOW,
) -> Recommendation:
    decision = recommend(history, forecast, profile, settings, previous=previous, now=now)
    assert isinstance(decision, Recommendation), decision
    return decision


def test_a_group_of_more_partitions_than_a_decision_prices_is_refused_until_its_replicas_are_bounded(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Whoever writes samples may tell of a hundred thousand partitions: pricing their counts would hold up all else."""
    wide = replace(profile, partitions=Partitions(100_000))
    rows = history(6500.0, partitions=100_000, sampled_partitions=100_000)
    refused = recommend(rows, forecast([6500.0]), wide, SETTINGS, previous=None, now=NOW)
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.hold_replicas) == ("unsupported", 8)
    assert refused.sentence == ("Up to 100,000 replicas of this group could have work; counts up to 20,000 are priced.")
    assert refused.remedy == "Set max_replicas of this group to 20,000 or fewer."
    advice = advise(rows, forecast([6500.0]), replace(wide, max_replicas=Replicas(24)))
    assert 1 <= advice.desired_replicas <= 24


def test_a_steady_load_at_the_right_size_is_left_alone(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """8 replicas carry 8,000/s; at a steady 6,500/s there is nothing to gain, and the advice to hold is priced."""
    advice = advise(history(6500.0), forecast([6500.0]), profile)
    assert (advice.action, advice.desired_replicas, advice.saving) == ("hold", 8, 0.0)
    assert advice.reason == "cheaper_to_stay"
    assert advice.due_replicas(now=NOW) == 8


@pytest.mark.parametrize(("least", "fallback"), [(12, None), (1, 12)], ids=["minimum", "fallback"])
def test_a_move_that_no_plan_has_timed_may_be_made_for_a_minute(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, least: int, fallback: int | None
) -> None:
    """An executor reads advice some seconds after it was made: a window of no length could never be met."""
    few = replace(profile, min_replicas=Replicas(least))
    advice = recommend(
        history(1500.0), forecast([1500.0]), few, SETTINGS, previous=None, now=NOW, fallback_replicas=fallback
    )
    assert isinstance(advice, Recommendation)
    assert (advice.desired_replicas, advice.execute_at, advice.not_before) == (12, NOW, NOW)
    assert advice.latest_safe == NOW + timedelta(minutes=1)


def test_a_ramp_is_met_before_it_arrives(history: MakeHistory, forecast: MakeForecast, profile: GroupProfile) -> None:
    """6,000/s doubles in 20 minutes: more replicas are commanded before that, by the start-up time, and not at once."""
    advice = advise(history(6000.0), forecast([6000.0] * 20 + [12_000.0]), profile)
    assert advice.action == "scale_out"
    assert advice.desired_replicas == 24
    assert NOW + timedelta(minutes=10) <= advice.execute_at <= NOW + timedelta(minutes=20)
    assert advice.not_before <= advice.execute_at <= advice.latest_safe
    assert advice.effective_at > advice.execute_at
    assert advice.reason == "ramp_ahead"
    assert advice.due_replicas(now=NOW) == 8


def test_what_was_observed_is_as_of_the_decision_at_the_latest(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A scrape may be read eight seconds before the end of the 15 s that its row stands for; older rows keep theirs."""
    rows, ahead = history(6000.0), forecast([6000.0])
    for decided_at, as_of in (
        (NOW - timedelta(seconds=8), NOW - timedelta(seconds=8)),
        (NOW + timedelta(seconds=5), NOW),
    ):
        advice = recommend(rows, ahead, profile, DecisionSettings(), previous=None, now=decided_at)
        assert isinstance(advice, Recommendation)
        assert advice.observed.as_of == as_of


def test_a_long_valley_gives_replicas_back_and_has_its_break_even(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """1,500/s for an hour on 24 replicas: most go now, and the break-even time is shorter than the hour."""
    advice = advise(history(1500.0, members=24), forecast([1500.0]), profile)
    assert advice.action == "scale_in"
    assert advice.desired_replicas in {2, 3}
    assert advice.execute_at == NOW
    assert advice.latest_safe >= NOW + timedelta(minutes=1)  # an executor that reads it seconds later may still act
    assert advice.break_even_seconds is not None
    assert 0.0 < advice.break_even_seconds < 3600.0
    assert advice.saving > 0.0


def test_a_short_valley_is_not_worth_a_rebalance(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Ten quiet minutes before the load returns save less than two moves cost, so the advice is to hold."""
    advice = advise(history(6500.0), forecast([3000.0] * 10 + [6500.0]), profile)
    assert advice.action == "hold"


def test_more_members_than_partitions_are_called_idle(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """With 30 members on 24 partitions six are idle, and the advice is 24 or fewer."""
    advice = advise(history(20_000.0, members=30), forecast([20_000.0]), profile)
    assert advice.desired_replicas <= 24
    assert advice.reason == "idle_members"


def grown(minutes_ago: int, *, row: Callable[..., GroupInterval], rate: float) -> History:
    """An hour and a half of rows, of which the newest have eight members and those before four."""
    buffer = HistoryBuffer("c", "orders")
    for back in reversed(range(360)):
        members = 8 if back <= 4 * minutes_ago else 4
        buffer.append(row(NOW - timedelta(seconds=15 * back), rate, members=members))
    history = buffer.history()
    assert history is not None
    return history


@pytest.mark.parametrize(("minutes_ago", "action"), [(5, "hold"), (58, "hold"), (62, "scale_out")])
def test_b20_nothing_is_added_while_tasks_warm_up(
    row: Callable[..., GroupInterval], forecast: MakeForecast, profile: GroupProfile, minutes_ago: int, action: str
) -> None:
    """From 4 to 8 replicas 12 of 24 tasks warm up, two in ten minutes: an hour; a ramp to 11,000/s waits for it."""
    application = replace(profile, streams=StreamsProfile(stateful=True, tasks=24))
    ramp = forecast([6500.0] * 10 + [11_000.0])
    advice = advise(grown(minutes_ago, row=row, rate=6500.0), ramp, application)
    assert advice.action == action
    assert (advice.binding_rule == "move_interval") is (action == "hold")
    assert any("once their state is warm, at " in line for line in advice.sentences) is (action == "hold")
    stateless = replace(profile, streams=StreamsProfile(stateful=False, tasks=24))
    assert advise(grown(minutes_ago, row=row, rate=6500.0), ramp, stateless).action == "scale_out"


def test_b20_a_load_beyond_what_warms_up_is_scaled_for(
    row: Callable[..., GroupInterval], forecast: MakeForecast, profile: GroupProfile
) -> None:
    """8,500/s are more than eight replicas carry with warm state."""
    application = replace(profile, streams=StreamsProfile(stateful=True, tasks=24))
    advice = advise(grown(5, row=row, rate=8500.0), forecast([8500.0]), application)
    assert advice.action == "scale_out"


def test_bounds_are_kept_even_when_the_load_needs_more(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """At most 10 replicas are set: 20,000/s still gets 8 (10 carry no more than 8 of 24 partitions' share)."""
    bounded = replace(profile, max_replicas=Replicas(10))
    advice = advise(history(5000.0, members=6), forecast([20_000.0]), bounded)
    assert advice.desired_replicas <= 10
    assert max(advice.useful_replicas) <= 10


def test_the_items_of_every_priced_plan_add_up_and_the_choice_is_the_cheapest(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """No plan in the table is cheaper than the chosen one, and staying is always in the table."""
    advice = advise(history(1500.0, members=24), forecast([1500.0]), profile)
    assert any(plan.execute_at is None for plan in advice.alternatives)
    assert advice.chosen.total == pytest.approx(min(plan.cost.total for plan in advice.alternatives), rel=0.02)
    assert advice.saving == pytest.approx(advice.stay.total - advice.chosen.total)


def test_a_spike_seen_only_inside_a_rebalance_changes_nothing(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """With 64 times the usual lag in a row of a rebalance, the decision is that of the settled row before it."""
    calm = advise(history(6500.0), forecast([6500.0]), profile)
    spike = {"lag_messages": 64 * 16_250.0, "in_rebalance": True, "group_state": "PREPARING_REBALANCING"}
    shaken = advise(history(6500.0, last=spike), forecast([6500.0]), profile)
    assert (shaken.action, shaken.desired_replicas) == (calm.action, calm.desired_replicas)
    assert shaken.observed.lag_messages == calm.observed.lag_messages


def test_missing_partitions_never_lower_the_replicas(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The same valley with one unknown partition gives a hold that names how many were sampled."""
    advice = advise(history(1500.0, members=24, last={"sampled_partitions": 23}), forecast([1500.0]), profile)
    assert (advice.action, advice.binding_rule, advice.reason) == ("hold", "partial_data", "guarded")
    assert "Only 23 of 24 partitions" in advice.sentences[-1]


def test_while_a_move_is_under_way_no_second_one_is_made(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """24 were advised a minute ago and 8 members remain: the advice stays, with a reason that it waits."""
    commanded = advise(history(6000.0), forecast([20_000.0]), profile)
    assert (commanded.action, commanded.desired_replicas, commanded.execute_at) == ("scale_out", 24, NOW)
    later = NOW + timedelta(seconds=30)
    waiting = advise(history(6000.0), forecast([1500.0]), profile, previous=commanded, now=later)
    assert (waiting.desired_replicas, waiting.reason) == (24, "warming_up")
    assert waiting.supersedes == commanded.recommendation_id
    assert waiting.due_replicas(now=later) == 24


def test_advice_that_was_not_carried_out_is_decided_again(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Ten minutes after a move was due and did not happen, the present member count is used."""
    commanded = advise(history(6000.0), forecast([20_000.0]), profile)
    stale = replace(commanded, execute_at=NOW - timedelta(minutes=10))
    again = advise(history(6000.0), forecast([6500.0]), profile, previous=stale)
    assert (again.action, again.current_replicas) == ("hold", 8)


def test_a_forecast_that_is_older_than_now_is_read_from_now_on(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Five minutes after its origin the first five steps are past: the ramp is five minutes nearer."""
    path = [6000.0] * 30 + [20_000.0]
    fresh = advise(history(6000.0), forecast(path), profile)
    aged = advise(history(6000.0), forecast(path), profile, now=NOW + timedelta(minutes=5))
    assert abs((fresh.execute_at - aged.execute_at).total_seconds()) <= 60.0


def test_stale_rows_are_refused_with_age_and_limit(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A history that ended 40 minutes ago is refused; the sentence names 2,400 s and the limit of 600 s."""
    decision = recommend(
        history(6000.0), forecast([6000.0]), profile, SETTINGS, previous=None, now=NOW + timedelta(minutes=40)
    )
    assert isinstance(decision, Refusal)
    assert decision.reason == "history_stale"
    assert decision.sentence == "The newest row ended 2,400 s before now; the freshness limit is 600 s."
    assert decision.hold_replicas == 8


def test_an_unknown_capacity_is_refused_not_guessed(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """With a capacity neither set nor measured there is no advice, and the setting that would help is named."""
    unknown = replace(profile, capacity=None)
    decision = recommend(history(6000.0), forecast([6000.0]), unknown, SETTINGS, previous=None, now=NOW)
    assert isinstance(decision, Refusal)
    assert decision.reason == "capacity_unknown"
    assert "capacity_messages_per_second_per_replica" in decision.remedy


def test_a_group_that_never_settles_is_refused(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Every row of the last quarter of an hour lies in a rebalance: the refusal names it and keeps the count."""
    decision = recommend(
        history(6000.0, in_rebalance=True), forecast([6000.0]), profile, SETTINGS, previous=None, now=NOW
    )
    assert isinstance(decision, Refusal)
    assert decision.reason == "rebalancing"


def test_a_refused_forecast_refuses_the_advice_and_keeps_the_replicas(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """The refusal has the forecaster's own sentence and the present count of the group."""
    short = Refusal(
        cluster="c",
        group="orders",
        reason="source_unreachable",
        sentence="The table of forecasts cannot be read.",
        evidence=(),
        remedy="Look at its folder.",
        refused_at=NOW,
    )
    decision = recommend(history(6000.0), short, profile, SETTINGS, previous=None, now=NOW)
    assert decision == replace(short, hold_replicas=8)


def test_the_same_inputs_give_the_same_answer_and_the_same_name(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Every field is deterministic, including the identifier."""
    first = advise(history(1500.0, members=24), forecast([1500.0]), profile)
    second = advise(history(1500.0, members=24), forecast([1500.0]), profile)
    assert first == second


def test_members_leave_ungracefully_as_set_until_a_graceful_leave_was_observed(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """18 of 24 leave, and their partitions wait for a session of 45 s: 34 s of all work; graceful ones cost 13 s."""
    ungraceful = replace(profile, ungraceful_share=Fraction(1.0))
    believed = advise(history(4000.0, members=24), forecast([4000.0]), ungraceful)
    assert believed.desired_replicas == 6
    assert believed.rebalance_impact.rebalance_pause_seconds > 18 / 24 * 45.0
    after_a_leave = replace(day_one(SETTINGS, believed.capacity), graceful_seen=1.0)
    seen = recommend(
        history(4000.0, members=24),
        forecast([4000.0]),
        ungraceful,
        SETTINGS,
        previous=None,
        now=NOW,
        learned=after_a_leave,
    )
    assert isinstance(seen, Recommendation)
    assert seen.desired_replicas == 5
    assert seen.rebalance_impact.rebalance_pause_seconds == pytest.approx(12.5, abs=0.1)
