"""Base rows of a feature table in one go, as the features job would make them of samples: months in minutes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.units import FloatArray, IntArray
from recommender.adapters.arrow_rows import SCHEMA


def base_rows(
    cluster: str,
    groups: Sequence[str],
    ends_us: IntArray,
    rates: FloatArray,
    *,
    partitions: int,
    members: NDArray[np.int64] | int,
    lag_seconds: float,
    generator: np.random.Generator,
) -> pa.Table:
    """Rows of groups that keep up, one group after the other, each with as many rows as the others.

    Shapes: `ends_us`, in microseconds since 1970, `rates`, in messages per second, and `members` have one value a row.
    """
    rows = ends_us.size
    known = {
        "cluster": [cluster] * rows,
        "group": np.repeat(groups, rows // len(groups)),
        "topics": ["orders"] * rows,
        "interval_end_at": pa.array(ends_us).cast(pa.timestamp("us", tz="UTC")),
        "interval_seconds": np.full(rows, BASE_INTERVAL_SECONDS),
        "produce_messages_per_second": rates,
        "consume_messages_per_second": rates,
        "lag_messages": lag_seconds * rates,
        "lag_seconds": np.full(rows, lag_seconds),
        "worst_lag_seconds": lag_seconds + generator.random(rows),
        "partitions": np.full(rows, partitions),
        "sampled_partitions": np.full(rows, partitions),
        "members": np.broadcast_to(members, rows),
        "group_state": ["STABLE"] * rows,
        "in_rebalance": np.zeros(rows, dtype=np.bool_),
        "group_protocol": ["classic"] * rows,
        "group_assignor": ["range"] * rows,
        "clients": ["java"] * rows,
        "partition_skew_ratio": 1.0 + 0.1 * generator.random(rows),
    }
    counts = {field.name: np.zeros(rows, dtype=np.int64) for field in SCHEMA if field.name.endswith("_count")}
    columns = [
        pa.array((known | counts)[field.name]).cast(field.type)
        if field.name in known | counts
        else pa.nulls(rows, field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
