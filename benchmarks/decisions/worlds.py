"""The worlds in which decisions are compared: four with slow rebalances, two as measured on a real broker.

One consumer processes 1,000 messages/s and there may be 40 of them; the worlds differ in the cost of a change of their
number. Three worlds more, in which a change takes minutes to have an effect, are played where they are named.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from replay.world import World

CAPACITY_MESSAGES_PER_SECOND = 1_000.0
MOST_REPLICAS = 40
# So fast a drift makes the members' heartbeats independent of each other within a second.
INDEPENDENT = 10.0

Pauses = Literal["slow", "real"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """A world, its description in a sentence, and the kind of its pauses: slow, or measured on a real broker."""

    sentence: str
    pauses: Pauses
    world: World


_forty_replicas = partial(
    World, capacity_messages_per_second_per_replica=CAPACITY_MESSAGES_PER_SECOND, max_replicas=MOST_REPLICAS
)

WORLDS: dict[str, WorldKind] = {
    "tight": WorldKind(
        sentence="40 partitions, so that 21 to 39 replicas carry no more than 20; eager, independent heartbeats, "
        "batches of 2 s, pods ready after 25 s.",
        pauses="slow",
        world=_forty_replicas(partitions=40, heartbeat_drift=INDEPENDENT, batch_seconds=2.0, start_up_seconds=25.0),
    ),
    "fine": WorldKind(
        sentence="The same with 120 partitions, so that the useful counts are fine.",
        pauses="slow",
        world=_forty_replicas(partitions=120, heartbeat_drift=INDEPENDENT, batch_seconds=2.0, start_up_seconds=25.0),
    ),
    "cooperative": WorldKind(
        sentence="40 partitions, cooperative with the Java client, independent heartbeats, batches of 2 s, pods ready "
        "after 60 s.",
        pauses="slow",
        world=_forty_replicas(
            partitions=40,
            protocol="cooperative",
            heartbeat_drift=INDEPENDENT,
            batch_seconds=2.0,
            start_up_seconds=60.0,
        ),
    ),
    "ungraceful": WorldKind(
        sentence="120 partitions, static members that stay for a session of 45 s after they closed, eager, batches of "
        "5 s, pods ready after 25 s, one pod in twenty at four fifths of the speed.",
        pauses="slow",
        world=_forty_replicas(
            partitions=120,
            static_membership=True,
            session_timeout_seconds=45.0,
            batch_seconds=5.0,
            start_up_seconds=25.0,
            slow_pod_share=0.05,
            slow_pod_speed=0.8,
        ),
    ),
    "real-quick": WorldKind(
        sentence="120 partitions, eager, heartbeats in step, batches of 0.1 s, pods ready after 30 s.",
        pauses="real",
        world=_forty_replicas(partitions=120),
    ),
    "real-long": WorldKind(
        sentence="40 partitions, cooperative with the Java client, heartbeats in step, batches of 5 s, pods ready "
        "after 30 s.",
        pauses="real",
        world=_forty_replicas(partitions=40, protocol="cooperative", batch_seconds=5.0),
    ),
}

# Where capacity comes late, a plan that sees a rise beforehand saves the messages that a reaction would make late.
SLOW_START_WORLDS: dict[str, WorldKind] = {
    "slow-pods": WorldKind(
        sentence="120 partitions, eager, heartbeats in step, batches of 0.1 s, pods ready after 90 s, give or take "
        "15 s, for they load their image first.",
        pauses="real",
        world=_forty_replicas(partitions=120, start_up_seconds=90.0, start_up_spread_seconds=30.0),
    ),
    "new-nodes": WorldKind(
        sentence="120 partitions, eager, heartbeats in step, batches of 0.1 s, pods ready after 180 s, give or take "
        "30 s, for they wait for a node.",
        pauses="real",
        world=_forty_replicas(partitions=120, start_up_seconds=180.0, start_up_spread_seconds=60.0),
    ),
    "restoring": WorldKind(
        sentence="40 partitions, cooperative with the Java client, heartbeats in step, batches of 0.1 s, pods ready "
        "after 30 s; Streams with state, of which 8 partitions at a time are restored in 240 s, and whose group asks "
        "each 300 s for what is restored: 8 partitions move after 5 min, 24 after 15 min; static members that stay for "
        "a session of 45 s after they closed.",
        pauses="real",
        world=_forty_replicas(
            partitions=40,
            protocol="cooperative",
            static_membership=True,
            session_timeout_seconds=45.0,
            restore_seconds=240.0,
            warmup_slots=8,
            probing_seconds=300.0,
        ),
    ),
}

ALL_WORLDS = {**WORLDS, **SLOW_START_WORLDS}
