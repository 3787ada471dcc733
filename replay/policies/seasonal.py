"""A light seasonal forecast of minute rates, for rivals that forecast: SARIMAX (1,0,0)x(1,1,0) with a season of 16.

A season is subtracted, the rest follows (1 - phi B)(1 - Phi B^16) w = noise. Both coefficients come from
conditional least squares, one after the other until they settle; the likelihood that statistical packages maximise
gives nearly the same for a hundredfold of the time.
"""

import numpy as np

from forecasting.units import FloatArray

SEASON_MINUTES = 16
# A season to subtract, one to look back on, one to fit: less is no fit.
LEAST_MINUTES = 3 * SEASON_MINUTES
ROUNDS = 8


def forecast_minutes(minutes: FloatArray, *, steps: int) -> FloatArray:
    """The next `steps` (at most a season) of a series of minutes; never negative.

    Where the model cannot be fitted or is not stable, the result is the rate a season ago, and before there is a season
    the last minute.

    >>> forecast_minutes(np.tile(np.arange(16.0), 3), steps=3)
    array([0., 1., 2.])
    >>> forecast_minutes(np.array([7.0, 9.0]), steps=2)
    array([9., 9.])
    """
    if len(minutes) < SEASON_MINUTES:
        return np.full(steps, minutes[-1])
    ahead = minutes[-SEASON_MINUTES:][:steps].copy()
    if len(minutes) >= LEAST_MINUTES:
        change = minutes[SEASON_MINUTES:] - minutes[:-SEASON_MINUTES]
        fitted = fit(change)
        if fitted is not None:
            ahead += _changes_ahead(change, *fitted, steps=steps)
    forecast: FloatArray = np.maximum(ahead, 0.0)
    return forecast


def fit(change: FloatArray) -> tuple[float, float] | None:
    """Coefficients on the minute before and on the one a season ago; None where there are none, or no stable ones."""
    last = seasonal = 0.0
    for _ in range(ROUNDS):
        without_season = change[SEASON_MINUTES:] - seasonal * change[:-SEASON_MINUTES]
        last = _slope(without_season[:-1], without_season[1:])
        without_last = change[1:] - last * change[:-1]
        seasonal = _slope(without_last[:-SEASON_MINUTES], without_last[SEASON_MINUTES:])
    return (last, seasonal) if abs(last) < 1.0 and abs(seasonal) < 1.0 else None


def _slope(earlier: FloatArray, later: FloatArray) -> float:
    """The least squares slope through the origin; NaN, which is no stable coefficient, where nothing varies."""
    size = float(earlier @ earlier)
    return float(earlier @ later) / size if size > 0.0 else float("nan")


def _changes_ahead(change: FloatArray, last: float, seasonal: float, *, steps: int) -> FloatArray:
    known = list(change[-SEASON_MINUTES - 1 :])
    for _ in range(steps):
        known.append(last * known[-1] + seasonal * (known[-SEASON_MINUTES] - last * known[-SEASON_MINUTES - 1]))
    return np.array(known[-steps:])
