"""Guards: each may hold a move back, says why, and otherwise lets it pass untouched."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cost_model.profile import Capacity, GroupProfile, StreamsProfile
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.decision import DecisionSettings
from recommender.guards import Proposal, Scene, follow_fallback, pass_guards, rest_seconds

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
RATE = MessagesPerSecond(1000.0)

PROFILE = GroupProfile(
    cluster="c",
    group="orders",
    partitions=Partitions(24),
    capacity=Capacity(p20=RATE, p50=RATE, p90=RATE, source="configured"),
    start_up_seconds=Seconds(30.0),
)
ROW = GroupInterval(
    cluster="c",
    group="orders",
    topics="orders",
    interval_end_at=NOW,
    interval_seconds=15,
    produce_messages_per_second=4000.0,
    consume_messages_per_second=4000.0,
    lag_messages=0.0,
    lag_seconds=0.0,
    partitions=24,
    sampled_partitions=24,
    members=8,
)
SCENE = Scene(
    now=NOW,
    replicas=8,
    backlog_messages=0.0,
    behind_seconds=0.0,
    produce_messages_per_second=4000.0,
    latest=ROW,
    last_move_at=None,
    profile=PROFILE,
    settings=DecisionSettings(),
)
FEWER = Proposal(target=6, command_at=NOW)
MORE = Proposal(target=12, command_at=NOW)


@pytest.mark.parametrize("proposal", [FEWER, MORE])
def test_a_quiet_group_with_whole_data_passes_every_guard(proposal: Proposal) -> None:
    """Nothing draining, nothing missing, no recent move: the proposal comes out as it went in."""
    assert pass_guards(proposal, SCENE) == proposal


def test_one_missing_partition_stops_removal_but_not_addition() -> None:
    """With 23 of 24 partitions sampled nothing is removed; adding is never stopped by missing data."""
    scene = replace(SCENE, latest=replace(ROW, sampled_partitions=23))
    held = pass_guards(FEWER, scene)
    assert (held.target, held.binding_rule) == (8, "partial_data")
    assert held.sentences == ("Only 23 of 24 partitions were sampled, so nothing is removed.",)
    assert pass_guards(MORE, scene) == MORE


def test_nothing_is_removed_while_a_backlog_drains() -> None:
    """At 4,000/s and a promise of 10 s the limit is 20,000 messages: 20,001 hold, 20,000 do not."""
    assert pass_guards(FEWER, replace(SCENE, backlog_messages=20_001.0)).binding_rule == "backlog_draining"
    assert pass_guards(FEWER, replace(SCENE, backlog_messages=20_000.0)) == FEWER
    assert pass_guards(MORE, replace(SCENE, backlog_messages=20_001.0)) == MORE


def test_removing_waits_longer_after_a_move_than_adding() -> None:
    """A group comes to rest in two heartbeats and two batches, 6.2 s; the configured 300 s bind only what removes."""
    assert rest_seconds(PROFILE, DecisionSettings(), removing=False) == pytest.approx(6.2)
    assert rest_seconds(PROFILE, DecisionSettings(), removing=True) == 300.0
    scene = replace(SCENE, last_move_at=NOW - timedelta(seconds=100))
    assert pass_guards(FEWER, scene).binding_rule == "scale_in_cooldown"
    assert pass_guards(MORE, scene) == MORE


def test_newer_protocols_with_long_batches_take_longer_to_come_to_rest() -> None:
    """Batches of 5 s: cooperative 2 * 3 + 8 * 5 s, KIP-848 2 * 5 + 12 * 5 s."""
    slow = replace(PROFILE, poll_batch_seconds=Seconds(5.0))
    assert rest_seconds(replace(slow, protocol="cooperative"), DecisionSettings(), removing=False) == 46.0
    assert rest_seconds(replace(slow, protocol="kip848"), DecisionSettings(), removing=False) == 70.0


def test_long_jobs_stretch_the_rest_to_five_processing_times() -> None:
    """A 99th percentile of 100 s of work means 500 s between moves, either way: shorter ones redo the work for ever."""
    slow = replace(PROFILE, processing_p99_seconds=Seconds(100.0))
    scene = replace(SCENE, profile=slow, last_move_at=NOW - timedelta(seconds=499))
    assert pass_guards(MORE, scene).binding_rule == "move_interval"
    assert pass_guards(MORE, replace(scene, last_move_at=NOW - timedelta(seconds=500))) == MORE


def test_a_move_planned_for_after_the_rest_is_left_alone() -> None:
    """What counts is when the command would be given, not when it was planned."""
    scene = replace(SCENE, last_move_at=NOW - timedelta(seconds=60))
    later = replace(FEWER, command_at=NOW + timedelta(seconds=240))
    assert pass_guards(later, scene) == later


@pytest.mark.parametrize(("wanted", "followed"), [(6, 6), (8, 8), (10, 10), (12, 10)])
def test_the_fallback_policy_is_followed_as_far_as_replicas_help(wanted: int, followed: int) -> None:
    """With 10 as the most that help, 12 become 10; fewer are taken at their word. The rule is named."""
    scene = replace(SCENE, profile=replace(PROFILE, max_replicas=Replicas(10)))
    taken = follow_fallback(MORE, scene, wanted)
    assert (taken.target, taken.command_at, taken.binding_rule) == (followed, NOW, "fallback_policy")


@pytest.mark.parametrize(
    ("arriving", "moved_seconds_ago", "followed"), [(4000.0, 200, 8), (4000.0, 400, 12), (9000.0, 200, 12)]
)
def test_the_fallback_policy_waits_to_see_what_the_last_addition_did(
    arriving: float, moved_seconds_ago: int, followed: int
) -> None:
    """Eight that carry 8,000/s and are late all the same are late for another reason, or have not caught up yet."""
    moved = NOW - timedelta(seconds=moved_seconds_ago)
    scene = replace(SCENE, produce_messages_per_second=arriving, last_move_at=moved)
    assert follow_fallback(MORE, scene, 12).target == followed


@pytest.mark.parametrize(("minutes_ago", "followed"), [(30, 8), (90, 12)])
def test_the_fallback_policy_waits_until_state_is_warm(minutes_ago: int, followed: int) -> None:
    """From 4 to 8 replicas 12 of 24 tasks warm up, two in ten minutes: an hour, in which eight carry what four did."""
    streams = StreamsProfile(stateful=True, tasks=24)
    moved = NOW - timedelta(minutes=minutes_ago)
    scene = replace(SCENE, profile=replace(PROFILE, streams=streams), last_move_at=moved)
    assert follow_fallback(MORE, scene, 12).target == followed


def test_the_fallback_policy_adds_nothing_to_a_group_beyond_what_helps() -> None:
    """8 replicas where 5 would do as much: 12 are not followed, and 8 stay."""
    scene = replace(SCENE, profile=replace(PROFILE, max_replicas=Replicas(5)))
    assert follow_fallback(MORE, scene, 12).target == 8
