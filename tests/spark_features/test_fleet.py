"""A fleet fitted by Spark gives the rows of its groups fitted one by one."""

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import FLEET_FITS
from forecasting.fleet import fit_group
from spark_features.fleet import fit_fleet

# The session's own filter, which pytest replaces.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

DAYS = {"a": 1, "b": 3, "c": 15}


def rows_of(group: str, days: int) -> pd.DataFrame:
    time = np.arange(days * 1440)
    noise = np.random.default_rng(days).normal(0.0, 0.1, len(time))
    return pd.DataFrame(
        {
            "cluster": "c",
            "group": group,
            "interval_end_at": pd.date_range(end="2026-01-05", periods=len(time), freq="1min"),
            "interval_seconds": 60,
            "produce_messages_per_second": 500.0 * (1.5 + np.sin(2.0 * np.pi * time / 1440.0)) * np.exp(noise),
        }
    )


def test_spark_gives_the_rows_that_the_function_gives(spark: SparkSession) -> None:
    """The rows of three groups, one of them refused, are those of the function; rows of other lengths are not read."""
    groups = {group: rows_of(group, days) for group, days in DAYS.items()}
    minutes = spark.createDataFrame(pd.concat(groups.values(), ignore_index=True))
    others = minutes.limit(3).withColumn("interval_seconds", F.lit(15).cast("long"))
    fleet = fit_fleet(minutes.union(others), fit_group, columns=FLEET_FITS, rows=19 * 1440)
    fits = sorted(fleet.collect(), key=key_of)
    by_hand = pd.concat([fit_group(rows) for rows in groups.values()], ignore_index=True)
    assert len(by_hand) > len(groups)
    for row, expected in zip(fits, by_hand.to_dict("records"), strict=True):
        for name, value in expected.items():
            if name == "fitted_at":
                # Spark returns naive local instants.
                assert row[name].timestamp() == value.timestamp()
            else:
                assert row[name] == value or (row[name] is None and pd.isna(value)), name


def key_of(row: Row) -> tuple[str, int]:
    return row["group"], row["horizon_seconds"] or 0
