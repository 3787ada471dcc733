"""The produce rate as the models read it: logarithms of a group's own unit, and windows that skip gaps.

Logarithms make errors relative, as loads scatter; `log1p(rate / unit)` keeps zero minutes finite. The unit is a tenth
of the median rate, so k times the load has k times the unit and the very same logarithms.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import FloatArray, IntArray

_UNIT_OF_MEDIAN = 0.1


def unit_of(history: History) -> float:
    """A tenth of the median positive rate, in messages per second; 1.0 where nothing was produced."""
    rates = history.produce_messages_per_second
    positive = rates[rates > 0.0]
    return _UNIT_OF_MEDIAN * float(np.median(positive)) if len(positive) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSeries:
    """A history up to its last known minute, in logarithms, with running sums for means over windows.

    Shapes: `values` (NaN where unknown) and `filled` (the value before, where unknown) have one entry per minute;
    the sums have one more, starting at 0. `stale_minutes` lie between the last known minute and the history's end.
    `last_minute` counts minutes of the epoch, so that `last_minute % 1440` is the minute of the day in UTC.
    `highest` is the greatest rate seen, in messages per second.
    """

    unit: float
    values: FloatArray
    filled: FloatArray
    sums: FloatArray
    counts: FloatArray
    move_sums: FloatArray
    stale_minutes: int
    last_minute: int
    highest: float

    @classmethod
    def from_history(cls, history: History, *, unit: float, newest_minutes: int) -> Self:
        """The minutes up to the last known one, of a history that has at least one."""
        # The window ends at the last known minute: counted from the history's end, a long silence would fill all of it.
        end = int(np.flatnonzero(np.isfinite(history.produce_messages_per_second))[-1]) + 1
        rates = history.produce_messages_per_second[max(0, end - newest_minutes) : end]
        known = np.isfinite(rates)
        values = np.log1p(np.maximum(rates, 0.0) / unit)
        filled = _filled(values, known)
        moves = np.abs(np.diff(filled, prepend=filled[:1]))
        stale = history.minutes - end
        return cls(
            unit=unit,
            values=values,
            filled=filled,
            sums=_running_sum(np.where(known, values, 0.0)),
            counts=_running_sum(known.astype(np.float64)),
            move_sums=_running_sum(moves),
            stale_minutes=stale,
            last_minute=int(history.end_at.timestamp()) // MINUTE_SECONDS - stale,
            highest=float(np.nanmax(rates)),
        )

    @property
    def last(self) -> int:
        """The index of the last known minute: the origin of a forecast."""
        return len(self.values) - 1

    def trailing_mean(self, at: IntArray, *, minutes: int | IntArray) -> FloatArray:
        """Mean of the known values in the `minutes` up to and including each index; the last known one if none is."""
        sums, counts = self._window(at - minutes + 1, at)
        return np.where(counts > 0.0, sums / np.maximum(counts, 1.0), self.filled[at])

    def centred_mean(self, at: IntArray, *, half_minutes: int) -> FloatArray:
        """Mean of the known values within `half_minutes` of each index; NaN where none is, or before the start."""
        sums, counts = self._window(at - half_minutes, at + half_minutes)
        return np.where((counts > 0.0) & (at >= 0), sums / np.maximum(counts, 1.0), np.nan)

    def value(self, at: IntArray) -> FloatArray:
        """The value at each index; NaN where unknown, before the start or after the end."""
        inside = (at >= 0) & (at <= self.last)
        return np.where(inside, self.values[np.clip(at, 0, self.last)], np.nan)

    def mean_move(self, at: IntArray, *, minutes: int) -> FloatArray:
        """Mean absolute change from minute to minute over the `minutes` up to each index: how restless the load is."""
        first, stop = self._bounds(at - minutes + 1, at)
        moves: FloatArray = (self.move_sums[stop] - self.move_sums[first]) / np.maximum(stop - first, 1)
        return moves

    def _window(self, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray]:
        start, stop = self._bounds(first, last)
        return self.sums[stop] - self.sums[start], self.counts[stop] - self.counts[start]

    def _bounds(self, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
        # As np.clip, which takes four times as long for a few values.
        end = self.last + 1
        return np.minimum(np.maximum(first, 0), end), np.minimum(np.maximum(last + 1, 0), end)


def rates_of(logarithms: FloatArray, *, unit: float) -> FloatArray:
    """Rates in messages per second from logarithms; never negative.

    >>> rates_of(np.log1p(np.array([300.0 / 40.0])), unit=40.0)
    array([300.])
    """
    rates: FloatArray = unit * np.expm1(np.maximum(logarithms, 0.0))
    return rates


def clamp_to_fitted_range(values: FloatArray, lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """Values unchanged within the range seen; beyond it first held at its end, then fading to 0 over its width.

    >>> seen = np.array([-0.1]), np.array([0.1])
    >>> [float(clamp_to_fitted_range(np.array([value]), *seen)[0]) for value in (0.05, 0.2, 1.1)]
    [0.05, 0.05, 0.0]
    """
    held = np.clip(values, lowest, highest)
    width = np.maximum(highest - lowest, 1e-9)
    faded: FloatArray = held * np.maximum(1.0 - np.abs(values - held) / width, 0.0)
    return faded


def _filled(values: FloatArray, known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> FloatArray:
    newest_known = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    # Before the first known minute there is no value to carry forward: the first known value is used.
    newest_known[newest_known < 0] = int(np.argmax(known))
    carried: FloatArray = values[newest_known]
    return carried


def _running_sum(values: FloatArray) -> FloatArray:
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums
