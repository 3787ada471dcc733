"""A feature table without a JVM: what the features job would have written of groups in which nothing happens."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.history import GroupInterval


def steady_hour(table: Path, groups: Sequence[str], *, end_at: datetime) -> Path:
    """An hour of rows up to `end_at` of each group of cluster `c`: 5,000 messages/s on 12 partitions, 12 members."""
    rows = [
        asdict(_row(group, end_at - timedelta(seconds=15 * back))) for group in groups for back in reversed(range(240))
    ]
    parts = []
    for date in sorted({f"{row['interval_end_at']:%Y-%m-%d}" for row in rows}):
        of_date = [row for row in rows if f"{row['interval_end_at']:%Y-%m-%d}" == date]
        for seconds in (15, 3600):
            folder = Path("versions", "v1", f"interval_seconds={seconds}", f"date={date}")
            (table / folder).mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(of_date), table / folder / "part-0.parquet")
            parts.append({"interval_seconds": seconds, "date": date, "folder": str(folder), "rows": len(of_date)})
    manifest = {"format": "lagcast group_intervals", "schema_version": 1, "feature_table_version": 1, "parts": parts}
    (table / "manifest.json").write_text(json.dumps(manifest))
    return table


def _row(group: str, at: datetime) -> GroupInterval:
    return GroupInterval(
        cluster="c",
        group=group,
        topics=group,
        interval_end_at=at,
        interval_seconds=15,
        produce_messages_per_second=5000.0,
        consume_messages_per_second=5000.0,
        lag_messages=12_500.0,
        lag_seconds=2.5,
        partitions=12,
        sampled_partitions=12,
        members=12,
    )
