"""What a collector would have written down of the simulated group, and the feature rows that a policy is fed with."""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # no stubs are published for it

from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.history import GroupInterval
from forecasting.units import IntArray
from replay.plant.plant import Observation, Plant

STABLE = "STABLE"
ASSIGNORS = {"eager": "range", "cooperative": "cooperative-sticky"}
# Lag in seconds is lag over the mean produce rate of this many base rows: five minutes.
RATE_ROWS = 20


class Names(NamedTuple):
    """What the simulated group is called; its one topic bears the group's name."""

    cluster: str
    group: str


def samples_of(plant: Plant, names: Names, *, protocol: str) -> pa.Table:
    """Offset samples of every partition every 15 s from now to the end of the plant's trace, as Kafka would give them.

    Columns are `forecasting.columns.SAMPLES`; rows are in time order. The plant's replicas are left as they are.
    """
    seen = [plant.observation()]
    while plant.remaining_seconds > 0:
        plant.advance(BASE_INTERVAL_SECONDS)
        seen.append(plant.observation())
    partitions = len(seen[0].end_offsets)
    rows = len(seen) * partitions
    instants = pa.array([o.at for o in seen], pa.timestamp("us", tz="UTC"))
    each = pa.array(np.repeat(np.arange(len(seen)), partitions))
    return pa.table(
        {
            "cluster": pa.repeat(names.cluster, rows),
            "group": pa.repeat(names.group, rows),
            "topic": pa.repeat(names.group, rows),
            "partition": pa.array(np.tile(np.arange(partitions, dtype=np.int32), len(seen))),
            "sampled_at": instants.take(each),
            "end_offset": pa.array(np.concatenate([o.end_offsets for o in seen])),
            "committed_offset": pa.array(np.concatenate([o.committed_offsets for o in seen])),
            "log_start_offset": pa.array(np.zeros(rows, dtype=np.int64)),
            "group_state": pa.array([o.group_state for o in seen]).take(each),
            "group_protocol": pa.repeat("classic", rows),
            "group_assignor": pa.repeat(ASSIGNORS[protocol], rows),
            "members": pa.array(np.repeat(np.array([o.ready_members for o in seen], dtype=np.int32), partitions)),
        }
    )


class Rows:
    """Turns successive observations into base rows of the feature table; a test holds them equal to the Spark job's."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._before: Observation | None = None
        self._rates: deque[float] = deque(maxlen=RATE_ROWS)

    def row(self, seen: Observation) -> GroupInterval:
        """The row of the interval that ends with this observation; the first one has no rates."""
        before, self._before = self._before, seen
        partitions = len(seen.end_offsets)
        lag = float(seen.lag_messages.sum())
        unsettled = seen.group_state != STABLE
        row = GroupInterval(
            cluster=self._names.cluster,
            group=self._names.group,
            topics=self._names.group,
            interval_end_at=seen.at,
            interval_seconds=BASE_INTERVAL_SECONDS,
            produce_messages_per_second=None,
            consume_messages_per_second=None,
            lag_messages=lag,
            lag_seconds=None,
            partitions=partitions,
            sampled_partitions=partitions,
            members=seen.ready_members,
            group_state=seen.group_state,
            in_rebalance=unsettled,
            in_rebalance_count=partitions if unsettled else 0,
        )
        return row if before is None else self._with_rates(row, before, seen)

    def _with_rates(self, row: GroupInterval, before: Observation, seen: Observation) -> GroupInterval:
        seconds = seen.time_seconds - before.time_seconds
        arrived: IntArray = seen.end_offsets - before.end_offsets
        committed: IntArray = seen.committed_offsets - before.committed_offsets
        self._rates.append(float(arrived.sum()) / seconds)
        mean = sum(self._rates) / len(self._rates)
        busiest = int(arrived.argmax())
        return replace(
            row,
            produce_messages_per_second=self._rates[-1],
            consume_messages_per_second=float(committed.sum()) / seconds,
            lag_seconds=lag_over(row.lag_messages, mean),
            partition_skew_ratio=float(arrived[busiest] / arrived.mean()) if arrived[busiest] > 0 else None,
            busiest_partition=f"{self._names.group}-{busiest}" if arrived[busiest] > 0 else None,
        )


def lag_over(lag_messages: float | None, rate: float) -> float | None:
    """Seconds that a lag is worth at a rate; unknown where nothing arrives.

    >>> lag_over(500.0, 250.0), lag_over(500.0, 0.0)
    (2.0, None)
    """
    return lag_messages / rate if lag_messages is not None and rate > 0.0 else None
