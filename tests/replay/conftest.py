"""Worlds and loads whose consequences can be computed by hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from forecasting.units import read_only
from replay.contest import PRICED, Contest
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

START_AT = datetime(2026, 1, 5, tzinfo=UTC)

# Nothing varies: members beat at 0 s, 3 s, 6 s after the last rebalance, batches take no time, pods are alike.
_CALM = World(
    partitions=24,
    capacity_messages_per_second_per_replica=100.0,
    start_up_seconds=31.0,
    start_up_spread_seconds=0.0,
    heartbeat_drift=0.0,
    batch_seconds=0.0,
    shutdown_seconds=0.0,
    pod_speed_spread=0.0,
    minute_speed_spread=0.0,
    partition_skew=0.0,
)


@pytest.fixture(name="calm_world")
def calm_world_fixture() -> Callable[..., World]:
    """`calm_world(**changed_fields)`: 24 partitions, 100 messages/s per replica, 31 s start-up, no noise anywhere."""
    return lambda **changes: replace(_CALM, **changes)


@pytest.fixture(name="load")
def load_fixture() -> Callable[..., Trace]:
    """`load(rate, rate, ..., step_seconds=60)`: a trace of these rates from 2026-01-05 on."""

    def make(*rates: float, step_seconds: int = 60) -> Trace:
        return Trace(
            name="hand-made",
            start_at=START_AT,
            step_seconds=step_seconds,
            messages_per_second=read_only(np.array(rates, dtype=np.float64)),
        )

    return make


@pytest.fixture(name="contest")
def contest_fixture() -> Callable[[World, Trace], Contest]:
    """`contest(world, trace)` with the settings of leagues and seed 7."""
    return lambda world, trace: Contest(
        trace=trace, world=world, settings=PRICED, names=Names("test", "orders"), seed=7
    )
