"""The produce rate in slots of five minutes, in logarithms, for the long-term model."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.compiled import compiled
from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import SECONDS_PER_DAY, FloatArray, IntArray

SLOT_MINUTES = 5
SLOT_SECONDS = SLOT_MINUTES * MINUTE_SECONDS
SLOTS_PER_DAY = 288
SLOTS_PER_WEEK = 7 * SLOTS_PER_DAY

# Four weeks hold each weekday four times; older data predict less than the trend since.
FIT_DAYS = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSeries:
    """A history up to its last known slot.

    Shapes: `values` has one entry per slot, `log1p(rate / unit)` of the mean of the slot's known minutes, NaN where
    none is. Slots are counted back from the history's end, so that step 1 is the first whole slot not yet seen.
    `stale_slots` lie between the last known slot and that end; `last_starts_at_seconds` (of the epoch) is when the last
    known slot begins. `highest` is the greatest mean of a slot, in messages per second.
    """

    unit: float
    values: FloatArray
    stale_slots: int
    last_starts_at_seconds: int
    highest: float

    @classmethod
    def from_history(cls, history: History, *, unit: float) -> Self:
        """The last four weeks up to the last known slot, of a history that has at least one known minute."""
        rates = history.produce_messages_per_second
        slots = np.concatenate([np.full(-len(rates) % SLOT_MINUTES, np.nan), rates]).reshape(-1, SLOT_MINUTES)
        known = np.isfinite(slots)
        counts = known.sum(axis=1)
        end = int(np.flatnonzero(counts)[-1]) + 1
        kept = slice(max(0, end - FIT_DAYS * SLOTS_PER_DAY), end)
        sums = np.where(known, slots, 0.0).sum(axis=1)[kept]
        means = np.where(counts[kept] > 0, np.maximum(sums, 0.0) / np.maximum(counts[kept], 1), np.nan)
        stale = len(slots) - end
        return cls(
            unit=unit,
            values=np.log1p(means / unit),
            stale_slots=stale,
            last_starts_at_seconds=int(history.end_at.timestamp()) - SLOT_SECONDS * (stale + 1),
            highest=float(np.nanmax(means)),
        )

    @property
    def last(self) -> int:
        """The index of the last known slot: the origin of a forecast."""
        return len(self.values) - 1

    def days(self, at: IntArray) -> IntArray:
        """The UTC day that each slot begins in, counted from 1970; slots after the last one have theirs too."""
        days: IntArray = (self.last_starts_at_seconds + SLOT_SECONDS * (at - self.last)) // SECONDS_PER_DAY
        return days


@compiled
def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Down each column the least value at which half of the known weight is reached; NaN where nothing is known.

    Shapes: `values` (rows, columns), NaN where unknown; `weights` (rows,). It is one of the values, never between two:
    a day like others and a day of silence do not give a half-silent one.

    >>> weighted_median(np.array([[1.0, np.nan], [9.0, np.nan], [1.2, np.nan]]), np.array([1.0, 0.9, 0.3]))
    array([1.2, nan])
    """
    rows, columns = values.shape
    half, reached, medians = np.zeros(columns), np.empty(columns), np.full(columns, np.nan)
    for row in range(rows):
        these, weight = values[row], weights[row]
        for column in range(columns):
            half[column] += 0.5 * weight if np.isfinite(these[column]) else 0.0
    # Each row against each, all columns in one vector loop: of 28 rows a third of the time of sorting 288 columns.
    for row in range(rows):
        these = values[row]
        reached[:] = 1e-12  # half of the weight, up to rounding
        for other in range(rows):
            others, weight = values[other], weights[other]
            for column in range(columns):
                reached[column] += weight if others[column] <= these[column] else 0.0
        for column in range(columns):
            is_least = not these[column] >= medians[column]  # or the first: none is at or above NaN
            medians[column] = these[column] if reached[column] >= half[column] and is_least else medians[column]
    return medians


def median(values: FloatArray) -> float:
    """The median of the known values, NaN where there are none.

    >>> median(np.array([3.0, np.nan, 1.0]))
    2.0
    """
    return float(row_medians(values[None])[0])


def row_medians(rows: FloatArray) -> FloatArray:
    """The median of each row's known values, NaN where there are none.

    >>> row_medians(np.array([[3.0, np.nan, 1.0], [5.0, 7.0, 2.0], [np.nan, np.nan, np.nan]]))
    array([ 2.,  5., nan])
    """
    # numpy sorts with vector instructions: 28 rows of 288 in a quarter of the time that selecting one by one takes.
    return _middles(np.sort(rows, axis=1))


@compiled
def _middles(ascending: FloatArray) -> FloatArray:
    """The median of the known values of each row, which come first; NaN where there are none."""
    rows, columns = ascending.shape
    medians = np.empty(rows)
    for row in range(rows):
        known = columns
        while known > 0 and np.isnan(ascending[row, known - 1]):
            known -= 1
        medians[row] = 0.5 * (ascending[row, (known - 1) // 2] + ascending[row, known // 2]) if known > 0 else np.nan
    return medians
