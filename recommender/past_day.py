"""The last day of one group as it was observed, minute by minute. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import FloatArray, IntArray
from recommender.hindsight import DAY_MINUTES

# Lag in seconds is messages over the mean produce rate of so many minutes, as in the feature table.
LAG_RATE_MINUTES = 5


class ObservedMinute(NamedTuple):
    """The minute that ends at `ends_at`; None is what was not seen in it."""

    ends_at: datetime
    produce_messages_per_second: float | None
    consume_messages_per_second: float | None
    lag_messages: float | None
    lag_seconds: float | None
    members: int | None
    in_rebalance_fraction: float


def observed_day(history: History) -> Iterator[ObservedMinute]:
    """The newest 1,440 minutes of which anything was seen, oldest first; a minute without a row is left out."""
    day = history.last(DAY_MINUTES + LAG_RATE_MINUTES)
    produced = day.produce_messages_per_second
    lag_seconds = _lag_seconds(day.lag_messages, produced)
    first_end = day.end_at - timedelta(seconds=MINUTE_SECONDS * (day.minutes - 1))
    for minute in _seen(day):
        if minute < day.minutes - DAY_MINUTES:
            continue
        members = _known(day.members[minute])
        yield ObservedMinute(
            ends_at=first_end + timedelta(seconds=MINUTE_SECONDS * int(minute)),
            produce_messages_per_second=_known(produced[minute]),
            consume_messages_per_second=_known(day.consume_messages_per_second[minute]),
            lag_messages=_known(day.lag_messages[minute]),
            lag_seconds=_known(lag_seconds[minute]),
            members=None if members is None else round(members),
            in_rebalance_fraction=_known(day.in_rebalance[minute]) or 0.0,
        )


def first_seen_at(history: History) -> datetime | None:
    """The begin of the first minute of which anything was seen; None where nothing was."""
    seen = (np.flatnonzero(~np.isnan(series)) - series.size for series in _series(history))
    oldest = min((int(minutes[0]) for minutes in seen if minutes.size), default=None)
    return None if oldest is None else history.end_at + timedelta(seconds=MINUTE_SECONDS * oldest)


def _seen(day: History) -> IntArray:
    """The minutes of a day of which anything was seen, by their place."""
    return np.flatnonzero(~np.isnan(np.vstack(_series(day))).all(axis=0))


def _series(history: History) -> tuple[FloatArray, ...]:
    """What a minute that was seen has one of, at least."""
    produced, consumed = history.produce_messages_per_second, history.consume_messages_per_second
    return produced, consumed, history.lag_messages, history.members


def _lag_seconds(lag_messages: FloatArray, produced: FloatArray) -> FloatArray:
    """Lag over the mean rate of the newest minutes until each; NaN where nothing was produced in them."""
    known = ~np.isnan(produced)
    window = np.ones(LAG_RATE_MINUTES)
    total = np.convolve(np.where(known, produced, 0.0), window)[: produced.size]
    minutes = np.convolve(known.astype(float), window)[: produced.size]
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds: FloatArray = lag_messages * minutes / total
    return np.where(total > 0.0, seconds, np.nan)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def hourly_rates(history: History) -> tuple[tuple[datetime, float | None], ...]:
    """The mean produce rate of each whole clock hour that is known in part, by its beginning; None where nothing is."""
    per_hour = 3600 // MINUTE_SECONDS
    # The last minute of an hour ends at minute 0 of the next one.
    over = history.end_at.minute if history.end_at.second == 0 else 0
    whole = (history.minutes - over) // per_hour
    if whole < 1:
        return ()
    rates = history.produce_messages_per_second[history.minutes - over - whole * per_hour : history.minutes - over]
    hours = rates.reshape(whole, per_hour)
    known = ~np.isnan(hours)
    means = np.where(known, hours, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    first_begin = history.end_at - timedelta(minutes=over) - timedelta(hours=whole)
    return tuple(
        (first_begin + timedelta(hours=hour), float(means[hour]) if known[hour].any() else None)
        for hour in range(whole)
    )
