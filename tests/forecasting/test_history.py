"""The history buffer: minutes out of base rows, gaps that stay gaps, and values that never change."""

import tracemalloc
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecasting.columns import GROUP_INTERVALS
from forecasting.history import (
    GroupInterval,
    HistoryBuffer,
    IntervalArrays,
    Minutes,
    intervals_from_columns,
    minutes_of,
)
from forecasting.units import FloatArray

START = datetime(2026, 1, 5, tzinfo=UTC)


def row(seconds: int, rate: float | None, *, interval_seconds: int = 15, group: str = "orders") -> GroupInterval:
    return GroupInterval(
        cluster="c",
        group=group,
        topics="orders",
        interval_end_at=START + timedelta(seconds=seconds),
        interval_seconds=interval_seconds,
        produce_messages_per_second=rate,
        consume_messages_per_second=rate,
        lag_messages=10.0,
        lag_seconds=None,
        partitions=4,
        sampled_partitions=4,
        members=2,
    )


def test_a_row_has_the_columns_of_the_table() -> None:
    """Names and order are those of `forecasting.columns`; columns that a table may leave empty may be None here."""
    assert [field.name for field in fields(GroupInterval)] == [column.name for column in GROUP_INTERVALS]
    hints = get_type_hints(GroupInterval)
    assert [NoneType in get_args(hints[column.name]) for column in GROUP_INTERVALS] == [
        column.nullable for column in GROUP_INTERVALS
    ]


def test_four_base_rows_make_a_minute_with_its_mean() -> None:
    """Rows ending at 15, 30, 45 and 60 s are one minute; the row at 75 s opens the next and waits for it to close."""
    buffer = HistoryBuffer("c", "orders")
    for seconds, rate in ((15, 10.0), (30, 20.0), (45, 30.0), (60, 60.0), (75, 99.0)):
        buffer.append(row(seconds, rate))
    history = buffer.history()
    assert history is not None
    assert history.produce_messages_per_second.tolist() == [30.0]
    assert history.end_at == START + timedelta(seconds=60)
    assert history.recent[-1].interval_end_at == START + timedelta(seconds=75)


def test_a_gap_of_minutes_is_nan_not_zero_and_not_closed_up() -> None:
    """Three minutes without rows are three unknown minutes between the known ones."""
    buffer = HistoryBuffer("c", "orders")
    for minute in (1, 5):
        buffer.append(row(60 * minute, 7.0, interval_seconds=60))
    history = buffer.history()
    assert history is not None
    np.testing.assert_array_equal(history.produce_messages_per_second, [7.0, np.nan, np.nan, np.nan, 7.0])


def test_unknown_rates_do_not_pull_a_minute_down() -> None:
    """A minute with one unknown row is the mean of its known rows; one without any is unknown."""
    buffer = HistoryBuffer("c", "orders")
    for seconds, rate in ((15, None), (30, 20.0), (45, 20.0), (60, 20.0), (75, None), (90, None), (105, None)):
        buffer.append(row(seconds, rate))
    buffer.append(row(120, None))
    history = buffer.history()
    assert history is not None
    np.testing.assert_array_equal(history.produce_messages_per_second, [20.0, np.nan])


def test_rows_from_columns_are_those_of_the_constructor() -> None:
    """Equal, frozen and without a shared value; columns that lack a field or differ in length are refused."""
    made = [row(15, 1.0), row(30, None), row(45, 2.5, group="other")]
    names = [field.name for field in fields(GroupInterval)]
    columns = {name: [getattr(each, name) for each in made] for name in names}
    rows = intervals_from_columns(columns)
    assert rows == made
    assert [hash(each) for each in rows] == [hash(each) for each in made]
    with pytest.raises(FrozenInstanceError):
        rows[0].group = "changed"  # type: ignore[misc]
    for wrong in ({**columns, "group": ["one"]}, {name: columns[name] for name in names[1:]}):
        with pytest.raises(ValueError, match="columns of one length"):
            intervals_from_columns(wrong)


def test_a_returned_history_stays_the_same_while_the_window_moves_on() -> None:
    """Only the last `produce_minutes` are kept, and an older view keeps its numbers and refuses writes."""
    buffer = HistoryBuffer("c", "orders", produce_minutes=3)
    early = None
    for minute in range(1, 20):
        buffer.append(row(60 * minute, float(minute), interval_seconds=60))
        if minute == 5:
            early = buffer.history()
    late = buffer.history()
    assert early is not None
    assert late is not None
    assert early.produce_messages_per_second.tolist() == [3.0, 4.0, 5.0]
    assert late.produce_messages_per_second.tolist() == [17.0, 18.0, 19.0]
    with pytest.raises(ValueError, match="read-only"):
        early.produce_messages_per_second[0] = 0.0


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.integers(1, 4), st.integers(1, 900)), min_size=1, max_size=40),
    st.one_of(st.integers(1, 4), st.integers(1, 700)),
    st.one_of(st.integers(1, 4), st.integers(1, 700)),
)
@example([1, 2, 3, 2], 2, 2)  # a gap after one that was longer than the window
@example([1, 5, 1], 9, 4)  # a gap as long as one window, and not the other
def test_the_window_holds_the_newest_minutes_with_any_gaps(steps: list[int], most: int, others: int) -> None:
    """Minutes `steps` apart in a window of `most` give the same as the end of a plain list of all minutes.

    So do the other series in theirs.
    """
    buffer = HistoryBuffer("c", "orders", produce_minutes=most, other_minutes=others)
    minutes: list[float] = []
    given_out: list[FloatArray] = []
    were: list[list[float]] = []
    at = 0
    for step in steps:
        at += step
        minutes += [np.nan] * (step - 1 if minutes else 0) + [float(at)]
        buffer.append(row(60 * at, float(at), interval_seconds=60))
        history = buffer.history()
        assert history is not None
        given_out.append(history.produce_messages_per_second)
        were.append(given_out[-1].tolist())
        np.testing.assert_array_equal(history.consume_messages_per_second, given_out[-1][-others:])
    for view, was in zip(given_out, were, strict=True):
        np.testing.assert_array_equal(view, was)
    expected = minutes[-most:]
    if max(steps[1:], default=0) > most:  # neither the gap nor the minutes before it are kept
        last = max(place for place, step in enumerate(steps) if place and step > most)
        expected = minutes[-(1 + sum(steps[last + 1 :])) :][-most:]
    np.testing.assert_array_equal(given_out[-1], expected)


def test_what_is_known_for_longer_than_the_rest_is_cut_at_the_same_instants() -> None:
    """Of 12 minutes of rates and 5 of all else: the newest 7, and what was known five minutes ago."""
    buffer = HistoryBuffer("c", "orders", produce_minutes=12, other_minutes=5)
    for minute in range(1, 13):
        buffer.append(row(60 * minute, float(minute), interval_seconds=60))
    history = buffer.history()
    assert history is not None
    newest, known = history.last(7), history.until(6)
    assert newest.produce_messages_per_second.tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
    assert newest.consume_messages_per_second.tolist() == [8.0, 9.0, 10.0, 11.0, 12.0]
    assert known.produce_messages_per_second.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert known.consume_messages_per_second.tolist() == []
    assert known.end_at == history.end_at - timedelta(minutes=5)
    assert history.until(7).consume_messages_per_second.tolist() == [8.0]


def arrays_of(rows: list[GroupInterval]) -> IntervalArrays:
    """The rows as arrays, without the adapters' table."""

    def numbers(name: str) -> FloatArray:
        return np.array([getattr(each, name) for each in rows], dtype=np.float64)  # None becomes NaN

    return IntervalArrays(
        ends_us=np.array([round(each.interval_end_at.timestamp() * 1e6) for each in rows], dtype=np.int64),
        **{name: numbers(name) for name in IntervalArrays._fields if name != "ends_us"},
    )


rates = st.none() | st.floats(0.0, 1e6)


@settings(max_examples=200, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(st.sampled_from([1, 5, 15, 16, 60, 95, 7200]), rates, rates, rates, st.booleans()),
        min_size=1,
        max_size=80,
    ),
    cut=st.integers(0, 80),
    most=st.integers(1, 200),
)
def test_a_history_that_begins_with_arrays_is_that_of_their_rows_to_the_last_bit(
    drawn: list[tuple[int, float | None, float | None, float | None, bool]], cut: int, most: int
) -> None:
    """Whatever the gaps, lengths and unknown values are, and wherever rows begin, at a whole minute."""
    rows, at = [], 0
    for seconds, produced, consumed, lag, in_rebalance in drawn:
        at += seconds
        busy = None if lag is None else min(1.0, lag / 1e6)
        drawn_row = row(at, produced, interval_seconds=min(seconds, 60))
        rows.append(
            replace(drawn_row, consume_messages_per_second=consumed, lag_messages=lag, in_rebalance=in_rebalance)
            if cut % 2
            else replace(drawn_row, busy_ratio=busy, members=None if lag is None else round(lag))
        )
    boundary = START + timedelta(seconds=60 * (at * cut // 80 // 60))
    older = [each for each in rows if each.interval_end_at <= boundary]
    one, other = (HistoryBuffer("c", "orders", produce_minutes=most, other_minutes=most // 2 + 1) for _ in range(2))
    other.begin(minutes_of(arrays_of(older)))
    for each in rows:
        one.append(each)
    for each in rows[len(older) :]:
        other.append(each)
    if len(older) == len(rows) and rows[-1].interval_end_at != boundary:
        return  # the minute of the last row is still open for one of them
    expected, found = one.history(), other.history()
    assert (expected is None) == (found is None)
    if expected is None or found is None:
        return
    assert found.end_at == expected.end_at
    for name in ("produce", "consume"):
        values, others = (getattr(each, f"{name}_messages_per_second") for each in (found, expected))
        assert ends_alike(values, others)
    for name in ("lag_messages", "members", "in_rebalance", "busy_ratio"):
        assert ends_alike(getattr(found, name), getattr(expected, name))


def ends_alike(found: FloatArray, expected: FloatArray) -> bool:
    """Equal to the last bit as far as both go, and nothing known in what one has more of: minutes of a long gap."""
    both = min(found.size, expected.size)
    longer = found if found.size > both else expected
    return np.array_equal(found[found.size - both :], expected[expected.size - both :], equal_nan=True) and bool(
        np.isnan(longer[: longer.size - both]).all()
    )


def test_a_history_begins_once() -> None:
    """Minutes of a past are taken before the first row, or not at all."""
    buffer = HistoryBuffer("c", "orders")
    buffer.begin(minutes_of(arrays_of([])))
    buffer.append(row(60, 1.0))
    with pytest.raises(ValueError, match="has begun already"):
        buffer.begin(minutes_of(arrays_of([row(120, 1.0)])))


def test_an_hour_of_history_takes_the_room_of_an_hour() -> None:
    """Two hundred groups of an hour each: 2 MB, of the 40 that four weeks of each would take."""
    tracemalloc.start()
    buffers = [HistoryBuffer("c", "orders") for _ in range(200)]
    for buffer in buffers:
        for minute in range(1, 61):
            buffer.append(row(60 * minute, 1.0, interval_seconds=60))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5_000_000


def test_four_weeks_of_a_noisy_load_take_0_1_megabytes() -> None:
    """Where no rate is like another one; what is packed for keeping holds nothing else than what is kept anyway."""
    minutes = 30 * 1440
    rates = np.random.default_rng(7).lognormal(8.0, 0.1, minutes)
    buffer = HistoryBuffer("c", "orders")
    buffer.begin(Minutes(np.arange(minutes), np.stack([rates] * 3 + [np.full(minutes, 2.0)] * 3).astype(np.float32)))
    packed = buffer.packed()
    assert packed is not None
    assert packed.unpacked().minutes == 28 * 1440
    kept = [sum(map(len, each.parts)) + each.newest.nbytes for each in (packed.produced, packed.others)]
    assert sum(kept) in range(80_000, 120_000)


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.one_of(st.integers(1, 1500), st.integers(700, 740)), min_size=1, max_size=12),
    most=st.one_of(st.integers(1, 3000), st.sampled_from([719, 720, 721, 1440])),
)
@example([1] * 5 + [714, 1, 1], 720)
def test_what_is_packed_comes_back_to_the_last_bit(steps: list[int], most: int) -> None:
    """Over the borders of half days, whatever the gaps: the same as the end of a plain list, now and later."""
    buffer = HistoryBuffer("c", "orders", produce_minutes=4000, other_minutes=most)
    minutes: list[float] = []
    given_out = []
    for step in steps:
        minutes += [np.nan] * (step - 1 if minutes else 0) + [1.0 + len(minutes)]
        at = len(minutes)
        buffer.append(replace(row(60 * at, 1.0, interval_seconds=60), lag_messages=minutes[-1]))
        packed = buffer.packed()
        assert packed is not None
        given_out.append((packed, np.array(minutes[-most:], dtype=np.float32)))
    for packed, expected in given_out:
        lag = packed.unpacked().lag_messages
        assert lag.size <= most
        assert ends_alike(lag, expected.astype(np.float64))
        assert lag.size >= min(expected.size, most)


@given(rates=st.lists(st.one_of(st.floats(0.0, 1e12), st.integers(0, 65_536).map(float)), min_size=1, max_size=30))
def test_minutes_are_kept_to_16_binary_digits(rates: list[float]) -> None:
    """Whatever the rate; whole numbers of no more digits stay as they are, and a minute without a rate unknown."""
    buffer = HistoryBuffer("c", "orders")
    for minute, rate in enumerate(rates, start=1):
        buffer.append(row(120 * minute, rate, interval_seconds=60))
    history = buffer.history()
    assert history is not None
    assert history.produce_messages_per_second[::2] == pytest.approx(rates, rel=1.6e-5, abs=1e-37)
    assert all(
        kept == rate
        for kept, rate in zip(history.produce_messages_per_second[::2], rates, strict=True)
        if rate in range(65_537)
    )
    assert np.isnan(history.produce_messages_per_second[1::2]).all()


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (row(15, 1.0), "not after the last one"),
        (row(90, 1.0, group="other"), "offered to the history of c/orders"),
        (row(300, 1.0, interval_seconds=300), "at most 60 s"),
    ],
)
def test_rows_that_do_not_belong_are_named(bad: GroupInterval, sentence: str) -> None:
    """A row out of order, of another group, or longer than a minute is refused in a sentence, and not added."""
    buffer = HistoryBuffer("c", "orders")
    buffer.append(row(60, 5.0, interval_seconds=60))
    with pytest.raises(ValueError, match=sentence):
        buffer.append(bad)
    history = buffer.history()
    assert history is not None
    assert history.minutes == 1
