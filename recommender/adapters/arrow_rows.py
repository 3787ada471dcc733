"""Rows of the feature table, from the Arrow columns that hold them: as objects, and condensed to minutes."""

from datetime import UTC, datetime, timedelta
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from forecasting.columns import GROUP_INTERVALS, Kind
from forecasting.history import (
    MINUTE_SECONDS,
    GroupInterval,
    IntervalArrays,
    Minutes,
    intervals_from_columns,
    minutes_of,
)
from forecasting.units import FloatArray
from recommender.ports import Condensed

_TYPES: dict[Kind, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
SCHEMA = pa.schema([pa.field(column.name, _TYPES[column.kind]) for column in GROUP_INTERVALS])
COLUMNS = tuple(SCHEMA.names)
# Columns by which a row tells what the group is, or that it changed size.
_TOLD = (
    *("partitions", "members", "in_rebalance", "group_protocol", "group_assignor", "static_members", "clients"),
    *("streams", "commit_interval_seconds", "session_timeout_seconds", "rebalance_timeout_seconds"),
    "consumer_heartbeat_seconds",
)
# Nobody reads these of rows that become minutes.
_UNREAD_OF_MINUTES = (
    "lag_seconds",
    "worst_lag_seconds",
    "worst_partition",
    "partition_skew_ratio",
    "busiest_partition",
)
COLUMNS_OF_MINUTES = tuple(name for name in COLUMNS if name not in _UNREAD_OF_MINUTES)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE_US = MINUTE_SECONDS * 1_000_000


def condensed(table: pa.Table, *, newest: timedelta) -> Condensed:
    """A group's past from base rows in order of time, cut at the last whole minute so long before the newest one."""
    past = Condensing(newest)
    past.take(table)
    return past.whole()


class Condensing:
    """A group's past that is condensed while it is read, from its newest rows backwards."""

    def __init__(self, newest: timedelta) -> None:
        self._newest_us = newest // _MICROSECOND
        self._cut_us: int | None = None
        self._rows: list[pa.Table] = []
        self._minutes: list[Minutes] = []
        self._telling: list[pa.Table] = []

    def is_cut_before(self, instant: datetime) -> bool:
        """True if of all rows that end before this instant only minutes are kept."""
        return self._cut_us is not None and instant_of(self._cut_us) >= instant

    def take(self, table: pa.Table) -> None:
        """Take rows in order of time, of whole minutes and before all that were taken."""
        if not table.num_rows:
            return
        ends_us = table["interval_end_at"].cast(pa.int64()).to_numpy()
        if self._cut_us is None:
            self._cut_us = (int(ends_us[-1]) - self._newest_us) // _MINUTE_US * _MINUTE_US
        older = table.slice(0, int(np.searchsorted(ends_us, self._cut_us, side="right")))
        if older.num_rows < table.num_rows:
            self._rows.insert(0, table.slice(older.num_rows))
        if older.num_rows:
            self._minutes.insert(0, minutes_of(_arrays_of(older)))
            self._telling.insert(0, older.filter(pa.array(_tells(older))))

    def whole(self) -> Condensed:
        """All that was taken."""
        rows = rows_of(pa.concat_tables(self._rows)) if self._rows else []
        if not self._minutes:
            return Condensed(None, (), rows)
        ends, values = zip(*self._minutes, strict=True)
        minutes = Minutes(np.concatenate(ends), np.concatenate(values, axis=1))
        # Of those before the cut fewer columns were read.
        telling = pa.concat_tables(self._telling, promote_options="default")
        return Condensed(minutes, rows_of(telling), rows)


def rows_of(table: pa.Table) -> list[GroupInterval]:
    """Row objects from whole columns, in their order; of columns that were not read nothing is known."""
    read = set(table.column_names)
    columns = {name: _values(table[name]) if name in read else [None] * table.num_rows for name in COLUMNS}
    columns["interval_end_at"] = [instant_of(us) for us in table["interval_end_at"].cast(pa.int64()).to_pylist()]
    return intervals_from_columns(columns)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, of which equal strings are one object: a row has nine, of 60 B each."""
    if not pa.types.is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    encoded = _encoded(column)
    known = [None if each is None else intern(each) for each in encoded.dictionary.to_pylist()]
    return [known[place] for place in encoded.indices.to_numpy().tolist()]


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The values as places among those that differ, of which null is one."""
    values = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _arrays_of(table: pa.Table) -> IntervalArrays:
    """The columns of which minutes are made."""

    def numbers(name: str) -> FloatArray:
        values: FloatArray = table[name].cast(pa.float64()).to_numpy()
        return values

    return IntervalArrays(
        ends_us=table["interval_end_at"].cast(pa.int64()).to_numpy(),
        in_rebalance=table["in_rebalance"].cast(pa.int8()).cast(pa.float64()).to_numpy(),
        **{name: numbers(name) for name in IntervalArrays._fields if name not in ("ends_us", "in_rebalance")},
    )


def _tells(table: pa.Table) -> NDArray[np.bool_]:
    """(rows,): True where a row tells of its group what the row before it did not: `observed_in` needs no others."""
    tells = np.zeros(table.num_rows, dtype=np.bool_)
    tells[0] = True
    for name in _TOLD:
        tells[1:] |= np.diff(_encoded(table[name]).indices.to_numpy()) != 0
    return tells


def instant_of(microseconds: int) -> datetime:
    """The instant so long after 1970, as Arrow has it."""
    return _EPOCH + timedelta(microseconds=microseconds)
