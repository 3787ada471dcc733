"""Fits and forecasts of a fleet: one pure function per group, on any number of machines."""

from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import Column
from spark_features.schema import spark_schema

# Forecasters read minutes.
FLEET_INTERVAL_SECONDS = 60


# So many minutes are one task: 20 groups of 28 days, whose fits take 0.5 s each. Those ten seconds are what the loss
# of a worker costs for each of its cores; 10,000 groups are 500 tasks. Of groups with less history, which take less,
# more are in one.
_ROWS_A_TASK = 800_000
# Tasks for each core at least, so that no core waits long for the last one.
_TASKS_A_CORE = 4


def fit_fleet(
    frame: DataFrame, fit_one: Callable[[pd.DataFrame], pd.DataFrame], *, columns: tuple[Column, ...], rows: int
) -> DataFrame:
    """The rows that `fit_one` returns for every group in `frame` (`columns.GROUP_INTERVALS`); the result has `columns`.

    `rows` is about the number of 60 s rows in `frame`, by which the work is dealt into tasks.
    `fit_one` is pure: it gets the 60 s rows of one group, in any order, with the four columns for group, instant and
    rate, and is sent to Spark's workers. A group's rows have to fit in a worker's memory: 28 days are 3 MB.
    """
    minutes = frame.where(F.col("interval_seconds") == FLEET_INTERVAL_SECONDS).select(
        "cluster", "group", "interval_end_at", "interval_seconds", "produce_messages_per_second"
    )

    def of_group(rows: pd.DataFrame) -> pd.DataFrame:
        """`fit_one` with type hints: Spark warns of a function without them, such as a partial one."""
        return fit_one(rows)

    cores = frame.sparkSession.sparkContext.defaultParallelism
    dealt = minutes.repartition(tasks_of(rows, cores=cores), "cluster", "group")
    return dealt.groupBy("cluster", "group").applyInPandas(of_group, spark_schema(columns))


def tasks_of(rows: int, *, cores: int) -> int:
    """The number of tasks in which so many minutes are fitted.

    >>> tasks_of(10_000 * 28 * 1440, cores=12)          # 504 of 20 groups each
    504
    >>> tasks_of(300 * 28 * 1440, cores=12)
    48
    """
    return max(_TASKS_A_CORE * cores, rows // _ROWS_A_TASK)
