"""Measures what better forecasts could save: the cost of lagcast's decisions over their cost with perfect forecasts.

    python -m benchmarks.decisions.value --traces DIR --seeds 3          or: make bench-value TRACES=DIR

Plays the last days of each `.csv` and `.csv.gz` of DIR, and of the project's own workload, in worlds of slow and of
quick pauses: with the forecasts that production uses, without any (a constant rate) and with foresight, which knows
the produce rate of every future minute. `--worlds slow-pods,new-nodes` plays them where pods need minutes to start. A
table is written to stdout as it grows.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.command import end_with_parent, names_among
from benchmarks.decisions.forecasters import Foresight
from benchmarks.decisions.tournament import SeededScenario, history_rows, scenarios_of
from benchmarks.decisions.worlds import ALL_WORLDS
from forecasting.forecaster import Forecaster
from forecasting.persistence import PersistenceForecaster
from replay.contest import run_policy
from replay.policies.lagcast import Lagcast
from replay.trace import read_trace
from replay.workload import orders_workload

POLICY_NAME = "lagcast"
# One with pauses of many seconds, one with those of a second.
USUAL_WORLDS = ("tight", "real-quick")


def main() -> int:
    """Read the arguments, play, print the table and its means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, help="folder of trace files")
    parser.add_argument("--seeds", type=int, default=3, help="days and draws of arrivals for each trace and world")
    parser.add_argument("--worlds", type=names_among(tuple(ALL_WORLDS)), default=USUAL_WORLDS, metavar="A,B")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    files = [] if arguments.traces is None else sorted(arguments.traces.iterdir())
    traces = [read_trace(path) for path in files if path.name.endswith((".csv", ".csv.gz"))]
    scenarios = scenarios_of([*traces, orders_workload()], arguments.worlds, arguments.seeds, (POLICY_NAME,))
    print("| trace | world | seed | foresight | forecast | / foresight | no forecast | / foresight |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    ratios = []
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for scenario, (known, ours, without) in zip(scenarios, pool.map(costs, scenarios), strict=True):
            ratios.append((ours / known, without / known))
            print(
                f"| {scenario.trace} | {scenario.world} | {scenario.contest.seed} | {known:.2f} "
                f"| {ours:.2f} | {ours / known:.3f} | {without:.2f} | {without / known:.3f} |",
                flush=True,
            )
    means = [fmean(column) for column in zip(*ratios, strict=True)]
    print(f"| mean of {len(ratios)} | | | | | {means[0]:.3f} | | {means[1]:.3f} |")
    return 0


def costs(scenario: SeededScenario) -> tuple[float, ...]:
    """The costs with foresight, with the production forecaster, and without any forecast."""
    contest = scenario.contest
    history = (
        []
        if scenario.past is None
        else history_rows(scenario.past, contest.world.partitions, contest.seed, contest.names)
    )

    def played(forecaster: Forecaster | None) -> float:
        policy = Lagcast(contest.world, contest.settings, names=contest.names, history=history, forecaster=forecaster)
        return run_policy(POLICY_NAME, policy, contest).cost.total

    # Foresight knows the past as well, for it is fitted to it.
    spans = [contest.trace] if scenario.past is None else [scenario.past, contest.trace]
    rates = np.concatenate([span.minute_rates() for span in spans])
    known = Foresight(rates=rates, start_at=spans[0].start_at)
    return tuple(played(forecaster) for forecaster in (known, None, PersistenceForecaster()))


if __name__ == "__main__":
    sys.exit(main())
