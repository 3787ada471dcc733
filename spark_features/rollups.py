"""Longer intervals from base rows: a minute, five minutes or an hour, in the same columns."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import GROUP_INTERVALS
from spark_features.transforms import interval_end_us

_GROUP = ("cluster", "group")
_COUNTS = (
    "gap_count",
    "no_commit_count",
    "negative_race_count",
    "offset_reset_count",
    "in_rebalance_count",
    "partition_appeared_count",
)

_NEWEST_KNOWN = (
    *("lag_messages", "lag_seconds", "members"),
    *("group_protocol", "group_assignor", "static_members", "clients", "streams"),
    *("commit_interval_seconds", "session_timeout_seconds", "rebalance_timeout_seconds", "consumer_heartbeat_seconds"),
)


def rollup(base: DataFrame, *, seconds: int) -> DataFrame:
    """Base rows to one row for each group and `seconds`: means of known rates, newest lag and members, sums of counts.

    A rate's weight is the length of its row's interval. The busiest partition is the most frequent one of the rows; the
    worst lag and its partition are those of the row with the highest worst lag, because a mean would hide them.
    """
    end_us = interval_end_us(F.unix_micros("interval_end_at"), seconds=seconds)
    newest = {name: _newest(name) for name in ("topics", "partitions", "sampled_partitions", "group_state")}
    newest_known = {name: _newest_known(name) for name in _NEWEST_KNOWN}
    means = {
        name: _mean_over_time(name)
        for name in ("produce_messages_per_second", "consume_messages_per_second", "partition_skew_ratio", "busy_ratio")
    }
    worst_then_newest = F.when(F.col("worst_lag_seconds").isNotNull(), F.struct("worst_lag_seconds", "interval_end_at"))
    columns = {
        **newest,
        **newest_known,
        **means,
        **{name: F.sum(name) for name in _COUNTS},
        "in_rebalance": F.max("in_rebalance"),
        "busiest_partition": F.mode("busiest_partition", deterministic=True),
        "worst_lag_seconds": F.max("worst_lag_seconds"),
        "worst_partition": F.max_by("worst_partition", worst_then_newest),
    }
    return (
        base.groupBy(*_GROUP, F.timestamp_micros(end_us).alias("end_at"))
        .agg(*(column.alias(name) for name, column in columns.items()))
        .withColumns({"interval_end_at": F.col("end_at"), "interval_seconds": F.lit(seconds)})
        .select(*(column.name for column in GROUP_INTERVALS))
    )


def _newest(name: str) -> Column:
    return F.max_by(name, "interval_end_at")


def _newest_known(name: str) -> Column:
    return F.max_by(name, F.when(F.col(name).isNotNull(), F.col("interval_end_at")))


def _mean_over_time(name: str) -> Column:
    weight = F.when(F.col(name).isNotNull(), F.col("interval_seconds"))
    return F.sum(F.col(name) * F.col("interval_seconds")) / F.sum(weight)
