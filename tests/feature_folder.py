"""A feature table without a JVM: the features job's output for groups with a steady load."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.columns import GROUP_INTERVALS
from forecasting.history import GroupInterval

_KINDS = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
SCHEMA = pa.schema(
    [(column.name, (_KINDS | {"timestamp": pa.timestamp("us", tz="UTC")})[column.kind]) for column in GROUP_INTERVALS]
)


def steady_hour(table: Path, groups: Sequence[str], *, end_at: datetime) -> Path:
    """An hour of rows up to `end_at` of each group of cluster `c`: 5,000 messages/s on 12 partitions, 12 members."""
    ends_at = [end_at - timedelta(seconds=15 * back) for back in reversed(range(240))]
    add_rows(table, [steady_row(group, at) for group in groups for at in ends_at])
    return table


def add_rows(table: Path, rows: Iterable[GroupInterval]) -> None:
    """Add rows to the table as parts of their own, of 15 s and of an hour; a reader sees all of them or none."""
    version, parts = 1, []
    if (table / "manifest.json").exists():
        before = json.loads((table / "manifest.json").read_text())
        version, parts = before["feature_table_version"] + 1, before["parts"]
    by_date: dict[str, list[GroupInterval]] = {}
    for row in rows:
        by_date.setdefault(f"{row.interval_end_at:%Y-%m-%d}", []).append(row)
    for date, of_date in by_date.items():
        columns = pa.Table.from_pydict({name: list(map(attrgetter(name), of_date)) for name in SCHEMA.names}, SCHEMA)
        for seconds in (15, 3600):
            folder = Path("versions", f"v{version}", f"interval_seconds={seconds}", f"date={date}")
            (table / folder).mkdir(parents=True)
            pq.write_table(columns, table / folder / "part-0.parquet")
            parts.append({"interval_seconds": seconds, "date": date, "folder": str(folder), "rows": len(of_date)})
    manifest = {
        "format": "lagcast group_intervals",
        "schema_version": 1,
        "feature_table_version": version,
        "parts": parts,
    }
    unfinished = table / "manifest.json.unfinished"
    unfinished.write_text(json.dumps(manifest))
    unfinished.rename(table / "manifest.json")


def steady_row(group: str, at: datetime) -> GroupInterval:
    """The row of such a group that ends at `at`."""
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
