"""Each step on small literal frames: the columns that it adds, and no others."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from collector.sample import OffsetSample
from forecasting.columns import GROUP_INTERVALS
from spark_features.rollups import rollup
from spark_features.transforms import (
    MEMORY_SECONDS,
    group_intervals,
    interval_end_us,
    latest_in_interval,
    with_consume_rate,
    with_lag,
    with_lag_seconds,
    with_offset_deltas,
    with_partition_skew,
    with_produce_rate,
    with_resets_flagged,
    with_worst_lag,
)

pytestmark = pytest.mark.spark

Frame = Callable[[Sequence[OffsetSample]], DataFrame]
Sampled = Callable[..., OffsetSample]
Intervals = Callable[[Sequence[OffsetSample]], list[Row]]

_S = 1_000_000
_START_AT = datetime(2026, 5, 4, tzinfo=UTC)
_FIRST = 1_777_852_800 * _S  # 2026-05-04T00:00:00Z


@pytest.fixture(autouse=True)
def _compiled(spark: SparkSession) -> Iterator[None]:
    """Expressions are compiled, as Spark does by default, also where the JVM's options say otherwise."""
    defaults = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: spark.conf.get(name) for name in defaults}
    for name, value in defaults.items():
        spark.conf.set(name, value)
    yield
    for name, kept in before.items():
        spark.conf.set(name, str(kept))


def _is(spark: SparkSession, found: DataFrame, schema: str, rows: Sequence[tuple[object, ...]]) -> None:
    """The named columns of `found` hold these rows, in any order."""
    wanted = spark.createDataFrame(rows, schema)
    assert_df_equality(found.select(*wanted.columns), wanted, ignore_row_order=True, ignore_nullable=True)


def test_a_sample_on_the_boundary_belongs_to_the_interval_that_ends_there(spark: SparkSession) -> None:
    """The sample at 12:00:15.000000 ends at :15, one microsecond later at :30, and before 1970 likewise."""
    instants = spark.createDataFrame([(0,), (1,), (15 * _S,), (15 * _S + 1,), (-1,)], "instant long")
    ends = instants.withColumn("ends", interval_end_us(F.col("instant"), seconds=15))
    rows = [(0, 0), (1, 15 * _S), (15 * _S, 15 * _S), (15 * _S + 1, 30 * _S), (-1, 0)]
    _is(spark, ends, "instant long, ends long", rows)


def test_what_kafka_tells_of_a_group_is_that_of_its_newest_sample(intervals: Intervals, sampled: Sampled) -> None:
    """What is unknown stays unknown, each by itself; that no member is static is known."""
    rows = intervals(
        [
            sampled(0, 1, static_members=2, clients="librdkafka"),
            sampled(
                5,
                2,
                group_assignor="stream",
                static_members=0,
                clients="java",
                streams='{"tasks": 8}',
                commit_interval_seconds=30.0,
                session_timeout_seconds=45.0,
                rebalance_timeout_seconds=300.0,
                consumer_heartbeat_seconds=5.0,
            ),
            sampled(20, 3, group_protocol=None, group_assignor=None, members=None),
            sampled(35, 4, group_assignor=None, static_members=1),
        ]
    )
    told = [
        (
            *(row.group_protocol, row.group_assignor, row.static_members, row.clients, row.streams),
            *(row.commit_interval_seconds, row.session_timeout_seconds, row.rebalance_timeout_seconds),
            row.consumer_heartbeat_seconds,
        )
        for row in rows
    ]
    assert told[-3:] == [
        ("consumer", "stream", 0, "java", '{"tasks": 8}', 30.0, 45.0, 300.0, 5.0),
        (None,) * 9,
        ("consumer", None, 1, None, None, *(None,) * 4),
    ]


def test_the_newest_sample_of_an_interval_stays(spark: SparkSession, frame: Frame, sampled: Sampled) -> None:
    """Of two samples in an interval the later one stays, a rebalance in the earlier is kept, and -1 is no commit."""
    samples = [sampled(3, 100, 90, group_state="PREPARING_REBALANCE"), sampled(14, 140, -1), sampled(16, 150, 95)]
    found = latest_in_interval(frame(samples))
    schema = "interval_end_us long, sampled_us long, end_offset long, committed_offset long, in_rebalance_count long"
    first = (_FIRST + 15 * _S, _FIRST + 14 * _S, 140, None, 1)
    second = (_FIRST + 30 * _S, _FIRST + 16 * _S, 150, 95, 0)
    _is(spark, found, schema, [first, second])


def test_a_file_that_is_read_twice_changes_no_offset(spark: SparkSession, frame: Frame, sampled: Sampled) -> None:
    """Samples that are read twice give the same partition intervals once."""
    samples = [sampled(15, 100, 90), sampled(30, 140, 95)]
    found = latest_in_interval(frame([*samples, *samples]))
    _is(spark, found, "end_offset long, committed_offset long", [(100, 90), (140, 95)])


def test_deltas_are_over_the_time_between_samples(spark: SparkSession, frame: Frame, sampled: Sampled) -> None:
    """A delta is over the 14 s between its samples, a skipped interval is counted, and the first has no delta."""
    samples = [sampled(15, 100, 90), sampled(29, 170, 120), sampled(60, 190, None)]
    found = with_offset_deltas(latest_in_interval(frame(samples)))
    schema = (
        "end_offset long, elapsed_seconds double, missing_intervals long, produced_messages long, "
        "consumed_messages long, is_new boolean, is_leaving boolean"
    )
    first = (100, None, None, None, None, True, False)
    second = (170, 14.0, 0, 70, 30, False, False)
    third = (190, 31.0, 1, 20, None, False, True)
    _is(spark, found, schema, [first, second, third])


def test_offsets_that_go_back_are_flagged(spark: SparkSession) -> None:
    """An end that goes back is a topic made again, and a commit that goes back or vanishes is a reset or a replay."""
    schema = (
        "id int, is_new boolean, produced_messages long, consumed_messages long, "
        "previous_committed_offset long, committed_offset long, "
        "earlier_interval_end_us long, previous_interval_end_us long, "
        "earlier_end_offset long, previous_end_offset long, end_offset long"
    )
    rows = [
        (0, False, 5, 5, 10, 15, 0, 15 * _S, 90, 95, 100),
        (1, False, -5, -5, 10, 5, 0, 15 * _S, 90, 105, 100),
        (2, False, 5, -5, 10, 5, 0, 15 * _S, 90, 95, 100),
        (3, False, 5, None, 10, None, None, 15 * _S, None, 95, 100),
        (4, True, None, None, None, 5, None, None, None, None, 100),
    ]
    found = with_resets_flagged(spark.createDataFrame(rows, schema))
    flags = [(0, False, False), (1, True, True), (2, False, True), (3, False, True), (4, False, False)]
    _is(spark, found, "id int, end_went_back boolean, commit_went_back boolean", flags)


def test_an_end_that_is_back_where_it_was_has_come_back(spark: SparkSession) -> None:
    """From 90 over 7 to 90 or 100; neither from 90 over 7 to 89, nor where the 90 is forgotten."""
    schema = (
        "id int, is_new boolean, produced_messages long, consumed_messages long, "
        "previous_committed_offset long, committed_offset long, "
        "earlier_interval_end_us long, previous_interval_end_us long, "
        "earlier_end_offset long, previous_end_offset long, end_offset long"
    )
    hour = MEMORY_SECONDS * _S
    known = (False, 1, 1, 1, 2)
    rows = [
        (0, *known, 0, hour, 90, 7, 90),
        (1, *known, 0, hour, 90, 7, 100),
        (2, *known, 0, hour, 90, 7, 89),
        (3, *known, 0, hour + 1, 90, 7, 100),
        (4, *known, 0, hour, 90, 90, 100),
        (5, True, None, None, None, None, 0, hour, 90, 7, 100),
    ]
    found = with_resets_flagged(spark.createDataFrame(rows, schema))
    came_back = [(0, True), (1, True), (2, False), (3, False), (4, False), (5, False)]
    _is(spark, found, "id int, end_came_back boolean", came_back)


def test_rates_need_a_valid_difference(spark: SparkSession) -> None:
    """A rate over 60 s is known, one over 61 s or a reset is null, and a replay makes only the consume rate null."""
    schema = (
        "id int, elapsed_seconds double, produced_messages long, consumed_messages long, "
        "end_went_back boolean, end_came_back boolean, commit_went_back boolean"
    )
    rows = [
        (0, 60.0, 120, 60, False, False, False),
        (1, 61.0, 120, 60, False, False, False),
        (2, 15.0, -9, 30, True, False, False),
        (3, 15.0, 30, -9, False, False, True),
        (4, None, None, None, False, False, False),
        (5, 15.0, 3000, 30, False, True, False),
    ]
    found = with_consume_rate(with_produce_rate(spark.createDataFrame(rows, schema)))
    rates = [(0, 2.0, 1.0), (1, None, None), (2, None, None), (3, 2.0, None), (4, None, None), (5, None, 2.0)]
    _is(spark, found, "id int, produce_rate double, consume_rate double", rates)


def test_lag_is_never_negative_and_unknown_without_a_commit_or_log_start(spark: SparkSession) -> None:
    """Races are 0 and counted; without a commit, and where none was lost, the lag is the log, if its start is known.

    Where the end alone has gone back, it may be wrong; where the commit has too, the topic was made again.
    """
    schema = (
        "id int, end_offset long, committed_offset long, log_start_offset long, commit_is_lost boolean, "
        "end_went_back boolean, commit_went_back boolean"
    )
    rows = [
        (0, 100, 90, 0, False, False, False),
        (1, 100, 150, 0, False, False, False),
        (2, 100, None, 40, False, False, False),
        (3, 100, None, None, False, False, False),
        (4, 100, None, 40, True, False, False),
        (5, 100, 90, 0, False, True, False),
        (6, 100, 90, 0, False, True, True),
    ]
    found = with_lag(spark.createDataFrame(rows, schema))
    lags = [
        *((0, 10, False), (1, 0, True), (2, 60, False), (3, None, False), (4, None, False)),
        *((5, None, False), (6, 10, False)),
    ]
    _is(spark, found, "id int, partition_lag long, raced boolean", lags)


def test_skew_is_the_busiest_partition_over_the_mean(spark: SparkSession) -> None:
    """30 of 60 messages/s on one of four partitions is twice the mean, and without load the skew is unknown."""
    schema = (
        "id int, produce_messages_per_second double, partitions int, "
        "busiest struct<rate: double, topic: string, partition: int>"
    )
    rows = [(0, 60.0, 4, (30.0, "t", 17)), (1, 0.0, 4, (0.0, "t", 0)), (2, None, 4, (30.0, "t", 17))]
    found = with_partition_skew(spark.createDataFrame(rows, schema))
    skews = [(0, 2.0, "t-17"), (1, None, None), (2, None, None)]
    _is(spark, found, "id int, partition_skew_ratio double, busiest_partition string", skews)


def test_lag_seconds_uses_the_mean_rate_of_five_minutes(spark: SparkSession) -> None:
    """The row that ended 300 s ago is left out, unknown rates do not count, and lag in seconds at rate 0 is unknown."""
    schema = (
        "cluster string, group string, interval_end_us long, produce_messages_per_second double, lag_messages double"
    )
    rows = [
        ("c", "g", 0, 1000.0, 10.0),
        ("c", "g", 285 * _S, None, 10.0),
        ("c", "g", 300 * _S, 20.0, 10.0),
        ("c", "still", 300 * _S, 0.0, 10.0),
    ]
    found = with_lag_seconds(spark.createDataFrame(rows, schema))
    seconds = [("g", 0, 0.01), ("g", 285 * _S, 0.01), ("g", 300 * _S, 0.5), ("still", 300 * _S, None)]
    _is(spark, found, "group string, interval_end_us long, lag_seconds double", seconds)


def test_the_worst_lag_is_over_its_own_rate_or_the_mean_of_partitions(spark: SparkSession) -> None:
    """A lag of 500 is 10 s at its own 50/s, or 50 s at 1/s with a mean of 10/s, and null without lag, rate or load."""
    schema = (
        "id int, lag_messages double, produce_messages_per_second double, partitions int, "
        "worst struct<lag: bigint, rate: double, topic: string, partition: int>"
    )
    rows = [
        (0, 900.0, 40.0, 4, (500, 50.0, "t", 17)),
        (1, 900.0, 40.0, 4, (500, 1.0, "t", 17)),
        (2, None, 40.0, 4, (500, 50.0, "t", 17)),
        (3, 900.0, None, 4, (500, None, "t", 17)),
        (4, 900.0, 0.0, 4, (500, 0.0, "t", 17)),
        (5, None, 40.0, 4, None),
    ]
    found = with_worst_lag(spark.createDataFrame(rows, schema))
    worst = [(0, 10.0, "t-17"), (1, 50.0, "t-17"), *((unknown, None, None) for unknown in range(2, 6))]
    _is(spark, found, "id int, worst_lag_seconds double, worst_partition string", worst)


def test_a_rollup_keeps_the_worst_lag_and_its_partition(spark: SparkSession, frame: Frame, sampled: Sampled) -> None:
    """The worst lag of 3 s is kept, not the mean or the later 1 s; of equal ones the newest row's is kept."""
    schema = "cluster string, group string, interval_end_at timestamp, worst_lag_seconds double, worst_partition string"
    worst = ((15, None, None), (30, 3.0, "t-1"), (45, 1.0, "t-2"), (60, None, None), (75, 2.0, "t-5"), (90, 2.0, "t-4"))
    rows = [("c", "g", _START_AT + timedelta(seconds=second), lag, name) for second, lag, name in worst]
    base = group_intervals(frame([sampled(second, 0, 0) for second, _, _ in worst]))
    known = base.drop("worst_lag_seconds", "worst_partition")
    with_worst = known.join(spark.createDataFrame(rows, schema), ["cluster", "group", "interval_end_at"])
    found = rollup(with_worst, seconds=60)
    _is(spark, found, "worst_lag_seconds double, worst_partition string", [(3.0, "t-1"), (2.0, "t-4")])


def test_a_rollup_takes_means_of_rates_newest_states_and_sums_of_counts(frame: Frame, sampled: Sampled) -> None:
    """Unknown rates are left out of the mean, lag and members are the newest, and one rebalance marks the minute."""
    samples = [
        sampled(15, 0, 0),
        sampled(30, 150, 0, group_state="COMPLETING_REBALANCE"),
        sampled(45, 450, 300),
        sampled(60, 600, 450, members=5),
        sampled(75, 600, 600),
    ]
    base = group_intervals(frame(samples))
    first, second = rollup(base, seconds=60).orderBy("interval_end_at").collect()
    assert first.produce_messages_per_second == pytest.approx(600 / 45)
    assert first.consume_messages_per_second == pytest.approx(450 / 45)
    assert (first.interval_seconds, first.lag_messages, first.members, first.group_state) == (60, 150.0, 5, "STABLE")
    assert (first.in_rebalance, first.in_rebalance_count) == (True, 1)
    assert first.interval_end_at.second == 0
    assert (second.produce_messages_per_second, second.in_rebalance, second.members) == (0.0, False, 2)


def test_base_rows_and_rollups_have_the_columns_of_the_table(frame: Frame, sampled: Sampled) -> None:
    """Names, order and types of the columns are those of `forecasting.columns`."""
    kinds = {"long": "bigint"}
    wanted = [(column.name, kinds.get(column.kind, column.kind)) for column in GROUP_INTERVALS]
    base = group_intervals(frame([sampled(15, 0, 0)]))
    assert base.dtypes == wanted
    assert rollup(base, seconds=60).dtypes == wanted
