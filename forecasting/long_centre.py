"""The centre of the week ahead: the mean of the season and of the weeks before, raised to today's level."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.long_season import LongSeason
from forecasting.slots import SLOTS_PER_DAY, SLOTS_PER_WEEK, SlotSeries, row_medians
from forecasting.units import FloatArray, IntArray

# Four weeks are read: the newest days, and the three whole weeks before, which are raised to their level.
_BACK: IntArray = SLOTS_PER_WEEK * np.arange(1, 4)
# Days that measure how far the level now lies from that of a week before; one odd day of three is outvoted.
_LEVEL_DAYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LongCentre:
    """The median of the season and of each week before that is known; with eight to fourteen days, their mean.

    They err differently: a season follows shifts late and has no weekdays before two weeks, one week repeats its
    chances. An outage in a week, or a shift since, is outvoted once two weeks before are known.

    `raises` has for each week before how far the last three days lie above the same days so long before.
    """

    series: SlotSeries
    origin: int
    season: LongSeason
    holidays: frozenset[int]
    raises: FloatArray

    @classmethod
    def at(cls, series: SlotSeries, origin: int, *, weekly: bool, holidays: frozenset[int]) -> Self:
        """The season of the slots up to `origin` alone; `holidays` are days (UTC) counted from 1970."""
        newest = np.arange(max(0, origin + 1 - _LEVEL_DAYS * SLOTS_PER_DAY), origin + 1)
        before = newest - _BACK[:, None]
        earlier = np.where(before >= 0, series.values[np.maximum(before, 0)], np.nan)
        return cls(
            series=series,
            origin=origin,
            season=LongSeason.at(series, origin, weekly=weekly, holidays=holidays),
            holidays=holidays,
            raises=row_medians(series.values[newest] - earlier),
        )

    def path(self, steps: IntArray) -> FloatArray:
        """Logarithms at these steps after the origin; steps up to 0 are the slots that led to it."""
        at = self.origin + steps
        is_holiday = self._is_holiday(at)
        centre = self.season.centre(steps, is_holiday=is_holiday.astype(np.float64))
        weeks_ahead = np.maximum(-(-steps // SLOTS_PER_WEEK), 1) - 1
        before = (at - SLOTS_PER_WEEK * weeks_ahead)[:, None] - _BACK
        usable = (before >= 0) & ~is_holiday[:, None] & ~self._is_holiday(before)
        earlier = np.where(usable, self.series.values[np.maximum(before, 0)] + self.raises, np.nan)
        return row_medians(np.concatenate([centre[:, None], earlier], axis=1))

    def _is_holiday(self, at: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        if not self.holidays:
            return np.zeros(at.shape, dtype=np.bool_)
        return np.isin(self.series.days(at), list(self.holidays))
