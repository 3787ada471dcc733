"""Seasonal values of a future minute from earlier days and weeks, as arrays over horizons and origins."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.history_tier import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.series import LogSeries
from forecasting.units import FloatArray, IntArray

# Half of the window that smooths a season: 15 minutes keep a ramp's shape and average out a noisy minute.
HALF_WINDOW_MINUTES = 7

PROFILE_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """Shapes: (horizons, origins) each, logarithms, NaN where those days are not known.

    The profile is the mean over up to seven days, smoothed; `detail` is the difference that smoothing removed (a job on
    the minute); `scatter` is how restless the load was at that time; the rest are the day and the week before alone.
    """

    profile: FloatArray
    profile_now: FloatArray
    detail: FloatArray
    scatter: FloatArray
    day: FloatArray
    day_now: FloatArray
    week: FloatArray
    week_now: FloatArray

    @classmethod
    def at(cls, series: LogSeries, origins: IntArray, horizons: IntArray) -> Self:
        """The season at each origin's targets, and at the origins themselves (`_now`), from the past alone."""
        targets = origins[None, :] + horizons[:, None]
        back_days = days_back(horizons)[:, None]
        earlier = MINUTES_PER_DAY * (back_days + np.arange(PROFILE_DAYS)[:, None, None])
        days = targets - earlier
        days_now = origins - MINUTES_PER_DAY * np.arange(1, PROFILE_DAYS + 1)[:, None]
        back_weeks = MINUTES_PER_WEEK * -(-(horizons + HALF_WINDOW_MINUTES + 1) // MINUTES_PER_WEEK)[:, None]
        smooth = series.centred_mean(days, half_minutes=HALF_WINDOW_MINUTES)
        smooth_now = series.centred_mean(days_now, half_minutes=HALF_WINDOW_MINUTES)
        shape = targets.shape
        return cls(
            profile=_mean_known(smooth),
            profile_now=np.broadcast_to(_mean_known(smooth_now), shape),
            detail=_mean_known(series.value(days) - smooth),
            scatter=_mean_known(
                np.where(days >= 0, series.mean_move(days + 2 * HALF_WINDOW_MINUTES, minutes=30), np.nan)
            ),
            day=smooth[0],
            day_now=np.broadcast_to(smooth_now[0], shape),
            week=series.centred_mean(targets - back_weeks, half_minutes=HALF_WINDOW_MINUTES),
            week_now=np.broadcast_to(
                series.centred_mean(origins - MINUTES_PER_WEEK, half_minutes=HALF_WINDOW_MINUTES), shape
            ),
        )


def days_back(horizons: IntArray) -> IntArray:
    """Days back to the newest earlier day whose whole smoothing window is already known at the origin.

    >>> days_back(np.array([1, 1410, 1430, 1440]))  # 1,430 + 15 minutes reach past one day
    array([1, 1, 2, 2])
    """
    days: IntArray = -(-(horizons + 2 * HALF_WINDOW_MINUTES + 1) // MINUTES_PER_DAY)
    return days


def _mean_known(stacked: FloatArray) -> FloatArray:
    known = np.isfinite(stacked)
    count = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
