"""SimilarGroups: what the moves of groups of the same kind have taught, as the prior of a group that has made none."""

from dataclasses import dataclass
from math import log2
from typing import NamedTuple

from cost_model.physics.profile import Client, GroupProfile, GroupProtocol


class GroupKind(NamedTuple):
    """What groups have to share so that moves of one tell about moves of the other.

    The rebalance pause depends on the client, the protocol and how members leave, and on the length of a batch, here in
    octaves: batches of 2 s are not those of 0.1 s.
    """

    client: Client
    protocol: GroupProtocol
    static_membership: bool
    batch_octave: int


def kind_of(profile: GroupProfile) -> GroupKind:
    """The kind of a group, by its profile.

    >>> from forecasting.units import Partitions
    >>> kind_of(GroupProfile(cluster="c", group="g", partitions=Partitions(8), capacity=None))
    GroupKind(client='other', protocol='eager', static_membership=False, batch_octave=-3)
    """
    return GroupKind(
        client=profile.client,
        protocol=profile.rebalances_as,
        static_membership=profile.static_membership,
        batch_octave=round(log2(max(profile.poll_batch_seconds, 0.001))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarGroups:
    """The medians over `groups` groups of one kind, each of them measured by its own moves.

    `risk_share` is the risk of a move as a share of the prior, since groups have different prices. None where too few
    groups have measured a quantity.
    """

    groups: int
    pause_scale_out_seconds: float
    pause_scale_in_seconds: float
    risk_share: float
    ungraceful_share: float | None = None
    start_up_seconds: float | None = None
