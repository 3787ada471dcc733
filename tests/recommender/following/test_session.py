"""The session: the same decision code, stepped row by row from outside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import cos, pi

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.blend import BlendForecaster
from forecasting.forecaster import FittedForecaster
from forecasting.history import GroupInterval, History
from forecasting.refusal import Refusal
from forecasting.units import Replicas, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import GradedMove, Recommendation
from recommender.following.kept_account import account_of, part_of
from recommender.following.session import Session

START = datetime(2026, 1, 5, tzinfo=UTC)
MakeRow = Callable[..., GroupInterval]


def daily(minute: int) -> float:
    """A day between 2,000 and 10,000 messages/s, lowest at midnight."""
    return 6000.0 - 4000.0 * cos(2 * pi * minute / 1440)


@dataclass
class Counted:
    """The forecaster that is used where none is given; it counts its fits, those of proofs included."""

    fits: int = 0
    name: str = "counted"

    def fit(self, history: History) -> FittedForecaster | Refusal:
        """Fit it."""
        self.fits += 1
        return BlendForecaster().fit(history)


def minutes_of(row: MakeRow, first: int, last: int, **changes: object) -> list[GroupInterval]:
    """One row of 60 s per minute of the daily wave, from the minute that ends at `first` up to `last`."""
    return [
        row(START + timedelta(minutes=minute), daily(minute), interval_seconds=60, **changes)
        for minute in range(first, last + 1)
    ]


def test_before_any_row_the_answer_is_a_refusal(profile: GroupProfile) -> None:
    """Nothing observed: no data, and what to do about it."""
    decision = Session(profile, DecisionSettings()).recommend(START)
    assert isinstance(decision, Refusal)
    assert decision.reason == "no_data"


def test_advice_begins_after_three_minutes_and_forecasts_after_half_an_hour(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Two minutes are refused as too short; up to the thirtieth there is advice without a forecast."""
    session = Session(profile, DecisionSettings())
    decisions = {}
    for minute, observed in enumerate(minutes_of(row, 1, 40), start=1):
        session.observe(observed)
        decisions[minute] = session.recommend(observed.interval_end_at)
    early, first, late = decisions[2], decisions[4], decisions[40]
    assert isinstance(early, Refusal)
    assert early.reason == "not_enough_history"
    assert early.hold_replicas == 8
    assert isinstance(first, Recommendation)
    assert (first.forecast.model, first.forecast.p05) == ("none", first.forecast.p95)
    assert isinstance(late, Recommendation)
    assert late.forecast.history_tier == "reactive"
    assert late.forecast.p05 < late.forecast.p95


def test_plans_expect_added_replicas_after_the_measured_start_up_time(
    row: MakeRow, profile: GroupProfile, graded_move: Callable[..., GradedMove]
) -> None:
    """The settings expect 30 s; after a move whose replicas came after 180 s, plans and lead time expect 180 s."""
    rows = [replace(each, members=4) for each in minutes_of(row, 1, 240)]
    slow = graded_move()
    slow = replace(slow, graded_at=START, outcome=replace(slow.outcome, start_up_seconds=180.0))
    leads = []
    for outcomes in ((), (slow,)):
        decision = Session(profile, DecisionSettings(), rows, outcomes=outcomes).recommend(rows[-1].interval_end_at)
        assert isinstance(decision, Recommendation)
        assert decision.desired_replicas > 4
        assert decision.learned is not None
        leads.append((decision.learned.start_up_seconds, decision.lead_time_seconds))
    (assumed, before), (measured, after) = leads
    assert (assumed, measured) == (30.0, 180.0)
    assert after - before == pytest.approx(150.0)


def _pods(seconds: float) -> PodStartUp:
    """A pod that took so long, most of it for its image."""
    return PodStartUp(
        start_up_seconds=Seconds(seconds),
        pods=1,
        newest_at=START,
        node_wait_seconds=Seconds(1.0),
        container_start_seconds=Seconds(seconds - 2.0),
        joining_seconds=Seconds(1.0),
    )


@pytest.mark.parametrize(
    ("owner_sets", "moved", "source", "seconds"),
    [
        (False, False, "detected", 150.0),
        (False, True, "measured", 45.0),
        (True, True, "assumed", 30.0),
    ],
    ids=["pods", "moves before pods", "a setting before moves"],
)
def test_plans_expect_added_replicas_after_the_time_that_pods_take(
    row: MakeRow,
    profile: GroupProfile,
    graded_move: Callable[..., GradedMove],
    *,
    owner_sets: bool,
    moved: bool,
    source: str,
    seconds: float,
) -> None:
    """Pods that take 150 s make the lead time longer by 120 s; own moves come before them, a setting before both."""
    rows = [replace(each, members=4) for each in minutes_of(row, 1, 240)]
    outcomes = (replace(graded_move(), graded_at=START),) if moved else ()
    known = replace(profile, configured=frozenset({"start_up_seconds"})) if owner_sets else profile
    decisions = []
    for pods in (None, _pods(150.0)):
        session = Session(known, DecisionSettings(), rows, outcomes=outcomes)
        session.see_workload(pods, seen_at=START)
        decision = session.recommend(rows[-1].interval_end_at)
        assert isinstance(decision, Recommendation)
        assert decision.learned is not None
        decisions.append(decision)
    before, after = decisions
    assert after.learned is not None
    assert (after.learned.start_up_source, after.learned.start_up_seconds) == (source, seconds)
    assert after.learned.pod_start_up == _pods(150.0)
    if source == "detected":
        assert after.lead_time_seconds - before.lead_time_seconds == pytest.approx(120.0)
        (figure,) = (each for each in after.profile if each.name == "start_up_seconds")
        assert (figure.value, figure.source, figure.seen_at) == (150.0, "detected", START)
    else:
        assert after.lead_time_seconds == before.lead_time_seconds


def test_a_known_daily_wave_is_met_before_it_rises(row: MakeRow, profile: GroupProfile) -> None:
    """After three days of the wave, the advice at 07:00 on 8 replicas is more of them, timed before 8 are too few."""
    seven = 3 * 1440 + 7 * 60
    session = Session(profile, DecisionSettings(), minutes_of(row, 1, seven - 1))
    session.observe(minutes_of(row, seven, seven)[0])
    decision = session.recommend(START + timedelta(minutes=seven))
    assert isinstance(decision, Recommendation)
    assert decision.forecast.history_tier == "daily"
    assert decision.action == "scale_out"
    # The wave is at 7,035/s now; at 07:45 it passes 97 % of what 8 replicas carry, 7,760/s, which
    # leaves ten minutes for what a forecast does not know.
    assert decision.effective_at < START + timedelta(days=3, hours=7, minutes=35)


def test_history_given_at_once_or_row_by_row_leads_to_the_same_advice(row: MakeRow, profile: GroupProfile) -> None:
    """Advice depends on the observations, not on how they came in."""
    rows = minutes_of(row, 1, 300)
    at_once = Session(profile, DecisionSettings(), rows)
    one_by_one = Session(profile, DecisionSettings())
    for observed in rows:
        one_by_one.observe(observed)
    now = rows[-1].interval_end_at
    assert at_once.recommend(now) == one_by_one.recommend(now)


def test_days_of_history_given_at_once_or_row_by_row_lead_to_the_same_accounts(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Shadows begin with the last day of what is given at once: they have forgotten what came before it anyway."""
    *rows, newest = [
        row(
            START + timedelta(minutes=minute),
            daily(minute),
            interval_seconds=60,
            members=8 + 2 * (minute // 700 % 2),
            lag_messages=daily(minute) * (40.0 if minute % 97 < 3 else 2.0),
        )
        for minute in range(1, 3 * 1440)
    ]
    at_once = Session(profile, DecisionSettings(), rows)
    one_by_one = Session(profile, DecisionSettings())
    for observed in rows:
        one_by_one.observe(observed)
    accounts, advices = [], []
    for session in (at_once, one_by_one):
        session.recommend(rows[-1].interval_end_at)
        session.observe(newest)
        (slot,) = session.drain_account()
        # Plans that are not followed are due in both: whether since a day or two is all the same.
        accounts.append(slot._replace(state=slot.state._replace(since_plans_seconds=())))
        advice = session.recommend(newest.interval_end_at)
        assert isinstance(advice, Recommendation)
        # The group that stays as it is in the ledger stays as it was a day ago, or at the first of all rows.
        advices.append(replace(advice, ledger=None))
    assert accounts[0] == accounts[1]
    assert advices[0] == advices[1]


def test_after_a_restart_a_forecaster_is_not_proven_again(row: MakeRow, profile: GroupProfile) -> None:
    """The proof is kept with the account: of a thousand groups it takes more than ten minutes."""
    *rows, newest = minutes_of(row, 1, 4 * 1440)
    first, second = Counted(), Counted()
    one = Session(profile, DecisionSettings(), rows, forecaster=first)
    one.recommend(rows[-1].interval_end_at)
    one.observe(newest)
    one.recommend(newest.interval_end_at)
    kept = account_of(part_of(slot, cluster="c", group="orders") for slot in one.drain_account())
    other = Session(profile, DecisionSettings(), [*rows, newest], forecaster=second, account=kept)
    advice = other.recommend(newest.interval_end_at)
    assert isinstance(advice, Recommendation)
    assert advice.forecast.model != "persistence"
    assert (first.fits, second.fits) == (2, 1)


def test_capacity_is_learnt_from_the_minutes_in_which_the_group_could_not_keep_up(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Ten minutes of backlog at 7,200/s on 8 replicas show 900/s each; before them there is only a lower bound."""
    unknown = replace(profile, capacity=None)
    calm = minutes_of(row, 1, 60)
    now = calm[-1].interval_end_at
    before = Session(unknown, DecisionSettings(), calm).recommend(now)
    assert isinstance(before, Recommendation)
    assert before.capacity.source == "lower_bound"
    backlog = [
        replace(observed, consume_messages_per_second=7200.0, lag_messages=100_000.0)
        for observed in minutes_of(row, 61, 70)
    ]
    decision = Session(unknown, DecisionSettings(), calm + backlog).recommend(backlog[-1].interval_end_at)
    assert isinstance(decision, Recommendation)
    assert decision.capacity.source == "saturated_windows"
    assert decision.capacity.p50 == pytest.approx(900.0, rel=0.05)


def test_capacity_is_learnt_from_a_backlog_that_is_gone_before_a_whole_minute_is_steady(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Eight replicas are replaced at once, and work off at 7,200/s in 75 s what has come meanwhile."""
    calm = minutes_of(row, 1, 60)
    begin = calm[-1].interval_end_at
    quarters = [row(begin + timedelta(seconds=15 * number), 2400.0, interval_seconds=15) for number in range(1, 21)]
    for place, left in enumerate((360_000.0, 288_000.0, 216_000.0, 144_000.0, 72_000.0)):
        quarters[5 + place] = replace(quarters[5 + place], consume_messages_per_second=7200.0, lag_messages=left)
    quarters[4] = replace(quarters[4], in_rebalance=True, lag_messages=432_000.0)
    decision = Session(replace(profile, capacity=None), DecisionSettings(), calm + quarters).recommend(
        quarters[-1].interval_end_at
    )
    assert isinstance(decision, Recommendation)
    assert decision.capacity.source == "saturated_windows"
    assert decision.capacity.p50 == pytest.approx(900.0, rel=0.05)


def steady_day(row: MakeRow, rate: float) -> list[GroupInterval]:
    """A day of minutes at one rate, up to START."""
    return [row(START - timedelta(minutes=minute), rate, interval_seconds=60) for minute in reversed(range(1440))]


def test_a_capacity_that_was_never_reached_is_looked_for_every_five_minutes(
    row: MakeRow, profile: GroupProfile
) -> None:
    """8 replicas carried 500/s each for a day, then 550: what is planned with follows within minutes."""
    session = Session(replace(profile, capacity=None), DecisionSettings(), steady_day(row, 4000.0))
    seen = {}
    for minute in range(15):
        now = START + timedelta(minutes=minute)
        decision = session.recommend(now)
        assert isinstance(decision, Recommendation)
        seen[minute] = decision.capacity.p20
        session.observe(row(now + timedelta(minutes=1), 4400.0, interval_seconds=60))
    assert seen[0] == pytest.approx(1.06 * 500.0)
    assert [minute for minute in range(1, 15) if seen[minute] != seen[minute - 1]] == [5, 10]
    assert seen[14] == pytest.approx(1.06 * 550.0)


def test_a_capacity_that_was_known_does_not_become_unknown(row: MakeRow, profile: GroupProfile) -> None:
    """Ten minutes behind at 900/s each are known; ten more at 450/s contradict them, and leave them, grown older."""
    behind = [
        replace(each, consume_messages_per_second=7200.0 if 1 <= minute <= 10 else 3600.0, lag_messages=100_000.0)
        for minute, each in enumerate(minutes_of(row, 61, 81))
    ]
    session = Session(replace(profile, capacity=None), DecisionSettings(), minutes_of(row, 1, 60) + behind[:11])
    before = session.recommend(behind[10].interval_end_at)
    assert isinstance(before, Recommendation)
    for observed in behind[11:]:
        session.observe(observed)
    after = session.recommend(behind[20].interval_end_at)
    assert isinstance(after, Recommendation)
    assert before.capacity.p50 == pytest.approx(900.0, rel=0.05)
    assert before.capacity.age_seconds is not None
    assert after.capacity == replace(before.capacity, age_seconds=Seconds(before.capacity.age_seconds + 600.0))


def test_a_capacity_that_was_measured_outlives_the_rows_that_showed_it(row: MakeRow, profile: GroupProfile) -> None:
    """Whoever goes on with the account needs no backlog to know what a replica does, and how long ago that was seen."""
    unknown = replace(profile, capacity=None)
    late = [
        replace(each, consume_messages_per_second=7200.0, lag_messages=100_000.0) for each in minutes_of(row, 1, 10)
    ]
    one, calm = Session(unknown, DecisionSettings(), late), minutes_of(row, 11, 100)
    first = one.recommend(late[-1].interval_end_at)
    for observed in calm:
        one.observe(observed)
        one.recommend(observed.interval_end_at)
    kept = account_of(part_of(slot, cluster="c", group="orders") for slot in one.drain_account())
    now, hour = calm[-1].interval_end_at, calm[-60:]
    again, anew = Session(unknown, DecisionSettings(), hour, account=kept), Session(unknown, DecisionSettings(), hour)
    assert decision_capacity(first).source == "saturated_windows"
    found = decision_capacity(again.recommend(now))
    assert found.source == "saturated_windows"
    assert found.p50 == pytest.approx(decision_capacity(first).p50, rel=0.01)
    assert found.age_seconds == pytest.approx(5400.0, abs=600.0)
    assert decision_capacity(anew.recommend(now)).source == "lower_bound"


def test_bounds_above_the_partitions_give_advice(row: MakeRow, profile: GroupProfile) -> None:
    """At least 30 replicas of 24 partitions: 24 can hold work, and the scalers beside them know no other count."""
    bounded = replace(profile, min_replicas=Replicas(30), max_replicas=Replicas(40))
    rows = [replace(each, members=30) for each in minutes_of(row, 1, 60)]
    decision = Session(bounded, DecisionSettings(), rows).recommend(rows[-1].interval_end_at)
    assert isinstance(decision, Recommendation)
    assert decision.desired_replicas >= 24


def behind(row: GroupInterval, *, working: float) -> GroupInterval:
    """The minute of a group that does all it can, 800/s too little."""
    return replace(
        row,
        produce_messages_per_second=working + 800.0,
        consume_messages_per_second=working,
        lag_messages=100_000.0,
    )


def moved_day(row: MakeRow) -> list[GroupInterval]:
    """A day of minutes at 4,000/s with 8 replicas, but for 20 minutes after each six hours with 10; each move stops.

    Its last quarter of an hour is spent behind at 900/s each, from which their capacity is known.
    """
    rows = steady_day(row, 4000.0)
    for minute, each in enumerate(rows):
        members = 10 if minute >= 360 and minute % 360 < 20 else 8
        lag = 24_000.0 if minute >= 360 and minute % 360 in (0, 20) else each.lag_messages
        rows[minute] = replace(each, members=members, lag_messages=lag)
    return rows[:-15] + [behind(each, working=7200.0) for each in rows[-15:]]


def test_moves_from_before_the_capacity_was_known_teach_as_soon_as_it_is(row: MakeRow, profile: GroupProfile) -> None:
    """A session begun on a day with six moves decides by them, as one whose capacity is configured does.

    Lag rises from 2.5 s to 6 s in each: a stop of 3.5 s.
    """
    rows = moved_day(row)
    now = rows[-1].interval_end_at
    session = Session(replace(profile, capacity=None), DecisionSettings(), rows)
    assert session.learned.moves == 0
    assert session.drain_outcomes() == ()
    decision = session.recommend(now)
    configured = Session(replace(profile, capacity=decision_capacity(decision)), DecisionSettings(), rows)
    assert isinstance(decision, Recommendation)
    assert decision.learned is not None
    assert decision.learned.moves == 6
    assert session.learned.pause_scale_out == configured.learned.pause_scale_out
    outcomes = session.drain_outcomes()
    assert outcomes == configured.drain_outcomes()
    assert [move.outcome.rebalance_pause_seconds for move in outcomes] == pytest.approx([3.5] * 6)


def test_a_decision_that_is_retracted_leaves_the_one_before_and_moves_are_given_again(
    row: MakeRow, profile: GroupProfile
) -> None:
    """As if it had not been made: the next one goes on from the advice that was told, and the moves are stored then."""
    rows = moved_day(row)
    now = rows[-1].interval_end_at
    session = Session(profile, DecisionSettings(), rows)
    told = session.recommend(now)
    outcomes = session.drain_outcomes()
    untold = session.recommend(now + timedelta(seconds=15))
    session.retract(untold)
    assert len(outcomes) == 6
    assert session.drain_outcomes() == outcomes
    session.recommend(now + timedelta(seconds=30))
    assert session.inputs is not None
    assert session.inputs.previous is told


def test_moves_that_were_kept_do_not_teach_again_once_the_capacity_is_known(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Four of six moves come back from the store: the rows add the two that are newer."""
    rows, unknown = moved_day(row), replace(profile, capacity=None)
    first = Session(unknown, DecisionSettings(), rows)
    first.recommend(rows[-1].interval_end_at)
    kept = first.drain_outcomes()
    assert len(kept) == 6
    second = Session(unknown, DecisionSettings(), rows, outcomes=kept[:4])
    second.recommend(rows[-1].interval_end_at)
    assert second.drain_outcomes() == kept[4:]
    assert second.learned == first.learned


# A row, as (members, seconds of lag), or a request.
SHOWN = st.tuples(st.integers(6, 10), st.sampled_from([2.5, 4.0, 6.0]))
STEPS = st.lists(st.one_of(SHOWN, SHOWN, st.sampled_from(["recommend", "learned", "drain", "due"])), max_size=40)
# A move costs so much that every decision is to stay: no request leads to another row.
STAYING = DecisionSettings(price_per_move=1e6)


def begun(row: MakeRow) -> list[GroupInterval]:
    """45 minutes at 4,000/s, in the first ten of which 8 replicas are behind at 1,000/s each."""
    rows = [row(START + timedelta(minutes=minute), 4000.0, interval_seconds=60) for minute in range(45)]
    return [behind(each, working=8000.0) for each in rows[:10]] + rows[10:]


def stepped(session: Session, steps: Sequence[object], row: MakeRow) -> tuple[list[GroupInterval], list[GradedMove]]:
    """The rows that `session` received between requests, and the outcomes that it was drained of."""
    rows = begun(row)
    drained: list[GradedMove] = []
    for observed in rows:
        session.observe(observed)
    for step in steps:
        now = rows[-1].interval_end_at
        if isinstance(step, tuple):
            members, lag_seconds = step
            at = now + timedelta(minutes=1)
            rows.append(row(at, 4000.0, interval_seconds=60, members=members, lag_messages=lag_seconds * 4000.0))
            session.observe(rows[-1])
        elif step == "recommend":
            decision = session.recommend(now)
            assert isinstance(decision, Refusal) or decision.action == "hold"
        elif step == "drain":
            drained += session.drain_outcomes()
        else:
            assert session.learned == session.learned
            session.due(now)
    return rows, [*drained, *session.drain_outcomes()]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_questions_in_any_order_change_nothing_that_rows_teach(
    row: MakeRow, profile: GroupProfile, steps: list[object]
) -> None:
    """Beliefs and outcomes are those of the rows alone, whatever was requested in between or fetched at any time."""
    queried = Session(profile, STAYING)
    rows, outcomes = stepped(queried, steps, row)
    at_once = Session(profile, STAYING, rows)
    assert queried.learned == at_once.learned
    assert tuple(outcomes) == at_once.drain_outcomes()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whenever_the_capacity_becomes_known_the_same_moves_have_taught(
    row: MakeRow, profile: GroupProfile, steps: list[object]
) -> None:
    """A capacity that is not configured is found when advice is requested: early or late, each move teaches once."""
    unknown = replace(profile, capacity=None)
    queried = Session(unknown, STAYING)
    rows, outcomes = stepped(queried, [*steps, "recommend"], row)
    at_once = Session(unknown, STAYING, rows)
    at_once.recommend(rows[-1].interval_end_at)
    assert queried.learned.moves == at_once.learned.moves == len(outcomes)
    moves = [
        [(each.graded_at, each.outcome.from_replicas, each.outcome.to_replicas) for each in graded]
        for graded in (outcomes, at_once.drain_outcomes())
    ]
    assert moves[0] == moves[1]


def decision_capacity(decision: object) -> Capacity:
    """The capacity of one replica that the decision assumed."""
    assert isinstance(decision, Recommendation), decision
    return decision.capacity


def _decided(row: MakeRow, profile: GroupProfile, **last: object) -> Session:
    """A session that has decided at minute 40; since then one row of 15 s has come, changed by `last`."""
    session = Session(profile, DecisionSettings(cycle_seconds=60), minutes_of(row, 1, 40))
    session.recommend(START + timedelta(minutes=40))
    session.observe(row(START + timedelta(minutes=40, seconds=15), **({"rate": 2000.0} | last)))
    return session


def test_a_decision_is_due_once_a_cycle(row: MakeRow, profile: GroupProfile) -> None:
    """At once before the first one, then not before 60 s have passed."""
    assert Session(profile, DecisionSettings()).due(START)
    session = _decided(row, profile)
    decided_at = START + timedelta(minutes=40)
    assert [session.due(decided_at + timedelta(seconds=after)) for after in (15, 59, 60)] == [False, False, True]


@pytest.mark.parametrize(
    ("last", "due"),
    [
        ({"rate": 7760.0}, False),
        ({"rate": 7761.0}, True),
        ({"lag_messages": 14_000.0}, False),
        ({"lag_messages": 14_001.0}, True),
        ({"rate": 9000.0, "in_rebalance": True}, False),
    ],
)
def test_a_surprise_is_answered_within_the_cycle(
    row: MakeRow, profile: GroupProfile, last: dict[str, object], *, due: bool
) -> None:
    """Over 97 % of what 8 replicas carry, 7,760/s, or 7 s of lag, 5 of them a commit interval; not in a rebalance."""
    session = _decided(row, profile, **last)
    assert session.due(START + timedelta(minutes=40, seconds=15)) is due
