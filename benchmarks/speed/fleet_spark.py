"""Measures `lagcast recommend --on-spark` for a fleet of generated groups.

    python -m benchmarks.speed.fleet_spark --groups 10000 --workers 3 --out FILE          or: make bench-fleet-spark
    python -m benchmarks.speed.fleet_spark --page FILE > docs/fleet-on-spark-bench.md

Nothing is set of the groups, each a day's wave with noise of its own. A Spark cluster is started for them: a master and
the workers, one core each. Three sizes up to that many groups are run, each as the command is, in a new process with
new executors. A line through their seconds tells what 100,000 groups take. Beside that some groups are decided in this
process, for the time of each part. Prints the figures beside their bars, and writes them as JSON; the exit code is 1
where a bar is missed. The second form prints the page of such a document, writes its picture, and runs nothing.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog

from benchmarks.command import commit, print_page, swap_in
from benchmarks.speed.fleet import SCHEMA
from benchmarks.speed.fleet_spark_page import bars_of, page_of
from cli.fleet import fleet_work
from forecasting.columns import BASE_INTERVAL_SECONDS
from recommender.adapters.feature_table import FeatureTable
from recommender.configuring.settings import load_settings
from spark_features.table import fresh_folder, parts_in, read_manifest, swap, writing
from tests.live.harness.spark_cluster import SparkCluster, spark_cluster

END_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
PARTITIONS, MEMBERS = 24, 8
_SHARES = (0.1, 0.3, 1.0)
_SAMPLED_GROUPS = 20
_CHUNK_GROUPS = 500
_NOTHING_KEPT = pa.schema([("kind", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("document", pa.string())])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print tables and write JSON; or print the page of a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--hours", type=float, default=1.0, help="hours of rows of each group")
    parser.add_argument("--row-seconds", type=int, default=60, help="seconds of one row: 15 to 60")
    parser.add_argument("--out", type=Path, default=Path("build/fleet-spark.json"), help="the file of figures, JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    parser.add_argument(
        "--picture", type=Path, default=Path("docs/fleet-on-spark-bench.svg"), help="where the picture goes"
    )
    options = parser.parse_args(words)
    if options.page is not None:
        print_page(parser, [options.page], partial(page_of, picture=options.picture), of="a fleet on Spark")
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    document = document_of(
        groups=options.groups,
        workers=options.workers,
        rows=max(1, int(options.hours * 3600 / options.row_seconds)),
        row_seconds=options.row_seconds,
    )
    swap_in(json.dumps(document, indent=1) + "\n", options.out)
    return print_figures(document)


def document_of(*, groups: int, workers: int, rows: int, row_seconds: int) -> dict[str, Any]:
    """The document of runs of three sizes up to so many groups. Errors: RuntimeError where a run fails."""
    begun_at, loads, runs = commit(), [os.getloadavg()[0]], []
    with (
        tempfile.TemporaryDirectory() as name,
        spark_cluster(Path(name) / "cluster", workers=workers) as cluster,
    ):
        parts = parts_of_a_group(Path(name), rows=rows, row_seconds=row_seconds)
        for share in _SHARES:
            size = max(1, round(share * groups))
            runs.append(run_of(Path(name), cluster, groups=size, rows=rows, row_seconds=row_seconds))
            loads.append(os.getloadavg()[0])
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "mean_load": fmean(loads),
        "spark": version("pyspark"),
        "workers": workers,
        "rows_a_group": rows,
        "row_seconds": row_seconds,
        "runs": runs,
        "part_of_a_group": parts,
    }


def run_of(folder: Path, cluster: SparkCluster, *, groups: int, rows: int, row_seconds: int) -> dict[str, float]:
    """Seconds of the command over a new table of so many groups, and how many of them got advice."""
    features, out = folder / f"features-{groups}", folder / "decisions.json"
    write_table(features, groups=groups, rows=rows, row_seconds=row_seconds)
    words = ["--features", features, "--now", END_AT.isoformat(), "--on-spark", "--master", cluster.master]
    command = [sys.executable, "-m", "cli.main", "recommend", *words, "--state-dir", folder / "state"]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603  # our own command
        [*map(str, command), "-o", "json", "--output-file", str(out)], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        message = f"the run over {groups:,} groups failed: {done.stderr[-2000:]}"
        raise RuntimeError(message)
    sys.stderr.write(done.stderr)
    decided = json.loads(out.read_text())
    advised = sum(each["kind"] == "Recommendation" for each in decided)
    return {
        "groups": groups,
        "decided": len(decided),
        "advised": advised,
        "seconds": seconds,
    }


def parts_of_a_group(folder: Path, *, rows: int, row_seconds: int) -> dict[str, float]:
    """The median milliseconds of each part of a group in a warm process, and the size of an opened group in kB."""
    features = folder / "sample"
    write_table(features, groups=_SAMPLED_GROUPS, rows=rows, row_seconds=row_seconds)
    work = fleet_work(load_settings(None, {"LAGCAST_STATE_DIR": str(folder / "state")}), holds=(), now=END_AT)
    kept = _NOTHING_KEPT.empty_table()
    files = sorted((features / "versions").rglob(f"interval_seconds={BASE_INTERVAL_SECONDS}/*/*.parquet"))
    table = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
    taken: list[tuple[float, float, int]] = []
    for group in FeatureTable(features).groups():
        of_group = table.filter(pc.equal(table["group"], group[1]))
        began = time.process_time()
        lesson, opened = work.open_group(group, of_group, kept, is_listed=True, lost=None)
        opened_at = time.process_time()
        work.decide_group(opened, work.pooled([lesson] if lesson is not None else []))
        taken.append((opened_at - began, time.process_time() - opened_at, len(opened)))
    opening, deciding, sizes = zip(*taken[1:], strict=True)  # the first one compiles
    return {
        "open_milliseconds": 1000.0 * median(opening),
        "decide_milliseconds": 1000.0 * median(deciding),
        "opened_kilobytes": median(sizes) / 1000.0,
    }


def write_table(features: Path, *, groups: int, rows: int, row_seconds: int, end_at: datetime = END_AT) -> None:
    """The feature table of a generated fleet: base rows up to `end_at`, and the last hour of each group."""
    with writing(features):
        folder = fresh_folder(features, version=1)
        for seconds, length, count in ((BASE_INTERVAL_SECONDS, row_seconds, rows), (3600, 3600, 1)):
            ends_at = [end_at - timedelta(seconds=length * back) for back in reversed(range(count))]
            for day, first, last in _days(ends_at):
                part = folder / f"interval_seconds={seconds}" / f"date={day}"
                part.mkdir(parents=True)
                with pq.ParquetWriter(part / "part-0.parquet", SCHEMA) as file:
                    for chunk in range(0, groups, _CHUNK_GROUPS):
                        names = range(chunk, min(groups, chunk + _CHUNK_GROUPS))
                        file.write_table(_rows(names, ends_at[first:last], seconds=length))
        after = read_manifest(features).replaced_by(parts_in(features, folder))
        swap(features, before=read_manifest(features), after=after)


def _days(ends_at: Sequence[datetime]) -> Iterator[tuple[str, int, int]]:
    """Each day with the places of its first row and of the one after its last; midnight belongs to the day before."""
    days = [(end_at - timedelta(microseconds=1)).date().isoformat() for end_at in ends_at]
    for day in sorted(set(days)):
        yield day, days.index(day), len(days) - days[::-1].index(day)


def _rows(groups: range, ends_at: Sequence[datetime], *, seconds: int) -> pa.Table:
    """Rows sorted by group and time: a wave of a day with a level and a phase of its own, and noise of a twentieth."""
    generator = np.random.default_rng(groups.start)
    shape = (len(groups), len(ends_at))
    levels, phases = generator.uniform(2000.0, 6000.0, (len(groups), 1)), generator.uniform(0.0, 1.0, (len(groups), 1))
    days = np.array([end_at.timestamp() / 86_400.0 for end_at in ends_at])
    rates = levels * (1.0 + 0.3 * np.sin(2.0 * np.pi * (days + phases))) * np.exp(generator.normal(0.0, 0.05, shape))
    known: Mapping[str, object] = {
        "group": np.repeat([f"g{group:06}" for group in groups], len(ends_at)),
        "interval_end_at": list(ends_at) * len(groups),
        "produce_messages_per_second": rates.ravel(),
        "consume_messages_per_second": rates.ravel(),
        "lag_messages": 2.5 * rates.ravel(),
    }
    same: dict[str, object] = {field.name: 0 for field in SCHEMA if field.name.endswith("_count")}
    same |= {"cluster": "c", "topics": "orders", "interval_seconds": seconds, "lag_seconds": 2.5, "members": MEMBERS}
    same |= {"partitions": PARTITIONS, "sampled_partitions": PARTITIONS, "group_state": "STABLE", "in_rebalance": False}
    size = shape[0] * shape[1]
    return pa.table(
        [
            pa.array(known[field.name], field.type)
            if field.name in known
            else pa.repeat(pa.scalar(same.get(field.name), field.type), size)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )


def print_figures(document: Mapping[str, Any]) -> int:
    """Print all of it as tables; 1 where a bar is missed."""
    machine = f"{document['workers']} workers on {document['processors']} processors"
    print(f"{machine}; {document['rows_a_group']} rows a group of {document['row_seconds']} s\n")
    print("| groups | advice | seconds |")
    print("|---:|---:|---:|")
    for run in document["runs"]:
        print(f"| {run['groups']:,} | {run['advised']:,} | {run['seconds']:.0f} |")
    print("\n| part of a group | median |")
    print("|---|---:|")
    for name, value in document["part_of_a_group"].items():
        print(f"| {name.replace('_', ', ')} | {value:.1f} |")
    print("\n| bar | measured | most |")
    print("|---|---:|---:|")
    bars = bars_of(document)
    for bar in bars:
        print(f"| {bar.what} | {bar.figure:.2f} | {bar.most:.2f} |")
    return 0 if all(bar.is_kept for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
