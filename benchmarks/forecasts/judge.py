"""One model on one trace: forecasts from origins spread evenly, each from its past alone, and their scores."""

import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict, TypeVar

import numpy as np

from benchmarks.forecasts.models import MODELS, TERMS, Contender, Family, Term, TermName
from benchmarks.forecasts.naive import means_of
from forecasting.backtest import history_of
from forecasting.forecast import QUANTILES
from forecasting.forecaster import FittedForecaster
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.scores import coverage, pinball_loss, wape
from forecasting.units import FloatArray
from replay.trace import Trace

Answer = TypeVar("Answer")
Figures = dict[str, float | None]

MINUTES_PER_DAY = 1440
JUDGED = {"p50": 0.5, "p90": 0.9, "p95": 0.95}
# The time limit of a fit; beyond it the model counts as not finished on that trace.
MOST_FIT_SECONDS = 120
# Load of the next hour over that of the last five minutes, from which on an origin counts as the start of a ramp.
RAMP_RATIO = 1.15


class NoAnswerError(Exception):
    """A model refused, or exceeded its time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteLoad:
    """A trace in minutes, the first of which ends at `first_at`."""

    name: str
    first_at: datetime
    rates: FloatArray

    @classmethod
    def of(cls, trace: Trace) -> "MinuteLoad":
        """Finer steps than a minute are averaged, coarser ones repeated."""
        return cls(name=trace.name, first_at=trace.start_at + timedelta(minutes=1), rates=trace.minute_rates())

    @property
    def days(self) -> float:
        """The duration of the trace."""
        return len(self.rates) / MINUTES_PER_DAY

    def until(self, origin: int, *, minutes: int) -> History:
        """The history at the end of minute `origin`, of so many minutes at most."""
        known = self.rates[max(0, origin + 1 - minutes) : origin + 1]
        return history_of(known, end_at=self.first_at + timedelta(minutes=origin))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """The scores of one model on one trace, or the reason why it has none.

    `losses` are pinball losses as shares of the trace's mean load, by quantile and span; `inside` the share of actuals
    in the band from p05 to p95, `under_p90` at or under p90, `wape` of the median, each by span. `ramp_under_p90` is
    that of the `ramps` origins at the start of a ramp, of the short term alone. CPU times are medians;
    `fit_megabytes` is the peak memory that Python and numpy allocated in one fit, beyond that allocated before it.
    """

    trace: str
    model: str
    term: TermName
    family: Family
    code: str
    why_not: str | None = None
    origins: int = 0
    losses: dict[str, dict[str, float]]
    inside: Figures
    under_p90: Figures
    wape: Figures
    ramps: int = 0
    ramp_under_p90: float | None = None
    fit_cpu_ms: float | None = None
    forecast_cpu_ms: float | None = None
    fit_megabytes: float | None = None


def origins_of(load: MinuteLoad, term: Term, *, count: int) -> list[int]:
    """So many minutes, spread evenly over the judged span; after the last one there is time for a whole forecast.

    They end on whole steps of the clock, where a model that counts in such steps has nothing left over. The span begins
    after `usual_past_days`, or, in a shorter trace, three days (a day for the long term) before the last possible
    origin.
    """
    last = len(load.rates) - term.minutes - 1
    spread = (term.least_days - term.least_past_days) * MINUTES_PER_DAY - term.minutes
    first = min(term.usual_past_days * MINUTES_PER_DAY, last - spread)
    step = term.step_minutes
    ends = int(load.first_at.timestamp()) // 60
    return sorted({round(minute) - (ends + round(minute)) % step for minute in np.linspace(first, last, count)})


class Times(TypedDict):
    """The times and the memory of a model, as the fields of its result."""

    fit_cpu_ms: float
    forecast_cpu_ms: float
    fit_megabytes: float


def judge(load: MinuteLoad, name: str, *, origins: int, code: str) -> ModelResult:
    """Forecast from each origin, and score; a refusal, and a fit that does not end in time, are in the result."""
    contender = MODELS[name]
    term = TERMS[contender.term]
    said: dict[str, Any] = {
        "trace": load.name,
        "model": name,
        "term": contender.term,
        "family": contender.family,
        "code": code,
    }
    places = origins_of(load, term, count=origins)
    try:
        paths, times = _play(load, contender, term, places)
    except NoAnswerError as error:
        return ModelResult(**said, why_not=str(error), losses={}, inside={}, under_p90={}, wape={})
    ahead = [load.rates[at + 1 : at + 1 + term.minutes] for at in places]
    actuals = np.stack([means_of(rates, term.step_minutes) for rates in ahead])
    return ModelResult(**said, origins=len(places), **_scores(load, contender.term, places, actuals, paths), **times)


def _play(load: MinuteLoad, contender: Contender, term: Term, origins: list[int]) -> tuple[FloatArray, Times]:
    """Quantile paths (origins, len(QUANTILES), steps), with their times and memory."""
    forecaster = contender.make()
    paths, fits, forecasts = [], [], []
    fitted: FittedForecaster | None = None
    fitted_at = 0
    for origin in origins:
        known = load.until(origin, minutes=term.history_minutes)
        if fitted is None or origin - fitted_at >= contender.refit_minutes:
            with limited(MOST_FIT_SECONDS):
                learnt, seconds = timed(partial(forecaster.fit, known))
            fitted, fitted_at = granted(learnt), origin
            fits.append(seconds)
        answer, seconds = timed(partial(fitted.forecast, known, steps=term.steps))
        forecasts.append(seconds)
        paths.append(granted(answer).paths)
    tracemalloc.start()
    forecaster.fit(load.until(origins[-1], minutes=term.history_minutes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    times: Times = {
        "fit_cpu_ms": 1e3 * float(np.median(fits)),
        "forecast_cpu_ms": 1e3 * float(np.median(forecasts)),
        "fit_megabytes": peak / 1e6,
    }
    return np.stack(paths), times


def _scores(
    load: MinuteLoad, term: TermName, origins: list[int], actuals: FloatArray, paths: FloatArray
) -> dict[str, Any]:
    mean = float(load.rates.mean())
    spans = {"all": slice(None), **{name: slice(*span) for name, span in TERMS[term].spans.items()}}
    low, median, p90, high = (paths[:, QUANTILES.index(quantile)] for quantile in (0.05, 0.5, 0.9, 0.95))
    scores: dict[str, Any] = {
        "losses": {
            word: {
                name: pinball_loss(actuals[:, span], paths[:, QUANTILES.index(quantile), span], quantile=quantile)
                / mean
                for name, span in spans.items()
            }
            for word, quantile in JUDGED.items()
        },
        "inside": {
            name: coverage(actuals[:, span], high[:, span], lower_path=low[:, span]) for name, span in spans.items()
        },
        "under_p90": {name: coverage(actuals[:, span], p90[:, span]) for name, span in spans.items()},
        "wape": {name: wape(actuals[:, span], median[:, span]) for name, span in spans.items()},
    }
    if term == "short":
        level = np.array([load.rates[origin - 4 : origin + 1].mean() for origin in origins])
        ramps = actuals.mean(axis=1) > RAMP_RATIO * level
        scores["ramps"] = int(ramps.sum())
        scores["ramp_under_p90"] = coverage(actuals[ramps], p90[ramps]) if ramps.any() else None
    return scores


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise NoAnswerError after so many seconds; compiled code runs until its next return."""

    def stop(_signal: int, _frame: object) -> None:
        message = f"a fit took more than {seconds:g} s"
        raise NoAnswerError(message)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def granted(answer: Answer | Refusal) -> Answer:
    """The answer, if it is no refusal; a model that refuses one origin is not scored on the others."""
    if isinstance(answer, Refusal):
        raise NoAnswerError(answer.sentence)
    return answer


def timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """The result of `work`, and the CPU seconds that it took."""
    begun = time.process_time()
    answer = work()
    return answer, time.process_time() - begun
