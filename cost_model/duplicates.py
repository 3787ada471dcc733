"""Which messages a move makes the group process twice: those consumed after the last commit and then taken away."""

from cost_model.profile import GroupProfile
from cost_model.rebalance import leaves_gracefully, move_effect, rebalance_round
from forecasting.units import Messages, MessagesPerSecond, Replicas, Seconds

# Batches that a Java cooperative member consumes between its commit (sent when it rejoins) and the later revocation,
# which does not commit again; measured.
UNCOMMITTED_BATCHES = 3.0


def repeated_seconds(profile: GroupProfile, *, from_replicas: Replicas, to_replicas: Replicas) -> Seconds:
    """Seconds of the whole group's consumption that a move repeats: 0 where every revocation follows a commit.

    Eager members commit before they let go, and replicas that leave gracefully commit before they say goodbye: 0. A
    cooperative scale-out repeats what moved partitions consumed between commit and revocation. A replica that
    Kubernetes kills in mid-batch has committed T_c / 2 ago on average, or half a batch where that is longer.
    """
    effect = move_effect(profile, from_replicas=from_replicas, to_replicas=to_replicas)
    batch = profile.poll_batch_seconds
    if to_replicas < from_replicas:
        ago = 0.0 if leaves_gracefully(profile) else max(profile.commit_interval_seconds, batch) / 2.0
    elif profile.protocol == "eager":
        ago = 0.0
    else:
        staying = min(from_replicas, profile.partitions)
        ago = rebalance_round(profile, members=staying).mean_stop_seconds + UNCOMMITTED_BATCHES * batch
    return Seconds(effect.moved_fraction * ago)


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
    return Messages(repeated_seconds(profile, from_replicas=from_replicas, to_replicas=to_replicas) * consume)
