r"""Weighs Delta Lake and Iceberg against the feature table's own format, in an environment of their own.

    .venv/bin/python -m benchmarks.speed.table_formats
    uv run --no-project --with pyspark==4.1.0 --with deltalake==1.6.6 --with 'pyiceberg[pyarrow,sql-sqlite]==0.12.0' \
        --with pandas python -m benchmarks.speed.table_formats --jar delta-spark_4.1_2.13-4.1.0.jar \
        --jar delta-storage-4.1.0.jar --jar iceberg-spark-runtime-4.1_2.13-1.12.0.jar

Neither has a release for the Spark of this project: with `--jar` both run on the newest Spark that they have one for,
without it the project's format runs on the project's. Each holds the same rows, partitioned by the length and day of an
interval, in local files. Measured: a day written by Spark; the rows of 15 s added again and again, by Spark and without
a JVM, compacted about as often as the feature table merges its parts; the newest rows of all groups, and those of one
group, read without a JVM. Prints a table in Markdown.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
from pyspark.sql import DataFrame, SparkSession

from forecasting.columns import GROUP_INTERVALS
from recommender.adapters import arrow_rows

DAY = datetime(2026, 5, 4, tzinfo=UTC)
ROUND = timedelta(seconds=15)
ROUNDS_PER_DAY = 5760
BY = ("interval_seconds", "date")
READS = 20
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
}
# Other formats keep which columns may be null.
SCHEMA = pa.schema([arrow_rows.SCHEMA.field(column.name).with_nullable(column.nullable) for column in GROUP_INTERVALS])


def rows_at(first: int, rounds: int, *, groups: int) -> pa.Table:
    """The rows of so many rounds of 15 s, the first one numbered from the begin of the day; ordered by group."""
    count, dice = groups * rounds, np.random.default_rng(first)
    names = [f"group-{number:05d}" for number in range(groups)]
    ends = [DAY + (first + place + 1) * ROUND for place in range(rounds)]
    rates = dice.lognormal(5.0, 1.0, count)
    known: dict[str, Any] = {
        "cluster": ["c"] * count,
        "group": np.repeat(names, rounds),
        "topics": np.repeat(names, rounds),
        "interval_end_at": ends * groups,
        "interval_seconds": [15] * count,
        "produce_messages_per_second": rates,
        "consume_messages_per_second": rates,
        "lag_messages": 3.0 * rates,
        "partitions": [24] * count,
        "sampled_partitions": [24] * count,
        "members": [8] * count,
        "group_state": ["STABLE"] * count,
        "in_rebalance": [False] * count,
    }
    filler: Mapping[pa.DataType, object] = {pa.int32(): 0, pa.int64(): 0}
    columns = []
    for column in SCHEMA:
        if column.name in known:
            columns.append(pa.array(known[column.name]).cast(column.type))
        else:
            value = None if column.nullable else filler.get(column.type, 0)
            columns.append(pa.array([value] * count, column.type))
    return pa.table(columns, schema=SCHEMA)


def dated(rows: pa.Table) -> pa.Table:
    """The rows with the day that each belongs to: that of the begin of its interval."""
    begins = pc.subtract(rows["interval_end_at"].cast(pa.timestamp("us")), pa.scalar(ROUND, pa.duration("us")))
    return rows.append_column("date", pc.strftime(begins, "%Y-%m-%d"))


class Own:
    """The project's format: folders of parquet files, and a manifest that lists those of the present version."""

    name = "own manifest"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        from spark_features import growth, table  # noqa: PLC0415  # they need the project's Spark

        self._spark, self._folder, self._format, self._growth = spark, folder / "own", table, growth

    def write(self, rows: DataFrame) -> None:
        """Write the first rows by Spark."""
        folder = self._format.fresh_folder(self._folder, version=1)
        rows.sortWithinPartitions("group", "interval_end_at").write.partitionBy(*BY).parquet(str(folder))
        before = self._format.read_manifest(self._folder)
        after = before.replaced_by(self._format.parts_in(self._folder, folder))
        self._format.swap(self._folder, before=before, after=after)

    def append(self, rows: pa.Table) -> None:
        """Add rows of one day as the stream does, without Spark."""
        before = self._format.read_manifest(self._folder)
        folder = self._format.fresh_folder(self._folder, version=before.feature_table_version + 1)
        path = folder / "interval_seconds=15" / f"date={rows['date'][0]}" / "added.parquet"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            pq.write_table(rows.drop_columns(["date"]), file)
            file.flush()
            os.fsync(file.fileno())
        self._swap((*before.parts, *self._format.parts_in(self._folder, folder)))

    def compact(self) -> bool:
        """Merge the newest parts by the rule of the stream, with Spark; False where it is not time."""
        before = self._format.read_manifest(self._folder)
        merged = self._growth.alike_parts([part for part in before.parts if part.date == before.parts[-1].date])
        if not merged:
            return False
        folder = self._format.fresh_folder(self._folder, version=before.feature_table_version + 1)
        day = folder / "interval_seconds=15" / f"date={merged[0].date}"
        rows = self._spark.read.parquet(*(str(self._folder / part.folder) for part in merged))
        rows.coalesce(1).sortWithinPartitions("group", "interval_end_at").write.parquet(str(day))
        kept = [part for part in before.parts if part not in merged]
        self._swap((*kept, *self._format.parts_in(self._folder, folder)))
        return True

    def _swap(self, parts: tuple[Any, ...]) -> None:
        before = self._format.read_manifest(self._folder)
        followed = self._format.Followed(journal="j", files=1)
        self._format.swap(self._folder, before=before, after=before.followed_by(parts, followed=followed))

    def read(self, *, since: datetime | None = None, group: str | None = None) -> pa.Table:
        """The rows after an instant, or of a group, without a JVM."""
        parts = self._format.read_manifest(self._folder).parts
        files = [str(file) for part in parts for file in (self._folder / part.folder).glob("*.parquet")]
        return ds.dataset(files, schema=SCHEMA, format="parquet").to_table(filter=in_arrow(since=since, group=group))


class Delta:
    """Delta Lake: Spark's connector, and the `deltalake` package without a JVM."""

    def __init__(self, spark: SparkSession, folder: Path, *, with_spark: bool) -> None:
        import deltalake  # type: ignore[import-not-found]  # noqa: PLC0415  # of an environment of its own

        self._delta, self._spark, self._with_spark = deltalake, spark, with_spark
        self.name = f"Delta, {'Spark' if with_spark else 'deltalake'}"
        self._table = str(folder / self.name)

    def write(self, rows: DataFrame) -> None:
        """Write the first rows by Spark."""
        rows.sortWithinPartitions("group", "interval_end_at").write.format("delta").partitionBy(*BY).save(self._table)

    def append(self, rows: pa.Table) -> None:
        """Add rows of one day."""
        if self._with_spark:
            frame = self._spark.createDataFrame(rows).coalesce(1)
            frame.write.format("delta").mode("append").save(self._table)
        else:
            self._delta.write_deltalake(self._table, rows, mode="append")

    def compact(self) -> bool:
        """Make few files of many."""
        if self._with_spark:
            self._spark.sql(f"OPTIMIZE delta.`{self._table}`").collect()
        else:
            self._delta.DeltaTable(self._table).optimize.compact()
        return True

    def read(self, *, since: datetime | None = None, group: str | None = None) -> pa.Table:
        """The rows after an instant, or of a group, without a JVM."""
        rows = self._delta.DeltaTable(self._table).to_pyarrow_dataset()
        return rows.to_table(filter=in_arrow(since=since, group=group))


class Iceberg:
    """Iceberg: Spark's runtime with a catalog of folders, and pyiceberg, whose catalog is a SQLite file."""

    def __init__(self, spark: SparkSession, folder: Path, *, with_spark: bool) -> None:
        self._spark, self._folder, self._with_spark = spark, folder, with_spark
        self.name = f"Iceberg, {'Spark' if with_spark else 'pyiceberg'}"
        self._table = f"features.by_{'spark' if with_spark else 'python'}"
        self._catalog: Any = None

    def write(self, rows: DataFrame) -> None:
        """Write the first rows by Spark."""
        ordered = rows.sortWithinPartitions(*BY, "group", "interval_end_at")
        ordered.writeTo(f"ice.{self._table}").using("iceberg").partitionedBy(*BY).create()
        if not self._with_spark:
            from pyiceberg.catalog.sql import SqlCatalog  # type: ignore[import-not-found]  # noqa: PLC0415

            self._catalog = SqlCatalog("c", uri=f"sqlite:///{self._folder}/catalog.db", warehouse=str(self._folder))
            self._catalog.create_namespace("features")
            self._catalog.register_table(self._table, self._metadata())

    def _metadata(self) -> str:
        folder = self._folder / "ice" / self._table.replace(".", "/") / "metadata"
        return str(max(folder.glob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns))

    def append(self, rows: pa.Table) -> None:
        """Add rows of one day."""
        if self._with_spark:
            self._spark.createDataFrame(rows).coalesce(1).writeTo(f"ice.{self._table}").append()
        else:
            self._catalog.load_table(self._table).append(rows)

    def compact(self) -> bool:
        """Make few files of many; pyiceberg cannot."""
        if self._with_spark:
            self._spark.sql(f"CALL ice.system.rewrite_data_files(table => '{self._table}')").collect()
        return self._with_spark

    def read(self, *, since: datetime | None = None, group: str | None = None) -> pa.Table:
        """The rows after an instant, or of a group, without a JVM."""
        from pyiceberg.table import StaticTable  # type: ignore[import-not-found]  # noqa: PLC0415

        is_of_spark = self._with_spark
        table = StaticTable.from_metadata(self._metadata()) if is_of_spark else self._catalog.load_table(self._table)
        wanted = f"group = '{group}'" if since is None else f"interval_end_at > '{since.isoformat()}'"
        return table.scan(row_filter=wanted).to_arrow()


def in_arrow(*, since: datetime | None, group: str | None) -> Any:  # noqa: ANN401  # an Arrow expression: no types
    """The condition on rows that end after an instant, or are of a group."""
    if since is None:
        return pc.field("group") == group
    return pc.field("interval_end_at") > pa.scalar(since, pa.timestamp("us", tz="UTC"))


@dataclass(slots=True)
class Figures:
    """What one format took, in seconds."""

    write: float = 0.0
    appends: list[float] = field(default_factory=list)
    compactions: list[float] = field(default_factory=list)
    newest: list[float] = field(default_factory=list)
    day: list[float] = field(default_factory=list)


def timed(work: Callable[[], object]) -> float:
    """The seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measured(table: Own | Delta | Iceberg, source: DataFrame, *, rounds: int, groups: int) -> Figures:
    """Write a day, add rounds to it, and read."""
    figures = Figures(write=timed(lambda: table.write(source)))
    for number in range(ROUNDS_PER_DAY, ROUNDS_PER_DAY + rounds):
        figures.appends.append(timed(partial(table.append, dated(rows_at(number, 1, groups=groups)))))
        # The project's rule decides by itself; on average it merges once in eight rounds.
        if isinstance(table, Own) or number % 8 == 0:
            began = time.perf_counter()
            if table.compact():
                figures.compactions.append(time.perf_counter() - began)
    since = DAY + (ROUNDS_PER_DAY + rounds - 1) * ROUND
    wanted = {"newest": (partial(table.read, since=since), groups)}
    wanted["day"] = (partial(table.read, group="group-00007"), ROUNDS_PER_DAY + rounds)
    for name, (read, count) in wanted.items():
        if read().num_rows != count:
            message = f"{table.name}: not the {count} rows of {name}"
            raise ValueError(message)
        getattr(figures, name).extend(timed(read) for _ in range(READS))
    return figures


def main(words: Sequence[str] | None = None) -> int:
    """Measure all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jar", type=Path, action="append", default=[], help="of Delta and Iceberg")
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=120)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="lagcast-formats-") as name:
        folder = Path(name)
        builder = SparkSession.builder.master("local[2]").config(map=SETTINGS)
        of_formats: dict[str, bool | float | int | str | None] = {
            "spark.jars": ",".join(map(str, options.jar)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": f"{folder}/ice",
        }
        spark = (builder.config(map=of_formats) if options.jar else builder).getOrCreate()
        pq.write_table(dated(rows_at(0, ROUNDS_PER_DAY, groups=options.groups)), folder / "source.parquet")
        source = spark.read.parquet(f"{folder}/source.parquet")
        source.write.parquet(f"{folder}/warm-up")
        tables: list[Own | Delta | Iceberg]
        if not options.jar:
            tables = [Own(spark, folder)]
        else:
            tables = [kind(spark, folder, with_spark=each) for kind in (Delta, Iceberg) for each in (True, False)]
        print(
            "| format | a day written | a round added | longest | compaction | newest rows read | a group's day read |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|")
        for table in tables:
            found = measured(table, source, rounds=options.rounds, groups=options.groups)
            figures = [
                f"{found.write:.1f} s",
                *(f"{1000 * value:.0f} ms" for value in (statistics.median(found.appends), max(found.appends))),
                f"{1000 * statistics.median(found.compactions):.0f} ms" if found.compactions else "none",
                *(f"{1000 * statistics.median(each):.0f} ms" for each in (found.newest, found.day)),
            ]
            print(f"| {table.name} | {' | '.join(figures)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
