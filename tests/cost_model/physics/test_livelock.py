"""Work that is interrupted before it is done, and the remedies that a group's owner receives."""

from dataclasses import replace
from math import expm1

import pytest

from cost_model.physics.livelock import least_move_interval_seconds, slow_batches
from cost_model.physics.profile import Capacity, GroupProfile, StreamsProfile, while_behind
from cost_model.search.remedies import remedies
from forecasting.units import Fraction, MessagesPerSecond, Partitions, Replicas, Seconds

KAFKA = GroupProfile(cluster="east", group="orders", partitions=Partitions(40), capacity=None)


def _at(rate: float) -> GroupProfile:
    """The group, its capacity known to be `rate` messages/s per replica."""
    each = MessagesPerSecond(rate)
    return replace(KAFKA, capacity=Capacity(p20=each, p50=each, p90=each, source="configured"))


def test_p11_moves_keep_five_times_the_slowest_work_apart() -> None:
    """A minute per message: 300 s, at which random interruptions slow it by no more than 1.11."""
    minute = replace(KAFKA, processing_p99_seconds=Seconds(60.0))
    apart = least_move_interval_seconds(minute)
    assert apart == 300.0
    assert expm1(60.0 / apart) / (60.0 / apart) < 1.11


def test_b6_a_minute_per_message_in_batches_of_500_forbids_scaling() -> None:
    """60 s x 500 records are 30,000 s, over 80 % of max.poll.interval.ms: the sentence names all of them."""
    found = slow_batches(_at(1.0 / 60.0))
    assert found is not None
    assert "up to 500 records takes 30,000 s, over 80% of max.poll.interval.ms (300 s)" in found.sentence


def test_batches_that_fit_forbid_nothing() -> None:
    """One record per poll, a longer limit, librdkafka's single messages, quick messages, or an unknown capacity."""
    slow = _at(1.0 / 60.0)
    for profile in (
        replace(slow, max_poll_records=1),
        replace(slow, max_poll_interval_seconds=Seconds(40_000.0)),
        replace(slow, client="librdkafka"),
        _at(100.0),
        KAFKA,
    ):
        assert slow_batches(profile) is None
    assert slow_batches(replace(KAFKA, processing_p99_seconds=Seconds(241.0))) is not None


def test_a_group_that_is_behind_has_full_batches() -> None:
    """500 records at 100 a second are 5 s, however short batches are while it keeps up; longer ones stay."""
    assert while_behind(_at(100.0)).poll_batch_seconds == 5.0
    assert while_behind(replace(_at(100.0), poll_batch_seconds=Seconds(9.0))).poll_batch_seconds == 9.0
    assert while_behind(KAFKA) == KAFKA


def test_a_group_with_good_settings_gets_no_remedy() -> None:
    """Heartbeats of a second, LeaveGroup, enough grace; KIP-848 has no heartbeat of its own to set."""
    quick = replace(KAFKA, heartbeat_interval_seconds=Seconds(1.0))
    assert remedies(quick) == ()
    assert remedies(replace(KAFKA, protocol="kip848")) == ()


def test_a_group_of_one_partition_has_no_moves_to_make_cheaper() -> None:
    """Its useful maximum is one replica."""
    assert remedies(replace(KAFKA, partitions=Partitions(1), static_membership=True)) == ()


def test_b18_static_members_get_the_remedy_of_removal_with_its_figures() -> None:
    """45 s of session and a rebalance of 1.3 s become 1.3 s."""
    (remedy,) = remedies(replace(KAFKA, heartbeat_interval_seconds=Seconds(1.0), static_membership=True))
    assert "removeMembersFromConsumerGroup" in remedy.sentence
    assert "close(LEAVE_GROUP)" in remedy.sentence
    assert "would wait 1.3 s instead of 46.3 s" in remedy.sentence


def test_replicas_killed_in_mid_batch_get_the_remedy_of_a_longer_grace_period() -> None:
    """A p99 of 40 s against a grace period of 30 s: 44 s of waiting go away."""
    killed = replace(KAFKA, heartbeat_interval_seconds=Seconds(1.0), processing_p99_seconds=Seconds(40.0))
    (remedy,) = remedies(killed)
    assert "terminationGracePeriodSeconds above 40 instead of 30" in remedy.sentence
    assert "not wait 44 s" in remedy.sentence


def test_b15_state_that_takes_long_to_restore_gets_the_remedy_of_copies() -> None:
    """4 GB over 40 tasks at 10 MB/s are 10 s a task; a standby spares it."""
    streams = StreamsProfile(stateful=True, tasks=40, restore_bytes=4e9, restore_bytes_per_second=1e7)
    quick = replace(KAFKA, heartbeat_interval_seconds=Seconds(1.0), streams=streams, max_replicas=Replicas(10))
    found = remedies(quick)
    assert "would not wait 10 s" in found[-1].sentence
    assert "KafkaStreams.close with leaveGroup" in found[0].sentence
    assert len(remedies(replace(quick, streams=replace(streams, standbys=1)))) == 1


def test_a_share_of_exits_beyond_all_is_refused() -> None:
    """A share lies between 0 and 1."""
    with pytest.raises(ValueError, match=r"ungraceful_share of group 'orders' is 1\.5"):
        replace(KAFKA, ungraceful_share=Fraction(1.5))
