"""Fits and forecasts of a fleet: one pure function per group, on any number of machines."""

from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import Column
from spark_features.schema import spark_schema

# Forecasters read minutes.
FLEET_INTERVAL_SECONDS = 60


# Groups are distributed over this many parts: the features job's four would use four cores at most.
_PARTS = 64


def fit_fleet(
    frame: DataFrame, fit_one: Callable[[pd.DataFrame], pd.DataFrame], *, columns: tuple[Column, ...]
) -> DataFrame:
    """The rows that `fit_one` returns for every group in `frame` (`columns.GROUP_INTERVALS`); the result has `columns`.

    `fit_one` is pure: it gets the 60 s rows of one group, in any order, with the four columns for group, instant and
    rate, and is sent to Spark's workers. A group's rows have to fit in a worker's memory: 28 days are 3 MB.
    """
    minutes = frame.where(F.col("interval_seconds") == FLEET_INTERVAL_SECONDS).select(
        "cluster", "group", "interval_end_at", "interval_seconds", "produce_messages_per_second"
    )

    def of_group(rows: pd.DataFrame) -> pd.DataFrame:
        """`fit_one` with type hints: Spark warns of a function without them, such as a partial one."""
        return fit_one(rows)

    dealt = minutes.repartition(_PARTS, "cluster", "group")
    return dealt.groupBy("cluster", "group").applyInPandas(of_group, spark_schema(columns))
