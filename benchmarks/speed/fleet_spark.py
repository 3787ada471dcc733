"""Measures `lagcast recommend --on-spark` for a fleet of generated groups.

    python -m benchmarks.speed.fleet_spark --groups 10000 --workers 3 --out FILE       or: make bench-fleet-spark
    python -m benchmarks.speed.fleet_spark --forecasts 10000 --workers 3 --out WEEKS   the weeks ahead
    python -m benchmarks.speed.fleet_spark --page FILE WEEKS > docs/fleet-on-spark-bench.md

Nothing is set of the groups, each a day's wave with noise of its own. A Spark cluster is started for them: a master and
the workers, one core each. Three sizes up to that many groups are run, each as the command is, in a new process with
new executors. A line through their seconds tells what 100,000 groups take. After that some groups of the largest run
are decided by one process, and the documents that differ are counted. Some are decided in this process, for the time of
each part. Prints the figures beside their bars, and writes them as JSON; the exit code is 1 where a bar is missed. The
second form makes the weeks ahead of generated groups on such a cluster instead. The last form prints the page of such
documents, writes its picture, and runs nothing.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import structlog

from benchmarks.command import commit, print_page, swap_in
from benchmarks.speed import fleet
from benchmarks.speed.fleet import SCHEMA
from benchmarks.speed.fleet_spark_page import bars_of, page_of, weeks_sentence
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
# So many groups of the largest run are decided by one process too: 10 s with an hour of rows.
_COMPARED_GROUPS, _SEED = 300, 7
# What the fit of a week ahead is made from.
_FORECAST_DAYS = 28
_CHUNK_GROUPS = 500
_NOTHING_KEPT = pa.schema([("kind", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("document", pa.string())])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print tables and write JSON; or print the page of a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--hours", type=float, default=1.0, help="hours of rows of each group")
    parser.add_argument("--row-seconds", type=int, default=60, help="seconds of one row: 15 to 60")
    parser.add_argument("--forecasts", type=int, default=0, help="make the weeks ahead of so many groups instead")
    parser.add_argument("--out", type=Path, default=Path("build/fleet-spark.json"), help="the file of figures, JSON")
    parser.add_argument("--page", type=Path, nargs="+", metavar="FILE", help="print their page, and run nothing")
    parser.add_argument(
        "--picture", type=Path, default=Path("docs/fleet-on-spark-bench.svg"), help="where the picture goes"
    )
    options = parser.parse_args(words)
    if options.page is not None:
        print_page(parser, options.page, partial(page_of, picture=options.picture), of="a fleet on Spark")
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    if options.forecasts:
        weeks = weeks_of(groups=options.forecasts, workers=options.workers)
        swap_in(json.dumps(weeks, indent=1) + "\n", options.out)
        print(weeks_sentence(weeks))
        return 0
    document = document_of(
        groups=options.groups,
        workers=options.workers,
        rows=max(1, int(options.hours * 3600 / options.row_seconds)),
        row_seconds=options.row_seconds,
    )
    swap_in(json.dumps(document, indent=1) + "\n", options.out)
    return print_figures(document)


def document_of(*, groups: int, workers: int, rows: int, row_seconds: int) -> dict[str, Any]:
    """The document of runs of three sizes up to so many groups.

    Errors: RuntimeError where a run fails.
    """
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
        differing = differing_documents(Path(name), groups=groups)
    return {
        **_place(begun_at, workers=workers),
        "mean_load": fmean(loads),
        "rows_a_group": rows,
        "row_seconds": row_seconds,
        "runs": runs,
        "part_of_a_group": parts,
        "compared_groups": len(compared_of(groups)),
        "differing_documents": differing,
    }


def weeks_of(*, groups: int, workers: int) -> dict[str, Any]:
    """The document of `lagcast forecast` on a cluster, over four weeks of so many groups.

    Errors: RuntimeError where it fails.
    """
    begun_at = commit()
    with (
        tempfile.TemporaryDirectory() as name,
        spark_cluster(Path(name) / "cluster", workers=workers) as cluster,
    ):
        features, out = Path(name) / "features", Path(name) / "weeks.json"
        fleet.write_table(features, groups=groups, days=_FORECAST_DAYS)
        seconds = timed(
            *("forecast", "--features", features, "--out", Path(name) / "forecasts"),
            *("--at", fleet.END_AT.isoformat(), "--master", cluster.master),
            out=out,
        )
        issued = json.loads(out.read_text())["groups"]
    return {
        **_place(begun_at, workers=workers),
        "groups": len(issued),
        "forecast": sum(each["refusal_reason"] is None for each in issued),
        "days": _FORECAST_DAYS,
        "seconds": seconds,
    }


def _place(begun_at: str, *, workers: int) -> dict[str, Any]:
    """Where and when a run was that began at this commit."""
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "spark": version("pyspark"),
        "workers": workers,
    }


def run_of(folder: Path, cluster: SparkCluster, *, groups: int, rows: int, row_seconds: int) -> dict[str, float]:
    """Seconds of the command over a new table of so many groups, and how many of them got advice."""
    features = folder / f"features-{groups}"
    write_table(features, groups=groups, rows=rows, row_seconds=row_seconds)
    seconds = timed(
        *("recommend", "--features", features, "--now", END_AT.isoformat(), "--on-spark", "--master", cluster.master),
        out=_decisions_of(folder, groups),
    )
    decided = json.loads(_decisions_of(folder, groups).read_text())
    advised = sum(each["kind"] == "Recommendation" for each in decided)
    return {
        "groups": groups,
        "decided": len(decided),
        "advised": advised,
        "seconds": seconds,
    }


def _decisions_of(folder: Path, groups: int) -> Path:
    """Where the decisions of the run over so many groups are."""
    return folder / f"decisions-{groups}.json"


def timed(*words: object, out: Path) -> float:
    """Seconds of a command of lagcast in a new process, which writes its answer as JSON.

    Errors: RuntimeError where it fails.
    """
    command = [sys.executable, "-m", "cli.main", *map(str, words), "-o", "json", "--output-file", str(out)]
    environment = os.environ | {"LAGCAST_STATE_DIR": str(out.with_name("state"))}
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603  # ours
    seconds = time.perf_counter() - began
    if done.returncode:
        message = f"{' '.join(command)} failed: {done.stderr[-2000:]}"
        raise RuntimeError(message)
    sys.stderr.write(done.stderr)
    return seconds


def compared_of(groups: int) -> list[str]:
    """The names of the groups that one process decides too, of so many; the same ones in each run."""
    chosen = np.random.default_rng(_SEED).choice(groups, size=min(_COMPARED_GROUPS, groups), replace=False)
    return sorted(_name(group) for group in chosen.tolist())


def differing_documents(folder: Path, *, groups: int) -> int:
    """How many of the compared groups one process answers otherwise than the run over so many groups did.

    It has a table with these groups alone. To groups that never moved the others of their kind teach nothing, so that
    its documents are those of a process with all groups.
    """
    names, features, out = compared_of(groups), folder / "features-compared", folder / "decisions-compared.json"
    copy_rows(folder / f"features-{groups}", features, names)
    timed("recommend", "--features", features, "--now", END_AT.isoformat(), out=out)
    of_fleet, alone = (json.loads(file.read_text()) for file in (_decisions_of(folder, groups), out))
    return differing(of_fleet, alone, names)


def differing(of_fleet: Iterable[Mapping[str, Any]], alone: Iterable[Mapping[str, Any]], names: Iterable[str]) -> int:
    """The number of these groups whose documents are not the same to the last byte, or are missing.

    >>> differing([{"group_id": "a", "x": 1}, {"group_id": "b", "x": 1}], [{"group_id": "a", "x": 1}], ["a", "b"])
    1
    >>> differing([{"group_id": "a", "x": 1}], [{"group_id": "a", "x": 1.0}], ["a"])
    1
    """
    texts, others = ({each["group_id"]: json.dumps(each) for each in documents} for documents in (of_fleet, alone))
    return sum(name not in texts or texts[name] != others.get(name) for name in names)


def copy_rows(features: Path, other: Path, groups: Sequence[str]) -> None:
    """A feature table with the rows of these groups alone."""
    with writing(other):
        folder = fresh_folder(other, version=1)
        for part in read_manifest(features).parts:
            rows = ds.dataset(features / part.folder, schema=SCHEMA).to_table(filter=pc.field("group").isin(groups))
            day = folder / f"interval_seconds={part.interval_seconds}" / f"date={part.date}"
            day.mkdir(parents=True)
            pq.write_table(rows, day / "part-0.parquet")
        _publish(other, folder)


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
        _publish(features, folder)


def _publish(features: Path, folder: Path) -> None:
    """Make what was written below `folder` the table."""
    before = read_manifest(features)
    swap(features, before=before, after=before.replaced_by(parts_in(features, folder)))


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
        "group": np.repeat([_name(group) for group in groups], len(ends_at)),
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


def _name(group: int) -> str:
    return f"g{group:06}"


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
