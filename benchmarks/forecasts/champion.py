"""Champion: the forecaster that has lately been the best for a group, near, middle and far ahead.

Each candidate forecasts the last days again, from successive origins, each from its past alone. The best of a range is
the simplest whose loss lies within noise of the least, or within a hundredth of it; candidates are given in order, the
simplest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecasting.backtest import Backtest, backtest
from forecasting.forecast import QUANTILES
from forecasting.forecaster import Forecaster
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, MINUTES_PER_DAY, history_tier_of, known_minutes, refuse_short
from forecasting.refusal import Refusal
from forecasting.scores import pinball_losses
from forecasting.units import FloatArray, IntArray

# First and last step of each range: the next minutes, the time that a start-up needs, and the horizon of a plan.
RANGES: tuple[tuple[int, int], ...] = ((1, 5), (6, 20), (21, 60))
_STEPS = 60

# The median, and the upper quantiles that replicas are planned on.
_JUDGED_QUANTILES = (0.5, 0.9, 0.95)

# Origins 47 minutes apart, prime to 60, sample a job on every tenth minute in all its phases: 90 of them in three days.
_SPACING_MINUTES = 47
_LONGEST_DAYS = 3
_FEWEST_ORIGINS = 10

# Losses that differ by less than two standard errors of their paired differences are within noise. Hours 47 minutes
# apart overlap by a fifth: the errors are a little larger than they are counted.
_NOISE_ERRORS = 2.0
# Two errors are exceeded by chance once in 44 times; a hundredth of the loss moves no replica, and is no win either.
_NO_WIN_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLosses:
    """One candidate's mean pinball loss in each of RANGES, in messages per second."""

    model: str
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Championship:
    """Standings in the order given, the best model of each of RANGES, and the sentences of candidates that refused."""

    cluster: str
    group: str
    origins: int
    standings: tuple[CandidateLosses, ...]
    champions: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]

    def champion(self, *, step: int) -> str:
        """The model to use for this step (from 1); beyond the last range, that range's."""
        return next(
            (model for model, (_, last) in zip(self.champions, RANGES, strict=True) if step <= last), self.champions[-1]
        )

    @property
    def sentence(self) -> str:
        """The result, as a sentence.

        >>> near = Standing(model="season", losses=(6.0, 9.0, 20.0))
        >>> print(
        ...     Championship(
        ...         cluster="c",
        ...         group="orders",
        ...         origins=90,
        ...         standings=(near,),
        ...         champions=("season",) * 3,
        ...         refused=(),
        ...     ).sentence
        ... )
        Chosen by loss in messages/s, from 90 origins of group 'orders': season in minutes 1-5 (6), season in ...
        """
        losses = {standing.model: standing.losses for standing in self.standings}
        parts = [
            f"{model} in minutes {first}-{last} ({losses[model][number]:,.3g})"
            for number, (model, (first, last)) in enumerate(zip(self.champions, RANGES, strict=True))
        ]
        left_out = f" Left out: {', '.join(name for name, _ in self.refused)}." if self.refused else ""
        return (
            f"Chosen by loss in messages/s, from {self.origins} origins of group '{self.group}': "
            f"{', '.join(parts)}.{left_out}"
        )


def championship(candidates: Sequence[Forecaster], history: History) -> Championship | Refusal:
    """Score each candidate on the last days, at most three and none of the first two, and return the best.

    `candidates` are given the simplest first; names differ. A candidate that refuses at any origin is left out.
    Errors: ValueError on no candidate, or two of one name; that is the caller's bug. A history too short to hold days
    back, or candidates that all refuse, are a Refusal.
    """
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) < len(names):
        message = f"candidates are {names}; at least one is needed, each with a name of its own"
        raise ValueError(message)
    origins = _origins_of(history)
    if history_tier_of(history) in (None, "reactive") or len(origins) < _FEWEST_ORIGINS:
        # Where origins are missing because of gaps: as many minutes more as the missing origins span.
        more = known_minutes(history) + _SPACING_MINUTES * (_FEWEST_ORIGINS - len(origins))
        return refuse_short(history, needed_minutes=max(DAILY_MINUTES + _SPACING_MINUTES * _FEWEST_ORIGINS, more))
    losses: dict[str, FloatArray] = {}
    refusals: dict[str, Refusal] = {}
    for candidate in candidates:
        result = backtest(candidate, history, origins=[int(origin) for origin in origins], steps=_STEPS)
        if isinstance(result, Refusal):
            refusals[candidate.name] = result
        else:
            losses[candidate.name] = _losses(result)
    if not losses:
        return next(iter(refusals.values()))
    return Championship(
        cluster=history.cluster,
        group=history.group,
        origins=len(origins),
        standings=tuple(
            CandidateLosses(model=name, losses=tuple(float(loss) for loss in of_model.mean(axis=0)))
            for name, of_model in losses.items()
        ),
        champions=tuple(_best({name: of[:, column] for name, of in losses.items()}) for column in range(len(RANGES))),
        refused=tuple((name, refusal.sentence) for name, refusal in refusals.items()),
    )


def _origins_of(history: History) -> IntArray:
    """Minutes whose value is known and whose next hour is wholly known, oldest first."""
    known = np.isfinite(history.produce_messages_per_second)
    if not known.any():
        return np.empty(0, dtype=np.int64)
    first = int(np.argmax(known))
    held_back = min(_LONGEST_DAYS * MINUTES_PER_DAY, history.minutes - first - DAILY_MINUTES)
    at = np.arange(history.minutes - 1 - _STEPS, history.minutes - 1 - held_back, -_SPACING_MINUTES, dtype=np.int64)
    whole = [bool(known[minute : minute + 1 + _STEPS].all()) for minute in at]
    origins: IntArray = at[np.array(whole, dtype=bool)][::-1]
    return origins


def _losses(result: Backtest) -> FloatArray:
    """Pinball loss, (origins, RANGES): the mean over a range's steps and the judged quantiles."""
    losses = np.zeros((len(RANGES), len(result.origins)))
    for column, (first, last) in enumerate(RANGES):
        steps = slice(first - 1, last)
        for quantile in _JUDGED_QUANTILES:
            paths = result.paths[:, QUANTILES.index(quantile), steps]
            losses[column] += pinball_losses(result.actuals[:, steps], paths, quantile=quantile)
    return losses.T / len(_JUDGED_QUANTILES)


def _best(losses: dict[str, FloatArray]) -> str:
    """The first whose loss exceeds the least by no more than noise, or by no more than a hundredth.

    >>> near = np.array([1.0, 2.0, 3.0, 2.0])
    >>> _best({"simple": near + [0.1, -0.1, 0.1, 0.0], "other": near})  # 0.025 more, give or take 0.05
    'simple'
    >>> _best({"simple": near + [1.0, 1.1, 0.9, 1.0], "other": near})
    'other'
    """
    least = min(losses.values(), key=lambda of_model: float(of_model.mean()))
    for name, of_model in losses.items():
        more = of_model - least
        noise = _NOISE_ERRORS * float(more.std(ddof=1)) / np.sqrt(len(more))
        if float(more.mean()) <= max(noise, _NO_WIN_RATIO * float(least.mean())):
            return name
    message = "the least loss exceeds itself"
    raise AssertionError(message)
