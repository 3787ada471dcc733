"""Trace: a load series on a regular grid, and its reading from a CSV file."""

import csv
import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

import numpy as np

from forecasting.units import SECONDS_PER_DAY, FloatArray, read_only

COLUMNS = ("timestamp", "messages_per_second")
LEAST_STEP_SECONDS = 1
MOST_STEP_SECONDS = 3600
# A packed file of 1 MB may unpack to 6 GB; ten years of minutes are 250 MB.
MOST_BYTES = 256 * 2**20
LEAST_ROWS = 2
# Ten times what the largest Kafka installations report for all their topics together (7e12 messages a day).
MOST_MESSAGES_PER_SECOND = 1e9
# A shorter trace has no day before the judged one, so that all of it is judged, without a history.
LEAST_DAYS_WITH_HISTORY = 2.0
MOST_JUDGED_DAYS = 7.0


class TraceError(ValueError):
    """A trace that cannot be used; the sentence has the quantity, the place, the value, the limit and the next step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """A produce rate over time: value i is the mean over the `step_seconds` from `start_at + i * step_seconds`.

    `start_at` is timezone-aware UTC; `messages_per_second` is finite, never negative and read-only.

    >>> trace = Trace(name="t", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=60,
    ...               messages_per_second=np.array([10.0, 20.0]))
    >>> trace.duration_seconds, trace.end_at.isoformat(), trace.rate_at(75)
    (120, '2026-01-05T00:02:00+00:00', 20.0)
    """

    name: str
    start_at: datetime
    step_seconds: int
    messages_per_second: FloatArray

    @property
    def duration_seconds(self) -> int:
        """The length of the trace, in seconds."""
        return len(self.messages_per_second) * self.step_seconds

    @property
    def days(self) -> float:
        """The length of the trace, in days."""
        return self.duration_seconds / SECONDS_PER_DAY

    @property
    def end_at(self) -> datetime:
        """The instant at which the last step ends."""
        return self.start_at + timedelta(seconds=self.duration_seconds)

    def rate_at(self, second: int) -> float:
        """Messages per second during the second that begins `second` seconds after the start."""
        return float(self.messages_per_second[second // self.step_seconds])

    def rates(self, first_second: int, seconds: int) -> FloatArray:
        """One rate for each second of the slice; the slice must lie inside the trace."""
        steps = np.arange(first_second, first_second + seconds) // self.step_seconds
        values: FloatArray = self.messages_per_second[steps]
        return values

    def minute_rates(self) -> FloatArray:
        """The mean rate of every minute, the last one perhaps of a part of a minute.

        >>> Trace(name="t", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=45,
        ...       messages_per_second=np.array([100.0, 200.0])).minute_rates()
        array([125., 200.])
        """
        begins = np.arange(0, self.duration_seconds, 60)
        lengths = np.minimum(60, self.duration_seconds - begins)
        means: FloatArray = np.add.reduceat(self.rates(0, self.duration_seconds), begins) / lengths
        return means

    def scaled(self, factor: float) -> "Trace":
        """The same shape at `factor` times the rate."""
        return replace(self, messages_per_second=read_only(self.messages_per_second * factor))

    def split(self, last_seconds: int) -> tuple["Trace | None", "Trace"]:
        """The history, and the last `last_seconds` (rounded up to whole steps); None when there is no history.

        >>> trace = Trace(name="t", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=60,
        ...               messages_per_second=np.arange(5.0))
        >>> before, last = trace.split(120)
        >>> len(before.messages_per_second), last.start_at.isoformat()
        (3, '2026-01-05T00:03:00+00:00')
        """
        cut = max(0, len(self.messages_per_second) - math.ceil(last_seconds / self.step_seconds))
        last = replace(
            self,
            start_at=self.start_at + timedelta(seconds=cut * self.step_seconds),
            messages_per_second=self.messages_per_second[cut:],
        )
        return (replace(self, messages_per_second=self.messages_per_second[:cut]) if cut else None), last


def read_trace(path: Path) -> Trace:
    """The trace in a CSV file (`.csv` or `.csv.gz`) with the columns `timestamp,messages_per_second`.

    Timestamps are ISO-8601 with a zone, ascending on a constant step of 1 s to 1 h, each the start of its interval.
    Errors: TraceError, naming file and row (the header is row 1).
    """
    rows = list(_numbered_rows(path))
    if len(rows) < LEAST_ROWS:
        message = f"{path} has {len(rows)} data rows; a trace needs at least {LEAST_ROWS}: give a longer series"
        raise TraceError(message)
    instants = [_instant(path, number, text) for number, text, _ in rows]
    rates = [_rate(path, number, text) for number, _, text in rows]
    step = _constant_step(path, [number for number, _, _ in rows], instants)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    return Trace(name=name, start_at=instants[0], step_seconds=step, messages_per_second=read_only(np.array(rates)))


def _numbered_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Row number, timestamp text and rate text of each data row."""
    try:
        with _limited(path) as lines:
            reader = csv.reader(lines)
            header = [name.strip().lstrip("\ufeff") for name in next(reader, [])]
            missing = [name for name in COLUMNS if name not in header]
            if missing:
                # A quoted name may hold the end of a line, and what a terminal would obey.
                found = ", ".join(name if name.isprintable() else repr(name) for name in header)
                message = (
                    f"{path} row 1 lacks the column {missing[0]!r}; it has {found or 'nothing'}: "
                    f"name the columns {','.join(COLUMNS)}"
                )
                raise TraceError(message)
            at, rate = (header.index(name) for name in COLUMNS)
            for row in reader:
                if not row:
                    continue
                if len(row) <= max(at, rate):
                    message = f"{path} row {reader.line_num} has {len(row)} fields, fewer than its header: fill the row"
                    raise TraceError(message)
                yield reader.line_num, row[at].strip(), row[rate].strip()
    except FileNotFoundError as error:
        message = f"{path} does not exist: give the path of a .csv or .csv.gz file"
        raise TraceError(message) from error
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        message = f"{path} cannot be read as CSV text ({error}): give a .csv or .csv.gz file"
        raise TraceError(message) from error


def _limited(path: Path) -> TextIO:
    """The text of the file, unpacked. Errors: TraceError for more than `MOST_BYTES` of it."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as packed:
        content = packed.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        message = (
            f"{path} holds more than {MOST_BYTES // 2**20} MiB of text, ten years of minutes: give a part of it, or a "
            "longer step"
        )
        raise TraceError(message)
    return TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")


def _instant(path: Path, number: int, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        in_utc = instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"{path} row {number}: timestamp {text!r} is not ISO-8601: write it like 2026-01-05T00:00:00Z"
        raise TraceError(message) from error
    if instant.tzinfo is None:
        message = f"{path} row {number}: timestamp {text!r} has no time zone: add Z or an offset like +00:00"
        raise TraceError(message)
    return in_utc


def _rate(path: Path, number: int, text: str) -> float:
    try:
        rate = float(text)
    except ValueError as error:
        message = f"{path} row {number}: messages_per_second {text!r} is not a number: give a rate of 0 or more"
        raise TraceError(message) from error
    if not 0 <= rate <= MOST_MESSAGES_PER_SECOND:
        message = (
            f"{path} row {number}: messages_per_second is {text}; it must lie between 0 and "
            f"{MOST_MESSAGES_PER_SECOND:,.0f}: correct the row"
        )
        raise TraceError(message)
    return rate


def _constant_step(path: Path, numbers: list[int], instants: list[datetime]) -> int:
    step = (instants[1] - instants[0]).total_seconds()
    for number, earlier, later in zip(numbers[1:], instants, instants[1:], strict=False):
        found = (later - earlier).total_seconds()
        where = f"{path} row {number}: timestamp {later.isoformat()}"
        if found == 0:
            message = f"{where} stands twice: keep one row for each instant"
            raise TraceError(message)
        if found < 0:
            message = f"{where} is {-found:g} s before the row above it: sort the rows by time"
            raise TraceError(message)
        if found != step:
            message = (
                f"{where} comes after {found:g} s where the first step is {step:g} s: resample to one constant step"
            )
            raise TraceError(message)
    if step != int(step) or not LEAST_STEP_SECONDS <= step <= MOST_STEP_SECONDS:
        message = (
            f"{path} has a step of {step:g} s; whole seconds from {LEAST_STEP_SECONDS} to {MOST_STEP_SECONDS} "
            "are supported: resample it"
        )
        raise TraceError(message)
    return int(step)


def judged_days(trace_days: float, *, requested: float | None) -> float:
    """The number of days at the end of a trace that are judged; the days before them are history.

    >>> [judged_days(days, requested=None) for days in (14.0, 5.0, 1.5)]
    [7.0, 2.5, 1.5]
    >>> judged_days(14.0, requested=3.0), judged_days(1.5, requested=3.0)
    (3.0, 1.5)
    """
    if trace_days < LEAST_DAYS_WITH_HISTORY:
        return trace_days
    return min(trace_days, requested if requested is not None else min(MOST_JUDGED_DAYS, trace_days / 2))
