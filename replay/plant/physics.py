"""The constants of one world, as plain numbers that compiled loops take."""

import math
from typing import NamedTuple, get_args

from replay.world import World, WorldProtocol

# Their places among the words of `WorldProtocol`.
EAGER, COOPERATIVE, KIP848 = 0, 1, 2


class Physics(NamedTuple):
    """Times in seconds, rates in messages per second; the names are those of the world, less their units.

    `sink` is infinite where the world has none.
    """

    protocol: int
    capacity: float
    start_up: float
    start_up_spread: float
    heartbeat: float
    heartbeat_drift: float
    sync: float
    batch: float
    commit_interval: int
    shutdown: float
    pod_speed_spread: float
    minute_speed_spread: float
    max_lag: float
    java: bool
    consumer_heartbeat: float
    session: float
    static_membership: bool
    grace: float
    commits_batches: bool
    start_up_log_spread: float
    new_node_share: float
    new_node: float
    slow_pod_share: float
    slow_pod_speed: float
    contention: float
    sink: float
    restore: float
    warmup_slots: int
    probing: float


def physics_of(world: World) -> Physics:
    """The world's constants in the form that compiled loops take."""
    return Physics(
        protocol=get_args(WorldProtocol).index(world.protocol),
        capacity=float(world.capacity_messages_per_second_per_replica),
        start_up=float(world.start_up_seconds),
        start_up_spread=float(world.start_up_spread_seconds),
        heartbeat=float(world.heartbeat_interval_seconds),
        heartbeat_drift=float(world.heartbeat_drift),
        sync=float(world.sync_seconds),
        batch=float(world.batch_seconds),
        commit_interval=int(world.commit_interval_seconds),
        shutdown=float(world.shutdown_seconds),
        pod_speed_spread=float(world.pod_speed_spread),
        minute_speed_spread=float(world.minute_speed_spread),
        max_lag=float(world.max_lag_seconds),
        java=world.client == "java",
        consumer_heartbeat=float(world.consumer_heartbeat_seconds),
        session=float(world.session_timeout_seconds),
        static_membership=world.static_membership,
        grace=float(world.termination_grace_seconds),
        commits_batches=world.commit_mode == "batch",
        start_up_log_spread=float(world.start_up_log_spread),
        new_node_share=float(world.new_node_share),
        new_node=float(world.new_node_seconds),
        slow_pod_share=float(world.slow_pod_share),
        slow_pod_speed=float(world.slow_pod_speed),
        contention=float(world.contention),
        sink=math.inf if world.sink_messages_per_second is None else float(world.sink_messages_per_second),
        restore=float(world.restore_seconds),
        warmup_slots=int(world.warmup_slots),
        probing=float(world.probing_seconds),
    )
