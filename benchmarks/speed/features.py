"""Measures the features job beside DuckDB, which does the same work on the same files.

    python -m benchmarks.speed.features --rows 10000000 --out FILE          or: make bench-features ROWS=10000000
    python -m benchmarks.speed.features --page FILE [FILE ...] > docs/features-bench.md

Generated samples of groups of 24 partitions, two days of a reading each 15 s. Each engine makes the rows of the feature
table from them, of 15 s and the three longer lengths, in a folder for each day, twice in one process: *cold* is the
first time with the start of the process, *warm* the second. Memory is the most that the process and its children held,
as proportional set size. DuckDB's SQL leaves out what the generated samples do not have: rebalances, offsets that go
backwards, lost commits, partitions that come and go. Both results are compared before anything is printed. FILE is a
JSON document. `--without-duckdb` is for sizes at which memory and disk do not suffice for it: nothing is compared then.
Exit code 1 where a bar is missed. The second form prints the page of such documents of several sizes, writes its
picture, and runs nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # ships no types
import pyarrow as pa  # type: ignore[import-untyped]  # as above
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above

from benchmarks.command import commit, print_page, swap_in
from benchmarks.speed.features_page import ENGINES, bars_of, page_of
from collector.sinks import write_table
from forecasting.columns import BASE_INTERVAL_SECONDS, ROLLUP_INTERVALS_SECONDS

PARTITIONS = 24
DAYS = 2
BEGINS_AT = datetime(2026, 5, 4, tzinfo=UTC)
ROUNDS_A_DAY = 86_400 // BASE_INTERVAL_SECONDS
LENGTHS = (BASE_INTERVAL_SECONDS, *ROLLUP_INTERVALS_SECONDS)
_COMPARED = (
    *("produce_messages_per_second", "consume_messages_per_second", "lag_messages", "lag_seconds"),
    *("worst_lag_seconds", "partition_skew_ratio", "partitions", "members"),
)
_LOOK_SECONDS = 0.25
_ROWS_A_FILE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """The cost of one engine; files are those of its table."""

    cold_seconds: float
    warm_seconds: float
    peak_megabytes: float
    files: int
    written_megabytes: float


def main(words: Sequence[str] | None = None) -> int:
    """Generate, run both, compare, print; or print the page of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="samples, about (default 10 million)")
    parser.add_argument("--without-duckdb", action="store_true", help="Spark alone; nothing is compared")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--page", type=Path, nargs="+", metavar="FILE", help="print the page of these documents")
    parser.add_argument("--picture", type=Path, default=Path("docs/features-bench.svg"), help="where the picture goes")
    parser.add_argument("--run", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, arguments.page, partial(page_of, picture=arguments.picture), of="the features job")
        return 0
    if arguments.run is not None:
        {"spark": run_spark, "duckdb": run_duckdb}[arguments.run](arguments.folder)
        return 0
    engines = tuple(engine for engine in ENGINES if engine == "spark" or not arguments.without_duckdb)
    document = document_of(rows=arguments.rows, engines=engines)
    if arguments.out is not None:
        swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    print(f"{document['rows']:,} samples, {document['processors']} cores, mean load {document['mean_load']:.1f}\n")
    print("| engine | cold | warm | peak memory | files | written |")
    print("|---|---:|---:|---:|---:|---:|")
    for engine in engines:
        of = Took(**document[engine])
        figures = f"{of.cold_seconds:.1f} s | {of.warm_seconds:.1f} s | {of.peak_megabytes:,.0f} MB"
        print(f"| {ENGINES[engine]} | {figures} | {of.files} | {of.written_megabytes:.0f} MB |")
    bars = bars_of([document])
    for bar in bars:
        word = "kept  " if bar.is_kept else "MISSED"
        print(f"{word} {bar.what}: {bar.figure:,.2f} (bar {bar.most:g}, of 50 million rows)")
    return 0 if all(bar.is_kept for bar in bars) else 1


def document_of(*, rows: int, engines: Sequence[str]) -> dict[str, Any]:
    """The document of a run of these engines over about so many samples. Errors: those of `measured` and `compare`."""
    begun_at, loads = commit(), [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="lagcast-features-") as name:
        folder = Path(name)
        generated = generate(folder / "samples", rows=rows)
        took = {}
        for engine in engines:
            took[engine] = asdict(measured(engine, folder))
            loads.append(os.getloadavg()[0])
        if len(engines) > 1:
            compare(folder)
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "mean_load": fmean(loads),
        "versions": {"spark": version("pyspark"), "duckdb": version("duckdb")},
        "rows": generated,
        **took,
    }


def generate(folder: Path, *, rows: int) -> int:
    """The samples, in files of a few million rows; how many they are."""
    groups = max(1, round(rows / (PARTITIONS * ROUNDS_A_DAY * DAYS)))
    generator = np.random.default_rng(7)
    levels = generator.lognormal(3.0, 1.0, (groups, PARTITIONS))
    produced = np.full((groups, PARTITIONS), 1e9)
    names = pa.array(np.repeat([f"group-{number:05d}" for number in range(groups)], PARTITIONS))
    partition = np.tile(np.arange(PARTITIONS, dtype=np.int32), groups)
    each = groups * PARTITIONS
    at_once = max(1, _ROWS_A_FILE // each)
    written = 0
    for begin in range(1, DAYS * ROUNDS_A_DAY + 1, at_once):
        rounds = range(begin, min(begin + at_once, DAYS * ROUNDS_A_DAY + 1))
        tables = []
        for number in rounds:
            wave = 1.0 + 0.5 * np.sin(2.0 * np.pi * number / ROUNDS_A_DAY)
            produced += BASE_INTERVAL_SECONDS * levels * wave * generator.uniform(0.9, 1.1, levels.shape)
            end = produced.astype(np.int64).ravel()
            at = BEGINS_AT + timedelta(seconds=BASE_INTERVAL_SECONDS * number - 1)
            tables.append(_round(names, partition, end, (2.5 * levels * wave).astype(np.int64).ravel(), at))
        table = pa.concat_tables(tables)
        written += table.num_rows
        write_table(table, folder)
    return written


def _round(names: pa.Array, partition: np.ndarray, end: np.ndarray, lag: np.ndarray, at: datetime) -> pa.Table:
    rows = len(end)
    return pa.table(
        {
            "cluster": pa.repeat("bench", rows),
            "group": names,
            "topic": names,
            "partition": partition,
            "sampled_at": pa.repeat(pa.scalar(at, pa.timestamp("us", tz="UTC")), rows),
            "end_offset": end,
            "committed_offset": end - lag,
            "log_start_offset": np.zeros(rows, dtype=np.int64),
            "group_state": pa.repeat("STABLE", rows),
            "group_protocol": pa.repeat("consumer", rows),
            "group_assignor": pa.repeat("uniform", rows),
            "members": np.full(rows, 6, dtype=np.int32),
        }
    )


def measured(engine: str, folder: Path) -> Took:
    """One engine in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.speed.features", "--run", engine, "--folder", str(folder)]
    peak, done = [0.0], threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own
        watching = threading.Thread(target=_watch, args=(process.pid, peak, done))
        watching.start()
        marks = [time.perf_counter() - began for _ in process.stdout or ()]
        done.set()
        watching.join()
    if process.returncode != 0 or len(marks) != 2:
        message = f"{engine} ended with {process.returncode} after {len(marks)} of 2 runs"
        raise RuntimeError(message)
    files = [file for seconds in LENGTHS for file in _files_of(engine, folder, seconds=seconds)]
    return Took(
        cold_seconds=marks[0],
        warm_seconds=marks[1] - marks[0],
        peak_megabytes=peak[0],
        files=len(files),
        written_megabytes=sum(file.stat().st_size for file in files) / 1e6,
    )


def _watch(pid: int, peak: list[float], done: threading.Event) -> None:
    """Note the most memory of the process and its children together."""
    top = psutil.Process(pid)
    while not done.wait(_LOOK_SECONDS):
        held = 0.0
        with suppress(psutil.Error):
            for process in (top, *top.children(recursive=True)):
                with suppress(psutil.Error):
                    held += process.memory_full_info().pss / 1e6
        peak[0] = max(peak[0], held)


def run_spark(folder: Path) -> None:
    """The features job as `lagcast features` runs it; a line after each time."""
    from spark_features.batch import build_features  # noqa: PLC0415  # the other engine needs no Spark
    from spark_features.java import find_java  # noqa: PLC0415  # as above
    from spark_features.session import spark_session  # noqa: PLC0415  # as above

    spark = spark_session("bench", java=find_java(os.environ), log_path=folder / "spark.log")
    for _ in ("cold", "warm"):
        build_features(spark, folder / "samples", folder / "spark")
        print("done", flush=True)
    spark.stop()


def run_duckdb(folder: Path) -> None:
    """The same in SQL."""
    import duckdb  # noqa: PLC0415  # the other engine needs none

    for run in ("cold", "warm"):
        out = folder / "duckdb" / run
        out.mkdir(parents=True)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(BASE.format(samples=folder / "samples" / "*" / "*.parquet"))
            connection.execute(_written("base", BASE_INTERVAL_SECONDS, out))
            for seconds in ROLLUP_INTERVALS_SECONDS:
                connection.execute(ROLLUP.format(seconds=seconds))
                connection.execute(_written("rolled", seconds, out))
        print("done", flush=True)


def _written(table: str, seconds: int, out: Path) -> str:
    return (
        f"COPY (SELECT *, CAST(interval_end_at - INTERVAL 1 MICROSECOND AS DATE) AS date FROM {table} "  # noqa: S608  # our own
        f"ORDER BY date, \"group\", interval_end_at) TO '{out / f'interval_seconds={seconds}'}' "
        "(FORMAT PARQUET, PARTITION_BY (date))"
    )


# The rates of a partition, then sums of its group and interval, then what needs the group's past. Of partitions equally
# far behind it is the lowest one, as in the features job.
BASE = """
CREATE OR REPLACE TEMP TABLE base AS
WITH samples AS (
    SELECT *, epoch_us(sampled_at) AS us,
        epoch_us(sampled_at) + (15000000 - epoch_us(sampled_at) % 15000000) % 15000000 AS end_us
    FROM read_parquet('{samples}', hive_partitioning = false)
), newest AS (
    SELECT * FROM samples
    WINDOW in_time AS (PARTITION BY "partition", topic, "group", cluster ORDER BY us, end_offset, committed_offset)
    QUALIFY lead(end_us) OVER in_time IS NULL OR lead(end_us) OVER in_time > end_us
), deltas AS (
    SELECT *,
        (us - lag(us) OVER in_time) / 1e6 AS elapsed,
        end_offset - lag(end_offset) OVER in_time AS produced,
        committed_offset - lag(committed_offset) OVER in_time AS consumed,
        CAST(greatest(end_offset - committed_offset, 0) AS BIGINT) AS behind
    FROM newest
    WINDOW in_time AS (PARTITION BY "partition", topic, "group", cluster ORDER BY us)
), rates AS (
    SELECT *, CASE WHEN elapsed <= 60 AND produced >= 0 THEN produced / elapsed END AS produce_rate,
        CASE WHEN elapsed <= 60 AND consumed >= 0 THEN consumed / elapsed END AS consume_rate
    FROM deltas
), summed AS (
    SELECT cluster, "group", end_us,
        string_agg(DISTINCT topic, ',' ORDER BY topic) AS topics,
        CAST(count(*) AS INTEGER) AS partitions,
        CASE WHEN count(produce_rate) = count(*) THEN sum(produce_rate) END AS produce_messages_per_second,
        CASE WHEN count(consume_rate) = count(*) THEN sum(consume_rate) END AS consume_messages_per_second,
        CAST(sum(behind) AS DOUBLE) AS lag_messages,
        max(produce_rate) AS busiest_rate,
        arg_max("partition", produce_rate - "partition" / 1048576.0) AS busiest,
        max(behind) AS worst_lag, arg_max("partition", behind - "partition" / 1048576.0) AS worst,
        arg_max(produce_rate, behind - "partition" / 1048576.0) AS worst_rate,
        max(members) AS members, max(group_state) AS group_state, max(group_protocol) AS group_protocol,
        max(group_assignor) AS group_assignor
    FROM rates GROUP BY ALL
)
SELECT cluster, "group", topics, make_timestamptz(end_us) AS interval_end_at, 15 AS interval_seconds,
    produce_messages_per_second, consume_messages_per_second, lag_messages,
    lag_messages / nullif(avg(produce_messages_per_second) OVER (
        PARTITION BY cluster, "group" ORDER BY end_us RANGE BETWEEN 299999999 PRECEDING AND CURRENT ROW), 0)
        AS lag_seconds,
    CASE WHEN produce_messages_per_second > 0
        THEN worst_lag / greatest(worst_rate, produce_messages_per_second / partitions) END AS worst_lag_seconds,
    CASE WHEN produce_messages_per_second > 0 THEN topics || '-' || worst END AS worst_partition,
    partitions, partitions AS sampled_partitions, members, group_state,
    CASE WHEN produce_messages_per_second > 0
        THEN busiest_rate / (produce_messages_per_second / partitions) END AS partition_skew_ratio,
    CASE WHEN produce_messages_per_second > 0 THEN topics || '-' || busiest END AS busiest_partition,
    group_protocol, group_assignor
FROM summed
"""

ROLLUP = """
CREATE OR REPLACE TEMP TABLE rolled AS
SELECT cluster, "group", arg_max(topics, interval_end_at) AS topics, end_at AS interval_end_at,
    {seconds} AS interval_seconds,
    avg(produce_messages_per_second) AS produce_messages_per_second,
    avg(consume_messages_per_second) AS consume_messages_per_second,
    arg_max(lag_messages, interval_end_at) AS lag_messages, arg_max(lag_seconds, interval_end_at) AS lag_seconds,
    max(worst_lag_seconds) AS worst_lag_seconds, arg_max(worst_partition, worst_lag_seconds) AS worst_partition,
    arg_max(partitions, interval_end_at) AS partitions, arg_max(sampled_partitions, interval_end_at)
        AS sampled_partitions,
    arg_max(members, interval_end_at) AS members, arg_max(group_state, interval_end_at) AS group_state,
    avg(partition_skew_ratio) AS partition_skew_ratio, mode(busiest_partition) AS busiest_partition,
    arg_max(group_protocol, interval_end_at) AS group_protocol,
    arg_max(group_assignor, interval_end_at) AS group_assignor
FROM (SELECT *, time_bucket(INTERVAL {seconds} SECOND, interval_end_at - INTERVAL 1 MICROSECOND)
        + INTERVAL {seconds} SECOND AS end_at FROM base)
GROUP BY cluster, "group", end_at
"""


def compare(folder: Path) -> None:
    """Errors: ValueError where the engines do not agree on a figure of any row."""
    for seconds in LENGTHS:
        ours, theirs = (_rows(_files_of(engine, folder, seconds=seconds)) for engine in ENGINES)
        if ours.num_rows != theirs.num_rows or not ours.num_rows:
            message = f"of {seconds} s Spark has {ours.num_rows:,} rows and DuckDB {theirs.num_rows:,}"
            raise ValueError(message)
        for name in _COMPARED:
            mine, other_one = (
                pc.fill_null(pc.cast(each[name], pa.float64()), -1.0).to_numpy() for each in (ours, theirs)
            )
            if not np.allclose(mine, other_one, rtol=1e-9):
                place = int(np.argmax(~np.isclose(mine, other_one, rtol=1e-9)))
                message = f"{name} of {seconds} s, row {place}: Spark {mine[place]}, DuckDB {other_one[place]}"
                raise ValueError(message)


def _files_of(engine: str, folder: Path, *, seconds: int) -> list[Path]:
    """The files of the second run with rows of this length; Spark's table has those of the first one beside them."""
    if engine == "duckdb":
        return list((folder / "duckdb" / "warm" / f"interval_seconds={seconds}").rglob("*.parquet"))
    parts = json.loads((folder / "spark" / "manifest.json").read_text())["parts"]
    folders = [folder / "spark" / part["folder"] for part in parts if part["interval_seconds"] == seconds]
    return [file for each in folders for file in each.glob("*.parquet")]


def _rows(files: Sequence[Path]) -> pa.Table:
    """What is compared, in one order."""
    table = ds.dataset(list(map(str, files)), format="parquet").to_table(
        columns=["group", "interval_end_at", *_COMPARED]
    )
    return table.sort_by([("group", "ascending"), ("interval_end_at", "ascending")])


if __name__ == "__main__":
    sys.exit(main())
