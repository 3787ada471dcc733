"""How good, how well calibrated and how fast the forecasters are on real load traces.

    python benchmarks/forecasts.py --traces DIR

Reads every CSV of DIR (`timestamp,messages_per_second`, regular steps) that holds nine days or more;
brings it to minutes; forecasts the next hour from random origins, each from the two weeks before it at most, with
parameters learnt at most six hours earlier. Prints, for each trace and model, pinball losses as a share of the mean
load, the ratio of the blend's to the rivals', coverage, and the CPU time of one fit and one forecast.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.scores import coverage, pinball_loss
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.units import FloatArray

MODELS: tuple[Forecaster, ...] = (
    PersistenceForecaster(),
    SeasonalNaiveForecaster(),
    ShortTermForecaster(),
    BlendForecaster(),
)
MINUTES_PER_DAY = 1440
HISTORY_MINUTES = 14 * MINUTES_PER_DAY
SHORTEST_MINUTES = 9 * MINUTES_PER_DAY
TEST_MINUTES = 3 * MINUTES_PER_DAY  # at the least, at the end of a trace too short for two weeks and a test
REFIT_MINUTES = 360
STEPS = 60

Answer = TypeVar("Answer")
BoolArray = NDArray[np.bool_]
ALL = slice(None)

# The load of the next hour against that of the last five minutes from which an origin counts as the foot of a ramp.
RAMP_RATIO = 1.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A load, one value a minute, the first minute ending at `first_at`."""

    name: str
    first_at: datetime
    rates: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Shapes: `actuals` (origins, STEPS), `paths` (origins, len(QUANTILES), STEPS); CPU seconds, medians."""

    actuals: FloatArray
    paths: FloatArray
    fit_seconds: float
    forecast_seconds: float

    def loss(self, quantile: float) -> float:
        """Mean pinball loss over all origins and steps."""
        return pinball_loss(self.actuals, self.paths[:, QUANTILES.index(quantile)], quantile=quantile)

    def covered(self, quantile: float, rows: slice | BoolArray = ALL, steps: slice = ALL) -> float:
        """Fraction of actuals at or under the quantile's path."""
        path = self.paths[:, QUANTILES.index(quantile)]
        chosen = self.actuals[rows][:, steps]
        return coverage(chosen, path[rows][:, steps]) if chosen.size else float("nan")


def main() -> int:
    """Print the table; 2 when the directory holds no usable trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="directory of CSV files")
    parser.add_argument("--origins", type=int, default=50, help="random origins for each trace (default 50)")
    parser.add_argument("--seed", type=int, default=0, help="of the origins (default 0)")
    arguments = parser.parse_args()
    traces = [read_trace(path) for path in sorted(arguments.traces.glob("*.csv"))]
    usable = [trace for trace in traces if len(trace.rates) >= SHORTEST_MINUTES]
    if not usable:
        print(
            f"{arguments.traces} holds no CSV trace of nine days or more; give a directory that does.", file=sys.stderr
        )
        return 2
    for trace in usable:
        report(trace, origins_of(trace, count=arguments.origins, seed=arguments.seed))
    return 0


def read_trace(path: Path) -> Trace:
    """The trace in minutes: finer steps are averaged, coarser ones repeated."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    starts = [datetime.fromisoformat(row["timestamp"]) for row in rows[:2]]
    step_seconds = int((starts[1] - starts[0]).total_seconds())
    rates = np.array([float(row["messages_per_second"]) for row in rows])
    if step_seconds >= 60:
        minutes = np.repeat(rates, step_seconds // 60)
    else:
        per_minute = 60 // step_seconds
        minutes = rates[: len(rates) // per_minute * per_minute].reshape(-1, per_minute).mean(axis=1)
    return Trace(name=path.stem, first_at=starts[0] + timedelta(minutes=1), rates=minutes)


def origins_of(trace: Trace, *, count: int, seed: int) -> list[int]:
    """Random minutes after the first two weeks, or of the last three days where the trace is shorter."""
    minutes = len(trace.rates)
    first = min(HISTORY_MINUTES, minutes - TEST_MINUTES)
    drawn = np.random.default_rng(seed).choice(np.arange(first, minutes - STEPS), count, replace=False)
    return sorted(int(minute) for minute in drawn)


def evaluate(trace: Trace, model: Forecaster, origins: list[int]) -> Outcome:
    """Forecast from each origin, from what was known there alone."""
    paths, fits, forecasts = [], [], []
    fitted: FittedForecaster | None = None
    fitted_at = 0
    for origin in origins:
        known = history_of(
            trace.rates[max(0, origin + 1 - HISTORY_MINUTES) : origin + 1],
            end_at=trace.first_at + timedelta(minutes=origin),
        )
        if fitted is None or origin - fitted_at >= REFIT_MINUTES:
            learnt, seconds = timed(partial(model.fit, known))
            fitted, fitted_at = granted(learnt), origin
            fits.append(seconds)
        answer, seconds = timed(partial(fitted.forecast, known, steps=STEPS))
        forecasts.append(seconds)
        paths.append(granted(answer).paths)
    actuals = np.stack([trace.rates[origin + 1 : origin + 1 + STEPS] for origin in origins])
    return Outcome(
        actuals=actuals,
        paths=np.stack(paths),
        fit_seconds=float(np.median(fits)),
        forecast_seconds=float(np.median(forecasts)),
    )


def report(trace: Trace, origins: list[int]) -> None:
    """One block of the table."""
    level = np.array([trace.rates[origin - 4 : origin + 1].mean() for origin in origins])
    outcomes = {model.name: evaluate(trace, model, origins) for model in MODELS}
    ahead = next(iter(outcomes.values())).actuals.mean(axis=1)
    ramps = ahead > RAMP_RATIO * level
    print(f"\n{trace.name}: {len(origins)} origins, {ramps.sum()} at the foot of a ramp")
    print(
        f"{'model':22s}{'p50':>7s}{'p90':>7s}{'p95':>7s} |{'c90':>6s}{'1-5':>6s}{'6-20':>6s}{'21-60':>6s}{'ramps':>6s}"
        f"{'c95':>6s}{'c99':>6s} |{'fit ms':>8s}{'forecast ms':>12s}"
    )
    mean = float(trace.rates.mean())
    for name, outcome in outcomes.items():
        losses = "".join(f"{outcome.loss(quantile) / mean:7.4f}" for quantile in (0.5, 0.9, 0.95))
        spans = (slice(0, 60), slice(0, 5), slice(5, 20), slice(20, 60))
        covered = "".join(f"{outcome.covered(0.9, steps=span):6.2f}" for span in spans)
        tails = "".join(f"{outcome.covered(quantile):6.2f}" for quantile in (0.95, 0.99))
        print(
            f"{name:22s}{losses} |{covered}{outcome.covered(0.9, ramps):6.2f}{tails} |"
            f"{1e3 * outcome.fit_seconds:8.0f}{1e3 * outcome.forecast_seconds:12.2f}"
        )
    blend = outcomes[BlendForecaster().name]
    for rival in (PersistenceForecaster().name, SeasonalNaiveForecaster().name):
        ratios = "".join(
            f"{blend.loss(quantile) / outcomes[rival].loss(quantile):7.2f}" for quantile in (0.5, 0.9, 0.95)
        )
        print(f"{'blend / ' + rival:22s}{ratios}")


def granted(answer: Answer | Refusal) -> Answer:
    """What was asked for; the traces are long enough, so a refusal is a bug."""
    if isinstance(answer, Refusal):
        raise TypeError(answer.sentence)
    return answer


def timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """What `work` answers, and the CPU seconds that it took."""
    begun = time.process_time()
    answer = work()
    return answer, time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
