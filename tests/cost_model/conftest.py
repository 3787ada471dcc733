"""One plain situation from which tests vary: 40 partitions, 100 messages/s per replica, an hour in minutes."""

import numpy as np
import pytest

from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.pricing.price import Prices
from cost_model.search.optimise import Situation
from forecasting.units import MessagesPerSecond, Partitions, Seconds


@pytest.fixture(scope="session")
def profile() -> GroupProfile:
    """A group whose moves take no time at all, so that a test adds just the pause or start-up that it is about."""
    rate = MessagesPerSecond(100.0)
    return GroupProfile(
        cluster="east",
        group="orders",
        partitions=Partitions(40),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        start_up_seconds=Seconds(0.0),
        heartbeat_interval_seconds=Seconds(0.0),
        poll_batch_seconds=Seconds(0.0),
        sync_seconds=Seconds(0.0),
        termination_grace_seconds=Seconds(0.0),
        processing_p99_seconds=Seconds(0.0),
    )


@pytest.fixture(scope="session")
def plain(profile: GroupProfile) -> Situation:
    """600 messages/s for an hour on 7 replicas, certain pauses, utilization 1; replicas, moves and lateness cost."""
    prices = Prices(
        currency="EUR",
        price_per_replica_hour=0.05,
        price_per_late_message=1e-5,
        price_per_duplicate_message=0.0,
        price_per_held_message_second=0.0,
        price_per_move=0.02,
    )
    return Situation(
        profile=profile,
        prices=prices,
        demand_messages_per_second=np.full(60, 600.0),
        step_seconds=60.0,
        replicas=7,
        lag_messages=0.0,
        max_lag_seconds=5.0,
        target_utilization=1.0,
        rebalance_pause_prior_seconds=None,
        pause_spread=0.0,
    )
