"""Measures the time from a sample file to its visible rows.

    python -m benchmarks.speed.stream_latency --groups 20 --partitions 24          or: make bench-stream
    python -m benchmarks.speed.stream_latency --groups 1000 --large 2000           the same samples, unevenly
    python -m benchmarks.speed.stream_latency --groups 20 --backlog 5760 --warm-up 0 --rounds 0   after a day's outage

Generated groups, one file for each round of samples, as a collector that writes every 15 s makes them; the rounds are
faster here, each --pause seconds after the rows of the one before. An hour of rounds is there at the start, and the
first rounds are not counted: the JVM is warming up. Prints the seconds until the rows of that backlog are there, and
the p50, the p95 and the highest of the seconds from a file's rename to the manifest that has its rows, merges of parts
and rollups included. Seconds of the processor, of this process and its JVM, do not depend on what else runs.
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
from forecasting.units import IntArray
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.stream import follow_features
from spark_features.table import read_manifest

BEGINS_AT = datetime(2026, 5, 4, tzinfo=UTC)


def sizes_of(groups: int, partitions: int, *, large: int) -> IntArray:
    """The partitions of each group, `groups * partitions` together: the first one has `large` if that is not 0."""
    if large == 0:
        return np.full(groups, partitions)
    others = (groups * partitions - large) // partitions
    return np.array([groups * partitions - others * partitions, *[partitions] * others])


def write_round(number: int, folder: Path, *, sizes: IntArray) -> Path:
    """One round's samples as a file: every partition of every group, a second before the interval's end."""
    rows = int(sizes.sum())
    at = BEGINS_AT + timedelta(seconds=BASE_INTERVAL_SECONDS * number - 1)
    names = pa.array(np.repeat([f"group-{group:04}" for group in range(len(sizes))], sizes))
    partition = np.concatenate([np.arange(size) for size in sizes])
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


def processor_seconds(jvm: int) -> float:
    """The processor time of this process and of the one with that id; the process that lists files is left out."""
    ticks = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def peak_mebibytes(process: int | str) -> int:
    """The most memory that the process has had."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) // 1024


def parsed() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description="Seconds from a sample file to its rows.")
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--large", type=int, default=0, help="partitions of the first group; fewer other groups then")
    parser.add_argument("--backlog", type=int, default=3600 // BASE_INTERVAL_SECONDS, help="files at the start")
    parser.add_argument("--rounds", type=int, default=60, help="files that are counted")
    parser.add_argument("--warm-up", type=int, default=20, help="files before those")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between one file's rows and the next file")
    return parser.parse_args()


def main() -> int:
    """Follow a folder while files are added, and print the time of each."""
    options = parsed()
    sizes = sizes_of(options.groups, options.partitions, large=options.large)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = spark_session(
            "stream_latency", java=find_java(os.environ), log_path=folder / "spark.log", is_lasting=True
        )
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001  # of a session of its own
        stop, took, processed = threading.Event(), [], []
        for number in range(1, options.backlog + 1):
            write_round(number, folder / "samples", sizes=sizes)
        began = time.perf_counter()

        def feed() -> None:
            wait_for(folder / "features", options.backlog, stop)
            took.append(time.perf_counter() - began)
            for number in range(options.backlog + 1, options.backlog + options.warm_up + options.rounds + 1):
                processed.append(processor_seconds(jvm))
                time.sleep(options.pause)
                made = write_round(number, folder / "made", sizes=sizes)
                visible = folder / "samples" / made.parent.name / made.name
                visible.parent.mkdir(exist_ok=True)
                renamed = time.perf_counter()
                made.rename(visible)
                wait_for(folder / "features", number, stop)
                took.append(time.perf_counter() - renamed)
            processed.append(processor_seconds(jvm))
            stop.set()

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            run = follow_features(spark, folder / "samples", folder / "features", stop=stop)
            peaks = peak_mebibytes("self"), peak_mebibytes(jvm)
        finally:
            stop.set()
            feeder.join()
            spark.stop()
            shutil.rmtree(folder / "made", ignore_errors=True)
        parts = len(read_manifest(folder / "features").parts)
    samples = int(sizes.sum())
    sys.stdout.write(
        f"{len(sizes)} groups, the largest of {sizes.max()} partitions, {samples:,} samples a file\n"
        f"backlog of {options.backlog} files: rows visible after {took[0]:.1f} s, "
        f"{options.backlog * samples / took[0]:,.0f} samples/s\n"
    )
    if options.rounds:
        counted = np.array(took[1 + options.warm_up :])
        each = (processed[-1] - processed[options.warm_up]) / options.rounds
        p50, p95 = np.quantile(counted, (0.50, 0.95))
        sys.stdout.write(
            f"{len(counted)} files after {options.warm_up}: rows visible after {p50:.2f} s at p50, {p95:.2f} s at p95, "
            f"{counted.max():.2f} s at most; {each:.2f} s of the processor each\n"
        )
    sys.stdout.write(
        f"{run.rows:,} rows in {parts} parts; {peaks[0]:,} MiB and the JVM's {peaks[1]:,} MiB at most; "
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
