"""Observations of one consumer group: single rows, and the minute series that forecasters read."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from math import ceil, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.packing import pack, unpack_all
from forecasting.units import FloatArray, read_only

MINUTE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInterval:
    """One row of the feature table: a group over one interval that ends at `interval_end_at`.

    The fields are the columns of `forecasting.columns.GROUP_INTERVALS`, in the same order and under the same names.
    None means unknown (no valid difference of offsets, no member count), never zero.
    """

    cluster: str
    group: str
    topics: str
    interval_end_at: datetime
    interval_seconds: int
    produce_messages_per_second: float | None
    consume_messages_per_second: float | None
    lag_messages: float | None
    lag_seconds: float | None
    worst_lag_seconds: float | None = None
    worst_partition: str | None = None
    partitions: int
    sampled_partitions: int
    members: int | None
    group_state: str = "STABLE"
    in_rebalance: bool = False
    partition_skew_ratio: float | None = None
    busiest_partition: str | None = None
    gap_count: int = 0
    no_commit_count: int = 0
    negative_race_count: int = 0
    offset_reset_count: int = 0
    in_rebalance_count: int = 0
    partition_appeared_count: int = 0
    group_protocol: str | None = None
    group_assignor: str | None = None
    static_members: int | None = None
    clients: str | None = None
    streams: str | None = None
    commit_interval_seconds: float | None = None
    busy_ratio: float | None = None
    session_timeout_seconds: float | None = None
    rebalance_timeout_seconds: float | None = None
    consumer_heartbeat_seconds: float | None = None


def intervals_from_columns(columns: Mapping[str, Sequence[object]]) -> list[GroupInterval]:
    """The rows of these columns, one for each field, all of one length.

    A group's month is 160,000 rows. Setting one field of all of them after the other takes 4 us a row, calling the
    class for each takes 14.
    """
    setters = {field.name: GroupInterval.__dict__[field.name].__set__ for field in fields(GroupInterval)}
    if columns.keys() != setters.keys() or len({len(values) for values in columns.values()}) != 1:
        message = f"columns of one length are needed for {sorted(setters)}, not {sorted(columns)}"
        raise ValueError(message)
    rows = [object.__new__(GroupInterval) for _ in columns["group"]]
    for name, values in columns.items():
        deque(map(setters[name], rows, values), maxlen=0)
    return rows


class IntervalArrays(NamedTuple):
    """Base rows of one group in order of time, as far as `minutes_of` reads them; unknown values are NaN.

    Shapes: (rows,) each. `ends_us`: microseconds since 1970, as integers.
    """

    ends_us: NDArray[np.int64]
    interval_seconds: FloatArray
    produce_messages_per_second: FloatArray
    consume_messages_per_second: FloatArray
    lag_messages: FloatArray
    members: FloatArray
    in_rebalance: FloatArray
    busy_ratio: FloatArray


class Minutes(NamedTuple):
    """What base rows say of whole minutes, of each group's oldest first; minutes without a row are left out.

    Shapes: `ends` (minutes,), in minutes since 1970, and `values` (6, minutes): the produce rate, then the series of
    `History` in the order of its fields. Unknown values are NaN.
    """

    ends: NDArray[np.int64]
    values: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One group's past up to `end_at`: minute series for the forecasters, the newest base rows for the decision.

    Shapes: the series have one value per minute; value i covers the minute that ends at `end_at - (len - 1 - i)
    minutes`. Their lengths are equal, but for a past of more than eight days, of which only the produce rate is known.
    Units are in the names. NaN marks a minute without data; it never leaves these arrays. `recent` holds the base rows
    of the last 15 minutes, oldest first. Arrays are read-only.
    """

    cluster: str
    group: str
    end_at: datetime
    produce_messages_per_second: FloatArray
    consume_messages_per_second: FloatArray
    lag_messages: FloatArray
    members: FloatArray
    in_rebalance: FloatArray  # share of the minute's base rows that lay inside a rebalance
    busy_ratio: FloatArray  # share of their time in which members work; NaN where their clients do not report it
    recent: tuple[GroupInterval, ...]

    @property
    def minutes(self) -> int:
        """The number of minutes of produce rates, gaps included."""
        return len(self.produce_messages_per_second)

    def last(self, minutes: int) -> "History":
        """The newest `minutes` of the history; all of it if it is shorter."""
        return self._only(lambda series: series[max(0, len(series) - minutes) :])

    def until(self, index: int) -> "History":
        """The history as of the end of minute `index`: nothing later, no base rows."""
        later = self.minutes - 1 - index
        known = self._only(lambda series: series[: max(0, len(series) - later)])
        return replace(known, end_at=self.end_at - timedelta(minutes=later), recent=())

    def _only(self, part_of: Callable[[FloatArray], FloatArray]) -> "History":
        return replace(
            self,
            produce_messages_per_second=part_of(self.produce_messages_per_second),
            consume_messages_per_second=part_of(self.consume_messages_per_second),
            lag_messages=part_of(self.lag_messages),
            members=part_of(self.members),
            in_rebalance=part_of(self.in_rebalance),
            busy_ratio=part_of(self.busy_ratio),
        )


# Half a day: a day is shortened no better, and what is not packed yet takes twice as much.
_PART_MINUTES = 720


class PackedSeries(NamedTuple):
    """Some series of minutes as they are kept. Read-only, for any thread.

    Shapes: `newest` (series, minutes); before it lie `parts` of `_PART_MINUTES` each, packed, the oldest first. Of the
    oldest minutes so many as are `left_out` are not kept any longer.
    """

    parts: tuple[bytes, ...]
    newest: NDArray[np.float32]
    left_out: int

    def unpacked(self) -> FloatArray:
        """(series, minutes)."""
        series, minutes = self.newest.shape
        before = len(self.parts) * _PART_MINUTES
        values = np.empty((series, before + minutes))
        if self.parts:
            of_parts = unpack_all(self.parts, dtype=np.float32, shape=(series, _PART_MINUTES))
            values[:, :before] = of_parts.transpose(1, 0, 2).reshape(series, before)
        values[:, before:] = self.newest
        return values[:, self.left_out :]


class PackedHistory(NamedTuple):
    """A `History` as it is kept, to 1.6e-5 of each value, in 0.1 MB where it has four weeks. Read-only, for any thread.

    Shapes: `produced` has one series and `others` five, in the order of their fields.
    """

    cluster: str
    group: str
    end_at: datetime
    produced: PackedSeries
    others: PackedSeries
    recent: tuple[GroupInterval, ...]

    def unpacked(self) -> History:
        """The history, for which 0.8 MB are filled where it has four weeks, in 0.3 ms."""
        (produce,), others = self.produced.unpacked(), self.others.unpacked()
        consume, lag, members, in_rebalance, busy = map(read_only, others)
        return History(
            cluster=self.cluster,
            group=self.group,
            end_at=self.end_at,
            produce_messages_per_second=read_only(produce),
            consume_messages_per_second=consume,
            lag_messages=lag,
            members=members,
            in_rebalance=in_rebalance,
            busy_ratio=busy,
            recent=self.recent,
        )


# Of the produce rate forecasters know weeks. Of the rest a week of members is used, and the last day that is known.
PRODUCE_MINUTES, OTHER_MINUTES = 28 * 1440, 8 * 1440
_OTHERS = ("consume", "lag", "members", "in_rebalance", "busy")
_RECENT_SECONDS = 900


class HistoryBuffer:
    """Collects base rows of one group in time order and gives its `History` at any moment.

    Keeps the last `produce_minutes` minutes of the produce rate, and the last `other_minutes` of all else. A minute is
    closed by the row that ends with it, or by a row after it; the minutes of a gap are NaN. The mean of a minute is
    weighted by its rows' lengths.
    Errors: ValueError on a row of another group, older than the last one, or longer than a minute.
    """

    def __init__(
        self, cluster: str, group: str, *, produce_minutes: int = PRODUCE_MINUTES, other_minutes: int = OTHER_MINUTES
    ) -> None:
        self.cluster = cluster
        self.group = group
        self._produce_minutes, self._other_minutes = produce_minutes, min(other_minutes, produce_minutes)
        self._forget()
        self._last_minute: int | None = None  # minutes since the epoch at which the last closed minute ended
        self._open: list[GroupInterval] = []
        self._recent: deque[GroupInterval] = deque()

    def begin(self, past: Minutes) -> None:
        """Take minutes before the first `append`, which gives the same of their rows.

        Errors: ValueError where rows are known already.
        """
        if self._last_minute is not None or self._open:
            message = f"the history of {self.cluster}/{self.group} has begun already"
            raise ValueError(message)
        if not past.ends.size:
            return
        first, last = int(past.ends[0]), int(past.ends[-1])
        for series, of_series in ((self._produced, past.values[:1]), (self._others, past.values[1:])):
            dense = np.full((len(of_series), last - first + 1), np.nan, np.float32)
            dense[:, past.ends - first] = of_series
            series.extend(dense)
        self._last_minute = last

    def append(self, row: GroupInterval) -> None:
        """Take the next row; it is used from the moment its minute is closed."""
        self._check(row)
        minute = _minute_ending(row.interval_end_at)
        if self._open and _minute_ending(self._open[-1].interval_end_at) != minute:
            self._close()
        self._open.append(row)
        if row.interval_end_at.timestamp() == minute * MINUTE_SECONDS:
            self._close()
        self._recent.append(row)
        oldest = row.interval_end_at - timedelta(seconds=_RECENT_SECONDS)
        while self._recent[0].interval_end_at <= oldest:
            self._recent.popleft()

    def history(self) -> History | None:
        """The history up to the last closed minute, or None before the first one."""
        packed = self.packed()
        return None if packed is None else packed.unpacked()

    @property
    def end_at(self) -> datetime | None:
        """The end of the last closed minute, or None before the first one."""
        return None if self._last_minute is None else datetime.fromtimestamp(self._last_minute * MINUTE_SECONDS, tz=UTC)

    def packed(self) -> PackedHistory | None:
        """The same for keeping: what is kept here anyway, so that it copies nothing."""
        end_at = self.end_at
        if end_at is None:
            return None
        return PackedHistory(
            cluster=self.cluster,
            group=self.group,
            end_at=end_at,
            produced=self._produced.known,
            others=self._others.known,
            recent=tuple(self._recent),
        )

    def _check(self, row: GroupInterval) -> None:
        if (row.cluster, row.group) != (self.cluster, self.group):
            message = f"row of {row.cluster}/{row.group} offered to the history of {self.cluster}/{self.group}"
            raise ValueError(message)
        if row.interval_seconds > MINUTE_SECONDS:
            message = f"row spans {row.interval_seconds} s; base rows span at most {MINUTE_SECONDS} s"
            raise ValueError(message)
        if self._recent and row.interval_end_at <= self._recent[-1].interval_end_at:
            last = self._recent[-1].interval_end_at.isoformat()
            message = f"row ends at {row.interval_end_at.isoformat()}, not after the last one, {last}"
            raise ValueError(message)

    def _forget(self) -> None:
        self._produced = _Series(1, most=self._produce_minutes)
        self._others = _Series(len(_OTHERS), most=self._other_minutes)

    def _close(self) -> None:
        rows, self._open = self._open, []
        minute = _minute_ending(rows[-1].interval_end_at)
        gap = 0 if self._last_minute is None else minute - self._last_minute - 1
        if gap >= self._produce_minutes:  # nothing before it is needed any longer
            self._forget()
            gap = 0
        produced, *others = _minute_values(rows)
        self._produced.append([produced], gap=gap)
        self._others.append(others, gap=gap)
        self._last_minute = minute


class _Series:
    """The last minutes of some series, `most` of them."""

    def __init__(self, series: int, *, most: int) -> None:
        self._most = most
        self._parts: tuple[bytes, ...] = ()
        # Grows with the known minutes: most of a thousand groups may be an hour old.
        self._newest = np.empty((series, 0), np.float32)
        self._filled = 0

    @property
    def known(self) -> PackedSeries:
        """The minutes that are kept; it stays as it is while others are added."""
        newest = self._newest[:, : self._filled]
        newest.setflags(write=False)
        return PackedSeries(self._parts, newest, max(0, self._minutes - self._most))

    def extend(self, values: NDArray[np.float32]) -> None:
        """Add these minutes (series, minutes)."""
        if values.shape[1] >= self._most:
            values, self._parts, self._filled = values[:, -self._most :], (), 0
            self._newest = self._newest[:, :0]
        while values.shape[1]:
            taken = values[:, : _PART_MINUTES - self._filled]
            self._take(taken)
            values = values[:, taken.shape[1] :]
        self._parts = self._parts[max(0, self._minutes - self._most) // _PART_MINUTES :]

    def append(self, values: Sequence[float], *, gap: int) -> None:
        """Add a minute after so many of which nothing is known."""
        if gap:
            self.extend(np.full((len(values), min(gap, self._most)), np.nan, np.float32))
        self.extend(np.array(values, np.float32)[:, None])

    @property
    def _minutes(self) -> int:
        return len(self._parts) * _PART_MINUTES + self._filled

    def _take(self, values: NDArray[np.float32]) -> None:
        """Add minutes for which there is room before the next part is full; callers keep their views of arrays."""
        filled = self._filled + values.shape[1]
        if filled > self._newest.shape[1]:
            newest = np.empty((len(values), min(2 * filled, _PART_MINUTES)), np.float32)
            newest[:, : self._filled] = self._newest[:, : self._filled]
            self._newest = newest
        self._newest[:, self._filled : filled] = _rounded(values)
        self._filled = filled
        if filled == _PART_MINUTES:
            self._parts += (pack(self._newest),)
            self._newest, self._filled = self._newest[:, :0].copy(), 0


def _rounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest numbers of 16 binary digits, whose last byte is zero and takes no memory where it is packed.

    The relative error is at most 1.6e-5, that of one message in 65,536; whole numbers up to 65,536 stay as they are.
    """
    bits = np.ascontiguousarray(values).view(np.uint32)
    return np.where(np.isnan(values), values, ((bits + 0x80) & 0xFFFFFF00).view(np.float32))


def _minute_ending(instant: datetime) -> int:
    return ceil(instant.timestamp() / MINUTE_SECONDS)


def _minute_values(rows: list[GroupInterval]) -> tuple[float, ...]:
    last = rows[-1]
    return (
        _weighted_mean([(row.produce_messages_per_second, row.interval_seconds) for row in rows]),
        _weighted_mean([(row.consume_messages_per_second, row.interval_seconds) for row in rows]),
        nan if last.lag_messages is None else last.lag_messages,
        nan if last.members is None else float(last.members),
        sum(row.in_rebalance for row in rows) / len(rows),
        _weighted_mean([(row.busy_ratio, row.interval_seconds) for row in rows]),
    )


def _weighted_mean(values: list[tuple[float | None, int]]) -> float:
    total, weight = 0.0, 0
    for value, seconds in values:
        if value is not None:
            # One after the other, as `minutes_of` adds: `sum` of newer Pythons rounds otherwise.
            total += value * seconds
            weight += seconds
    return total / weight if weight else nan


def minutes_of(rows: IntervalArrays) -> Minutes:
    """The minutes that these rows make, all of each; as `HistoryBuffer.append` makes them, in a 25th of the time."""
    if not rows.ends_us.size:
        return Minutes(np.zeros(0, np.int64), np.zeros((1 + len(_OTHERS), 0), np.float32))
    minute = -(-rows.ends_us // (MINUTE_SECONDS * 1_000_000))
    first = np.flatnonzero(np.diff(minute, prepend=minute[0] - 1))
    last = np.append(first[1:], minute.size) - 1
    lengths = rows.interval_seconds

    def mean(values: FloatArray) -> FloatArray:
        known = np.isfinite(values)
        weight = np.where(known, lengths, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return _sums(np.where(known, values, 0.0) * weight, first, last) / _sums(weight, first, last)

    values = np.stack(
        [
            mean(rows.produce_messages_per_second),
            mean(rows.consume_messages_per_second),
            rows.lag_messages[last],
            rows.members[last],
            _sums(rows.in_rebalance, first, last) / (last - first + 1),
            mean(rows.busy_ratio),
        ]
    )
    return Minutes(minute[first], values.astype(np.float32))


def _sums(values: FloatArray, first: NDArray[np.int64], last: NDArray[np.int64]) -> FloatArray:
    """The sum of each minute, its rows added one after the other; `np.add.reduceat` adds from eight on in pairs."""
    sums = np.zeros(first.size)
    for offset in range(int((last - first).max()) + 1):
        within = first + offset <= last
        sums[within] += values[first[within] + offset]
    return sums
