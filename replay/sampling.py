"""The samples that a collector would write of the simulated group, and the feature rows for a policy."""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # no stubs are published for it

from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.history import GroupInterval
from forecasting.units import IntArray
from replay.plant.observation import BoolArray, Observation
from replay.plant.plant import Plant

STABLE = "STABLE"
# Lag in seconds is lag over the mean produce rate of this many base rows: five minutes.
RATE_ROWS = 20
# A rate over a longer gap than this would be an average over unobserved time.
LONGEST_RATE_SECONDS = 60


class Names(NamedTuple):
    """The names of the simulated group; its one topic has the group's name."""

    cluster: str
    group: str


def samples_of(plant: Plant, names: Names) -> pa.Table:
    """Offset samples of every partition every 15 s from now to the end of the plant's trace, as Kafka would give them.

    Partitions that a sample lacks have no row. Columns are `forecasting.columns.SAMPLES`; rows are in time order. The
    plant's replicas are not changed.
    """
    seen = [plant.observation()]
    while plant.remaining_seconds > 0:
        plant.advance(BASE_INTERVAL_SECONDS)
        seen.append(plant.observation())
    partitions = len(seen[0].end_offsets)
    rows = len(seen) * partitions
    instants = pa.array([o.at for o in seen], pa.timestamp("us", tz="UTC"))
    each = pa.array(np.repeat(np.arange(len(seen)), partitions))
    members = pa.array(np.repeat(np.array([o.ready_members for o in seen], dtype=np.int32), partitions))
    table = pa.table(
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
            "group_protocol": pa.repeat(seen[0].group_protocol, rows),
            "group_assignor": pa.repeat(seen[0].group_assignor, rows),
            "members": members,
            "static_members": pa.array([o.static_members for o in seen], pa.int32()).take(each),
            "clients": pa.repeat(seen[0].clients, rows),
            "streams": pa.nulls(rows, pa.string()),
            "commit_interval_seconds": pa.nulls(rows, pa.float64()),
            "busy_ratio": pa.nulls(rows, pa.float64()),
            "session_timeout_seconds": pa.nulls(rows, pa.float64()),
            "rebalance_timeout_seconds": pa.nulls(rows, pa.float64()),
            "consumer_heartbeat_seconds": pa.nulls(rows, pa.float64()),
        }
    )
    return table.filter(pa.array(np.concatenate([o.sampled for o in seen])))


class Rows:
    """Turns successive observations into base rows of the feature table; a test checks them against the Spark job's."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._before: _LastSeen | None = None
        self._rates: deque[float | None] = deque(maxlen=RATE_ROWS)

    def row(self, seen: Observation) -> GroupInterval:
        """The row of the interval that ends with this observation; the first one has no rates."""
        sampled = seen.sampled
        count, partitions = int(sampled.sum()), len(sampled)
        before, self._before = self._before, _newest(self._before, seen, sampled)
        unsettled = seen.group_state != STABLE
        row = GroupInterval(
            cluster=self._names.cluster,
            group=self._names.group,
            topics=self._names.group,
            interval_end_at=seen.at,
            interval_seconds=BASE_INTERVAL_SECONDS,
            produce_messages_per_second=None,
            consume_messages_per_second=None,
            # A sum over some partitions looks like a drop.
            lag_messages=float(seen.lag_messages.sum()) if count == partitions else None,
            lag_seconds=None,
            partitions=partitions,
            sampled_partitions=count,
            members=seen.ready_members,
            group_state=seen.group_state,
            in_rebalance=unsettled,
            in_rebalance_count=count if unsettled else 0,
            group_protocol=seen.group_protocol,
            group_assignor=seen.group_assignor,
            static_members=seen.static_members,
            clients=seen.clients,
        )
        return row if before is None else self._with_rates(row, before, seen)

    def _with_rates(self, row: GroupInterval, before: "_LastSeen", seen: Observation) -> GroupInterval:
        sampled = seen.sampled
        seconds = seen.time_seconds - before.at_seconds
        arrived: IntArray = seen.end_offsets - before.end_offsets
        committed: IntArray = seen.committed_offsets - before.committed_offsets
        resets = int((sampled & (committed < 0)).sum())
        is_whole = bool(sampled.all()) and int(seconds.max()) <= LONGEST_RATE_SECONDS
        produced = _sum_of_rates(arrived, seconds) if is_whole else None
        self._rates.append(produced)
        known = [rate for rate in self._rates if rate is not None]
        gaps = int((seconds[sampled] // BASE_INTERVAL_SECONDS - 1).sum())
        lag_seconds = lag_over(row.lag_messages, sum(known) / len(known)) if known else None
        row = replace(row, gap_count=gaps, offset_reset_count=resets, lag_seconds=lag_seconds)
        if produced is None:
            return row
        rates = arrived / seconds
        busiest, worst = int(rates.argmax()), int(seen.lag_messages.argmax())
        worst_rate = max(float(rates[worst]), produced / len(rates))
        return replace(
            row,
            produce_messages_per_second=produced,
            consume_messages_per_second=_sum_of_rates(committed, seconds) if resets == 0 else None,
            worst_lag_seconds=lag_over(float(seen.lag_messages[worst]), worst_rate),
            worst_partition=f"{self._names.group}-{worst}" if produced > 0 else None,
            partition_skew_ratio=float(rates[busiest] * len(rates) / produced) if produced > 0 else None,
            busiest_partition=f"{self._names.group}-{busiest}" if produced > 0 else None,
        )


def rows_of(plant: Plant, names: Names) -> list[GroupInterval]:
    """Base rows every 15 s from now to the end of the plant's trace, as the features job would make them.

    The plant's replicas are not changed.
    """
    rows = Rows(names)
    made = [rows.row(plant.observation())]
    while plant.remaining_seconds > 0:
        plant.advance(BASE_INTERVAL_SECONDS)
        made.append(rows.row(plant.observation()))
    return made


class _LastSeen(NamedTuple):
    """The newest sample of each partition, and when it was taken."""

    at_seconds: IntArray
    end_offsets: IntArray
    committed_offsets: IntArray


def _newest(before: _LastSeen | None, seen: Observation, sampled: BoolArray) -> _LastSeen:
    at_seconds = np.full(len(sampled), seen.time_seconds, dtype=np.int64)
    if before is not None:
        at_seconds[~sampled] = before.at_seconds[~sampled]
    # An observation repeats the last sampled offsets of partitions that were not sampled.
    return _LastSeen(at_seconds, seen.end_offsets, seen.committed_offsets)


def _sum_of_rates(messages: IntArray, seconds: IntArray) -> float:
    """Messages over their seconds, whole numbers of the same seconds summed up first, the smallest rate first."""
    return float(sum(sorted(messages[seconds == length].sum() / length for length in set(seconds.tolist()))))


def lag_over(lag_messages: float | None, rate: float) -> float | None:
    """A lag in seconds at a rate; unknown where nothing arrives.

    >>> lag_over(500.0, 250.0), lag_over(500.0, 0.0)
    (2.0, None)
    """
    return lag_messages / rate if lag_messages is not None and rate > 0.0 else None
