"""Compares the forecasters with their rivals: accuracy, calibration and speed.

    python -m benchmarks.forecasts --traces DIR --out FILE      or: make bench-forecasts TRACES=DIR OUT=FILE
    python -m benchmarks.forecasts --page FILE > docs/forecasts.md

The first form judges every model on each `.csv` and `.csv.gz` of DIR that is long enough, and on four weeks of the
project's own workload; without `--traces` on the last alone. FILE is a JSON document of all results and their summary;
it is written again whenever a trace and model is done, and a run that was stopped resumes from FILE, as long as the
code and the trace are the same. `--origins 50` is the number of origins, spread evenly, `--jobs 2` the number of
processes; `--models a,b` selects a part of all. The second form writes the page from the JSON alone.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.command import end_with_parent, hms, names_among, swap_in
from benchmarks.forecasts.judge import MOST_FIT_SECONDS, MinuteLoad, ModelResult, judge
from benchmarks.forecasts.models import MODELS, TERMS
from benchmarks.forecasts.page import write_page
from benchmarks.forecasts.summary import TUNED_ON, summary
from replay.trace import TraceError, read_trace
from replay.workload import orders_workload

Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
# Long enough for two weeks of history and a forecast of a week.
OWN_DAYS = 28
JUDGING = ("boosting.py", "fourier.py", "judge.py", "models.py", "naive.py", "rivals.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOnTrace:
    """One model on one trace; `code` is a digest of everything that its figures depend on."""

    load: MinuteLoad
    model: str
    origins: int
    code: str


def main() -> int:
    """Run the comparison, or write the page of one; 2 on a trace that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="folder of trace files")
    parser.add_argument("--out", type=Path, default=Path("build/forecasts.json"), help="where the JSON goes")
    parser.add_argument("--origins", type=int, default=50, help="origins for each trace (default 50)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--models", type=names_among(tuple(MODELS)), default=tuple(MODELS), metavar="A,B")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    arguments = parser.parse_args()
    if arguments.page is not None:
        write_page(json.loads(arguments.page.read_text()))
        return 0
    try:
        loads = loads_of(arguments.traces)
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    play(loads, arguments.models, arguments.out, origins=arguments.origins, jobs=arguments.jobs)
    return 0


def own_loads() -> list[MinuteLoad]:
    """The loads that need no file."""
    return [MinuteLoad.of(orders_workload(days=OWN_DAYS))]


def loads_of(folder: Path | None) -> list[MinuteLoad]:
    """Every trace of the folder, and our own."""
    files = [] if folder is None else [path for path in folder.iterdir() if path.name.endswith((".csv", ".csv.gz"))]
    return [*(MinuteLoad.of(read_trace(path)) for path in sorted(files)), *own_loads()]


def play(loads: Sequence[MinuteLoad], models: Sequence[str], out: Path, *, origins: int, jobs: int) -> None:
    """Judge all models and traces that are not in `out`, in so many processes; `out` is written after each."""
    began = time.monotonic()
    runs = runs_of(loads, models, origins)
    left_out = [line for load in loads for line in left_out_of(load)]
    done = earlier(out, runs)
    todo = [place for place in range(len(runs)) if place not in done]
    print(f"{len(done)} of {len(runs)} are in {out}", file=sys.stderr, flush=True)
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr, flush=True)
    swap_in(text_of([done[place] for place in sorted(done)], left_out, origins), out)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        futures = {pool.submit(judge_run, runs[place]): place for place in todo}
        for judged, future in enumerate(as_completed(futures), start=1):
            place = futures[future]
            done[place] = asdict(future.result())
            swap_in(text_of([done[index] for index in sorted(done)], left_out, origins), out)
            elapsed = time.monotonic() - began
            left = elapsed / judged * (len(todo) - judged)
            print(
                f"{len(done):4d}/{len(runs)}  {hms(elapsed)}, about {hms(left)} left  {progress(done[place])}",
                file=sys.stderr,
                flush=True,
            )


def runs_of(loads: Sequence[MinuteLoad], models: Sequence[str], origins: int) -> list[ModelOnTrace]:
    """Every model on every trace that is long enough for it."""
    return [
        ModelOnTrace(load=load, model=model, origins=origins, code=digest(load, model, origins))
        for load in loads
        for model in models
        if load.days >= TERMS[MODELS[model].term].least_days
    ]


def left_out_of(load: MinuteLoad) -> list[str]:
    """The terms that this trace is too short for, as sentences."""
    return [
        f"{load.name} lasts {load.days:.1f} days; the {name} term needs {term.least_days}"
        for name, term in TERMS.items()
        if load.days < term.least_days
    ]


def judge_run(run: ModelOnTrace) -> ModelResult:
    """The result of one model on one trace; runs in a worker."""
    return judge(run.load, run.model, origins=run.origins, code=run.code)


def digest(load: MinuteLoad, model: str, origins: int) -> str:
    """Code, trace and origins in 16 digits; a rival of statsforecast does not depend on our forecasters."""
    sha = sha256(f"{origins}".encode() + load.rates.tobytes())
    paths = [Path(__file__).parent / name for name in JUDGING]
    if MODELS[model].family == "statsforecast":
        sha.update(version("statsforecast").encode())
    else:
        paths += sorted((ROOT / "forecasting").rglob("*.py"))
    for path in paths:
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()[:16]


def earlier(out: Path, runs: Sequence[ModelOnTrace]) -> dict[int, Document]:
    """The results of an earlier run of the same code on the same traces, by their place."""
    if not out.exists():
        return {}
    held = {(each["trace"], each["model"], each["code"]): each for each in json.loads(out.read_text())["results"]}
    keys = [(run.load.name, run.model, run.code) for run in runs]
    return {place: held[key] for place, key in enumerate(keys) if key in held}


def progress(result: Document) -> str:
    """One line: the model and trace just judged, and the result."""
    if result["why_not"] is not None:
        return f"{result['trace']} {result['model']}: {result['why_not']}"
    losses = ", ".join(f"{word} {spans['all']:.4f}" for word, spans in result["losses"].items())
    return (
        f"{result['trace']} {result['model']}: {losses}, inside {result['inside']['all']:.1%}, "
        f"{result['fit_cpu_ms']:,.0f} ms a fit, {result['forecast_cpu_ms']:,.1f} a forecast"
    )


def text_of(results: list[Document], left_out: list[str], origins: int) -> str:
    """Everything as JSON: the settings of the run, every result, and their summary."""
    whole = {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("lagcast", "numpy", "scipy", "numba", "statsforecast")},
        },
        "origins": origins,
        "terms": {name: asdict(term) for name, term in TERMS.items()},
        "most_fit_seconds": MOST_FIT_SECONDS,
        "tuned_on": list(TUNED_ON),
        "left_out": left_out,
        "results": results,
        "summary": summary(results),
    }
    return json.dumps(whole, indent=1) + "\n"
