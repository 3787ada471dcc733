"""The messages that a move repeats or loses, by commit mode, client and kind of exit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.duplicates import (
    dropped_seconds,
    expected_duplicates,
    lost_seconds,
    repeated_seconds,
    uncommitted_seconds,
)
from cost_model.physics.profile import GroupProfile, GroupProtocol, StreamsProfile
from cost_model.physics.rounds import rebalance_round
from forecasting.units import Fraction, Messages, MessagesPerSecond, Partitions, Replicas, Seconds

KAFKA = GroupProfile(
    cluster="east", group="orders", partitions=Partitions(40), capacity=None, poll_batch_seconds=Seconds(0.0)
)
# Replicas with a grace period of less than their p99 batch are killed.
KILLED = replace(KAFKA, processing_p99_seconds=Seconds(40.0))
CONSUME = MessagesPerSecond(800.0)


def _repeated(profile: GroupProfile, before: int, after: int) -> Messages:
    return expected_duplicates(profile, from_replicas=Replicas(before), to_replicas=Replicas(after), consume=CONSUME)


def _lost(profile: GroupProfile, before: int, after: int) -> Messages:
    return Messages(CONSUME * dropped_seconds(profile, from_replicas=Replicas(before), to_replicas=Replicas(after)))


@pytest.mark.parametrize("protocol", ["eager", "kip848"])
def test_members_that_commit_before_they_release_partitions_repeat_nothing(protocol: GroupProtocol) -> None:
    """Eager and KIP-848 members commit before they release partitions, all before they close: 0 both ways."""
    profile = replace(KAFKA, protocol=protocol)
    assert [_repeated(profile, *move) for move in ((4, 8), (8, 4))] == [0.0, 0.0]


def test_a_cooperative_scale_out_repeats_messages_since_the_last_commit() -> None:
    """Half of 800 messages/s moves, committed a mean stop and three batches ago: 400 * (A + 3 * 2 s)."""
    profile = replace(KAFKA, protocol="cooperative", poll_batch_seconds=Seconds(2.0))
    stop = rebalance_round(profile, members=4).mean_pause_seconds
    assert _repeated(profile, 4, 8) == pytest.approx(400.0 * (stop + 6.0))
    assert _repeated(profile, 8, 4) == 0.0
    assert _repeated(replace(profile, commit_mode="batch"), 4, 8) == 0.0
    assert _repeated(replace(profile, client="librdkafka"), 4, 8) == 0.0


@pytest.mark.parametrize(("batch", "expected"), [(0.1, 500.0), (20.0, 2000.0)])
def test_killed_replicas_repeat_half_a_commit_interval_or_half_a_batch(batch: float, expected: float) -> None:
    """A quarter of 800 messages/s was committed 2.5 s ago on average (measured 520 of 500), or 10 s."""
    assert _repeated(replace(KILLED, poll_batch_seconds=Seconds(batch)), 8, 6) == pytest.approx(expected)


def test_a_commit_for_each_batch_leaves_half_a_batch() -> None:
    """100 messages/s in batches of 2 s: a kill repeats 100; 108 to 120 were measured."""
    profile = replace(KILLED, commit_mode="batch", poll_batch_seconds=Seconds(2.0))
    assert _repeated(profile, 8, 7) == pytest.approx(100.0)


def test_a_commit_for_each_message_repeats_only_messages_in_work() -> None:
    """Two killed replicas with 10 messages in work each repeat 5 each, at any rate, and nothing per second."""
    profile = replace(KILLED, commit_mode="message", concurrency=10)
    assert _repeated(profile, 8, 6) == pytest.approx(10.0)
    assert repeated_seconds(profile, from_replicas=Replicas(8), to_replicas=Replicas(6)) == 0.0
    assert _repeated(replace(profile, termination_grace_seconds=Seconds(60.0)), 8, 6) == 0.0


def test_an_evicted_member_repeats_its_whole_batch() -> None:
    """Its commit is refused in any commit mode."""
    profile = replace(KAFKA, poll_batch_seconds=Seconds(300.0))
    assert uncommitted_seconds(profile, "evicted", members=4) == 300.0


def test_a_static_member_that_closes_repeats_nothing() -> None:
    """It is ungraceful, but it has committed; ungraceful leaves of others were kills."""
    assert _repeated(replace(KAFKA, static_membership=True), 8, 6) == 0.0
    assert _repeated(replace(KILLED, static_membership=True), 8, 6) == pytest.approx(500.0)
    assert _repeated(replace(KAFKA, ungraceful_share=Fraction(0.5)), 8, 6) == pytest.approx(250.0)
    assert _repeated(replace(KAFKA, static_membership=True, ungraceful_share=Fraction(1.0)), 8, 6) == 0.0


def test_streams_repeats_half_its_commit_interval_or_nothing() -> None:
    """At least once, committed each 30 s: a killed quarter of 800 messages/s repeats 15 s; exactly once: nothing."""
    streams = StreamsProfile(stateful=False, tasks=40)
    assert _repeated(replace(KILLED, streams=streams), 8, 6) == pytest.approx(200.0 * 15.0)
    assert _repeated(replace(KILLED, streams=replace(streams, exactly_once=True)), 8, 6) == 0.0
    assert _repeated(replace(KAFKA, streams=streams), 8, 6) == 0.0
    assert _repeated(replace(KAFKA, streams=streams), 4, 8) == 0.0


@pytest.mark.parametrize(("batch", "measured", "within"), [(5.0, 161.0, 10.0), (1.0, 3.0, 4.0)])
def test_a_killed_librdkafka_loses_as_many_messages_as_measured(batch: float, measured: float, within: float) -> None:
    """Offsets stored on delivery: a kill at 200 messages/s lost 161 messages at batches of 5 s, 0 to 3 at 1 s."""
    profile = replace(KILLED, client="librdkafka", poll_batch_seconds=Seconds(batch))
    assert _lost(profile, 4, 3) == pytest.approx(measured, abs=within)
    assert _lost(replace(profile, client="java"), 4, 3) == 0.0
    assert _lost(replace(profile, commit_mode="batch"), 4, 3) == 0.0
    assert _lost(replace(profile, termination_grace_seconds=Seconds(60.0)), 4, 3) == 0.0


@pytest.mark.parametrize(("batch", "interval"), [(5.0, 5.0), (2.0, 5.0), (20.0, 5.0)])
def test_losses_and_repeats_of_librdkafka_are_those_of_kills_played_out(batch: float, interval: float) -> None:
    """The formulas give the losses and repeats of a million kills at random moments of batch and commit interval."""
    random = np.random.default_rng(11)
    in_batch, since_commit = batch * random.random(1_000_000), interval * random.random(1_000_000)
    # A commit covers its whole batch: the running one, or one that ended before it began.
    begun = np.where(since_commit <= in_batch, 0.0, np.ceil((since_commit - in_batch) / batch))
    ahead = in_batch - batch * (1.0 - begun)  # done beyond the commit; below 0: committed, not done
    profile = replace(
        KILLED,
        client="librdkafka",
        poll_batch_seconds=Seconds(batch),
        commit_interval_seconds=Seconds(interval),
    )
    assert lost_seconds(profile) == pytest.approx(np.maximum(-ahead, 0.0).mean(), rel=0.02, abs=1e-3)
    repeated = uncommitted_seconds(profile, "killed", members=4)
    assert repeated == pytest.approx(np.maximum(ahead, 0.0).mean(), rel=0.02, abs=1e-3)


PROFILES = st.builds(
    GroupProfile,
    cluster=st.just("east"),
    group=st.just("orders"),
    partitions=st.just(Partitions(40)),
    capacity=st.none(),
    protocol=...,
    client=...,
    commit_mode=...,
    streams=st.sampled_from([None, StreamsProfile(stateful=True, tasks=40)]),
    poll_batch_seconds=st.floats(0.0, 60.0),
    commit_interval_seconds=st.floats(0.1, 60.0),
    ungraceful_share=st.floats(0.0, 1.0),
)


@given(PROFILES, st.integers(0, 60), st.integers(0, 60))
def test_repeats_and_losses_are_never_negative_and_grow_with_silent_exits(
    profile: GroupProfile, before: int, after: int
) -> None:
    """In any group and for any move, the graceful end is the best one."""
    graceful = replace(profile, ungraceful_share=Fraction(0.0))
    assert 0.0 <= _repeated(graceful, before, after) <= _repeated(profile, before, after) + 1e-9
    assert 0.0 == _lost(graceful, before, after) <= _lost(profile, before, after)
