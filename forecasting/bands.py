"""Bands: how far actuals lay from a model's centre path, in units of the expected scatter.

The scatter is learnt as a log-linear function of figures known at the origin: how restless the load is now and was at
that time of earlier days, how far it has left its season, how steep the ramp ahead is. So bands widen after a level
shift or in a flash crowd and at the foot of a ramp. It is learnt for errors upward and downward separately: a load
in a flash crowd has more to fall than to rise. The quantiles are empirical: no distribution is assumed, and those of
high levels are learnt at high levels, since a load near the most it ever was seldom doubles.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from forecasting.forecast import QUANTILES
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.horizons import KNOTS, Between
from forecasting.memory import ErrorMemory, RankArray, error_ranks_of, memory_of
from forecasting.ridge import fit_ridge
from forecasting.season import Season
from forecasting.series import LogSeries
from forecasting.units import FloatArray, IntArray

# Added to absolute errors and moves before their logarithm is taken: an error of 1 % of the unit's tenth is noise.
_FLOOR = 0.003

# A scatter outside the learnt range is limited to this many times its ends: log-linear, it could run away.
_STRETCH = 3.0

# A jump beyond all those seen may last or pass: a share of it is added to the scatter. After a threefold load, 1.1
# in logarithms, p95 (about twice the scatter) stands 1.7 times over the new level; after a drop to a third it reaches
# back to the old one. Within the hour that the jump is measured over, it fades.
_SCATTER_OF_JUMP_UP = 0.25
_SCATTER_OF_JUMP_DOWN = 0.5
_JUMP_MINUTES = 60

# Below this many errors at a horizon the horizon borrows the last one that has them, widened as a random walk widens.
_ENOUGH_ERRORS = 12

# Where not even the first horizon has errors enough, this deviation of ln rate is assumed: p95 is 2.3 times p50.
_UNSEEN_SPREAD = 0.5

# Quantiles are learnt at three levels of the centre, its lower and middle two fifths and its highest fifth, while the
# smallest of them has so many errors: p99 needs a hundred.
_LEVEL_ENDS = (0.4, 0.8)
_LEVELS = len(_LEVEL_ENDS) + 1
_ENOUGH_OF_LEVEL = 100

# Below this many errors only one scatter for all origins and both sides can be learnt (14 columns on half of them are
# safe).
_ENOUGH_ROWS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The expected scatter of errors, and the quantiles of errors in units of it.

    Shapes: `scatter` (knots, 2, columns) coefficients of the log scatter, downward and upward, `limits` (knots, 2, 2)
    the least and greatest of these logarithms, `quantiles` (knots, levels, len(QUANTILES)) of errors divided by the
    scatter of their side, at the centres `levels` (knots, levels), ascending. `largest_jump` is the greatest distance,
    in logarithms, between the level now and that of the hour that the errors were learnt with; `memory` is how long
    errors last, `error_ranks` are their paths, as ranks.
    """

    scatter: FloatArray
    limits: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    largest_jump: float
    memory: ErrorMemory
    error_ranks: RankArray | None

    def paths(self, centre: FloatArray, columns: FloatArray, between: Between, *, jump: float) -> FloatArray:
        """Quantile paths in logarithms, (len(QUANTILES), horizons), ascending down each column.

        `centre` has one value per horizon, `columns` (horizons, 1, columns) are `scatter_columns` at one origin, `jump`
        is `jumps` there.
        """
        limits = between.interpolate(self.limits)
        log_scatter = np.einsum("hsc,hc->hs", between.interpolate(self.scatter), columns[:, 0])
        unseen = max(0.0, abs(jump) - self.largest_jump)
        share = _SCATTER_OF_JUMP_UP if jump > 0.0 else _SCATTER_OF_JUMP_DOWN
        down, up = (np.exp(np.clip(log_scatter, limits[..., 0], limits[..., 1])) + share * unseen).T
        standard = _at_level(between.interpolate(self.quantiles), between.interpolate(self.levels), centre)
        offsets = standard * np.where(standard > 0.0, up[:, None], down[:, None])
        return np.maximum.accumulate((centre[:, None] + offsets).T, axis=0)


def jumps(series: LogSeries, origins: IntArray) -> FloatArray:
    """The level of the last two minutes over (or, negative, under) that of the hour, in logarithms."""
    return series.trailing_mean(origins, minutes=2) - series.trailing_mean(origins, minutes=_JUMP_MINUTES)


def scatter_columns(
    series: LogSeries, origins: IntArray, horizons: IntArray, centre: FloatArray, season: Season
) -> FloatArray:
    """The columns that predict the scatter, (horizons, origins, columns); `centre` is (origins, horizons)."""
    level = series.trailing_mean(origins, minutes=2)
    shape = (len(horizons), len(origins))
    minute_of_day = (series.last_minute - series.last + origins[None, :] + horizons[:, None]) % MINUTES_PER_DAY
    angle = 2.0 * np.pi * minute_of_day / MINUTES_PER_DAY
    known_season = np.where(np.isnan(season.profile_now), level, season.profile_now)
    columns = np.empty((*shape, 14))
    columns[..., 0] = 1.0
    columns[..., 1] = _log(series.mean_move(origins, minutes=10))
    columns[..., 2] = _log(series.mean_move(origins, minutes=120))
    columns[..., 3] = _log(np.abs(jumps(series, origins)))
    columns[..., 4] = _log(np.abs(level - known_season))
    columns[..., 5] = _log(np.where(np.isnan(season.scatter), 0.0, season.scatter))
    columns[..., 6] = _log(np.abs(centre.T - level))
    columns[..., 7] = centre.T
    for order in (1, 2):
        columns[..., 6 + 2 * order] = np.sin(order * angle)
        columns[..., 7 + 2 * order] = np.cos(order * angle)
    columns[..., 12] = jumps(series, origins)
    columns[..., 13] = level - known_season
    return columns


def fit_bands(
    errors: FloatArray,
    columns: FloatArray,
    *,
    centre: FloatArray,
    largest_jump: float,
    by_minute: FloatArray,
    widen: float = 1.0,
) -> Bands:
    """Bands from held-out errors.

    Shapes: `errors` and `centre` (origins, knots), logarithms, errors NaN where unknown; `columns` from
    `scatter_columns`; `by_minute` (origins, 60), the errors of the minutes between the knots.
    `widen` multiplies all quantiles: more than 1 where too little was seen to trust the tails.
    """
    counts = np.isfinite(errors).sum(axis=0)
    scatter, held_out = _fit_scatter(errors, columns)
    scatter[counts < _ENOUGH_ERRORS] = 0.0
    fitted = np.einsum("koc,ksc->kso", columns, scatter)
    limits = np.stack([fitted.min(axis=2), fitted.max(axis=2)], axis=2) + np.log(_STRETCH) * np.array([-1.0, 1.0])
    held_out[counts < _ENOUGH_ERRORS] = 0.0
    fitted = np.clip(held_out, limits[:, :, :1], limits[:, :, 1:])
    standard = _standard(errors, fitted)
    quantiles = np.empty((len(KNOTS), _LEVELS, len(QUANTILES)))
    levels = np.zeros((len(KNOTS), _LEVELS))
    for knot in range(len(KNOTS)):
        if counts[knot] >= _ENOUGH_ERRORS:
            known = np.isfinite(standard[:, knot])
            quantiles[knot], levels[knot] = _quantiles_by_level(standard[known, knot], centre[known, knot])
        elif knot == 0:
            quantiles[knot] = _UNSEEN_SPREAD * ndtri(QUANTILES)
        else:
            longer = float(np.sqrt(KNOTS[knot] / KNOTS[knot - 1]))
            scatter[knot], limits[knot], levels[knot] = scatter[knot - 1], limits[knot - 1], levels[knot - 1]
            quantiles[knot] = quantiles[knot - 1] * longer
    minutes = Between.of(np.arange(1, by_minute.shape[1] + 1, dtype=np.int64))
    return Bands(
        scatter=scatter,
        limits=limits,
        quantiles=quantiles * widen,
        levels=levels,
        largest_jump=largest_jump,
        memory=memory_of(errors, KNOTS),
        error_ranks=error_ranks_of(_standard(by_minute, minutes.interpolate(fitted))),
    )


def _fit_scatter(errors: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the log scatter downward and upward, (knots, 2, columns); of few errors the one mean of both.

    And the log scatter (knots, 2, origins) of each block of days as learnt from the others.
    """
    log_errors = np.log(np.abs(errors) + _FLOOR)
    scatter = np.zeros((len(KNOTS), 2, columns.shape[-1]))
    if np.isfinite(errors).sum(axis=0).max() < _ENOUGH_ROWS:
        fit = fit_ridge(columns[..., :1], log_errors)
        scatter[..., :1] = fit.coefficients[:, None]
        return scatter, np.repeat(fit.held_out.T[:, None], 2, axis=1)
    held_out = np.empty((len(KNOTS), 2, errors.shape[0]))
    for side, of_side in enumerate((errors <= 0.0, errors > 0.0)):
        fit = fit_ridge(columns, np.where(of_side, log_errors, np.nan))
        scatter[:, side], held_out[:, side] = fit.coefficients, fit.held_out.T
    return scatter, held_out


def _quantiles_by_level(standard: FloatArray, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles (levels, len(QUANTILES)) and the centres they belong to; of few errors the same for all levels."""
    if standard.size * (1.0 - _LEVEL_ENDS[-1]) < _ENOUGH_OF_LEVEL:
        return np.tile(np.quantile(standard, QUANTILES), (_LEVELS, 1)), np.full(_LEVELS, float(np.median(centre)))
    ends = [round(share * standard.size) for share in _LEVEL_ENDS]
    parts = np.split(np.argsort(centre, kind="stable"), ends)
    quantiles = np.array([np.quantile(standard[part], QUANTILES) for part in parts])
    return quantiles, np.array([float(np.median(centre[part])) for part in parts])


def _at_level(quantiles: FloatArray, levels: FloatArray, centre: FloatArray) -> FloatArray:
    """Quantiles (horizons, len(QUANTILES)) for each centre, between the two levels next to it."""
    above = np.clip((levels < centre[:, None]).sum(axis=1), 1, _LEVELS - 1)
    each = np.arange(centre.size)
    low, high = levels[each, above - 1], levels[each, above]
    share = np.clip((centre - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)[:, None]
    mixed: FloatArray = (1.0 - share) * quantiles[each, above - 1] + share * quantiles[each, above]
    return mixed


def _standard(errors: FloatArray, log_scatter: FloatArray) -> FloatArray:
    """Errors (origins, horizons) in units of the scatter of their side, whose logarithms are (horizons, 2, origins)."""
    down, up = np.exp(log_scatter.transpose(1, 2, 0))
    standard: FloatArray = errors / np.where(errors > 0.0, up, down)
    return standard


def _log(values: FloatArray) -> FloatArray:
    logarithms: FloatArray = np.log(values + _FLOOR)
    return logarithms
