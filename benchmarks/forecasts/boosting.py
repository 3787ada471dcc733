"""Boosting: trees without unit and clock, so that one model may learn from all groups of a fleet.

Each column is a distance in logarithms from the level now, or how restless a load is: a group a thousand times the size
of another, or busy at another hour, looks the same. Each quantile has trees of its own; their errors on the newest
days, which they have not seen, are added to them (conformal calibration), and crossed quantiles are put in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped]  # has no types
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no types

from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import History
from forecasting.history_tier import DAILY_MINUTES, MINUTES_PER_DAY, history_tier_of, known_minutes, refuse_short
from forecasting.horizons import KNOTS
from forecasting.memory import ErrorMemory, memory_of
from forecasting.refusal import Refusal
from forecasting.season import Season
from forecasting.series import LogSeries, unit_of
from forecasting.units import FloatArray, IntArray
from forecasting.view import Ahead, Past

_MODEL = "boosting"
_LEVEL_MINUTES = 2
_WINDOWS_MINUTES = (1, 5, 10, 20, 60, 240)

# Sixty trees of at most fifteen leaves, each leaf of forty rows or more: eight quantiles in about two seconds.
_TREES, _LEAVES, _ROWS_OF_LEAF, _LEARNING_RATE = 60, 15, 40, 0.1

# Of each group's origins, in order of time, the share that is learnt from; on the newest fifth errors are measured.
_LEARNT = 0.8
# Rows of a fleet beyond these are thinned evenly: time grows with rows, accuracy hardly does.
_MOST_ROWS = 12_000
# A knot with fewer held-out errors takes the correction of the one before it.
_ENOUGH_ERRORS = 50
# A column that differs in fewer rows than two leaves have carries no information.
_FEWEST_ROWS = 2 * _ROWS_OF_LEAF
_DECIMALS = 6
# Threads that wait for each other on a busy machine turn the two seconds of a fit into minutes.
_THREADS = 1
_MEDIAN = QUANTILES.index(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBoosting:
    """Trees for each of QUANTILES, and their corrections: `corrections` (KNOTS, len(QUANTILES)), in logarithms.

    It keeps nothing else of the groups it has learnt from: it forecasts any group that has two days.
    """

    trees: tuple[HistGradientBoostingRegressor, ...]
    corrections: FloatArray
    memory: ErrorMemory

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The level now plus, at each step, the move that the trees expect."""
        history_tier = history_tier_of(history)
        if history_tier is None or history_tier == "reactive":
            return refuse_short(history, needed_minutes=DAILY_MINUTES)
        ahead = Ahead.of(history, unit=unit_of(history), steps=steps)
        rows = _rows(ahead.series, ahead.origin, ahead.horizons, ahead.season)
        moves = _predicted(self.trees, rows) + ahead.between.interpolate(self.corrections)
        paths = ahead.series.trailing_mean(ahead.origin, minutes=_LEVEL_MINUTES) + np.sort(moves, axis=1)
        return ahead.published(
            model=_MODEL, history_tier=history_tier, logarithms=paths.T, memory=self.memory, error_ranks=None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostingForecaster:
    """Gradient-boosted quantiles, corrected on days held out; needs two days."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedBoosting | Refusal:
        """Learn from this group alone, or refuse."""
        return fit_across([history])


def fit_across(histories: Sequence[History]) -> FittedBoosting | Refusal:
    """One model of all groups that have two days; where no group has, the first refusal.

    Errors: ValueError on no history at all; that is the caller's bug.
    """
    if not histories:
        message = "no history was given; a fleet has at least one group"
        raise ValueError(message)
    lessons = [lesson for history in histories if (lesson := _lesson_of(history)) is not None]
    if not lessons:
        first = histories[0]
        # Two days whose targets all lie in gaps cannot be learnt from: one more known day can.
        return refuse_short(first, needed_minutes=max(DAILY_MINUTES, known_minutes(first) + MINUTES_PER_DAY))
    rows, moves = (np.concatenate(parts) for parts in zip(*(lesson.learnt for lesson in lessons), strict=True))
    thinned = slice(None, None, -(-len(moves) // _MOST_ROWS))
    with threadpool_limits(limits=_THREADS, user_api="openmp"):
        trees = tuple(
            HistGradientBoostingRegressor(
                loss="quantile",
                quantile=quantile,
                max_iter=_TREES,
                max_leaf_nodes=_LEAVES,
                min_samples_leaf=_ROWS_OF_LEAF,
                learning_rate=_LEARNING_RATE,
                early_stopping=False,
                random_state=0,
            ).fit(rows[thinned], moves[thinned])
            for quantile in QUANTILES
        )
    errors = np.concatenate([lesson.held_out_errors(trees) for lesson in lessons])
    return FittedBoosting(trees=trees, corrections=_corrections(errors), memory=memory_of(errors[..., _MEDIAN], KNOTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lesson:
    """Training rows of one group: `rows` (origins, KNOTS, columns), `moves` (origins, KNOTS), NaN where unknown."""

    rows: FloatArray
    moves: FloatArray
    split: int

    @property
    def learnt(self) -> tuple[FloatArray, FloatArray]:
        """Known rows and moves of the origins before the split, one row each."""
        rows, moves = self.rows[: self.split], self.moves[: self.split]
        known = np.isfinite(moves)
        return rows[known], moves[known]

    def held_out_errors(self, trees: Sequence[HistGradientBoostingRegressor]) -> FloatArray:
        """Moves less their predicted quantiles after the split, (origins, KNOTS, len(QUANTILES))."""
        rows, moves = self.rows[self.split :], self.moves[self.split :]
        predicted = _predicted(trees, rows.reshape(-1, rows.shape[-1])).reshape(*moves.shape, len(QUANTILES))
        errors: FloatArray = moves[..., None] - predicted
        return errors


def _lesson_of(history: History) -> _Lesson | None:
    history_tier = history_tier_of(history)
    if history_tier is None or history_tier == "reactive":
        return None
    past = Past.of(history, unit=unit_of(history), history_tier=history_tier)
    level = past.series.trailing_mean(past.origins, minutes=_LEVEL_MINUTES)[:, None]
    rows = _rows(past.series, past.origins, KNOTS, past.season).reshape(len(KNOTS), len(past.origins), -1)
    split = int(_LEARNT * len(past.origins))
    lesson = _Lesson(rows=rows.transpose(1, 0, 2), moves=past.targets - level, split=split)
    return lesson if len(lesson.learnt[1]) >= _FEWEST_ROWS else None


def _corrections(errors: FloatArray) -> FloatArray:
    """The corrections that calibrate each quantile on the held-out moves, (KNOTS, len(QUANTILES))."""
    corrections = np.zeros((len(KNOTS), len(QUANTILES)))
    for knot in range(len(KNOTS)):
        known = errors[np.isfinite(errors[:, knot, 0]), knot]
        if len(known) >= _ENOUGH_ERRORS:
            corrections[knot] = [np.quantile(known[:, row], quantile) for row, quantile in enumerate(QUANTILES)]
        elif knot > 0:
            corrections[knot] = corrections[knot - 1]
    return corrections


def _predicted(trees: Sequence[HistGradientBoostingRegressor], rows: FloatArray) -> FloatArray:
    """The move at each row and quantile, (rows, len(QUANTILES))."""
    with threadpool_limits(limits=_THREADS, user_api="openmp"):
        return np.stack([np.asarray(of_quantile.predict(rows), dtype=np.float64) for of_quantile in trees], axis=1)


def _rows(series: LogSeries, origins: IntArray, horizons: IntArray, season: Season) -> FloatArray:
    """The columns that predict a move, (horizons * origins, columns), 0 where a season is unknown."""
    level = series.trailing_mean(origins, minutes=_LEVEL_MINUTES)
    parts = [
        np.log(horizons)[:, None],
        *(series.trailing_mean(origins, minutes=minutes) - level for minutes in _WINDOWS_MINUTES),
        series.mean_move(origins, minutes=10),
        series.mean_move(origins, minutes=120),
        season.profile_now - level,
        season.day_now - level,
        season.week_now - level,
        season.profile - season.profile_now,
        season.day - season.day_now,
        season.week - season.week_now,
        season.detail,
        season.scatter,
        level,
    ]
    columns = np.empty((len(horizons), len(origins), len(parts)))
    for number, part in enumerate(parts):
        columns[..., number] = np.where(np.isnan(part), 0.0, part)
    # A split between values that differ by rounding alone would lie elsewhere at another scale.
    return np.round(columns, _DECIMALS).reshape(-1, len(parts))
