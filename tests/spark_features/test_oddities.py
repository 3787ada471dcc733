"""Failures of a real cluster, from samples to rows: they are counted, and never look like a drop in load."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from pyspark.sql import Row

from collector.sample import OffsetSample
from tests.spark_features.conftest import at

pytestmark = pytest.mark.spark

Intervals = Callable[[Sequence[OffsetSample]], list[Row]]
Sampled = Callable[..., OffsetSample]


def _steady(sampled: Sampled, partition: int, *, until: int, since: int = 0, **fields: object) -> list[OffsetSample]:
    """10 messages/s with a lag of 20, every 15 s from `since` up to and with `until`."""
    return [
        sampled(second, 1000 + 10 * second, 980 + 10 * second, partition, **fields)
        for second in range(since, until + 1, 15)
    ]


def test_two_steady_partitions_add_up(intervals: Intervals, sampled: Sampled) -> None:
    """The first row has lag and no rates, every other one has the sums, and all counts are 0."""
    rows = intervals([*_steady(sampled, 0, until=60), *_steady(sampled, 1, until=60)])
    assert [row.produce_messages_per_second for row in rows] == [None, 20.0, 20.0, 20.0, 20.0]
    assert [row.consume_messages_per_second for row in rows] == [None, 20.0, 20.0, 20.0, 20.0]
    assert {(row.lag_messages, row.partitions, row.sampled_partitions) for row in rows} == {(40.0, 2, 2)}
    assert [row.lag_seconds for row in rows] == [None, 2.0, 2.0, 2.0, 2.0]
    assert {(row.partition_skew_ratio, row.busiest_partition) for row in rows[1:]} == {(1.0, "t-0")}
    assert not any(value for row in rows for name, value in row.asDict().items() if name.endswith("_count"))


def test_names_are_told_as_they_are_whatever_is_in_them(intervals: Intervals, sampled: Sampled) -> None:
    """Slashes, digits and letters of several bytes; the same letters divided otherwise are another group."""
    names = {("c/1", "2/3/g", "t.1"), ("c", "/12/3/g", "t.1"), ("ü", "заказы", "t"), ("üз", "аказы", "t")}
    rows = intervals(
        [sampled(0, 1, cluster=cluster, group=group, topic=topic) for cluster, group, topic in sorted(names)]
    )
    assert {(row.cluster, row.group, row.topics) for row in rows} == names


def test_a_partition_that_is_missing_makes_the_sums_unknown(intervals: Intervals, sampled: Sampled) -> None:
    """With one of two partitions sampled the sums are null; after 30 s the rate is known, and a gap is counted."""
    other = [sample for sample in _steady(sampled, 1, until=60) if sample.sampled_at.second != 30]
    rows = intervals([*_steady(sampled, 0, until=60), *other])
    assert [row.produce_messages_per_second for row in rows] == [None, 20.0, None, 20.0, 20.0]
    assert [row.lag_messages for row in rows] == [40.0, 40.0, None, 40.0, 40.0]
    assert [(row.partitions, row.sampled_partitions) for row in rows] == [(2, 2), (2, 2), (2, 1), (2, 2), (2, 2)]
    assert [row.gap_count for row in rows] == [0, 0, 0, 1, 0]


def test_a_gap_of_more_than_a_minute_has_no_rate(intervals: Intervals, sampled: Sampled) -> None:
    """After 75 s without a sample four missing intervals are counted, and the first row has no rate."""
    rows = intervals([*_steady(sampled, 0, until=15), *_steady(sampled, 0, since=90, until=105)])
    assert [row.produce_messages_per_second for row in rows] == [None, 10.0, None, 10.0]
    assert [row.gap_count for row in rows] == [0, 0, 4, 0]


def test_a_topic_made_again_has_no_rate_and_counts(intervals: Intervals, sampled: Sampled) -> None:
    """End and commit that go back together are one reset without a negative rate, and the next row has rates again."""
    rows = intervals([sampled(0, 1000, 900), sampled(15, 30, 10), sampled(30, 60, 40)])
    assert [row.produce_messages_per_second for row in rows] == [None, None, 2.0]
    assert [row.consume_messages_per_second for row in rows] == [None, None, 2.0]
    assert [row.offset_reset_count for row in rows] == [0, 1, 0]


def test_one_end_that_is_far_too_low_makes_up_no_rate(intervals: Intervals, sampled: Sampled) -> None:
    """An answer of 15 at an end of 1,450: neither that row nor the next has a produce rate, nor the first a lag."""
    samples = [
        replace(row, end_offset=15) if row.sampled_at == at(45) else row for row in _steady(sampled, 0, until=90)
    ]
    rows = intervals(samples)
    assert [row.produce_messages_per_second for row in rows] == [None, 10.0, 10.0, None, None, 10.0, 10.0]
    assert [row.consume_messages_per_second for row in rows] == [None, 10.0, 10.0, None, 10.0, 10.0, 10.0]
    assert [row.lag_messages for row in rows] == [20.0, 20.0, 20.0, None, 20.0, 20.0, 20.0]
    assert [row.offset_reset_count for row in rows] == [0, 0, 0, 1, 0, 0, 0]


def test_an_end_that_stays_low_is_where_its_partition_goes_on(intervals: Intervals, sampled: Sampled) -> None:
    """A new leader lacks the last 500 messages: from the next row on its rates count."""
    samples = _steady(sampled, 0, until=45)
    samples += [replace(row, end_offset=row.end_offset - 500) for row in _steady(sampled, 0, since=60, until=90)]
    rows = intervals(samples)
    assert [row.produce_messages_per_second for row in rows] == [None, 10.0, 10.0, 10.0, None, 10.0, 10.0]


def test_a_replayed_commit_makes_only_the_consume_rate_null(intervals: Intervals, sampled: Sampled) -> None:
    """When the commit goes back by 500 the lag grows, and the produce rate stays."""
    rows = intervals([sampled(0, 1000, 900), sampled(15, 1030, 400), sampled(30, 1060, 430)])
    assert [row.produce_messages_per_second for row in rows] == [None, 2.0, 2.0]
    assert [row.consume_messages_per_second for row in rows] == [None, None, 2.0]
    assert [(row.lag_messages, row.offset_reset_count) for row in rows] == [(100.0, 0), (630.0, 1), (630.0, 0)]


@pytest.mark.parametrize("nothing", [None, -1])
def test_no_commit_is_counted_and_never_summed(nothing: int | None, intervals: Intervals, sampled: Sampled) -> None:
    """For null and for -1 lag begins at the log's start where that is known, and is left out of the sum elsewhere."""
    rows = intervals([sampled(0, 100, 90), sampled(0, 70, nothing, 1)])
    assert [(row.lag_messages, row.no_commit_count) for row in rows] == [(10.0, 1)]
    rows = intervals([sampled(0, 100, 90), sampled(0, 70, nothing, 1, log_start_offset=20)])
    assert [(row.lag_messages, row.no_commit_count) for row in rows] == [(60.0, 1)]


def test_a_commit_that_is_gone_makes_the_lag_unknown_for_an_hour(intervals: Intervals, sampled: Sampled) -> None:
    """One of two partitions is answered without its commit: its log of 7,000 messages is no lag for the next hour."""
    other = _steady(sampled, 0, until=3660)
    known = sampled(0, 7000, 6980, 1, log_start_offset=0)
    gone = [sampled(second, 7000, None, 1, log_start_offset=0) for second in range(15, 3661, 15)]
    at = intervals([*other, known, *gone])
    assert [row.lag_messages for row in at[:2]] == [40.0, None]
    assert {row.lag_messages for row in at[1:241]} == {None}
    assert {row.lag_messages for row in at[241:]} == {7020.0}
    assert at[1].offset_reset_count == 1
    assert at[1].no_commit_count == 1


def test_of_the_past_only_arrivals_are_known(intervals: Intervals, sampled: Sampled) -> None:
    """In three minutes of end offsets alone, before live samples, lag is null, and no reset is counted."""
    past = [sampled(second, 60 * number, None, members=None) for number, second in enumerate((0, 60, 120))]
    rows = intervals([*past, sampled(135, 140, 130, log_start_offset=0), sampled(150, 155, 145, log_start_offset=0)])
    assert [row.produce_messages_per_second for row in rows] == [None, 1.0, 1.0, pytest.approx(20 / 15), 1.0]
    assert [row.consume_messages_per_second for row in rows] == [None, None, None, None, 1.0]
    assert [row.lag_messages for row in rows] == [None, None, None, 10.0, 10.0]
    assert [(row.no_commit_count, row.offset_reset_count) for row in rows] == [(0, 0)] * 5


def test_a_commit_newer_than_the_end_is_lag_zero_and_counted(intervals: Intervals, sampled: Sampled) -> None:
    """A commit of 1,203,950 at an end of 1,203,900 is lag 0, not -50."""
    (row,) = intervals([sampled(0, 1_203_900, 1_203_950)])
    assert (row.lag_messages, row.negative_race_count) == (0.0, 1)


def test_a_partition_that_appears_is_counted_and_has_no_delta(intervals: Intervals, sampled: Sampled) -> None:
    """The old messages of a new partition are no load, and in the group's first interval no partition is new."""
    rows = intervals([*_steady(sampled, 0, until=45), *_steady(sampled, 1, since=30, until=45)])
    assert [row.partition_appeared_count for row in rows] == [0, 0, 1, 0]
    assert [row.produce_messages_per_second for row in rows] == [None, 10.0, None, 20.0]
    assert [row.partitions for row in rows] == [1, 1, 2, 2]


def test_a_deleted_topic_is_dropped_after_an_hour(intervals: Intervals, sampled: Sampled) -> None:
    """After a topic is deleted the rates are null for an hour."""
    rows = intervals([*_steady(sampled, 0, until=3720), *_steady(sampled, 1, until=60)])
    known = {(row.interval_end_at - rows[0].interval_end_at).seconds: row for row in rows}
    assert (known[3660].partitions, known[3660].produce_messages_per_second) == (2, None)
    assert (known[3675].partitions, known[3675].produce_messages_per_second) == (1, 10.0)


def test_b17_a_rebalance_marks_the_row(intervals: Intervals, sampled: Sampled) -> None:
    """The row has the state of the newest sample, and a rebalance earlier in the interval marks it too."""
    seen = [sampled(5, 10, 0, group_state="PREPARING_REBALANCING", members=None), sampled(15, 20, 5, members=3)]
    (row,) = intervals(seen)
    assert (row.group_state, row.members, row.in_rebalance, row.in_rebalance_count) == ("STABLE", 3, True, 1)


def test_groups_and_topics_do_not_mix(intervals: Intervals, sampled: Sampled) -> None:
    """A group of two topics has one row, in alphabetical order, apart from the same partition of another group."""
    two = [*_steady(sampled, 0, until=15, topic="b"), *_steady(sampled, 0, until=15, topic="a")]
    rows = intervals([*two, *_steady(sampled, 0, until=15, group="h")])
    assert [(row.group, row.topics, row.produce_messages_per_second) for row in rows] == [
        *(("g", "a,b", None), ("g", "a,b", 20.0)),
        *(("h", "t", None), ("h", "t", 10.0)),
    ]


def test_one_slow_partition_among_many_is_named(intervals: Intervals, sampled: Sampled) -> None:
    """Partition 3 of four with a lag of 300 at 10 messages/s is 30 s late, where the sum is 9 s."""
    steady = [seen for partition in range(3) for seen in _steady(sampled, partition, until=30)]
    slow = [sampled(second, 1000 + 10 * second, 1000 + 10 * second - 10 * second, 3) for second in (0, 15, 30)]
    rows = intervals([*steady, *slow])
    assert [row.lag_seconds for row in rows] == [None, (60 + 150) / 40, (60 + 300) / 40]
    assert [(row.worst_lag_seconds, row.worst_partition) for row in rows] == [
        (None, None),
        (15.0, "t-3"),
        (30.0, "t-3"),
    ]


def test_of_equally_late_partitions_the_lowest_topic_then_the_lowest_partition_is_named(
    intervals: Intervals, sampled: Sampled
) -> None:
    """Topics are ordered by name and partitions by number, also where a lag is past 2^31."""
    far = 3 * 10**9
    names = (("b", 0), ("a", 11), ("a", 2))
    seen = [sampled(s, far + 10 * s, 10 * s, number, topic=topic) for s in (0, 15) for topic, number in names]
    _, row = intervals(seen)
    assert (row.worst_lag_seconds, row.worst_partition) == (far / 10, "a-2")


def test_a_partition_whose_lag_is_unknown_is_not_the_worst(intervals: Intervals, sampled: Sampled) -> None:
    """Partition 0 without a commit and a log start has an unknown lag, and the worst of the others is named."""
    seen = [
        sampled(s, 100 + 10 * s, commit, n, topic=t) for s in (0, 15) for t, n, commit in (("a", 0, None), ("b", 1, 0))
    ]
    _, row = intervals(seen)
    assert (row.worst_lag_seconds, row.worst_partition) == (25.0, "b-1")


def test_a_partition_with_almost_no_messages_is_not_hours_late(intervals: Intervals, sampled: Sampled) -> None:
    """A lag of 90 without arrivals, beside 20/s, is 9 s over the mean partition's 10/s."""
    seen = [sampled(s, end, committed, n) for s in (0, 15) for n, end, committed in ((0, 90, 0), (1, 20 * s, 20 * s))]
    _, row = intervals(seen)
    assert (row.worst_lag_seconds, row.worst_partition) == (9.0, "t-0")


def test_rates_are_those_of_the_samples_clock(intervals: Intervals, sampled: Sampled) -> None:
    """A sample that is 2 s early is over 13 s and the next over 17 s, at the same rate, and rows stay on the grid."""
    rows = intervals([sampled(second, 10 * second) for second in (15, 28, 45)])
    assert [row.produce_messages_per_second for row in rows[1:]] == [10.0, 10.0]
    assert {later.interval_end_at - row.interval_end_at for row, later in pairwise(rows)} == {timedelta(seconds=15)}
