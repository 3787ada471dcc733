"""Every policy on every load in every world: what lagcast's decisions cost beside those of others.

    python -m benchmarks.decisions --traces DIR --out FILE      or: make bench-decisions TRACES=DIR OUT=FILE
    python -m benchmarks.decisions --page FILE > docs/decisions-bench.md

The first form judges each `.csv` and `.csv.gz` of DIR, the project's own workload and the twin of a published load;
without `--traces` the last two alone. FILE is a JSON document of all runs and what they come to; it is written anew
whenever a trace, world and seed is done, and a run that was stopped goes on from what FILE holds: five seeds of a few
loads take hours. Where only lagcast's own code has changed, rivals and hindsight are taken from FILE, and lagcast's
runs where only rivals have. `--seeds 5 --jobs 2` are how many days and draws of arrivals, and how many processes;
`--worlds tight,fine` and `--arms lagcast,useful-counts` take a part of all. The second form writes the page, and its
picture beside it, from the JSON alone.
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
from benchmarks.decisions.document import digest_of_judge, digest_of_lagcast, runs_in, text_of
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.page import write_page
from benchmarks.decisions.standings import (
    FIXED,
    PUBLISHED_HPA,
    PUBLISHED_KEDA,
    cases_of,
)
from benchmarks.decisions.tournament import (
    ARM_NAMES,
    Cell,
    Run,
    cells_of,
    own_loads,
    play_cell,
    whitepaper_cells,
)
from benchmarks.decisions.worlds import WORLDS
from replay.hindsight import HINDSIGHT
from replay.policies.arms import ARMS
from replay.trace import read_trace

WHITEPAPER = "whitepaper"
# Rivals that cost more than so many times the best one under the first seed do not play under others: most of the time
# goes into those that move thousands of times a day. Whom the figures name always plays.
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
        "--worlds", type=names_among((*WORLDS, WHITEPAPER)), default=(*WORLDS, WHITEPAPER), metavar="A,B"
    )
    parser.add_argument("--arms", type=names_among(ARM_NAMES), default=ARM_NAMES, metavar="A,B")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    parser.add_argument("--picture", type=Path, default=Path("docs/decisions-bench.svg"), help="where the picture goes")
    arguments = parser.parse_args()
    if arguments.page is not None:
        write_page(json.loads(arguments.page.read_text()), arguments.picture)
        return 0
    arms = tuple(dict.fromkeys((*arguments.arms, LAGCAST)))
    traces = own_loads()
    if arguments.traces is not None:
        files = (path for path in arguments.traces.iterdir() if path.name.endswith((".csv", ".csv.gz")))
        traces = [*map(read_trace, sorted(files)), *traces]
    cells = cells_of(traces, [name for name in arguments.worlds if name in WORLDS], arguments.seeds, arms)
    published = whitepaper_cells(WHITEPAPER_SEEDS, arms) if WHITEPAPER in arguments.worlds else []
    play(cells, published, arguments.out, jobs=arguments.jobs)
    return 0


def play(cells: list[Cell], published: list[Cell], out: Path, *, jobs: int) -> None:
    """Play what `out` does not hold in so many processes; it is written after each.

    First `published` and all cells of the first seed, then the others without the rivals that had no chance there.
    """
    began = time.monotonic()
    every = [*published, *cells]
    held = earlier(out, every)
    spared = hopeless(run for runs in held.values() for run in runs)
    first = [place for place, cell in enumerate(every) if place < len(published) or cell.contest.seed == FIRST_SEED]
    needed = {
        place: set(cell.arms if place in first else without(cell, spared).arms) for place, cell in enumerate(every)
    }
    done = {place: runs for place, runs in held.items() if needed[place] <= {run.arm for run in runs}}
    halves = f", parts of {len(held) - len(done)} more" if len(held) > len(done) else ""
    print(f"{len(done)} of {len(every)} are in {out}{halves}", file=sys.stderr, flush=True)
    todo = [place for place in range(len(every)) if place not in done]
    played = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for stage in (first, [place for place in todo if place not in first]):
            spared = set() if stage is first else hopeless(run for runs in done.values() for run in runs)
            futures = {
                pool.submit(play_cell, without(every[place], spared), held.get(place, ())): place
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
    """Rivals, by trace, world and arm, that were twice as expensive as the best one under the first seed."""
    rivals = [run for run in runs if run.seed == FIRST_SEED and run.arm in ARMS]
    best: dict[tuple[str, str], float] = {}
    for run in rivals:
        best[run.trace, run.world] = min(run.cost, best.get((run.trace, run.world), run.cost))
    return {
        (run.trace, run.world, run.arm)
        for run in rivals
        if run.cost > HOPELESS_RATIO * best[run.trace, run.world] and run.arm not in ALWAYS_PLAYED
    }


def without(cell: Cell, spared: set[tuple[str, str, str]]) -> Cell:
    """The cell without those of its arms."""
    return replace(cell, arms=tuple(arm for arm in cell.arms if (cell.trace, cell.world, arm) not in spared))


def earlier(out: Path, cells: list[Cell]) -> dict[int, list[Run]]:
    """What was played before, by place: lagcast's runs by the same code, rivals and hindsight by the same judge."""
    if not out.exists():
        return {}
    document = json.loads(out.read_text())
    same_code, same_judge = document["code"] == digest_of_lagcast(), document["judge"] == digest_of_judge()
    held: dict[tuple[str, str, int], list[Run]] = {}
    for run in (*runs_in(document, "whitepaper_runs"), *runs_in(document, "runs")):
        if same_code if run.arm.startswith(LAGCAST) else same_judge:
            held.setdefault((run.trace, run.world, run.seed), []).append(run)
    places = {(cell.trace, cell.world, cell.contest.seed): place for place, cell in enumerate(cells)}
    return {places[name]: runs for name, runs in held.items() if name in places}


def progress(runs: list[Run], done: int, cells: int, *, elapsed: float, left: float) -> str:
    """One line: what has just been played, what it came to, how long it took so far and will take."""
    (case,) = cases_of(runs)
    costs = {run.arm: run.cost for run in runs}
    figures = ", ".join(f"{arm} {costs[arm]:.2f}" for arm in (LAGCAST, case.best_rival, HINDSIGHT))
    cpu = sum(run.seconds_of_cpu for run in runs)
    return (
        f"{done:4d}/{cells}  {hms(elapsed)}, about {hms(left)} left  "
        f"{case.trace} {case.world} seed {runs[0].seed}: {figures}  ({cpu:.0f} s of CPU)"
    )
