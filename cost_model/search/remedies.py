"""Changes of settings that would make a group's moves cheaper, with the effect of each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cost_model.physics.exits import leaves_gracefully, orphaned_seconds, sends_leave_group
from cost_model.physics.profile import GroupProfile, while_behind
from cost_model.physics.rebalance import move_effect
from cost_model.physics.streams import restore_seconds
from forecasting.units import Fraction, Replicas, Seconds

SHORT_HEARTBEAT = Seconds(1.0)
LEAST_GAIN_SECONDS = 0.1  # a tenth of a second per move is not worth a sentence
LONG_BATCH_SECONDS = Seconds(1.0)
SHORTER_BATCHES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change other than of replicas: the setting to change, in words, and the group after it."""

    sentence: str
    profile: GroupProfile


def remedies(profile: GroupProfile) -> tuple[Remedy, ...]:
    """One per change that would shorten a stop, with this group's figures; none for a group that is well set.

    Compared are moves by one replica at the group's full size.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None)
    >>> tuple(remedy.sentence for remedy in remedies(profile))
    ('heartbeat.interval.ms 1000 instead of 3000: a scale-out would stop its partitions 0.8 s instead of 1.7 s',)
    """
    found = (_shorter_heartbeat(profile), _longer_grace(profile), _graceful_leave(profile), _kept_state(profile))
    return tuple(remedy for remedy in found if remedy is not None)


def other_ways(profile: GroupProfile) -> Iterator[Remedy]:
    """Other protocols, commits and batches: whether they cost less depends on the group's rate and prices."""
    if profile.streams is not None:
        return
    if profile.protocol == "eager":
        sentence = "partition.assignment.strategy CooperativeStickyAssignor: only partitions that move would stop"
        yield Remedy(sentence=sentence, profile=replace(profile, protocol="cooperative"))
    elif profile.client != "librdkafka":
        sentence = f"an eager assignor: no {profile.protocol} step would wait for a batch"
        yield Remedy(sentence=sentence, profile=replace(profile, protocol="eager"))
    if profile.commit_mode == "interval":
        sentence = "a commit after each batch instead of automatic ones: less would be repeated or lost"
        yield Remedy(sentence=sentence, profile=replace(profile, commit_mode="batch"))
    full = while_behind(profile).poll_batch_seconds
    records = profile.max_poll_records // SHORTER_BATCHES
    if full >= LONG_BATCH_SECONDS and profile.client != "librdkafka" and records > 0:
        shorter = replace(
            profile,
            max_poll_records=records,
            poll_batch_seconds=Seconds(min(profile.poll_batch_seconds, full / SHORTER_BATCHES)),
        )
        yield Remedy(
            sentence=f"max.poll.records {records} instead of {profile.max_poll_records}: full batches would take "
            f"{full / SHORTER_BATCHES:.1f} s instead of {full:.1f} s",
            profile=shorter,
        )


def _shorter_heartbeat(profile: GroupProfile) -> Remedy | None:
    """Measured on Kafka 4.3: 1 s cuts the mean eager stop to 0.34 s and the cooperative one to 1.1 to 1.6 s."""
    if profile.rebalances_as == "kip848" or profile.heartbeat_interval_seconds <= SHORT_HEARTBEAT:
        return None
    shorter = replace(profile, heartbeat_interval_seconds=SHORT_HEARTBEAT)
    now, then = _stop_growing(profile), _stop_growing(shorter)
    if now - then < LEAST_GAIN_SECONDS:
        return None
    sentence = (
        f"heartbeat.interval.ms 1000 instead of {1000 * profile.heartbeat_interval_seconds:.0f}: "
        f"a scale-out would stop its partitions {then:.1f} s instead of {now:.1f} s"
    )
    return Remedy(sentence=sentence, profile=shorter)


def _longer_grace(profile: GroupProfile) -> Remedy | None:
    if leaves_gracefully(profile):
        return None
    sentence = (
        f"terminationGracePeriodSeconds above {profile.batch_p99_seconds:.0f} instead of "
        f"{profile.termination_grace_seconds:.0f}: replicas would not be killed in mid-batch"
        + (f", and their partitions not wait {orphaned_seconds(profile):.0f} s" if sends_leave_group(profile) else "")
    )
    patient = replace(profile, termination_grace_seconds=profile.batch_p99_seconds, ungraceful_share=None)
    return Remedy(sentence=sentence, profile=patient)


def _graceful_leave(profile: GroupProfile) -> Remedy | None:
    """Remedies for ungraceful leaves, which wait the session out: close(LEAVE_GROUP), or an administrator's removal."""
    if sends_leave_group(profile):
        return None
    graceful = replace(profile, ungraceful_share=Fraction(0.0))
    now, then = _stop_of_leavers(replace(profile, ungraceful_share=Fraction(1.0))), _stop_of_leavers(graceful)
    if now - then < LEAST_GAIN_SECONDS:
        return None
    close = "KafkaStreams.close with leaveGroup" if profile.streams is not None else "close(LEAVE_GROUP) (Java 4.3)"
    sentence = (
        f"before a scale-down {close}, or removeMembersFromConsumerGroup for the leaving instances: "
        f"their partitions would wait {then:.1f} s instead of {now:.1f} s"
    )
    return Remedy(sentence=sentence, profile=graceful)


def _kept_state(profile: GroupProfile) -> Remedy | None:
    streams = profile.streams
    if streams is None or not streams.stateful or streams.standbys > 0:
        return None
    full = Replicas(profile.replica_ceiling)
    restoring = restore_seconds(profile, from_replicas=full, to_replicas=Replicas(full - 1))
    if restoring < LEAST_GAIN_SECONDS:
        return None
    sentence = (
        f"num.standby.replicas 1: the tasks of a leaving replica would not wait {restoring:.0f} s for their changelog; "
        "shorter segments and more eager compaction shorten it too"
    )
    return Remedy(sentence=sentence, profile=replace(profile, streams=replace(streams, standbys=1)))


def _stop_growing(profile: GroupProfile) -> float:
    full = profile.replica_ceiling
    return move_effect(profile, from_replicas=Replicas(full - 1), to_replicas=Replicas(full)).rebalance_pause_seconds


def _stop_of_leavers(profile: GroupProfile) -> float:
    """The longest stop of the classes: that of the replica that leaves."""
    full = profile.replica_ceiling
    pauses = move_effect(profile, from_replicas=Replicas(full), to_replicas=Replicas(full - 1)).pauses
    return max((pause.mean_seconds for pause in pauses), default=0.0)
