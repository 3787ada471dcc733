"""What the owner of a group could change to make its moves cheaper, with what each change would bring."""

from dataclasses import replace

from cost_model.exits import leaves_gracefully, orphaned_seconds, says_goodbye
from cost_model.profile import GroupProfile
from cost_model.rebalance import move_effect
from cost_model.streams import restore_seconds
from forecasting.units import Fraction, Replicas, Seconds

SHORT_HEARTBEAT = Seconds(1.0)
LEAST_GAIN_SECONDS = 0.1  # what saves a tenth of a second per move is not worth a sentence


def remedies(profile: GroupProfile) -> tuple[str, ...]:
    """One sentence per change that would help, the figures of this group in it; none for a group that is well set.

    Compared are moves by one replica at the group's full size.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None)
    >>> remedies(profile)
    ('heartbeat.interval.ms 1000 instead of 3000: a scale-out would stop its partitions 0.8 s instead of 1.7 s',)
    """
    found = (_shorter_heartbeat(profile), _longer_grace(profile), _goodbye(profile), _kept_state(profile))
    return tuple(sentence for sentence in found if sentence is not None)


def _shorter_heartbeat(profile: GroupProfile) -> str | None:
    """Measured on Kafka 4.3: 1 s cuts the mean eager stop to 0.34 s and the cooperative one to 1.1 to 1.6 s."""
    if profile.rebalances_as == "kip848" or profile.heartbeat_interval_seconds <= SHORT_HEARTBEAT:
        return None
    now = _stop_growing(profile)
    then = _stop_growing(replace(profile, heartbeat_interval_seconds=SHORT_HEARTBEAT))
    if now - then < LEAST_GAIN_SECONDS:
        return None
    return (
        f"heartbeat.interval.ms 1000 instead of {1000 * profile.heartbeat_interval_seconds:.0f}: "
        f"a scale-out would stop its partitions {then:.1f} s instead of {now:.1f} s"
    )


def _longer_grace(profile: GroupProfile) -> str | None:
    if leaves_gracefully(profile):
        return None
    return (
        f"terminationGracePeriodSeconds above {profile.batch_p99_seconds:.0f} instead of "
        f"{profile.termination_grace_seconds:.0f}: replicas would not be killed in mid-batch"
        + (f", and their partitions not wait {orphaned_seconds(profile):.0f} s" if says_goodbye(profile) else "")
    )


def _goodbye(profile: GroupProfile) -> str | None:
    """Silent closes wait the session out, which close(LEAVE_GROUP) or an administrator's removal spares."""
    if says_goodbye(profile):
        return None
    now, then = (_stop_of_leavers(replace(profile, silent_share=Fraction(share))) for share in (1.0, 0.0))
    if now - then < LEAST_GAIN_SECONDS:
        return None
    close = "KafkaStreams.close with leaveGroup" if profile.streams is not None else "close(LEAVE_GROUP) (Java 4.3)"
    return (
        f"before a scale-down {close}, or removeMembersFromConsumerGroup for the leaving instances: "
        f"their partitions would wait {then:.1f} s instead of {now:.1f} s"
    )


def _kept_state(profile: GroupProfile) -> str | None:
    streams = profile.streams
    if streams is None or not streams.stateful or streams.standbys > 0 or streams.volume_kept:
        return None
    full = Replicas(profile.replica_ceiling)
    restoring = restore_seconds(profile, from_replicas=full, to_replicas=Replicas(full - 1))
    if restoring < LEAST_GAIN_SECONDS:
        return None
    return (
        f"num.standby.replicas 1, or state on a volume that is kept: the tasks of a leaving replica would not wait "
        f"{restoring:.0f} s for their changelog; shorter segments and more eager compaction shorten it too"
    )


def _stop_growing(profile: GroupProfile) -> float:
    full = profile.replica_ceiling
    return move_effect(profile, from_replicas=Replicas(full - 1), to_replicas=Replicas(full)).pause_seconds


def _stop_of_leavers(profile: GroupProfile) -> float:
    """The longest stop of the classes: that of the replica that leaves."""
    full = profile.replica_ceiling
    pauses = move_effect(profile, from_replicas=Replicas(full), to_replicas=Replicas(full - 1)).pauses
    return max((pause.mean_seconds for pause in pauses), default=0.0)
