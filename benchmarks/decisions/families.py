"""Compares the cost of lagcast's decisions with that of simple scalers on families of generated loads.

    python -m benchmarks.decisions.families --draws 50 --out FILE      or: make bench-families DRAWS=50 OUT=FILE
    python -m benchmarks.decisions.families --page FILE

The first form plays so many draws of each family, with and without a daily shape, each in the next of the worlds; 50
draws take hours. FILE is a JSON document of all runs and their summary; it is written again after each draw, and a run
that was stopped resumes from FILE. Where only lagcast's own code has changed, the other runs are taken from FILE. The
table is written to stdout at the end. `--seeds-from 1000` draws loads for tuning instead of those for the report,
`--worlds tight,fine` selects worlds, `--hindsight` searches for the best plan of each draw as well, and `--jobs 2` is
the number of processes. The second form writes the page, in Markdown, from the JSON alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from benchmarks.command import end_with_parent, hms, names_among, swap_in
from benchmarks.decisions.document import runs_kept, written
from benchmarks.decisions.families_page import families_page, family_table
from benchmarks.decisions.family_draws import SIMPLE_SCALERS, PlacedDraw, placed_draws, play_draw, purpose_of
from benchmarks.decisions.family_standings import family_summaries
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.tournament import Run
from benchmarks.decisions.worlds import ALL_WORLDS, WORLDS
from replay.hindsight import HINDSIGHT

# The file that plays the runs: their code digest covers every file that it imports.
ROOT = "benchmarks/decisions/family_draws.py"


def main() -> int:
    """Play the draws, or write the page of an earlier run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions.families",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--draws", type=int, default=50, help="draws of each family, with and without a daily shape")
    parser.add_argument("--seeds-from", type=int, default=0, metavar="SEED", help="the seed of the first draw")
    parser.add_argument("--out", type=Path, default=Path("build/families.json"), help="where the JSON goes")
    parser.add_argument("--worlds", type=names_among(tuple(ALL_WORLDS)), default=tuple(WORLDS), metavar="A,B")
    parser.add_argument("--hindsight", action="store_true", help="search for the best plan of each draw as well")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    arguments = parser.parse_args()
    if arguments.page is not None:
        print(families_page(json.loads(arguments.page.read_text())), end="")
        return 0
    seeds = range(arguments.seeds_from, arguments.seeds_from + arguments.draws)
    try:
        purpose_of(seeds)
    except ValueError as error:
        parser.error(str(error))
    draws = placed_draws(seeds, arguments.worlds)
    runs = play(draws, arguments.out, hindsight=arguments.hindsight, jobs=arguments.jobs)
    print(family_table(family_summaries(runs)), end="")
    return 0


def play(draws: Sequence[PlacedDraw], out: Path, *, hindsight: bool, jobs: int) -> list[Run]:
    """All runs of the draws; those that are not in `out` are played, and `out` is written after each draw."""
    began = time.monotonic()
    needed = {LAGCAST, *SIMPLE_SCALERS, *([HINDSIGHT] if hindsight else [])}
    kept = runs_kept(out, ("runs",), root=ROOT)
    held = {place: kept[placed.key] for place, placed in enumerate(draws) if placed.key in kept}
    done = {place: runs for place, runs in held.items() if needed <= {run.policy for run in runs}}
    print(f"{len(done)} of {len(draws)} are in {out}", file=sys.stderr, flush=True)
    todo = [place for place in range(len(draws)) if place not in done]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        futures = {
            pool.submit(play_draw, draws[place], held.get(place, ()), hindsight=hindsight): place for place in todo
        }
        for played, future in enumerate(as_completed(futures), start=1):
            place = futures[future]
            done[place] = future.result()
            runs = [run for index in sorted(done) for run in done[index]]
            swap_in(text_of(runs), out)
            elapsed = time.monotonic() - began
            left = elapsed / played * (len(todo) - played)
            print(
                f"{len(done):4d}/{len(draws)}  {hms(elapsed)}, about {hms(left)} left  {summary_of(done[place])}",
                file=sys.stderr,
                flush=True,
            )
    return [run for place in sorted(done) for run in done[place]]


def text_of(runs: list[Run]) -> str:
    """The document as JSON, a run a line."""
    return written({"runs": runs}, {"summary": [asdict(each) for each in family_summaries(runs)]}, root=ROOT)


def summary_of(runs: Sequence[Run]) -> str:
    """One line with a draw's result."""
    costs = {run.policy: run.cost for run in runs}
    cheapest = min(SIMPLE_SCALERS, key=lambda policy: costs[policy])
    cpu_seconds = sum(run.seconds_of_cpu for run in runs)
    return (
        f"{runs[0].trace} {runs[0].world} seed {runs[0].seed}: lagcast {costs[LAGCAST]:.2f}, "
        f"{cheapest} {costs[cheapest]:.2f}  ({cpu_seconds:.0f} s of CPU)"
    )


if __name__ == "__main__":
    sys.exit(main())
