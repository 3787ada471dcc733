"""Guards: each may hold a move, states the reason, and otherwise passes the proposal unchanged."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.history import History
from forecasting.units import Replicas, Seconds
from recommender.deciding.context import DecisionContext
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.guards import follow_fallback, keep_the_minimum, pass_guards
from recommender.deciding.limits import Finding
from recommender.deciding.pace import rest_seconds
from recommender.deciding.proposal import Proposal
from recommender.deciding.recommendation import TrackRecord
from tests.recommender.conftest import NOW

MakeContext = Callable[..., DecisionContext]
MakeHistory = Callable[..., History]

FEWER = Proposal(target=6, command_at=NOW, reason="peak_ending")
MORE = Proposal(target=12, command_at=NOW, reason="ramp_ahead")


@pytest.mark.parametrize("proposal", [FEWER, MORE])
def test_a_quiet_group_with_whole_data_passes_every_guard(context: MakeContext, proposal: Proposal) -> None:
    """With no backlog, no missing partition and no recent move, the proposal is returned unchanged."""
    assert pass_guards(proposal, context()) == proposal


def test_one_missing_partition_stops_removal_but_not_addition(
    context: MakeContext, history: Callable[..., History]
) -> None:
    """With 23 of 24 partitions sampled nothing is removed; missing data never stop an addition."""
    partial = context(history=history(4000.0, last={"sampled_partitions": 23}))
    held = pass_guards(FEWER, partial)
    assert (held.target, held.binding_rule, held.reason) == (8, "partial_data", "guarded")
    assert held.sentences == ("Only 23 of 24 partitions were sampled, so nothing is removed.",)
    assert pass_guards(MORE, partial) == MORE


def test_in_the_first_half_hour_only_replicas_without_work_are_removed(
    context: MakeContext, history: Callable[..., History]
) -> None:
    """29 minutes may have been a lull: 8 replicas stay, 30 become the 24 that have partitions; additions pass.

    While replicas have done no message, nothing shows that more of them help; a group without any is started.
    """
    short = context(history=history(4000.0, minutes=29))
    held = pass_guards(FEWER, short)
    assert (held.target, held.binding_rule, held.reason) == (8, "short_history", "guarded")
    assert pass_guards(MORE, short) == MORE
    idle = context(history=history(4000.0, minutes=3, consume_messages_per_second=0.0))
    assert (pass_guards(MORE, idle).target, pass_guards(MORE, idle).binding_rule) == (8, "short_history")
    asleep = context(history=history(4000.0, minutes=3, consume_messages_per_second=0.0, members=0), replicas=0)
    assert pass_guards(MORE, asleep).target == MORE.target
    crowd = context(history=history(4000.0, minutes=29, members=30), replicas=30)
    fewer = pass_guards(FEWER, crowd)
    assert (fewer.target, fewer.binding_rule) == (24, "short_history")
    assert pass_guards(FEWER, context(history=history(4000.0, minutes=30))) == FEWER


def test_until_the_past_is_read_only_replicas_without_work_are_removed(
    context: MakeContext, history: Callable[..., History]
) -> None:
    """An hour may be a lull in a day that the recommender knows and has not read again: 8 stay, 30 become 24."""
    unread = TrackRecord(past_unread=True)
    held = pass_guards(FEWER, context(track_record=unread))
    assert (held.target, held.binding_rule, held.reason) == (8, "short_history", "guarded")
    assert pass_guards(MORE, context(track_record=unread)) == MORE
    crowd = context(history=history(4000.0, members=30), replicas=30, track_record=unread)
    assert pass_guards(FEWER, crowd).target == 24
    followed = pass_guards(MORE, context(fallback_replicas=4, track_record=unread))
    assert (followed.target, followed.binding_rule) == (8, "short_history")


def test_nothing_is_removed_while_a_backlog_drains(context: MakeContext) -> None:
    """At 4,000/s and a promise of 10 s the limit is 20,000 messages: 20,001 hold, 20,000 do not."""
    assert pass_guards(FEWER, context(backlog_messages=20_001.0)).binding_rule == "backlog_draining"
    assert pass_guards(FEWER, context(backlog_messages=20_000.0)) == FEWER
    assert pass_guards(MORE, context(backlog_messages=20_001.0)) == MORE


def test_a_backlog_that_cannot_drain_names_its_finding(context: MakeContext) -> None:
    """Nothing is removed either way; the reason is the finding, if there is one."""
    limit = Finding(reason="downstream_limit", most_replicas=Replicas(8), sentence="More replicas cannot help.")
    assert pass_guards(FEWER, context(backlog_messages=20_001.0)).reason == "guarded"
    assert pass_guards(FEWER, context(backlog_messages=20_001.0, finding=limit)).reason == "downstream_limit"


def test_removing_waits_longer_after_a_move_than_adding(context: MakeContext, profile: GroupProfile) -> None:
    """A group settles in two heartbeats and two batches, 6.2 s; the configured 300 s bind removals only."""
    assert rest_seconds(profile, DecisionSettings(), removing=False) == pytest.approx(6.2)
    assert rest_seconds(profile, DecisionSettings(), removing=True) == 300.0
    moved = context(last_move_at=NOW - timedelta(seconds=100))
    assert pass_guards(FEWER, moved).binding_rule == "scale_in_cooldown"
    assert pass_guards(MORE, moved) == MORE


def test_newer_protocols_with_long_batches_take_longer_to_come_to_rest(profile: GroupProfile) -> None:
    """Batches of 5 s: cooperative 2 * 3 + 8 * 5 s, KIP-848 2 * 5 + 12 * 5 s."""
    slow = replace(profile, poll_batch_seconds=Seconds(5.0))
    assert rest_seconds(replace(slow, protocol="cooperative"), DecisionSettings(), removing=False) == 46.0
    assert rest_seconds(replace(slow, protocol="kip848"), DecisionSettings(), removing=False) == 70.0


def test_long_jobs_stretch_the_rest_to_five_processing_times(context: MakeContext, profile: GroupProfile) -> None:
    """A 99th percentile of 100 s of work means 500 s between any two moves: shorter ones repeat the work for ever."""
    slow = replace(profile, processing_p99_seconds=Seconds(100.0))
    moved = context(profile=slow, last_move_at=NOW - timedelta(seconds=499))
    assert pass_guards(MORE, moved).binding_rule == "move_interval"
    assert pass_guards(MORE, replace(moved, last_move_at=NOW - timedelta(seconds=500))) == MORE


def test_a_move_planned_for_after_the_rest_is_left_alone(context: MakeContext) -> None:
    """The instant of the command counts, not the instant of the plan."""
    moved = context(last_move_at=NOW - timedelta(seconds=60))
    later = replace(FEWER, command_at=NOW + timedelta(seconds=240))
    assert pass_guards(later, moved) == later


def test_without_a_fallback_policy_to_follow_the_plan_stands(context: MakeContext) -> None:
    """The fallback policy is followed only while the advice has been more expensive for too long."""
    assert follow_fallback(MORE, context()) == MORE


@pytest.mark.parametrize(("wanted", "followed"), [(6, 6), (8, 8), (10, 10), (12, 10)])
def test_the_fallback_policy_is_followed_as_far_as_replicas_help(
    context: MakeContext, profile: GroupProfile, wanted: int, followed: int
) -> None:
    """With a useful maximum of 10, 12 become 10; fewer are used unchanged. The rule is named."""
    ten = replace(profile, max_replicas=Replicas(10))
    taken = follow_fallback(MORE, context(profile=ten, fallback_replicas=wanted))
    assert (taken.target, taken.command_at, taken.binding_rule) == (followed, NOW, "fallback_policy")


@pytest.mark.parametrize(
    ("arriving", "grown_seconds_ago", "target"), [(4000.0, 200, 8), (4000.0, 400, 12), (9000.0, 200, 12)]
)
@pytest.mark.parametrize("followed", [None, 12])
def test_a_group_that_grew_and_is_behind_waits_for_the_effect(  # noqa: PLR0917 - fixtures and parameters
    context: MakeContext,
    history: MakeHistory,
    arriving: float,
    grown_seconds_ago: int,
    target: int,
    followed: int | None,
) -> None:
    """Eight that carry 8,000/s and are late are late for another reason, or have not caught up yet."""
    now = NOW + timedelta(seconds=grown_seconds_ago)
    late = context(
        history=history(arriving, members=6, last={"members": 8}),
        now=now,
        produce_messages_per_second=arriving,
        backlog_messages=100_000.0,
        fallback_replicas=followed,
    )
    assert pass_guards(replace(MORE, command_at=now), late).target == target


@pytest.mark.parametrize(("moved_seconds_ago", "followed"), [(5, 8), (10, 12)])
def test_the_fallback_policy_lets_a_group_that_keeps_up_settle(
    context: MakeContext, moved_seconds_ago: int, followed: int
) -> None:
    """Two heartbeats and two batches lie between two moves, 6.2 s, for any policy."""
    moved = NOW - timedelta(seconds=moved_seconds_ago)
    assert follow_fallback(MORE, context(last_move_at=moved, fallback_replicas=12)).target == followed


@pytest.mark.parametrize(("minutes_ago", "followed"), [(30, 8), (90, 12)])
def test_b20_the_fallback_policy_waits_until_state_is_warm(
    context: MakeContext, profile: GroupProfile, minutes_ago: int, followed: int
) -> None:
    """From 4 to 8 replicas 12 of 24 tasks warm up, two in ten minutes: an hour, in which eight carry what four did."""
    streams = StreamsProfile(stateful=True, tasks=24)
    moved = NOW - timedelta(minutes=minutes_ago)
    warming = context(profile=replace(profile, streams=streams), last_move_at=moved, fallback_replicas=12)
    assert follow_fallback(MORE, warming).target == followed


def test_the_fallback_policy_adds_nothing_to_a_group_beyond_what_helps(
    context: MakeContext, profile: GroupProfile
) -> None:
    """If 5 of 8 replicas would do as much, 12 are not followed, and 8 stay."""
    beyond = context(profile=replace(profile, max_replicas=Replicas(5)), fallback_replicas=12)
    assert follow_fallback(MORE, beyond).target == 8


@pytest.mark.parametrize(("proposed", "kept"), [(0, 0), (6, 9), (10, 10)])
def test_the_minimum_is_that_of_a_group_that_is_not_at_zero(
    context: MakeContext, profile: GroupProfile, proposed: int, kept: int
) -> None:
    """With eight replicas and a minimum of nine, 6 become 9; the minimum does not prevent 0."""
    small = context(profile=replace(profile, min_replicas=Replicas(9)))
    assert keep_the_minimum(replace(FEWER, target=proposed), small).target == kept
