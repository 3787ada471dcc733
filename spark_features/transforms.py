"""The features, as small DataFrame -> DataFrame steps: samples, partition intervals, group intervals.

A partition interval is the newest sample of one partition in one base interval. Instants are whole microseconds since
1970 inside (`_us`), so that no comparison depends on a time zone or a float. Read in the order of `group_intervals`.
"""

from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import BASE_INTERVAL_SECONDS, GROUP_INTERVALS, REBALANCING_STATES

# A rate over a longer gap than this would be an average over a time without samples.
LONGEST_RATE_SECONDS = 60
# A partition without samples for this long is dropped: it counts neither as missing then, nor as known when it returns.
MEMORY_SECONDS = 3600
# Lag in seconds is lag in messages divided by the mean produce rate of these newest seconds.
LAG_RATE_SECONDS = 300
# Time before its first row that the job has to read, so that a run for one day gives the same rows as one for all days.
LOOK_BACK_SECONDS = MEMORY_SECONDS + LAG_RATE_SECONDS + LONGEST_RATE_SECONDS

_US = 1_000_000
_GROUP = ("cluster", "group")
# What a later row depends on of an earlier one.
ROWS_BEFORE = (*_GROUP, "interval_end_at", "produce_messages_per_second")
# The state of the group as each of its samples repeats it. What hardly ever changes is one word until the last step, as
# are the names of a partition: in a profile of 10 million samples copying words from step to step was a fifth of it.
_GROUP_STATE = ("members", "description")
_DESCRIPTION = {
    "group_state": "string",
    "group_protocol": "string",
    "group_assignor": "string",
    "static_members": "int",
    "clients": "string",
    "streams": "string",
    "commit_interval_seconds": "double",
    "busy_ratio": "double",
    "session_timeout_seconds": "double",
    "rebalance_timeout_seconds": "double",
    "consumer_heartbeat_seconds": "double",
}
_SEPARATOR = "\x1f"
# The partition comes first: it is an integer, and sorting distinguishes most rows by the first key.
_PARTITION = ("partition", "names")


def group_intervals(samples: DataFrame, *, rows_before: DataFrame | None = None) -> DataFrame:
    """Samples to base rows of the feature table: all steps in their order.

    `rows_before` are base rows of the last LAG_RATE_SECONDS, in the columns of ROWS_BEFORE, where the samples of that
    time are not all there any more. Rows up to a group's newest one of them are left out.
    """
    steps = (
        latest_in_interval,
        with_offset_deltas,
        with_resets_flagged,
        with_produce_rate,
        with_consume_rate,
        with_lag,
        per_group_interval,
        with_partition_skew,
        with_lag_seconds if rows_before is None else partial(with_lag_seconds_after, rows_before=rows_before),
        with_worst_lag,
        as_group_intervals,
    )
    return reduce(DataFrame.transform, steps, samples)


def interval_end_us(instant_us: Column, *, seconds: int) -> Column:
    """The end of the interval that contains an instant; an instant on a boundary belongs to the earlier interval.

    12:00:15.000000 ends at 12:00:15, 12:00:15.000001 at 12:00:30.
    """
    return instant_us + F.pmod(-instant_us, F.lit(seconds * _US))


def latest_in_interval(samples: DataFrame) -> DataFrame:
    """One row for each partition and base interval: the newest sample, and the number of samples during a rebalance.

    Of samples with the same instant the one with the highest offsets stays, so that a file read twice changes nothing
    but `in_rebalance_count`. A committed offset of -1 becomes null: both mean that nothing was committed yet.
    """
    in_time = Window.partitionBy(*_PARTITION).orderBy("sampled_us", "end_offset", "committed_offset")
    sampled_us = F.unix_micros("sampled_at")
    rebalancing = F.col("group_state").isin(*REBALANCING_STATES).cast("long")
    # One order for all windows over partitions, so that Spark sorts once: a window for each interval costs 8 s more
    # on 2 million rows than this running sum and its differences.
    so_far = F.sum("rebalancing").over(in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    next_end_us = F.lead("interval_end_us").over(in_time)
    return (
        samples.withColumns(
            {
                "sampled_us": sampled_us,
                "committed_offset": _null_if_negative("committed_offset"),
                "rebalancing": rebalancing,
                "names": _names(),
                "description": F.concat_ws(
                    _SEPARATOR, *(F.coalesce(F.col(name).cast("string"), F.lit("")) for name in _DESCRIPTION)
                ),
            }
        )
        .drop("sampled_at", "cluster", "group", "topic", *_DESCRIPTION)
        .withColumn("interval_end_us", interval_end_us(F.col("sampled_us"), seconds=BASE_INTERVAL_SECONDS))
        .withColumns({"so_far": so_far, "next_end_us": next_end_us})
        .where(F.col("next_end_us").isNull() | (F.col("next_end_us") > F.col("interval_end_us")))
        .withColumn("in_rebalance_count", F.col("so_far") - F.coalesce(F.lag("so_far").over(in_time), F.lit(0)))
        .drop("so_far", "next_end_us", "rebalancing")
    )


def with_offset_deltas(partitions: DataFrame) -> DataFrame:
    """The messages of each partition since its previous interval, and its flags.

    It is new, about to be forgotten, or its commit is lost: within the last hour there was one.

    Deltas are null for a new partition. The committed delta is 0 if neither sample has a commit; it is unknown if only
    one of them has a commit, and where the group was not read: `members` is null then.
    """
    in_time = Window.partitionBy(*_PARTITION).orderBy("sampled_us")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    commit_seen_us = F.when(F.col("committed_offset").isNotNull(), F.col("sampled_us"))
    before = {name: F.lag(name).over(in_time) for name in ("interval_end_us", "sampled_us", "end_offset")}
    earlier = {name: F.lag(name, 2).over(in_time) for name in ("interval_end_us", "end_offset")}
    gap_us = F.col("interval_end_us") - F.col("previous_interval_end_us")
    known_us = F.lit(MEMORY_SECONDS * _US)
    never_committed = _nothing_committed() & F.col("previous_committed_offset").isNull()
    return (
        partitions.withColumns(
            {f"previous_{name}": column for name, column in before.items()}
            | {f"earlier_{name}": column for name, column in earlier.items()}
        )
        .withColumn("previous_committed_offset", F.lag("committed_offset").over(in_time))
        .withColumn("commit_seen_us", F.last(commit_seen_us, ignorenulls=True).over(so_far))
        .withColumn("next_interval_end_us", F.lead("interval_end_us").over(in_time))
        .withColumn("is_new", F.coalesce(gap_us > known_us, F.lit(col=True)))
        .withColumns(
            {
                "is_leaving": F.coalesce(
                    F.col("next_interval_end_us") - F.col("interval_end_us") > known_us, F.lit(col=True)
                ),
                "commit_is_lost": _flag(
                    F.col("committed_offset").isNull() & (F.col("sampled_us") - F.col("commit_seen_us") <= known_us)
                ),
                "elapsed_seconds": _unless_new((F.col("sampled_us") - F.col("previous_sampled_us")) / _US),
                "missing_intervals": _unless_new((gap_us / (BASE_INTERVAL_SECONDS * _US)).cast("long") - 1),
                "produced_messages": _unless_new(F.col("end_offset") - F.col("previous_end_offset")),
                "consumed_messages": _unless_new(
                    F.when(never_committed, 0).otherwise(F.col("committed_offset") - F.col("previous_committed_offset"))
                ),
            }
        )
    )


def with_resets_flagged(partitions: DataFrame) -> DataFrame:
    """Flags for offsets that went backwards: the topic was created again, or the group was reset or lost its commit.

    An end that is back where it was in the interval before the last one came back: of the three readings the middle one
    was wrong, or else nobody knows what was produced since.
    """
    is_recent = F.col("previous_interval_end_us") - F.col("earlier_interval_end_us") <= MEMORY_SECONDS * _US
    had_gone_back = is_recent & (F.col("previous_end_offset") < F.col("earlier_end_offset"))
    lost_commit = F.col("previous_committed_offset").isNotNull() & F.col("committed_offset").isNull()
    return partitions.withColumns(
        {
            "end_went_back": _flag(F.col("produced_messages") < 0),
            "end_came_back": _flag(
                ~F.col("is_new") & had_gone_back & (F.col("end_offset") >= F.col("earlier_end_offset"))
            ),
            "commit_went_back": _flag(~F.col("is_new") & (lost_commit | (F.col("consumed_messages") < 0))),
        }
    )


def with_produce_rate(partitions: DataFrame) -> DataFrame:
    """Messages per second into each partition; null without a valid difference of end offsets."""
    honest = ~F.col("end_went_back") & ~F.col("end_came_back")
    return partitions.withColumn("produce_rate", _rate("produced_messages", honest=honest))


def with_consume_rate(partitions: DataFrame) -> DataFrame:
    """Messages per second consumed from each partition; null without a valid difference of committed offsets."""
    honest = ~F.col("end_went_back") & ~F.col("commit_went_back")
    return partitions.withColumn("consume_rate", _rate("consumed_messages", honest=honest))


def with_lag(partitions: DataFrame) -> DataFrame:
    """Messages between the committed offset and the end of the partition, never negative.

    Without a commit all messages of the log are still to be read; without a known log start, lag is null. It is unknown
    for an hour where a commit was there and is not any more: an answer without it is more likely than a lost one, and
    what the group will read then, the whole log or nothing of it, is a setting of its consumers. So it is where the end
    alone went back: that reading may be wrong.
    """
    is_known = ~F.col("commit_is_lost") & (~F.col("end_went_back") | F.col("commit_went_back"))
    behind = F.col("end_offset") - F.coalesce("committed_offset", "log_start_offset")
    return partitions.withColumns(
        {
            "partition_lag": F.when(behind.isNotNull() & is_known, F.greatest(behind, F.lit(0))),
            # A commit newer than the end offset that was read with it: 1,203,900 and 1,203,950 is lag 0, not -50.
            "raced": _flag(F.col("committed_offset") > F.col("end_offset")),
        }
    )


def with_names(partitions: DataFrame) -> DataFrame:
    """The cluster, topic and group of each row again, which `latest_in_interval` has made one word of."""
    words = F.split("names", "/", 3)
    cluster, topic, together = words[0].cast("int"), words[1].cast("int"), words[2]
    return partitions.withColumns(
        {
            "cluster": F.substr(together, F.lit(1), cluster),
            "topic": F.substr(together, cluster + 1, topic),
            "group": F.substr(together, cluster + topic + 1),
        }
    )


def per_group_interval(partitions: DataFrame) -> DataFrame:
    """One row for each group and interval: sums over its partitions, null unless every known partition has a value.

    A sum over only some partitions looks like a drop in load, on which replicas would be removed.
    """
    earlier_and_now = Window.partitionBy(*_GROUP).orderBy("interval_end_us")
    forgotten = earlier_and_now.rangeBetween(Window.unboundedPreceding, -(MEMORY_SECONDS * _US + 1))
    known = F.sum("arrivals").over(earlier_and_now) - F.coalesce(F.sum("departures").over(forgotten), F.lit(0))
    return (
        _sums_per_topic(partitions)
        .transform(with_names)
        .transform(_sums_per_group)
        .withColumn("partitions", known.cast("int"))
        .withColumns(
            {
                "produce_messages_per_second": _if_all("produce_rate", having="produce_rates"),
                "consume_messages_per_second": _if_all("consume_rate", having="consume_rates"),
                "lag_messages": F.when(
                    F.col("lost_commits") == 0, _if_all("lag", having="sampled_partitions").cast("double")
                ),
                # The group itself is new if no partition was known before: then no partition counts as appeared.
                "partition_appeared_count": F.when(F.col("arrivals") == known, F.lit(0)).otherwise(F.col("arrivals")),
            }
        )
    )


def with_partition_skew(groups: DataFrame) -> DataFrame:
    """The ratio of the busiest partition's rate to the mean one; null without a rate or without load."""
    loaded = F.col("produce_messages_per_second") > 0
    mean_rate = F.col("produce_messages_per_second") / F.col("partitions")
    return groups.withColumns(
        {
            "partition_skew_ratio": F.when(loaded, F.col("busiest.rate") / mean_rate),
            "busiest_partition": F.when(loaded, F.concat_ws("-", "busiest.topic", "busiest.partition")),
        }
    )


def with_lag_seconds(groups: DataFrame) -> DataFrame:
    """Lag in seconds: lag in messages divided by the mean produce rate of 5 minutes; null at rate 0."""
    newest = Window.partitionBy(*_GROUP).orderBy("interval_end_us").rangeBetween(-(LAG_RATE_SECONDS * _US - 1), 0)
    rate = F.avg("produce_messages_per_second").over(newest)
    return groups.withColumn("mean_rate", rate).withColumn(
        "lag_seconds", F.when(F.col("mean_rate") > 0, F.col("lag_messages") / F.col("mean_rate"))
    )


def with_lag_seconds_after(groups: DataFrame, *, rows_before: DataFrame) -> DataFrame:
    """Lag in seconds of the rows after each group's newest row before, whose rates count too; other rows are left out.

    Up to it, samples are not all there, and what the rows have of rates is wrong.
    """
    whole = Window.partitionBy(*_GROUP).orderBy("interval_end_us")
    whole = whole.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    before_us = F.unix_micros("interval_end_at")
    before = rows_before.withColumns({"interval_end_us": before_us, "before_us": before_us}).drop("interval_end_at")
    return (
        groups.withColumn("before_us", F.lit(None).cast("long"))
        .unionByName(before, allowMissingColumns=True)
        .coalesce(1)  # a few rows of each group, for which a shuffle takes longer than the work itself
        .withColumn("newest_before_us", F.coalesce(F.max("before_us").over(whole), F.lit(0)))
        .where(F.col("before_us").isNotNull() | (F.col("interval_end_us") > F.col("newest_before_us")))
        .transform(with_lag_seconds)
        .where(F.col("before_us").isNull())
    )


def with_worst_lag(groups: DataFrame) -> DataFrame:
    """The largest lag in seconds of a partition, and its name: a sum hides one slow replica among twenty.

    Its lag divided by its own rate of this interval, or by the mean partition's rate if that is higher, because an
    almost idle partition is not hours late: 500 messages at 0.1/s, where the mean is 10/s, are 50 s, not 5,000 s.
    """
    mean_rate = F.col("produce_messages_per_second") / F.col("partitions")
    known = F.col("lag_messages").isNotNull() & (mean_rate > 0)
    return groups.withColumns(
        {
            "worst_lag_seconds": F.when(known, F.col("worst.lag") / F.greatest("worst.rate", mean_rate)),
            "worst_partition": F.when(known, F.concat_ws("-", "worst.topic", "worst.partition")),
        }
    )


def as_group_intervals(groups: DataFrame) -> DataFrame:
    """The columns of the feature table, in its order, of base rows."""
    described = F.split("newest.description", _SEPARATOR)
    return groups.withColumns(
        {
            "interval_end_at": F.timestamp_micros("interval_end_us"),
            "interval_seconds": F.lit(BASE_INTERVAL_SECONDS),
            "members": F.col("newest.members"),
            **{
                name: F.nullif(described[place], F.lit("")).cast(kind)
                for place, (name, kind) in enumerate(_DESCRIPTION.items())
            },
            "in_rebalance": F.col("in_rebalance_count") > 0,
        }
    ).select(*(column.name for column in GROUP_INTERVALS))


def _sums_per_topic(partitions: DataFrame) -> DataFrame:
    """Partitions to topics: all columns but the keys are numbers, so that Spark sums in a hash table without sorting.

    Messages of the same seconds are summed as whole numbers, so that Spark's order of the rows changes no digit.
    """
    keys = ("names", "interval_end_us", *_GROUP_STATE, "elapsed_seconds")
    # Lags are whole: the subtracted part stays under 1 up to partition 1,048,575, and is exact up to a lag of 2^33.
    lag_then_lowest = F.col("partition_lag") - F.col("partition") / F.lit(2.0**20)
    return partitions.groupBy(*keys).agg(
        F.count("*").alias("sampled"),
        F.max("sampled_us").alias("sampled_us"),
        F.sum(F.col("is_new").cast("long")).alias("arrivals"),
        F.sum(F.col("is_leaving").cast("long")).alias("departures"),
        _sum_over_seconds("produced_messages", having="produce_rate").alias("produce_rate"),
        F.count("produce_rate").alias("produce_rates"),
        _sum_over_seconds("consumed_messages", having="consume_rate").alias("consume_rate"),
        F.count("consume_rate").alias("consume_rates"),
        F.sum("partition_lag").alias("lag"),
        F.sum(F.col("commit_is_lost").cast("long")).alias("lost_commits"),
        F.max("produce_rate").alias("busiest_rate"),
        # Of equally busy partitions the lowest: the subtracted part is under 1/60 messages/s up to partition 17,000.
        F.max_by("partition", F.col("produce_rate") - F.col("partition") / F.lit(2.0**20)).alias("busiest"),
        F.max("partition_lag").alias("worst_lag"),
        F.max_by("partition", lag_then_lowest).alias("worst"),
        F.max_by("produce_rate", lag_then_lowest).alias("worst_rate"),
        F.sum("missing_intervals").alias("gap_count"),
        F.sum(_nothing_committed().cast("long")).alias("no_commit_count"),
        F.sum(F.col("raced").cast("long")).alias("negative_race_count"),
        F.sum((F.col("end_went_back") | F.col("commit_went_back")).cast("long")).alias("offset_reset_count"),
        F.sum("in_rebalance_count").alias("in_rebalance_count"),
    )


def _sums_per_group(topics: DataFrame) -> DataFrame:
    sums = (
        *("arrivals", "departures", "produce_rates", "consume_rates", "lag", "lost_commits"),
        *("no_commit_count", "negative_race_count", "offset_reset_count", "in_rebalance_count"),
    )
    return topics.groupBy(*_GROUP, "interval_end_us").agg(
        F.array_join(F.array_sort(F.collect_set("topic")), ",").alias("topics"),
        F.sum("sampled").cast("int").alias("sampled_partitions"),
        F.coalesce(F.sum("gap_count"), F.lit(0)).alias("gap_count"),
        F.max(F.struct("sampled_us", *_GROUP_STATE)).alias("newest"),
        F.max_by(
            F.struct(
                F.col("busiest_rate").alias("rate"), F.col("topic").alias("topic"), F.col("busiest").alias("partition")
            ),
            F.struct("busiest_rate", F.col("topic")),
        ).alias("busiest"),
        F.min_by(
            F.struct(
                F.col("worst_lag").alias("lag"),
                F.col("worst_rate").alias("rate"),
                F.col("topic").alias("topic"),
                F.col("worst").alias("partition"),
            ),
            # Only where lag is known: null would come first.
            F.when(F.col("worst_lag").isNotNull(), F.struct(-F.col("worst_lag"), F.col("topic"), F.col("worst"))),
        ).alias("worst"),
        *(F.sum(name).alias(name) for name in sums),
        *(_sum_in_order(name).alias(name) for name in ("produce_rate", "consume_rate")),
    )


def _names() -> Column:
    """Cluster, topic and group as one word, with two lengths before it: "4/6/mainorderscheckout"."""
    return F.concat(F.length("cluster"), F.lit("/"), F.length("topic"), F.lit("/"), "cluster", "topic", "group")


def _if_all(total: str, *, having: str) -> Column:
    return F.when(F.col(having) == F.col("partitions"), F.col(total))


def _rate(messages: str, *, honest: Column) -> Column:
    seconds = F.col("elapsed_seconds")
    return F.when(honest & (seconds <= LONGEST_RATE_SECONDS) & (seconds > 0), F.col(messages) / seconds)


def _sum_over_seconds(messages: str, *, having: str) -> Column:
    return F.sum(F.when(F.col(having).isNotNull(), F.col(messages))) / F.col("elapsed_seconds")


def _sum_in_order(name: str) -> Column:
    """A sum of fractions, from the smallest to the largest: the same digits for any order of Spark's rows."""
    return F.aggregate(F.array_sort(F.collect_list(name)), F.lit(0.0), lambda total, value: total + value)


def _nothing_committed() -> Column:
    """True if nothing is committed; not where the group was not read, as of the past only end offsets are known."""
    return F.col("committed_offset").isNull() & F.col("members").isNotNull()


def _unless_new(column: Column) -> Column:
    return F.when(~F.col("is_new"), column)


def _flag(condition: Column) -> Column:
    """The condition, with false where it is unknown."""
    return F.coalesce(condition, F.lit(col=False))


def _null_if_negative(name: str) -> Column:
    return F.when(F.col(name) >= 0, F.col(name))
