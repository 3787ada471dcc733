"""Measures the time from a sample file to its visible rows.

    python -m benchmarks.speed.stream_latency --groups 20 --partitions 24          or: make bench-stream

Generated groups, one file for each round of samples, as a collector that writes every 15 s makes them; the rounds are
faster here, each --pause seconds after the rows of the one before. An hour of rounds is in the table already, and the
first rounds are not counted: the JVM is warming up. Prints the p50, the p95 and the highest of the seconds from the
file's rename to the manifest that has its rows, merges of parts and rollups included.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from collector.sinks import write_table
from forecasting.columns import BASE_INTERVAL_SECONDS
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.stream import follow_features
from spark_features.table import read_manifest

BEGINS_AT = datetime(2026, 5, 4, tzinfo=UTC)
ROUNDS_BEFORE = 3600 // BASE_INTERVAL_SECONDS


def write_round(number: int, folder: Path, *, groups: int, partitions: int) -> Path:
    """One round's samples as a file: every partition of every group, a second before the interval's end."""
    rows = groups * partitions
    at = BEGINS_AT + timedelta(seconds=BASE_INTERVAL_SECONDS * number - 1)
    names = pa.array(np.repeat([f"group-{group:04}" for group in range(groups)], partitions))
    partition = np.tile(np.arange(partitions), groups)
    ends = 1500 * number + 15 * number * partition
    table = pa.table(
        {
            "cluster": pa.repeat("bench", rows),
            "group": names,
            "topic": names,
            "partition": partition.astype(np.int32),
            "sampled_at": pa.repeat(pa.scalar(at, pa.timestamp("us", tz="UTC")), rows),
            "end_offset": ends,
            "committed_offset": ends - 10,
            "log_start_offset": np.zeros(rows, dtype=np.int64),
            "group_state": pa.repeat("STABLE", rows),
            "group_protocol": pa.repeat("consumer", rows),
            "group_assignor": pa.repeat("uniform", rows),
            "members": np.full(rows, 6, dtype=np.int32),
        }
    )
    (path,) = write_table(table, folder)
    return path


def wait_for(table: Path, files: int, stop: threading.Event) -> None:
    """Wait until the rows of so many files are in the table, or the stream has ended."""
    while not stop.is_set():
        followed = read_manifest(table).followed
        if followed is not None and followed.files >= files:
            return
        time.sleep(0.01)


def main() -> int:
    """Follow a folder while files are added, and print the time of each."""
    parser = argparse.ArgumentParser(description="Seconds from a sample file to its rows.")
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=60, help="files that are counted")
    parser.add_argument("--warm-up", type=int, default=20, help="files before those")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between one file's rows and the next file")
    options = parser.parse_args()
    sizes = {"groups": options.groups, "partitions": options.partitions}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = spark_session("stream_latency", java=find_java(os.environ), log_path=folder / "spark.log", memory="1g")
        stop, took = threading.Event(), []
        for number in range(1, ROUNDS_BEFORE + 1):
            write_round(number, folder / "samples", **sizes)

        def feed() -> None:
            wait_for(folder / "features", ROUNDS_BEFORE, stop)
            for number in range(ROUNDS_BEFORE + 1, ROUNDS_BEFORE + options.warm_up + options.rounds + 1):
                time.sleep(options.pause)
                made = write_round(number, folder / "made", **sizes)
                visible = folder / "samples" / made.parent.name / made.name
                visible.parent.mkdir(exist_ok=True)
                began = time.perf_counter()
                made.rename(visible)
                wait_for(folder / "features", number, stop)
                took.append(time.perf_counter() - began)
            stop.set()

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            run = follow_features(spark, folder / "samples", folder / "features", stop=stop)
        finally:
            stop.set()
            feeder.join()
            spark.stop()
            shutil.rmtree(folder / "made", ignore_errors=True)
        parts = len(read_manifest(folder / "features").parts)
    counted = np.array(took[options.warm_up :])
    p50, p95 = np.quantile(counted, (0.50, 0.95))
    sys.stdout.write(
        f"{options.groups} groups of {options.partitions} partitions, {len(counted)} files after {options.warm_up}: "
        f"rows visible after {p50:.2f} s at p50, {p95:.2f} s at p95, {counted.max():.2f} s at most\n"
        f"{run.rows:,} rows in {parts} parts; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
