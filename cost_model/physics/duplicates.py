"""Messages that a move makes the group process twice, or never: those between processed and committed offset."""

from typing import Literal

from cost_model.physics.exits import killed_fraction
from cost_model.physics.profile import GroupProfile
from cost_model.physics.rebalance import move_effect
from cost_model.physics.rounds import rebalance_round
from forecasting.units import Messages, MessagesPerSecond, Replicas, Seconds

# Batches that a Java cooperative member consumes between its commit (sent when it rejoins) and the later revocation,
# which does not commit again; measured.
UNCOMMITTED_BATCHES = 3.0

LossOfPartitions = Literal["revoked", "closed", "killed", "evicted"]


def uncommitted_seconds(profile: GroupProfile, how: LossOfPartitions, *, members: int) -> Seconds:
    """Seconds of a partition's consumption that its next owner repeats, by how the last one lost it.

    Revoked or closed: nothing, because a commit comes before, except under Java's cooperative protocol with
    auto-commit: A + 3 * B. Killed: half a commit interval or half a batch, whichever is longer, since the last commit;
    half a batch with a commit for each; the messages in work with a commit for each message (`in_flight_messages`).
    Evicted because of a late answer: the whole batch, whose commit is refused. Streams with exactly-once repeats no
    output, and commits before it lets a task go.
    """
    streams = profile.streams
    if how == "closed" or (streams is not None and (streams.exactly_once or how == "revoked")):
        return Seconds(0.0)
    if how == "killed":
        return _uncommitted_at_a_kill(profile)
    if how == "evicted":
        return profile.poll_batch_seconds
    revoked_late = profile.rebalances_as == "cooperative" and profile.client != "librdkafka"
    if not revoked_late or profile.commit_mode != "interval":
        return Seconds(0.0)
    since_rejoining = rebalance_round(profile, members=members).mean_pause_seconds
    return Seconds(since_rejoining + UNCOMMITTED_BATCHES * profile.poll_batch_seconds)


def _uncommitted_at_a_kill(profile: GroupProfile) -> Seconds:
    batch, streams = profile.poll_batch_seconds, profile.streams
    if streams is not None:
        return Seconds(max(streams.commit_interval_seconds, batch) / 2.0)
    if profile.commit_mode != "interval":
        return Seconds(batch / 2.0 if profile.commit_mode == "batch" else 0.0)
    if _stores_on_delivery(profile):  # the committed offset is ahead of the work by half a batch on average
        return Seconds((profile.commit_interval_seconds - batch) / 2.0 + lost_seconds(profile))
    return Seconds(max(profile.commit_interval_seconds, batch) / 2.0)


def lost_seconds(profile: GroupProfile) -> Seconds:
    """Seconds of a partition's consumption that a kill loses for good: librdkafka's, with automatic commits.

    It stores offsets when it delivers messages, so a commit in mid-batch covers messages that are not processed. At a
    commit `a` ago in the running batch, `v` old, B - v is lost if a <= v; with v uniform on the batch and a on T_c:
    B**2 / (6 * T_c), or (B - T_c) / 2 + T_c**2 / (6 * B) for batches longer than the interval. Measured on Kafka 4.3
    at B = T_c = 5 s and 200 messages/s: 161 messages a kill, where this gives 167; at B = 1 s 0 to 3, where it gives 7.
    """
    batch, interval = float(profile.poll_batch_seconds), float(profile.commit_interval_seconds)
    if not _stores_on_delivery(profile) or batch <= 0.0:
        return Seconds(0.0)
    if batch <= interval:
        return Seconds(batch**2 / (6.0 * interval))
    return Seconds((batch - interval) / 2.0 + interval**2 / (6.0 * batch))


def _stores_on_delivery(profile: GroupProfile) -> bool:
    """True if enable.auto.offset.store is in effect, librdkafka's default."""
    return profile.client == "librdkafka" and profile.commit_mode == "interval" and profile.streams is None


def repeated_seconds(profile: GroupProfile, *, from_replicas: Replicas, to_replicas: Replicas) -> Seconds:
    """Seconds of the whole group's consumption that a move repeats; repeats independent of the rate are separate.

    A bigger group revokes the moving partitions; a smaller one loses the leavers' share, closed in order or killed.
    """
    if to_replicas > from_replicas:
        members = min(from_replicas, profile.work_units)
        ago = uncommitted_seconds(profile, "revoked", members=members)
        if ago <= 0.0:
            return Seconds(0.0)
        effect = move_effect(profile, from_replicas=from_replicas, to_replicas=to_replicas)
        return Seconds(effect.moved_fraction * ago)
    killed = _killed_share(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    return Seconds(killed * uncommitted_seconds(profile, "killed", members=from_replicas))


def in_flight_messages(profile: GroupProfile, *, from_replicas: Replicas, to_replicas: Replicas) -> Messages:
    """Messages in work when their replica is killed, half the concurrency of each, where each message is committed."""
    if profile.commit_mode != "message" or profile.streams is not None:
        return Messages(0.0)
    working = min(from_replicas, profile.work_units)
    killed = working * _killed_share(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    return Messages(killed * profile.concurrency / 2.0)


def _killed_share(profile: GroupProfile, *, from_replicas: Replicas, to_replicas: Replicas) -> float:
    """The share of partitions whose replicas a move kills; 0 for a bigger group."""
    before, after = (min(max(replicas, 0), profile.work_units) for replicas in (from_replicas, to_replicas))
    return killed_fraction(profile) * (before - after) / before if before > after else 0.0


def expected_duplicates(
    profile: GroupProfile,
    *,
    from_replicas: Replicas,
    to_replicas: Replicas,
    consume: MessagesPerSecond,
) -> Messages:
    """Messages processed twice because of one move, at the group's consume rate.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None, protocol="cooperative")
    >>> four, eight, consume = Replicas(4), Replicas(8), MessagesPerSecond(800)
    >>> expected_duplicates(profile, from_replicas=four, to_replicas=eight, consume=consume)
    600.22
    """
    seconds = repeated_seconds(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    return Messages(
        seconds * consume + in_flight_messages(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    )


def dropped_seconds(profile: GroupProfile, *, from_replicas: Replicas, to_replicas: Replicas) -> Seconds:
    """Seconds of the whole group's consumption that a move loses for good: `lost_seconds` where it kills."""
    killed = _killed_share(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    return Seconds(killed * lost_seconds(profile))
