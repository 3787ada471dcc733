"""The last day as it was observed: minutes with what was seen in them, and none that nobody saw."""

from datetime import UTC, datetime, timedelta

import pytest

from forecasting.history import GroupInterval, History, HistoryBuffer
from recommender.past_day import first_seen_at, hourly_rates, observed_day

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def history_of(minutes: list[int], *, rate: float | None = 100.0, lag: float | None = 500.0) -> History:
    """Rows of one minute each, which end so many minutes after noon."""
    buffer = HistoryBuffer("c", "orders")
    for minute in minutes:
        buffer.append(
            GroupInterval(
                cluster="c",
                group="orders",
                topics="orders",
                interval_end_at=NOON + timedelta(minutes=minute),
                interval_seconds=60,
                produce_messages_per_second=rate,
                consume_messages_per_second=rate,
                lag_messages=lag,
                lag_seconds=None,
                partitions=24,
                sampled_partitions=24,
                members=8,
            )
        )
    history = buffer.history()
    assert history is not None
    return history


def test_each_minute_has_what_was_seen_in_it() -> None:
    """500 messages at 100/s are 5 s of lag."""
    (first, *_) = observed_day(history_of([1, 2, 3]))
    assert first.ends_at == NOON + timedelta(minutes=1)
    assert (first.produce_messages_per_second, first.lag_messages, first.members) == (100.0, 500.0, 8)
    assert first.lag_seconds == pytest.approx(5.0)
    assert first.in_rebalance_fraction == 0.0


def test_a_minute_that_nobody_saw_is_left_out_and_never_zero() -> None:
    """Rows of the first and of the fourth minute; the mean rate of the fourth is that of what was seen."""
    seen = list(observed_day(history_of([1, 4])))
    assert [minute.ends_at.minute for minute in seen] == [1, 4]
    assert seen[1].lag_seconds == pytest.approx(5.0)


def test_what_is_not_known_of_a_minute_is_none() -> None:
    """A rate that no offsets gave, and the lag in seconds that would need it; where nothing comes, none is told."""
    (minute,) = observed_day(history_of([1], rate=None))
    assert (minute.produce_messages_per_second, minute.lag_seconds, minute.lag_messages) == (None, None, 500.0)
    (idle,) = observed_day(history_of([1], rate=0.0))
    assert (idle.produce_messages_per_second, idle.lag_seconds) == (0.0, None)


def test_a_group_is_first_seen_where_anything_of_it_is_known() -> None:
    """At the begin of that minute, which may be days before the day that is shown."""
    assert first_seen_at(history_of([1, 4])) == NOON
    assert first_seen_at(history_of([-3000, 1])) == NOON - timedelta(minutes=3001)


def test_a_day_has_1440_minutes_at_most() -> None:
    """Of two days the newest."""
    minutes = list(observed_day(history_of(list(range(1, 2881)))))
    assert len(minutes) == 1440
    assert minutes[0].ends_at == NOON + timedelta(minutes=1441)


def test_hours_are_those_of_the_clock_with_the_mean_of_what_is_known() -> None:
    """From 12:01 to 14:30: the hours from 12:00 and from 13:00; where nothing was seen an hour is not known."""
    hours = hourly_rates(history_of([*range(1, 31), *range(121, 151)]))
    assert hours == ((NOON, 100.0), (NOON + timedelta(hours=1), None))
    assert hourly_rates(history_of([1, 2])) == ()
