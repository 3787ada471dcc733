"""Compares the cost of lagcast's decisions with that of other policies, on every load in every world.

    python -m benchmarks.decisions --traces DIR --out FILE      or: make bench-decisions TRACES=DIR OUT=FILE
    python -m benchmarks.decisions --page FILE > docs/decisions-bench.md

The first form judges each `.csv` and `.csv.gz` of DIR, the project's own workload and the twin of a published load;
without `--traces` the last two alone. FILE is a JSON document of all runs and their summary; it is written again
whenever a trace, world and seed is done, and a run that was stopped resumes from FILE: five seeds of a few loads take
hours. Where only lagcast's own code has changed, the runs of rivals and hindsight are taken from FILE; where only
rivals have changed, lagcast's runs are. `--seeds 5` is the number of days and of draws of the produced messages,
`--jobs 2` the number of processes; `--worlds tight,fine` and `--policies lagcast,useful-counts` select a part. Worlds
in which capacity comes late play only where they are named: slow-pods, new-nodes, restoring. The second form writes
the page, and its picture beside it, from the JSON alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from benchmarks.command import end_with_parent, hms, names_among, swap_in
from benchmarks.decisions.document import runs_kept, text_of
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.page import write_page
from benchmarks.decisions.standings import (
    FIXED,
    PUBLISHED_HPA,
    PUBLISHED_KEDA,
    summaries_of,
)
from benchmarks.decisions.tournament import (
    POLICY_NAMES,
    Run,
    SeededScenario,
    own_loads,
    play_scenario,
    scenarios_of,
    whitepaper_scenarios,
)
from benchmarks.decisions.worlds import ALL_WORLDS, WORLDS
from replay.hindsight import HINDSIGHT
from replay.policies.catalogue import CATALOGUE
from replay.trace import read_trace

WHITEPAPER = "whitepaper"
# Rivals that cost more than so many times the best one under the first seed do not play under others: most of the time
# is spent on those that move thousands of times a day. Policies that the figures name always play.
HOPELESS_RATIO = 2.0
FIRST_SEED = 0
ALWAYS_PLAYED = (FIXED, PUBLISHED_HPA, PUBLISHED_KEDA)
# The twin lasts 2.4 hours, so ten draws of it are cheap.
WHITEPAPER_SEEDS = 10


def main() -> int:
    """Run the tournament, or write the page of one."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="folder of trace files")
    parser.add_argument("--out", type=Path, default=Path("build/decisions.json"), help="where the JSON goes")
    parser.add_argument("--seeds", type=int, default=5, help="days and draws of arrivals for each trace and world")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--worlds", type=names_among((*ALL_WORLDS, WHITEPAPER)), default=(*WORLDS, WHITEPAPER), metavar="A,B"
    )
    parser.add_argument("--policies", type=names_among(POLICY_NAMES), default=POLICY_NAMES, metavar="A,B")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    parser.add_argument("--picture", type=Path, default=Path("docs/decisions-bench.svg"), help="where the picture goes")
    arguments = parser.parse_args()
    if arguments.page is not None:
        write_page(json.loads(arguments.page.read_text()), arguments.picture)
        return 0
    policies = tuple(dict.fromkeys((*arguments.policies, LAGCAST)))
    traces = own_loads()
    if arguments.traces is not None:
        files = (path for path in arguments.traces.iterdir() if path.name.endswith((".csv", ".csv.gz")))
        traces = [*map(read_trace, sorted(files)), *traces]
    scenarios = scenarios_of(
        traces, [name for name in arguments.worlds if name in ALL_WORLDS], arguments.seeds, policies
    )
    published = whitepaper_scenarios(WHITEPAPER_SEEDS, policies) if WHITEPAPER in arguments.worlds else []
    play(scenarios, published, arguments.out, jobs=arguments.jobs)
    return 0


def play(scenarios: list[SeededScenario], published: list[SeededScenario], out: Path, *, jobs: int) -> None:
    """Play the runs that are not in `out`, in so many processes; `out` is written after each.

    First `published` and all scenarios under the first seed, then the others without the rivals that cost too much.
    """
    began = time.monotonic()
    every = [*published, *scenarios]
    held = earlier(out, every)
    spared = hopeless(run for runs in held.values() for run in runs)
    first = [
        place for place, scenario in enumerate(every) if place < len(published) or scenario.contest.seed == FIRST_SEED
    ]
    needed = {
        place: set(scenario.policies if place in first else without(scenario, spared).policies)
        for place, scenario in enumerate(every)
    }
    done = {place: runs for place, runs in held.items() if needed[place] <= {run.policy for run in runs}}
    halves = f", parts of {len(held) - len(done)} more" if len(held) > len(done) else ""
    print(f"{len(done)} of {len(every)} are in {out}{halves}", file=sys.stderr, flush=True)
    todo = [place for place in range(len(every)) if place not in done]
    played = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for stage in (first, [place for place in todo if place not in first]):
            spared = set() if stage is first else hopeless(run for runs in done.values() for run in runs)
            futures = {
                pool.submit(play_scenario, without(every[place], spared), held.get(place, ())): place
                for place in stage
                if place in todo
            }
            for future in as_completed(futures):
                place, played = futures[future], played + 1
                done[place] = future.result()
                runs = [run for index in sorted(done) if index >= len(published) for run in done[index]]
                others = [run for index in sorted(done) if index < len(published) for run in done[index]]
                swap_in(text_of(runs, others), out)
                elapsed = time.monotonic() - began
                left = elapsed / played * (len(todo) - played)
                print(
                    progress(done[place], len(done), len(every), elapsed=elapsed, left=left),
                    file=sys.stderr,
                    flush=True,
                )


def hopeless(runs: Iterable[Run]) -> set[tuple[str, str, str]]:
    """Rivals, by trace, world and policy, that were twice as expensive as the best one under the first seed."""
    rivals = [run for run in runs if run.seed == FIRST_SEED and run.policy in CATALOGUE]
    best: dict[tuple[str, str], float] = {}
    for run in rivals:
        best[run.trace, run.world] = min(run.cost, best.get((run.trace, run.world), run.cost))
    return {
        (run.trace, run.world, run.policy)
        for run in rivals
        if run.cost > HOPELESS_RATIO * best[run.trace, run.world] and run.policy not in ALWAYS_PLAYED
    }


def without(scenario: SeededScenario, spared: set[tuple[str, str, str]]) -> SeededScenario:
    """The scenario without the policies in `spared`."""
    return replace(
        scenario,
        policies=tuple(
            policy for policy in scenario.policies if (scenario.trace, scenario.world, policy) not in spared
        ),
    )


def earlier(out: Path, scenarios: list[SeededScenario]) -> dict[int, list[Run]]:
    """The earlier runs that still hold, by the place of their scenario."""
    held = runs_kept(out, ("whitepaper_runs", "runs"))
    places = {
        (scenario.trace, scenario.world, scenario.contest.seed): place for place, scenario in enumerate(scenarios)
    }
    return {places[name]: runs for name, runs in held.items() if name in places}


def progress(runs: list[Run], done: int, scenarios: int, *, elapsed: float, left: float) -> str:
    """One line: the scenario just played, its result, the time so far and the time left."""
    (scenario,) = summaries_of(runs)
    costs = {run.policy: run.cost for run in runs}
    figures = ", ".join(f"{policy} {costs[policy]:.2f}" for policy in (LAGCAST, scenario.best_rival, HINDSIGHT))
    cpu = sum(run.seconds_of_cpu for run in runs)
    return (
        f"{done:4d}/{scenarios}  {hms(elapsed)}, about {hms(left)} left  "
        f"{scenario.trace} {scenario.world} seed {runs[0].seed}: {figures}  ({cpu:.0f} s of CPU)"
    )
