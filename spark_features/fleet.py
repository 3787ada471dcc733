"""The fit of a fleet: one pure function for each group, on as many machines as there are."""

from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import FLEET_FITS
from spark_features.schema import spark_schema

FLEET_FITS_SCHEMA = spark_schema(FLEET_FITS)

# Forecasters read minutes.
_INTERVAL_SECONDS = 60


def fit_fleet(frame: DataFrame, fit_one: Callable[[pd.DataFrame], pd.DataFrame]) -> DataFrame:
    """Rows of `columns.FLEET_FITS` for every group in `frame`, rows of `columns.GROUP_INTERVALS`.

    `fit_one` is pure: it gets the 60 s rows of one group, in any order, with the four columns that say whose, when and
    how much, and is sent to Spark's workers by name. A group's rows have to fit in a worker's memory: 28 days are 3 MB.
    """
    minutes = frame.where(F.col("interval_seconds") == _INTERVAL_SECONDS).select(
        "cluster", "group", "interval_end_at", "interval_seconds", "produce_messages_per_second"
    )
    return minutes.groupBy("cluster", "group").applyInPandas(fit_one, FLEET_FITS_SCHEMA)
