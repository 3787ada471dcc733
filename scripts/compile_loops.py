# ruff: noqa: INP001 - a script is run, never imported
"""Compiles the loops of the plant, the planner and the week ahead once, before the first command and the tests.

The machine code is cached on disk. Without this script the first demo compiles it for 50 s before it shows anything,
and each test process compiles it again: the processes need it at the same time, and do not wait for each other.
"""

from datetime import UTC, datetime

import numpy as np

from forecasting.backtest import history_of
from forecasting.history_tier import DAILY_MINUTES
from forecasting.long_term import LongTermForecaster
from forecasting.units import read_only
from replay.contest import PRICED, Contest, play
from replay.sampling import Names
from replay.trace import Trace
from replay.world import OffsetsReset, PoisonMessage, RollingRestart, World

START_AT = datetime(2026, 1, 5, tzinfo=UTC)


def main() -> None:
    """Decide for a group with three quarters of an hour of history, in a world with incidents; fit another's week."""
    world = World(
        partitions=12,
        capacity_messages_per_second_per_replica=100.0,
        incidents=(
            RollingRestart(at_second=60, seconds_per_pod=60),
            PoisonMessage(at_second=600, seconds=60, partition=0),
            OffsetsReset(at_second=900, seconds=60),
        ),
    )
    rates = read_only(np.repeat([200.0, 900.0], [35, 10]))
    trace = Trace(name="made-up", start_at=START_AT, step_seconds=60, messages_per_second=rates)
    play("lagcast", Contest(trace=trace, world=world, settings=PRICED, names=Names("c", "g"), seed=1))
    LongTermForecaster().fit(history_of(np.ones(DAILY_MINUTES), end_at=START_AT))


if __name__ == "__main__":
    main()
