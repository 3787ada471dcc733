"""Every policy on every load in every world: what lagcast's decisions cost beside those of others.

    python benchmarks/decisions.py --traces DIR --out FILE      or: make bench-decisions TRACES=DIR OUT=FILE
    python benchmarks/decisions.py --page FILE > docs/decisions-bench.md

The first form judges each `.csv` and `.csv.gz` of DIR, the project's own workload and the twin of a published load;
without `--traces` the last two alone. FILE is a JSON document of all runs and what they come to; it is written anew
whenever a trace, world and seed is done, and a run that was stopped goes on from what FILE holds, as long as the code
is the same: five seeds of a few loads take hours. Where only lagcast's own code has changed, rivals and hindsight are
taken from FILE. `--seeds 5 --jobs 2` are how many days and draws of arrivals, and how many processes; `--worlds
tight,fine` and `--arms lagcast,stair` take a part of all. The second form writes the page, and its picture beside it,
from the JSON alone.
"""

import argparse
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from datetime import timedelta
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from decisions_page import write_page

from recommender.decision import DecisionSettings
from replay.hindsight import HINDSIGHT
from replay.policies.arms import ARMS
from replay.policies.ours import LAGCAST
from replay.standings import (
    FIXED,
    PUBLISHED_HPA,
    PUBLISHED_KEDA,
    Case,
    cases_of,
    overall_of,
    variant_ratios,
    with_pauses,
)
from replay.tournament import (
    ARM_NAMES,
    VARIANT_SEED,
    VARIANT_WORLDS,
    Cell,
    Run,
    cells_of,
    own_loads,
    play_cell,
    whitepaper_cells,
)
from replay.trace import read_trace
from replay.worlds import WORLDS

Document = dict[str, Any]

# The loads that head-room, prices and pauses were chosen on: reported, but apart from the others.
TUNED_ON = ("production-app-noisy-bursts", "nasa-http-july-flash-crowd", "orders")
WHITEPAPER = "whitepaper"
PLAYING = ("cost_model", "forecasting", "recommender", "replay")
# What rivals and hindsight depend on: the plant, the rivals, the loads and the prices, but nothing that forecasts.
JUDGING = (
    "replay",
    "cost_model/price.py",
    "cost_model/presets.py",
    "forecasting/compiled.py",
    "forecasting/units.py",
    "recommender/decision.py",
)
OURS_IN_REPLAY = ("forecasters.py", "policies/lagcast.py", "policies/ours.py", "policies/uncosted.py")
# Rivals that cost more than so many times the best one under the first seed do not play under others: most of the time
# goes into those that move thousands of times a day. Whom the figures name always plays.
HOPELESS_RATIO = 2.0
FIRST_SEED = 0
ALWAYS_PLAYED = (FIXED, PUBLISHED_HPA, PUBLISHED_KEDA)
# The twin lasts 2.4 hours, so ten draws of it are cheap.
WHITEPAPER_SEEDS = 10


def main() -> int:
    """Run the tournament, or write the page of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, help="folder of trace files")
    parser.add_argument("--out", type=Path, default=Path("build/decisions.json"), help="where the JSON goes")
    parser.add_argument("--seeds", type=int, default=5, help="days and draws of arrivals for each trace and world")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--worlds", type=words((*WORLDS, WHITEPAPER)), default=(*WORLDS, WHITEPAPER), metavar="A,B")
    parser.add_argument("--arms", type=words(ARM_NAMES), default=ARM_NAMES, metavar="A,B")
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


def words(known: Sequence[str]) -> Any:  # noqa: ANN401 - argparse takes any callable
    """A parser of names separated by commas, each of which has to be known."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        unknown = [name for name in given if name not in known]
        if unknown:
            message = f"there is no {unknown[0]!r}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return given

    return names


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
    halves = f", the rivals of {len(held) - len(done)} more" if len(held) > len(done) else ""
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
                write(
                    document(
                        [run for index in sorted(done) if index >= len(published) for run in done[index]],
                        [run for index in sorted(done) if index < len(published) for run in done[index]],
                    ),
                    out,
                )
                elapsed = time.monotonic() - began
                left = elapsed / played * (len(todo) - played)
                print(
                    progress(done[place], len(done), len(every), elapsed=elapsed, left=left),
                    file=sys.stderr,
                    flush=True,
                )


def hopeless(runs: Iterable[Run]) -> set[tuple[str, str, str]]:
    """Rivals, by trace, world and arm, that were twice as dear as the best one under the first seed."""
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
    """What was played before, by place: everything by the same code, rivals and hindsight in the same plant.

    None where `out` is of another plant, or of none.
    """
    if not out.exists():
        return {}
    document = json.loads(out.read_text())
    same_code, same_judge = document.get("code") == digest_of(PLAYING), document.get("judge") == digest_of_judge()
    held: dict[tuple[str, str, int], list[Run]] = {}
    for kept in (*document["whitepaper_runs"], *document["runs"]):
        run = Run(**kept)
        if same_code or (same_judge and not run.arm.startswith(LAGCAST)):
            held.setdefault((run.trace, run.world, run.seed), []).append(run)
    places = {(cell.trace, cell.world, cell.contest.seed): place for place, cell in enumerate(cells)}
    return {places[name]: runs for name, runs in held.items() if name in places}


def digest_of_judge() -> str:
    """Of what rivals and hindsight depend on."""
    return digest_of(JUDGING, without=OURS_IN_REPLAY)


def digest_of(parts: Sequence[str], *, without: Sequence[str] = ()) -> str:
    """These packages and files in 16 digits: figures of one document are of one code."""
    digest = sha256()
    root = Path(__file__).parents[1]
    for part in parts:
        found = root / part
        files = sorted(found.rglob("*.py")) if found.is_dir() else [found]
        for path in files:
            if str(path.relative_to(found)) not in without:
                digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def end_with_parent() -> None:
    """Let this worker end when its parent is gone: a killed run would leave it playing for an hour."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def progress(runs: list[Run], done: int, cells: int, *, elapsed: float, left: float) -> str:
    """One line: what has just been played, what it came to, how long it took so far and will take."""
    (case,) = cases_of(runs)
    costs = {run.arm: run.cost for run in runs}
    figures = ", ".join(f"{arm} {costs[arm]:.2f}" for arm in (LAGCAST, case.best_rival, HINDSIGHT))
    cpu = sum(run.seconds_of_cpu for run in runs)
    return (
        f"{done:4d}/{cells}  {clock(elapsed)}, about {clock(left)} left  "
        f"{case.trace} {case.world} seed {runs[0].seed}: {figures}  ({cpu:.0f} s of CPU)"
    )


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


def document(runs: list[Run], published: list[Run]) -> Document:
    """Everything: how it was run, every run, and what they come to."""
    names = ("lagcast", "numpy", "numba", "scipy")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "code": digest_of(PLAYING),
        "judge": digest_of_judge(),
        "settings": asdict(DecisionSettings()),
        "worlds": {
            name: {"sentence": kind.sentence, "pauses": kind.pauses, **asdict(kind.world)}
            for name, kind in WORLDS.items()
        },
        "tuned_on": list(TUNED_ON),
        "variants_played_in": {"worlds": list(VARIANT_WORLDS), "seed": VARIANT_SEED},
        "runs": [asdict(run) for run in runs],
        "whitepaper_runs": [asdict(run) for run in published],
        "summary": summary(runs),
    }


def summary(runs: list[Run]) -> Document:
    """Cases, overall figures with and without the loads that were tuned on, losses, and variants of lagcast."""
    cases = cases_of(runs)
    unseen = [case for case in cases if case.trace not in TUNED_ON]
    variants = [arm for arm in ARM_NAMES if arm.startswith(f"{LAGCAST}-")]
    return {
        "cases": [{**asdict(case), "tuned_on": case.trace in TUNED_ON} for case in cases],
        "overall": {"without_tuned_on": overall(unseen), "with_tuned_on": overall(cases)},
        "lost": [
            {
                "trace": case.trace,
                "world": case.world,
                "best_rival": case.best_rival,
                "cost_to_best_rival": case.cost_to_best_rival,
                "lost_seeds": case.lost_seeds,
                "seeds": case.seeds,
            }
            for case in cases
            if case.is_lost
        ],
        "variants": [
            {"variant": variant, "trace": trace, "world": world, "cost_to_lagcast": ratio}
            for variant in variants
            for (trace, world), ratio in variant_ratios(runs, variant).items()
        ],
    }


def overall(cases: list[Case]) -> Document:
    """Overall figures of all cases, and of those with slow and with real pauses."""
    groups = {"all": cases, "slow": with_pauses(cases, "slow"), "real": with_pauses(cases, "real")}
    figures = {name: overall_of(group) for name, group in groups.items()}
    return {name: None if figure is None else asdict(figure) for name, figure in figures.items()}


def write(whole: Document, out: Path) -> None:
    """The JSON, swapped in whole so that a reader never meets half of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(out.name + ".draft")
    draft.write_text(json.dumps(whole, indent=1) + "\n")
    draft.replace(out)


if __name__ == "__main__":
    sys.exit(main())
