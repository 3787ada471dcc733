"""Level, growth, day and week of a load, separated by medians: a single event does not become a pattern.

A load's logarithm is read as level of the day + growth + shape of the day + effect of the weekday. Each part is a
median over days or weeks that weighs recent ones more, so an outage, a gap or a flash crowd is outvoted, and a level
shift is followed once more recent days than not have it.
"""

from dataclasses import dataclass
from math import copysign, sqrt
from typing import Self

import numpy as np

from forecasting.compiled import compiled
from forecasting.slots import FIT_DAYS, SLOTS_PER_DAY, SlotSeries, median, row_medians, weighted_median
from forecasting.units import FloatArray, IntArray

# A day's weight in the shape of days: half of it after ten days.
_SHAPE_WEIGHTS: FloatArray = np.power(0.93, np.arange(FIT_DAYS, dtype=np.float64))
# In the level now: the last two days outvote the five before them (1.7 to 1.36), one of them alone does not.
_LEVEL_WEIGHTS: FloatArray = np.power(0.7, np.arange(7, dtype=np.float64))
# In the weekday's effect. The last vote is for no effect: of two weeks of which one was odd, it sides with the other.
_WEEK_WEIGHTS: FloatArray = np.r_[np.power(0.9, np.arange(FIT_DAYS // 7, dtype=np.float64)), 0.5]

_DAYS_PER_WEEK = 7
_ROUNDS = 3
# Of a day with fewer known slots than a quarter the level is not known.
_ENOUGH_SLOTS = SLOTS_PER_DAY // 4
# Three pairs of days a week apart are the least of which a median outvotes one.
_ENOUGH_PAIRS = 3
# A normal's deviation over the median of its distances from its centre.
_DEVIATION_OF_MEDIAN = 1.48
# Growth of that many times what neighbouring days show is no shift.
_SIZE_OF_DAILY = 2.0
# The weekday's effect is a mean over 55 minutes: two to four weeks are too few to distinguish five minutes.
_HALF_WINDOW = 5
# 4 January 1970, counted from 1970.
_A_SUNDAY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LongSeason:
    """The season estimated from the days up to an origin, for the days after it, in logarithms.

    Shapes: `day` (288,), the first entry the slot after the origin; `week` (7, 288), row d the effect of the weekday
    that began d whole days before the last one; `free_day` (288,), the effect of a holiday, 0 where none is given;
    `scatter` (288,), how far days lay from all this. `level` is that of the last day and holds at its middle, `growth`
    is per day, and `drift` its deviation.
    """

    level: float
    growth: float
    drift: float
    day: FloatArray
    week: FloatArray
    free_day: FloatArray
    scatter: FloatArray

    @classmethod
    def at(cls, series: SlotSeries, origin: int, *, weekly: bool, holidays: frozenset[int] = frozenset()) -> Self:
        """The season from the slots up to `origin` alone; `holidays` are days (UTC) counted from 1970."""
        rows = _rows(series.values, origin)
        usual, free = rows, None
        if holidays:
            days = series.days(origin + 1 + np.arange(-SLOTS_PER_DAY, 0)) - np.arange(len(rows))[:, None]
            is_holiday = np.isin(days, list(holidays))
            # Of an hour that was only seen on holidays, these are the usual days.
            is_holiday &= (np.isfinite(rows) & ~is_holiday).any(axis=0)
            usual = np.where(is_holiday, np.nan, rows)
            free = is_holiday if is_holiday.any() else days % _DAYS_PER_WEEK == _A_SUNDAY
        levels, day = _polished(usual)
        ages = np.arange(len(rows), dtype=np.float64)
        growth, drift = _growth(levels)
        raised = levels + growth * ages
        weekday_levels = _weekday_levels(raised) if weekly else np.zeros(_DAYS_PER_WEEK)
        underlying = raised - weekday_levels[np.arange(len(rows)) % _DAYS_PER_WEEK]
        newest = underlying[:_DAYS_PER_WEEK, None]
        level = float(weighted_median(newest, _LEVEL_WEIGHTS[: len(newest)])[0])
        odd = usual - levels[:, None] - day
        week = weekday_levels[:, None] + (_weekday_shapes(odd) if weekly else np.zeros((_DAYS_PER_WEEK, SLOTS_PER_DAY)))
        free_day = np.zeros(SLOTS_PER_DAY)
        if free is not None:
            some = np.flatnonzero(free.any(axis=1))
            rest = rows[some] - _filled(underlying)[some, None] + growth * ages[some, None] - day
            effect = _smooth(weighted_median(np.where(free[some], rest, np.nan), _SHAPE_WEIGHTS[some])[None])[0]
            free_day = np.where(np.isfinite(effect), effect, 0.0)
        return cls(
            level=level if np.isfinite(level) else float(np.nanmedian(rows)),
            growth=growth,
            drift=drift,
            day=day,
            week=week,
            free_day=free_day,
            scatter=_scatter(odd),
        )

    def centre(self, steps: IntArray, *, is_holiday: FloatArray | None = None) -> FloatArray:
        """The centre path at these steps after the origin; steps up to 0 are the slots that led to it.

        `is_holiday` has 1.0 where the slot's day is a holiday, else 0.0.
        """
        days_ahead, slot = -(-steps // SLOTS_PER_DAY), (steps - 1) % SLOTS_PER_DAY
        extra = self.week[-days_ahead % _DAYS_PER_WEEK, slot]
        if is_holiday is not None:
            extra = np.where(is_holiday > 0.0, self.free_day[slot], extra)
        path: FloatArray = self.level + self.growth * days_ahead + self.day[slot] + extra
        return path

    def scatter_at(self, steps: IntArray) -> FloatArray:
        """The scatter around the centre that slots at these steps had before."""
        scatter: FloatArray = self.scatter[(steps - 1) % SLOTS_PER_DAY]
        return scatter


def _rows(values: FloatArray, origin: int) -> FloatArray:
    """The days up to the origin as rows (days, 288), the newest first; NaN before the start."""
    count = min(FIT_DAYS, -(-(origin + 1) // SLOTS_PER_DAY))
    kept = values[max(0, origin + 1 - count * SLOTS_PER_DAY) : origin + 1]
    padded = np.concatenate([np.full(count * SLOTS_PER_DAY - len(kept), np.nan), kept])
    return np.ascontiguousarray(padded.reshape(count, SLOTS_PER_DAY)[::-1])


def _polished(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The level of each day (NaN where too little is known of it), and the shape that all share: Tukey's polish."""
    enough = np.isfinite(rows).sum(axis=1) >= _ENOUGH_SLOTS
    if not enough.any():
        enough = np.isfinite(rows).any(axis=1)
    usable = np.where(enough[:, None], rows, np.nan)
    day = np.zeros(SLOTS_PER_DAY)
    for _ in range(_ROUNDS):
        levels = row_medians(usable - day)
        shape = weighted_median(usable - levels[:, None], _SHAPE_WEIGHTS[: len(rows)])
        day = np.where(np.isfinite(shape), shape, 0.0)
    return row_medians(usable - day), day


def _growth(levels: FloatArray) -> tuple[float, float]:
    """Growth of the logarithm per day, as far as days a week apart and neighbouring days agree on it, and its drift.

    Days a week apart have no weekday between them, but a shift a week ago looks like growth to them; neighbouring days
    see the shift once and are outvoted. Where the weeks disagree among themselves, growth shrinks to 0.

    The drift is the deviation of growth, about none: a load that has grown by 0.45 in a week may do so again, stop, or
    grow twice as much. Neighbouring days show no more than its size, because of the weekdays between them.
    """
    weekly = levels[:-_DAYS_PER_WEEK] - levels[_DAYS_PER_WEEK:]
    weekly = weekly[np.isfinite(weekly)] / _DAYS_PER_WEEK
    daily = levels[:-1] - levels[1:]
    daily = daily[np.isfinite(daily)]
    if len(weekly) < _ENOUGH_PAIRS or len(daily) == 0:
        return 0.0, 0.0
    by_week, by_day = median(weekly), median(daily)
    if by_week * by_day <= 0.0:
        return 0.0, 0.0
    # 1.86 = 1.48 (deviation from the median's) x 1.25 (the median's error over the mean's).
    error = 1.86 * median(np.abs(weekly - by_week)) / sqrt(len(weekly))
    sure = max(0.0, 1.0 - (error / by_week) ** 2)
    growth = sure * copysign(min(abs(by_week), abs(by_day)), by_week)
    return growth, _DEVIATION_OF_MEDIAN * min(abs(by_week), _SIZE_OF_DAILY * abs(by_day))


def _weekday_levels(raised: FloatArray) -> FloatArray:
    """The effect of each weekday on the level, (7,): its distance from its week's median, as a weighted median."""
    weeks = len(raised) // _DAYS_PER_WEEK
    by_week = raised[: weeks * _DAYS_PER_WEEK].reshape(weeks, _DAYS_PER_WEEK)
    return _vote(by_week - row_medians(by_week)[:, None])


def _weekday_shapes(odd: FloatArray) -> FloatArray:
    """The effect of each weekday on the shape of a day, (7, 288)."""
    weeks = -(-len(odd) // _DAYS_PER_WEEK)
    padded = np.concatenate([odd, np.full((weeks * _DAYS_PER_WEEK - len(odd), SLOTS_PER_DAY), np.nan)])
    return _vote(_smooth(padded).reshape(weeks, -1)).reshape(_DAYS_PER_WEEK, SLOTS_PER_DAY)


def _vote(by_week: FloatArray) -> FloatArray:
    """The weighted median of (weeks, columns) and of a vote for 0; 0 where nothing is known."""
    weights = np.append(_WEEK_WEIGHTS[: len(by_week)], _WEEK_WEIGHTS[-1])
    return weighted_median(np.concatenate([by_week, np.zeros((1, by_week.shape[1]))]), weights)


@compiled
def _smooth(rows: FloatArray) -> FloatArray:
    """Along each row the mean of the known values within 25 minutes; NaN where none is."""
    days, slots = rows.shape
    smooth, counts = np.zeros((days, slots)), np.zeros((days, slots))
    for day in range(days):
        for offset in range(-_HALF_WINDOW, _HALF_WINDOW + 1):
            near = rows[day, max(0, offset) :]
            sums, known = smooth[day, max(0, -offset) :], counts[day, max(0, -offset) :]
            for slot in range(slots - abs(offset)):
                is_known = np.isfinite(near[slot])
                sums[slot] += near[slot] if is_known else 0.0
                known[slot] += 1.0 if is_known else 0.0
        for slot in range(slots):
            # One by one: as `smooth / counts` it would take 2 s longer to compile.
            smooth[day, slot] /= counts[day, slot]
    return smooth


def _filled(levels: FloatArray) -> FloatArray:
    """Levels with the median of the known ones where a day's is unknown."""
    middle = median(levels)
    return np.where(np.isfinite(levels), levels, middle if np.isfinite(middle) else 0.0)


def _scatter(odd: FloatArray) -> FloatArray:
    """Mean distance from the day's shape at that time, over 55 minutes and half mixed with the mean of all times."""
    distance = np.abs(odd)
    known = np.isfinite(distance)
    total = float(distance[known].mean()) if known.any() else 0.0
    counts = known.sum(axis=0)
    means = np.where(counts > 0, np.where(known, distance, 0.0).sum(axis=0) / np.maximum(counts, 1), total)
    scatter: FloatArray = 0.5 * (_smooth(means[None])[0] + total)
    return scatter
