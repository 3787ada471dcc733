"""Lessons of a group's own past: its stops, its target utilization, the forecasts to trust, and the cost of a bound."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from cost_model.physics.learned import Learned, MoveOutcome
from forecasting.units import MessagesPerSecond, Seconds
from recommender.deciding.beliefs import outcome_sentence
from recommender.following.grading import Command, Grader, MeasuredPause
from recommender.following.utilization import TargetUtilization
from tests.recommender.following.by_the_row import NOON, PROFILE, RATE, row

EIGHTH_ROW_AT = row(7).interval_end_at


def outcome(rebalance_pause_seconds: float, *, to_replicas: int = 10) -> MoveOutcome:
    return MoveOutcome(
        from_replicas=8,
        to_replicas=to_replicas,
        expected_rebalance_pause_seconds=12.0,
        rebalance_pause_seconds=rebalance_pause_seconds,
        expected_late_messages=0.0,
        late_messages=0.0,
    )


def test_three_quick_moves_outweigh_the_prior() -> None:
    """12 s are assumed; one move of 1 s leaves their geometric mean by 1 to 2, 2.3 s; three leave 1.4 s, half the risk.

    The risk is learnt more slowly: what one move in twenty makes late is not to be seen in the first one.
    """
    learned = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    assert learned.source == "assumed"
    learned = learned.after(outcome(1.0), late_price=5e-7)
    assert learned.pause_scale_out.value == pytest.approx(12.0 ** (1 / 3))
    assert learned.risk == pytest.approx(0.075)
    for _ in range(2):
        learned = learned.after(outcome(1.0), late_price=5e-7)
    assert learned.source == "measured"
    assert learned.pause_scale_out.value == pytest.approx(12.0 ** (1 / 7))
    assert learned.pause_scale_in.value > learned.pause_scale_out.value
    assert learned.risk == pytest.approx(0.05)


def test_moves_that_cost_more_than_expected_raise_the_risk() -> None:
    """A million late messages beyond expectation at 5e-7 each are 0.5: (3 * 0.1 + 0.5) / 4."""
    expensive = replace(outcome(30.0), late_messages=1e6)
    learned = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1).after(expensive, late_price=5e-7)
    assert learned.risk == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("ungraceful_leaves", "share"),
    [((), None), ((False,), 0.02), ((True,), 0.42), ((False, True), 0.3), ((True, False), 0.3)],
)
def test_leavers_are_believed_graceful_until_one_was_silent(
    ungraceful_leaves: tuple[bool, ...], share: float | None
) -> None:
    """0.05 of 1.5 leavers at first: a graceful one makes it 0.05 / 2.5, an ungraceful 1.05 / 2.5, both 0.3."""
    learned = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    for ungraceful in ungraceful_leaves:
        learned = learned.after(replace(outcome(3.0, to_replicas=6), ungraceful=ungraceful), late_price=5e-7)
    assert learned.ungraceful_share == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("lost_seconds", "resolution_seconds", "graded"),
    [(1.5, 0.9, 3.0), (1.5, 4.0, 2.0), (0.0, 0.9, 2.0)],
    ids=["measured", "too coarse to measure", "nothing was seen to stop"],
)
def test_a_stop_that_was_measured_is_graded_as_measured(
    lost_seconds: float, resolution_seconds: float, graded: float
) -> None:
    """Half of the partitions stop, 1.5 s over all of them: 3 s, though the rows show 1 s of lag, which makes it 2 s.

    Where measuring may be off by more than that, the lag decides.
    """
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    seen = [grader.observe(row(place), RATE) for place in range(8)]
    at = row(7).interval_end_at
    grader.measured(stop_at(at - timedelta(minutes=9), 7.0, 0.9))  # of the move before
    grader.commanded(advised(8, 16, at=at, stopped_share=0.5))
    grader.measured(stop_at(at + timedelta(seconds=20), lost_seconds, resolution_seconds))
    seen += [grader.observe(row(8, members=16, lag_seconds=3.5), RATE)]
    seen += [grader.observe(row(place, members=16), RATE) for place in range(9, 16)]
    (found,) = [one.outcome for one in seen if one is not None]
    assert found.rebalance_pause_seconds == pytest.approx(graded)


def advised(
    from_replicas: int,
    to_replicas: int,
    *,
    at: datetime = EIGHTH_ROW_AT,
    late_messages: float = 0.0,
    stopped_share: float = 1.0,
    recommendation_id: str | None = None,
) -> Command:
    """A command that was given with the eighth row, with a stop of 12 s expected."""
    return Command(
        at=at,
        from_replicas=from_replicas,
        to_replicas=to_replicas,
        rebalance_pause_seconds=12.0,
        late_messages=late_messages,
        stopped_share=stopped_share,
        recommendation_id=recommendation_id,
    )


def stop_at(at: datetime, lost_seconds: float, resolution_seconds: float) -> MeasuredPause:
    return MeasuredPause(
        began_at=at,
        ended_at=at + timedelta(seconds=4),
        lost_seconds=lost_seconds,
        resolution_seconds=resolution_seconds,
    )


def test_a_stop_is_read_from_how_far_lag_rose() -> None:
    """Lag goes from 2.5 s to 11.5 s when two members join: a stop of 9 s, seen a start-up of 30 s after the command."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    seen = [grader.observe(row(place), RATE) for place in range(8)]
    grader.commanded(advised(8, 10))
    seen += [grader.observe(row(8), RATE), grader.observe(row(9, members=10, lag_seconds=11.5), RATE)]
    seen += [grader.observe(row(place, members=10), RATE) for place in range(10, 16)]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert (graded.from_replicas, graded.to_replicas, graded.start_up_seconds) == (8, 10, 30.0)
    assert graded.rebalance_pause_seconds == pytest.approx(9.0)
    assert graded.late_messages == 0.0  # 11.5 s of visible lag are 9 s of waiting: half a commit interval is done work


@pytest.mark.parametrize(
    ("rows_without_effect", "members", "start_up_seconds"),
    [(11, 10, 180.0), (39, 10, 600.0), (11, 12, None)],
    ids=["a node has to come", "an image of 10 GB", "another scaler adds four"],
)
def test_replicas_that_come_long_after_the_command_show_their_start_up_time(
    rows_without_effect: int, members: int, start_up_seconds: float | None
) -> None:
    """The settings expect 30 s. The time counts where the group comes to the advised count, and to no other."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    seen = [grader.observe(row(place), RATE) for place in range(8)]
    at = row(7).interval_end_at
    grader.commanded(advised(8, 10, at=at))
    until = 8 + rows_without_effect
    seen += [grader.observe(row(place), RATE) for place in range(8, until)]
    seen += [grader.observe(row(place, members=members), RATE) for place in range(until, until + 8)]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert graded.start_up_seconds == start_up_seconds


@pytest.mark.parametrize("is_advised", [False, True], ids=["by another scaler", "as advised since"])
def test_a_removal_is_no_effect_of_a_command_to_add(*, is_advised: bool) -> None:
    """Nothing comes of a command to add two for five minutes, then two leave: gracefully, 15 s after their command."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    seen = [grader.observe(row(place), RATE) for place in range(8)]
    add = advised(8, 10, recommendation_id="add")
    grader.commanded(add)
    seen += [grader.observe(row(place), RATE) for place in range(8, 28)]
    if is_advised:
        grader.commanded(replace(add, at=row(27).interval_end_at, to_replicas=6, recommendation_id="remove"))
    seen += [grader.observe(row(place, members=6), RATE) for place in range(28, 36)]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert (graded.from_replicas, graded.to_replicas, graded.start_up_seconds) == (8, 6, None)
    assert (graded.advised_as, graded.ungraceful) == (("remove", False) if is_advised else (None, None))


@pytest.mark.parametrize(("rate", "late_messages"), [(9000.0, 0.0), (6000.0, 180_000.0)])
def test_what_a_shortage_makes_late_is_not_charged_to_the_move(rate: float, late_messages: float) -> None:
    """9,000/s on 8 replicas add 1.67 s of lag in each row, and no move is to blame; at 6,000/s nothing else is.

    It takes eight rows until 12 replicas are there; in the seventh and eighth 11.7 s and 13.3 s pass the promised 10.
    """
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    for place in range(8):
        grader.observe(row(place, rate=rate), RATE)
    command = advised(8, 12)
    grader.commanded(command)
    short = [15.0 * (9000.0 - 8000.0) / 9000.0 * rows for rows in range(1, 9)]
    lags = [2.5 + seconds for seconds in (*short, 8.3, 3.3, 0.0, 0.0, 0.0)]
    seen = [
        grader.observe(row(place, members=8 if place < 16 else 12, rate=rate, lag_seconds=lag), RATE)
        for place, lag in enumerate(lags, start=8)
    ]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert graded.late_messages == late_messages


def test_a_jump_of_the_load_hides_what_the_move_did() -> None:
    """16,000/s on 8 replicas: the 12 that come after a minute stay late too, and no move is priced for it."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    for place in range(8):
        grader.observe(row(place), RATE)
    command = advised(8, 12, late_messages=500)
    grader.commanded(command)
    seen = [
        grader.observe(row(place, members=8 if place < 12 else 12, rate=16_000.0, lag_seconds=45.0), RATE)
        for place in range(8, 20)
    ]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert graded.late_messages is None
    before = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    assert before.after(graded, late_price=1e-4).risk == pytest.approx(0.3 / 4)


@pytest.mark.parametrize("known_from", [0, 10, 99], ids=["before", "while it happens", "after"])
def test_a_move_is_graded_alike_whenever_the_capacity_becomes_known(known_from: int) -> None:
    """12,000/s on 10 replicas add 2.5 s of lag in each row until 14 are there: of 10.5 s the move has stopped 3 s."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    shown = [*[(8, 2.5)] * 8, (10, 5.5), (10, 8.0), (10, 10.5), (14, 13.0), *[(14, 2.5)] * 5]
    seen = [
        grader.observe(
            row(place, members=members, rate=12_000.0, lag_seconds=lag), RATE if place >= known_from else None
        )
        for place, (members, lag) in enumerate(shown)
    ]
    (graded,) = [one for one in (*seen, *grader.grade_waiting(RATE)) if one is not None]
    assert graded.graded_at == row(15).interval_end_at
    assert graded.outcome.rebalance_pause_seconds == pytest.approx(3.0)
    assert graded.outcome.late_messages == 0.0
    assert grader.grade_waiting(RATE) == []


def test_a_load_that_ends_has_stopped_nothing() -> None:
    """500 messages that wait at 6,000/s are 0.1 s of it, and no stop of 50 s when only 10/s come later."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    shown = [*[(8, 6000.0, 2.5)] * 8, (10, 6000.0, 2.6), (10, 10.0, 52.5), *[(10, 10.0, 2.5)] * 4]
    seen = [
        grader.observe(row(place, members=members, rate=rate, lag_seconds=lag), RATE)
        for place, (members, rate, lag) in enumerate(shown)
    ]
    (graded,) = [one.outcome for one in seen if one is not None]
    assert graded.rebalance_pause_seconds == pytest.approx(0.1)


def test_a_stop_is_unknown_where_replicas_were_too_few() -> None:
    """16,000/s on 2 replicas of 1,000/s: lag tells of the twelve that are missing, not of the stop when they come."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    shown = [(2, 2.5)] * 8 + [(2, 2.5 + 13.2 * rows) for rows in range(1, 5)] + [(24, 70.0), *[(24, 2.5)] * 5]
    command = advised(2, 24)
    seen = []
    for place, (members, lag) in enumerate(shown):
        if place == 8:
            grader.commanded(command)
        rate = 1000.0 if place < 8 else 16_000.0
        seen.append(grader.observe(row(place, members=members, rate=rate, lag_seconds=lag), RATE))
    (graded,) = [one for one in seen if one is not None]
    assert graded.outcome.rebalance_pause_seconds is None
    before = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    assert before.after(graded.outcome, late_price=0.0).pause_scale_out == before.pause_scale_out
    assert "stop unknown because replicas were too few" in outcome_sentence(graded)


def test_a_move_that_never_comes_is_forgotten() -> None:
    """A command that was not carried out teaches nothing, and the next move is graded by itself."""
    grader = Grader(profile=PROFILE, max_lag_seconds=10.0)
    grader.observe(row(0), RATE)
    grader.commanded(advised(8, 10, at=NOON))
    assert all(grader.observe(row(place), RATE) is None for place in range(1, 60))
    later = [grader.observe(row(place, members=6), RATE) for place in range(60, 70)]
    assert [one.outcome.to_replicas for one in later if one is not None] == [6]


def test_a_creeping_backlog_says_that_the_group_runs_too_full() -> None:
    """At 0.75 of what is carried a backlog of 5 s must not be there: the target sinks towards 0.75, and comes back."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    for place in range(120):
        room.observe(row(place, lag_seconds=10.0), RATE, likely=RATE)
    assert room.value == pytest.approx(0.75, abs=0.01)
    for place in range(120, 2000):
        room.observe(row(place), RATE, likely=RATE)
    assert room.value > 0.76


@pytest.mark.parametrize(("partitions", "rate"), [(12, 20.0), (40, 40.0), (120, 120.0)])
def test_noise_does_not_lower_the_target_utilization(partitions: int, rate: float) -> None:
    """Half a day of a group that keeps up at 0.6 of what it carries, a message or two a second in each partition.

    Each partition was committed at some instant of the last five seconds; the worst of them looks late by itself.
    """
    room, chance = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0)), np.random.default_rng(1)
    carried = MessagesPerSecond(rate / 0.6)
    for place in range(12 * 240):
        waiting = chance.poisson(rate / partitions * chance.uniform(0.0, 5.0, partitions))
        seen = replace(
            row(place, members=1, rate=chance.poisson(15 * rate) / 15),
            lag_messages=float(waiting.sum()),
            worst_lag_seconds=float(waiting.max() * partitions / rate),
            partitions=partitions,
            sampled_partitions=partitions,
        )
        room.observe(seen, carried, likely=carried)
    assert room.value == 0.95


def test_what_waited_while_nobody_was_there_does_not_lower_the_target_utilization() -> None:
    """Three minutes of one member, a night without any, and a start with a backlog that drains."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    for place in range(12):
        room.observe(row(place, members=1, rate=500.0), RATE, likely=RATE)
    for place in range(12, 1000):
        room.observe(row(place, members=0, rate=0.0), RATE, likely=RATE)
    for place, lag_seconds in enumerate((60.0, 60.0, 40.0, 20.0), start=1000):
        room.observe(row(place, members=1, rate=500.0, lag_seconds=lag_seconds), RATE, likely=RATE)
    assert room.value == 0.95


def test_a_group_that_runs_as_full_as_planned_and_well_may_run_fuller_again() -> None:
    """Planned at 1,000/s, which may be 1,150: a backlog at 0.85 of the former lowers it, quiet rows raise it."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    likely = MessagesPerSecond(1150.0)
    for place in range(120):
        room.observe(row(place, rate=6800.0, lag_seconds=10.0), RATE, likely=likely)
    assert room.value == pytest.approx(0.85, abs=0.01)
    for place in range(120, 600):
        room.observe(row(place, rate=6800.0), RATE, likely=likely)
    assert room.value > 0.869


def test_a_backlog_at_what_a_replica_may_well_do_lowers_the_target_utilization() -> None:
    """1.05 of what is planned with is still less than it should do; 1.05 of what it does is a burst."""
    for likely, lowered in ((1150.0, True), (1000.0, False)):
        room = TargetUtilization(most=1.2, commit_interval_seconds=Seconds(5.0))
        for place in range(120):
            room.observe(row(place, rate=8400.0, lag_seconds=10.0), RATE, likely=MessagesPerSecond(likely))
        assert (room.value < 1.2) is lowered


def test_a_burst_does_not_lower_the_target_utilization() -> None:
    """More than the group carries builds a backlog by itself; nothing is learned of how full the group may run."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    for place in range(120):
        room.observe(row(place, rate=9000.0, lag_seconds=60.0), RATE, likely=RATE)
    assert room.value == 0.95


@pytest.mark.parametrize("rows_missing", [0, 4])
def test_a_standstill_does_not_lower_the_target_utilization(rows_missing: int) -> None:
    """A minute of nothing, its rows there or missing, and three minutes of catching up at all that is carried."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    for place in range(120):
        room.observe(row(place), RATE, likely=RATE)
    for place in range(120, 124 - rows_missing):
        room.observe(row(place, lag_seconds=17.5 + 15.0 * (place - 120)), RATE, likely=RATE)
    for place in range(124, 200):
        room.observe(row(place, lag_seconds=max(2.5, 57.5 - 5.0 * (place - 124))), RATE, likely=RATE)
    assert room.value == 0.95


def test_a_backlog_that_is_being_consumed_does_not_lower_the_target_utilization() -> None:
    """The backlog of a jump drains at three quarters of what is carried; no replica was too highly utilized."""
    room = TargetUtilization(most=0.95, commit_interval_seconds=Seconds(5.0))
    for place in range(60):
        room.observe(row(place, lag_seconds=60.0 - 0.5 * place), RATE, likely=RATE)
    assert room.value == 0.95
