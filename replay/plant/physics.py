"""The constants of one world, as plain numbers that compiled loops take."""

from typing import NamedTuple

from replay.world import World


class Physics(NamedTuple):
    """Times in seconds, rates in messages per second; the names are those of the world, less their units."""

    cooperative: bool
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


def physics_of(world: World) -> Physics:
    """The world's constants in the form that compiled loops take."""
    return Physics(
        cooperative=world.protocol == "cooperative",
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
    )
