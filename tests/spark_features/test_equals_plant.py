"""The rows that the simulator gives to policies are those of the Spark job, number for number."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from collector.sinks import write_table
from forecasting.history import GroupInterval
from recommender.adapters.feature_table import FeatureTable
from replay.plant.plant import Plant
from replay.sampling import Names, Rows, samples_of
from replay.trace import Trace
from replay.world import World
from spark_features.batch import build_features

pytestmark = pytest.mark.spark

_NAMES = Names("demo", "orders")
_MINUTES = 90


class _Rescaled(Plant):
    """A group that is scaled in and out again, so that rebalances are seen, with frozen commits and a backlog."""

    def advance(self, seconds: int = 15) -> None:
        """Advance, after a change of the replica count where its time has come."""
        replicas = {1200: 3, 2400: 8, 3600: 5}.get(self.time_seconds)
        if replicas is not None:
            self.scale(replicas)
        super().advance(seconds)


def _plant() -> Plant:
    wave = 800.0 + 300.0 * np.sin(np.arange(_MINUTES) / 10.0)
    trace = Trace(name="wave", start_at=datetime(2026, 5, 4, tzinfo=UTC), step_seconds=60, messages_per_second=wave)
    # Heartbeats are so rare that a rebalance outlasts a sampling interval and is seen.
    world = World(partitions=12, capacity_messages_per_second_per_replica=200.0, heartbeat_interval_seconds=40.0)
    return _Rescaled(world=world, trace=trace, seed=3, replicas=6)


def _of_the_simulator() -> list[GroupInterval]:
    plant, rows = _plant(), Rows(_NAMES)
    made = [rows.row(plant.observation())]
    while plant.remaining_seconds > 0:
        plant.advance()
        made.append(rows.row(plant.observation()))
    return made


def test_spark_rows_are_the_simulators(spark: SparkSession, folder: Path) -> None:
    """In 90 minutes with three rescales every column of every row is the same, floats to the twelfth digit."""
    write_table(samples_of(_plant(), _NAMES), folder / "samples")
    build_features(spark, folder / "samples", folder / "features")
    found = FeatureTable(folder / "features").intervals(*_NAMES)
    wanted = _of_the_simulator()
    assert any(row.in_rebalance for row in wanted)
    assert len(found) == len(wanted) == 4 * _MINUTES + 1
    for ours, theirs in zip(found, wanted, strict=True):
        for name, value in asdict(theirs).items():
            assert getattr(ours, name) == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name
