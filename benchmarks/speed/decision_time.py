"""Measures the CPU time of a decision, by partitions, horizon and scenarios, and of a cycle by groups.

    python -m benchmarks.speed.decision_time --groups 1000 --out FILE          or: make bench-decision-time
    python -m benchmarks.speed.decision_time --page FILE > docs/decision-time.md

On a morning of the project's own workload, after two weeks of it, a decision is made each minute: forecast, 64
scenarios of an hour in minutes, every candidate plan, guards, sentences, and the sensitivity. The forecaster is fitted
again each hour, within the measured time: one decision in sixty. The first decision, which compiles, is left out. Each
of partitions, horizon and scenarios is varied alone. A cycle is one over groups of 24 partitions with an hour of rows,
in a process of its own: over so many groups, half of them, and a quarter. Prints the figures, and writes them as JSON.
The second form prints the page of such a document, writes its picture, and runs nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from benchmarks.command import commit, print_page, swap_in
from benchmarks.decisions.run import FIRST_SEED
from benchmarks.decisions.tournament import PEAK_SHARE, history_rows
from benchmarks.speed.decision_time_page import page_of, tables_of
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from replay.contest import PRICED
from replay.policies.lagcast import profile_of
from replay.sampling import Names
from replay.workload import orders_workload
from replay.world import World
from tests.recommender.fleet_cycle import PARTITIONS as PARTITIONS_OF_A_FLEET

NAMES = Names(cluster="bench", group="orders")
DAYS = 15
DECIDED_HOURS = range(6, 12)
# The load at its mean takes three quarters of the members.
FILLED_SHARE = 0.75


PARTITIONS = (8, 24, 40, 120, 1000)
HORIZONS_SECONDS = (900, 3600, 7200)
SCENARIOS = (16, 64, 256)
BASE_PARTITIONS = 24
# Of the groups that are asked for; and cycles after the first one, which opens all groups and compiles.
FLEET_SHARES, CYCLES = (0.25, 0.5, 1.0), 6


def main(words: Sequence[str] | None = None) -> int:
    """Decide with each size, print tables and write JSON; or print the page of a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000, help="groups of the largest cycle (default 1000)")
    parser.add_argument("--out", type=Path, default=Path("build/decision-time.json"), help="where the JSON goes")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    parser.add_argument("--picture", type=Path, default=Path("docs/decision-time.svg"), help="where the picture goes")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], partial(page_of, picture=arguments.picture), of="the time of decisions")
        return 0
    document = document_of(groups=arguments.groups)
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    print(tables_of(document), end="")
    return 0


def document_of(*, groups: int) -> dict[str, Any]:
    """The document of a run: decisions of each size, then cycles of each number of groups. Errors: as `cycles_of`."""
    begun_at, loads, decided, cycles = commit(), [os.getloadavg()[0]], [], []
    for partitions, horizon_seconds, scenarios in sizes():
        decided.append(decided_of(partitions, horizon_seconds, scenarios))
        loads.append(os.getloadavg()[0])
    for share in FLEET_SHARES:
        cycles.append(cycles_of(max(1, round(share * groups))))
        loads.append(os.getloadavg()[0])
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "mean_load": fmean(loads),
        "base": {
            "partitions": BASE_PARTITIONS,
            "horizon_seconds": PRICED.horizon_seconds,
            "scenarios": PRICED.scenarios,
        },
        "decisions": decided,
        "partitions_of_a_fleet": PARTITIONS_OF_A_FLEET,
        "cycles": cycles,
    }


def sizes() -> Iterator[tuple[int, int, int]]:
    """Partitions, seconds of the horizon, and scenarios: each varied alone, the others as they are by default."""
    base = PRICED.horizon_seconds, PRICED.scenarios
    yield from ((partitions, *base) for partitions in PARTITIONS)
    yield from ((BASE_PARTITIONS, seconds, base[1]) for seconds in HORIZONS_SECONDS if seconds != base[0])
    yield from ((BASE_PARTITIONS, base[0], scenarios) for scenarios in SCENARIOS if scenarios != base[1])


def decided_of(partitions: int, horizon_seconds: int, scenarios: int) -> dict[str, Any]:
    """The milliseconds of the decisions of this size, and how many counts differ for so many partitions."""
    settings = replace(PRICED, horizon_seconds=horizon_seconds, scenarios=scenarios)
    (_, first), *decided = decisions(partitions, settings)
    milliseconds = [1000.0 * seconds for seconds, _ in decided]
    return {
        "partitions": partitions,
        "horizon_seconds": horizon_seconds,
        "scenarios": scenarios,
        "useful_counts": len(first.useful_replicas),
        "decisions": len(decided),
        "median_milliseconds": median(milliseconds),
        "p95_milliseconds": quantiles(milliseconds, n=20)[-1],
    }


def decisions(partitions: int, settings: DecisionSettings) -> Iterator[tuple[float, Recommendation]]:
    """Seconds of CPU and the advice, decision by decision."""
    trace = orders_workload(days=DAYS)
    rates = trace.minute_rates()
    capacity = float(rates.max()) / (PEAK_SHARE * partitions)
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=capacity)
    members = max(1, min(partitions, round(float(rates.mean()) / (FILLED_SHARE * capacity))))
    rows = [replace(row, members=members) for row in history_rows(trace, partitions, FIRST_SEED, NAMES)]
    first, last = (24 * 60 * (DAYS - 1) + 60 * hour for hour in (DECIDED_HOURS.start, DECIDED_HOURS.stop))
    session = Session(profile_of(world, NAMES), settings, rows[:first])
    for row in rows[first:last]:
        session.observe(row)
        yield timed(session, row)


def timed(session: Session, row: GroupInterval) -> tuple[float, Recommendation]:
    """One decision and its CPU seconds."""
    begun = time.process_time()
    advice = session.recommend(row.interval_end_at, sensitivity="any")
    seconds = time.process_time() - begun
    if not isinstance(advice, Recommendation):
        message = f"a refusal was timed: {advice}"
        raise TypeError(message)
    return seconds, advice


def cycles_of(groups: int) -> dict[str, Any]:
    """CPU seconds of cycles over so many groups, and the memory of their process. Errors: ValueError on a refusal."""
    with tempfile.TemporaryDirectory(prefix="lagcast-cycles-") as folder:
        words = [folder, "--groups", str(groups), "--cycles", str(1 + CYCLES)]
        command = [sys.executable, "-m", "tests.recommender.fleet_cycle", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # our own
    took = json.loads(done.stdout)
    if took["kinds"] != {"Recommendation": (1 + CYCLES) * groups}:
        message = f"not each decision of {groups:,} groups was advice: {took['kinds']}"
        raise ValueError(message)
    first, *later = took["cpu_seconds"]
    return {
        "groups": groups,
        "first_seconds": first,
        "cycles": len(later),
        "median_seconds": median(later),
        "longest_seconds": max(later),
        "resident_mebibytes": took["resident_bytes"] / 2**20,
    }


if __name__ == "__main__":
    sys.exit(main())
