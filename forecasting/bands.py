"""Bands: how far actuals lay from a model's centre path, in units of the scatter that was to be expected.

The scatter is learnt as a log-linear function of what is known at the origin: how restless the load is now and was at
that time of earlier days, how far it has left its season, how steep the ramp ahead is. So bands widen after a level
shift or in a flash crowd and at the foot of a ramp. The quantiles are empirical: no distribution is assumed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from forecasting.forecast import QUANTILES
from forecasting.horizons import KNOTS, Between
from forecasting.ladder import MINUTES_PER_DAY
from forecasting.memory import ErrorMemory, memory_of
from forecasting.ridge import fit_ridge
from forecasting.season import Season
from forecasting.series import LogSeries
from forecasting.units import FloatArray, IntArray

# Added to absolute errors and moves before their logarithm is taken: an error of 1 % of the unit's tenth is noise.
_FLOOR = 0.003

# A scatter outside the learnt range is held to this many times its ends: log-linear, it could run away.
_STRETCH = 3.0

# A jump beyond all that was seen may last or pass: a share of it is added to the scatter. After a threefold load, 1.1
# in logarithms, p95 (about twice the scatter) stands 1.7 times over the new level; after a drop to a third it reaches
# back to the old one. Within the hour that the jump is measured over, it fades.
_SCATTER_OF_JUMP_UP = 0.25
_SCATTER_OF_JUMP_DOWN = 0.5
_JUMP_MINUTES = 60

# Below this many errors at a horizon the horizon borrows the last one that has them, widened as a random walk widens.
_ENOUGH_ERRORS = 12

# Where not even the first horizon has errors enough, this deviation of ln rate is believed: p95 is 2.3 times p50.
_UNSEEN_SPREAD = 0.5

# Below this many errors one scatter for all origins is all that can be learnt (12 columns on 300 rows are safe).
_ENOUGH_ROWS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The scatter of errors to be expected, and the quantiles of errors in units of it.

    Shapes: `scatter` (knots, columns) coefficients of the log scatter, `limits` (knots, 2) of that logarithm,
    `quantiles` (knots, len(QUANTILES)) of errors divided by scatter. `largest_jump` is the greatest distance, in
    logarithms, between the level now and that of the hour that the errors were learnt with; `memory` is how long errors
    last.
    """

    scatter: FloatArray
    limits: FloatArray
    quantiles: FloatArray
    largest_jump: float
    memory: ErrorMemory
    motion: FloatArray | None

    def paths(self, centre: FloatArray, columns: FloatArray, between: Between, *, jump: float) -> FloatArray:
        """Quantile paths in logarithms, (len(QUANTILES), horizons), ascending down each column.

        `centre` has one value per horizon, `columns` (horizons, 1, columns) are `scatter_columns` at one origin, `jump`
        is `jumps` there.
        """
        limits = between.interpolate(self.limits)
        log_scatter = np.einsum("hc,hc->h", between.interpolate(self.scatter), columns[:, 0])
        unseen = max(0.0, abs(jump) - self.largest_jump)
        share = _SCATTER_OF_JUMP_UP if jump > 0.0 else _SCATTER_OF_JUMP_DOWN
        scatter = np.exp(np.clip(log_scatter, limits[:, 0], limits[:, 1])) + share * unseen
        offsets = between.interpolate(self.quantiles) * scatter[:, None]
        return np.maximum.accumulate((centre[:, None] + offsets).T, axis=0)


def jumps(series: LogSeries, origins: IntArray) -> FloatArray:
    """How far the level of the last two minutes lies over (or, negative, under) that of the hour, in logarithms."""
    return series.trailing_mean(origins, minutes=2) - series.trailing_mean(origins, minutes=_JUMP_MINUTES)


def scatter_columns(
    series: LogSeries, origins: IntArray, horizons: IntArray, centre: FloatArray, season: Season
) -> FloatArray:
    """What the scatter depends on, (horizons, origins, columns); `centre` is (origins, horizons)."""
    level = series.trailing_mean(origins, minutes=2)
    shape = (len(horizons), len(origins))
    minute_of_day = (series.last_minute - series.last + origins[None, :] + horizons[:, None]) % MINUTES_PER_DAY
    angle = 2.0 * np.pi * minute_of_day / MINUTES_PER_DAY
    known_season = np.where(np.isnan(season.profile_now), level, season.profile_now)
    columns = np.empty((*shape, 12))
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
    return columns


def fit_bands(
    errors: FloatArray, columns: FloatArray, *, largest_jump: float, motion: FloatArray | None, widen: float = 1.0
) -> Bands:
    """Bands from held-out errors.

    Shapes: `errors` (origins, knots), logarithms, NaN where unknown; `columns` from `scatter_columns`.
    `widen` multiplies all quantiles: more than 1 where too little was seen to trust the tails.
    """
    counts = np.isfinite(errors).sum(axis=0)
    log_errors = np.log(np.abs(errors) + _FLOOR)
    used = columns if counts.max() >= _ENOUGH_ROWS else columns[..., :1]
    scatter = np.zeros((len(KNOTS), columns.shape[-1]))
    scatter[:, : used.shape[-1]] = fit_ridge(used, log_errors).coefficients
    scatter[counts < _ENOUGH_ERRORS] = 0.0
    fitted = (columns @ scatter[..., None])[..., 0].T
    limits = np.stack([fitted.min(axis=0), fitted.max(axis=0)], axis=1) + np.log(_STRETCH) * np.array([-1.0, 1.0])
    quantiles = np.empty((len(KNOTS), len(QUANTILES)))
    for knot in range(len(KNOTS)):
        if counts[knot] >= _ENOUGH_ERRORS:
            standard = errors[:, knot] / np.exp(fitted[:, knot])
            quantiles[knot] = np.quantile(standard[np.isfinite(standard)], QUANTILES)
        elif knot == 0:
            quantiles[knot] = _UNSEEN_SPREAD * norm.ppf(QUANTILES)
        else:
            longer = float(np.sqrt(KNOTS[knot] / KNOTS[knot - 1]))
            scatter[knot], limits[knot] = scatter[knot - 1], limits[knot - 1]
            quantiles[knot] = quantiles[knot - 1] * longer
    return Bands(
        scatter=scatter,
        limits=limits,
        quantiles=quantiles * widen,
        largest_jump=largest_jump,
        memory=memory_of(errors, KNOTS),
        motion=motion,
    )


def _log(values: FloatArray) -> FloatArray:
    logarithms: FloatArray = np.log(values + _FLOOR)
    return logarithms
