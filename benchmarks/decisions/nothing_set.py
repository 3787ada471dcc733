"""Measures what it costs to set nothing but bounds: on the first day, and the day after.

    python -m benchmarks.decisions.nothing_set --traces DIR --seeds 3          or: make bench-nothing-set TRACES=DIR

Plays the last two days of each `.csv` and `.csv.gz` of DIR that has five, and of the project's own workload, in a world
of slow and in one of real pauses; lagcast plays once with everything set as it is in that world, and once with the
fewest and most replicas alone: protocol, client and static membership come from the group's rows, capacity, start-up
and pauses are learned. The time before those days is its history, in which all replicas kept up, so that it does not
show their limit. A table of the means over all seeds is written to stdout as it grows: what one seed costs depends on
the first backlog that shows the limit.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.command import end_with_parent, names_among
from benchmarks.decisions.ours import LAGCAST, ONLY_BOUNDS_SET, OURS
from benchmarks.decisions.tournament import VARIANT_WORLDS, history_rows, rescaled
from benchmarks.decisions.worlds import MOST_REPLICAS, WORLDS
from forecasting.units import SECONDS_PER_DAY
from replay.contest import PRICED, Contest, run_policy
from replay.sampling import Names
from replay.trace import Trace, read_trace
from replay.workload import orders_workload

JUDGED_DAYS, LEAST_DAYS = 2, 5.0
DayCosts = tuple[float, ...]


def main() -> int:
    """Read the arguments, play, print the table and its means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, help="folder of trace files")
    parser.add_argument("--worlds", type=names_among(tuple(WORLDS)), default=VARIANT_WORLDS, metavar="A,B")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the plant, from 0 on")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds {arguments.seeds}: at least 1")
    files = [] if arguments.traces is None else sorted(arguments.traces.iterdir())
    traces = [read_trace(path) for path in files if path.name.endswith((".csv", ".csv.gz"))]
    long = [trace for trace in [*traces, orders_workload()] if trace.days >= LEAST_DAYS]
    pairs = [(trace, world) for trace in long for world in arguments.worlds]
    runs = [(trace, world, seed) for trace, world in pairs for seed in range(arguments.seeds)]
    print(
        "| trace | world | first day, all set | bounds set | bounds / all | second day, all set | bounds set "
        "| bounds / all |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    ratios = []
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        played = pool.map(costs, *zip(*runs, strict=True))
        for trace, world in pairs:
            all_set, bounds = np.mean([next(played) for _ in range(arguments.seeds)], axis=0).tolist()
            ratios.append([mine / known for mine, known in zip(bounds, all_set, strict=True)])
            shown = [
                f"{known:.2f} | {mine:.2f} | {ratio:.3f}"
                for known, mine, ratio in zip(all_set, bounds, ratios[-1], strict=True)
            ]
            print(f"| {trace.name} | {world} | {' | '.join(shown)} |", flush=True)
    first, second = (fmean(column) for column in zip(*ratios, strict=True))
    print(f"| mean of {len(ratios)} | | | | {first:.3f} | | | {second:.3f} |")
    return 0


def costs(trace: Trace, world: str, seed: int) -> tuple[DayCosts, DayCosts]:
    """The costs of each judged day: with everything set, and with bounds alone."""
    past, judged = rescaled(trace).split(JUDGED_DAYS * SECONDS_PER_DAY)
    contest = Contest(
        trace=judged,
        world=WORLDS[world].world,
        settings=PRICED,
        names=Names("learning", "load"),
        seed=seed,
        start_replicas=MOST_REPLICAS,
    )
    history = [] if past is None else history_rows(past, contest.world.partitions, seed, contest.names)
    all_set, bounds = (
        run_policy(policy, OURS[policy](contest.world, contest.settings, contest.names, history), contest).daily
        for policy in (LAGCAST, ONLY_BOUNDS_SET)
    )
    return tuple(cost.total for cost in all_set), tuple(cost.total for cost in bounds)


if __name__ == "__main__":
    sys.exit(main())
