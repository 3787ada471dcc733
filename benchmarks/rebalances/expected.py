"""The expected effect of a change of a group's size, by the cost model's formulas and by the simulated group."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from benchmarks.rebalances.members import SESSION_SECONDS, Client
from cost_model.physics.duplicates import dropped_seconds, expected_duplicates
from cost_model.physics.profile import GroupProfile, GroupProtocol
from cost_model.physics.rebalance import move_effect
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from replay.plant import Plant
from replay.trace import Trace
from replay.world import World

Change = Literal["out", "in", "killed"]
CHANGES: tuple[Change, ...] = ("out", "in", "killed")
PROTOCOLS: dict[GroupProtocol, str] = {"eager": "range", "cooperative": "cooperative-sticky", "kip848": "consumer"}

PARTITIONS = 12
FEW, MANY = 4, 6
MESSAGES_PER_SECOND = 120.0
# In the simulated group batches are as long as its work: 4 pods process 80 of 120 messages/s, 6 process all of them.
CAPACITY = 20.0
SEEDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKind:
    """A kind of group."""

    client: Client
    protocol: GroupProtocol
    batch_seconds: float
    static: bool

    @property
    def name(self) -> str:
        """The name of its group, valid in Kafka."""
        static = "-static" if self.static else ""
        return f"{self.client}-{self.protocol}{static}-{self.batch_seconds:g}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEffect:
    """Seconds lost per partition of the group, the mean stop of those that stop, and messages."""

    lost_seconds: float
    rebalance_pause_seconds: float | None
    duplicates: float
    lost: float | None


def counts_of(change: Change) -> tuple[int, int]:
    """The number of members before the change, and after it."""
    return (FEW, MANY) if change == "out" else (MANY, FEW)


def by_formula(group_kind: GroupKind, change: Change, *, quiet_seconds: float) -> ExpectedEffect:
    """By `cost_model`, with all known settings of the group; 0.3 s, the prior, stands for a broker's absence."""
    before, after = map(Replicas, counts_of(change))
    profile = GroupProfile(
        cluster="c",
        group=group_kind.name,
        partitions=Partitions(PARTITIONS),
        capacity=None,
        protocol=group_kind.protocol,
        client=group_kind.client,
        static_membership=group_kind.static,
        session_timeout_seconds=Seconds(SESSION_SECONDS),
        poll_batch_seconds=Seconds(group_kind.batch_seconds),
        processing_p99_seconds=Seconds(group_kind.batch_seconds),
        start_up_seconds=Seconds(0.0),  # they join together
        termination_grace_seconds=Seconds(0.0 if change == "killed" else 30.0),
    )
    effect = move_effect(profile, from_replicas=before, to_replicas=after, quiet_seconds=Seconds(quiet_seconds))
    rate = MessagesPerSecond(MESSAGES_PER_SECOND)
    return ExpectedEffect(
        lost_seconds=effect.lost_partition_seconds / PARTITIONS,
        rebalance_pause_seconds=effect.rebalance_pause_seconds,
        duplicates=expected_duplicates(profile, from_replicas=before, to_replicas=after, consume=rate),
        lost=dropped_seconds(profile, from_replicas=before, to_replicas=after) * rate,
    )


def by_plant(group_kind: GroupKind, change: Change, *, quiet_seconds: float) -> ExpectedEffect:
    """By the simulated group of `replay`, the mean over 20 seeds."""
    before, after = counts_of(change)
    world = World(
        partitions=PARTITIONS,
        capacity_messages_per_second_per_replica=CAPACITY,
        protocol=group_kind.protocol,
        client=group_kind.client,
        static_membership=group_kind.static,
        session_timeout_seconds=SESSION_SECONDS,
        batch_seconds=group_kind.batch_seconds,
        start_up_seconds=1.0,
        start_up_spread_seconds=0.0,
        shutdown_seconds=0.0,
        termination_grace_seconds=0.0 if change == "killed" else 30.0,
        pod_speed_spread=0.0,
        minute_speed_spread=0.0,
        partition_skew=0.0,
    )
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    trace = Trace(
        name="steady",
        start_at=start_at,
        step_seconds=60,
        messages_per_second=np.full(10, MESSAGES_PER_SECOND),
    )
    totals = []
    for seed in range(SEEDS):
        plant = Plant(world=world, trace=trace, seed=seed, replicas=before)
        plant.advance(round(quiet_seconds) + seed % 6)  # at different distances from the heartbeat
        plant.scale(after)
        plant.advance(plant.remaining_seconds)
        totals.append(plant.day_totals()[0])
    return ExpectedEffect(
        lost_seconds=float(np.mean([total.paused_partition_seconds for total in totals])) / PARTITIONS,
        rebalance_pause_seconds=None,
        duplicates=float(np.mean([total.duplicates for total in totals])),
        lost=None,
    )
