"""Loads and groups of the oracles that both the search and the played plans are compared with."""

from dataclasses import replace

import numpy as np

from cost_model.pricing.situation import Situation
from forecasting.units import FloatArray, Seconds


def steady(rate: float) -> FloatArray:
    """An hour of this rate, by the minute."""
    return np.full(60, rate)


def short_pauses(plain: Situation, seed: int) -> tuple[Situation, Situation]:
    """Oracle 12, eager and KIP-848: ten minutes each of six loads on 14 replicas, with pauses within the promise."""
    demand = np.repeat(np.random.default_rng(seed).choice([300.0, 600.0, 1000.0, 1500.0], 6), 10)
    shaped = replace(
        plain.profile,
        heartbeat_interval_seconds=Seconds(3.0),
        consumer_heartbeat_seconds=Seconds(5.0),
        poll_batch_seconds=Seconds(0.1),
        sync_seconds=Seconds(0.3),
        termination_grace_seconds=Seconds(30.0),
    )
    quiet = replace(
        plain, demand_messages_per_second=demand, replicas=14, max_lag_seconds=10.0, target_utilization=0.85
    )
    return (
        replace(quiet, profile=replace(shaped, protocol="eager")),
        replace(quiet, profile=replace(shaped, protocol="kip848")),
    )
