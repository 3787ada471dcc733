"""One Spark session without output for all tests, and short forms for samples and frames."""

import os
from collections.abc import Callable, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from collector.sample import OffsetSample
from spark_features.java import find_java
from spark_features.schema import SAMPLES_SCHEMA
from spark_features.session import spark_session
from spark_features.transforms import group_intervals

START_AT = datetime(2026, 5, 4, tzinfo=UTC)

Sampled = Callable[..., OffsetSample]
Intervals = Callable[[Sequence[OffsetSample]], list[Row]]


def at(seconds: float) -> datetime:
    """The instant that many seconds after midnight of the first day."""
    return START_AT + timedelta(seconds=seconds)


@pytest.fixture(name="spark")
def spark_fixture(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The session of this process, obtained again by every test, as a test of a command stops it with the command."""
    log_path = tmp_path_factory.getbasetemp() / "spark.log"
    return spark_session("tests", java=find_java(os.environ), master="local[2]", memory="1g", log_path=log_path)


@pytest.fixture(name="sampled", scope="session")
def sampled_fixture() -> Sampled:
    """`sampled(second, end, committed, partition=0, **fields)`: a sample of one partition of topic `t`."""

    def sampled(
        second: float, end: int, committed: int | None = None, partition: int = 0, **fields: object
    ) -> OffsetSample:
        known: dict[str, object] = {
            "cluster": "c",
            "group": "g",
            "topic": "t",
            "log_start_offset": None,
            "group_state": "STABLE",
            "group_protocol": "consumer",
            "group_assignor": "range",
            "members": 2,
        }
        seen = {"partition": partition, "sampled_at": at(second), "end_offset": end, "committed_offset": committed}
        return OffsetSample(**(known | seen | fields))  # type: ignore[arg-type]  # the table's own types are checked by Spark

    return sampled


@pytest.fixture(name="frame")
def frame_fixture(spark: SparkSession) -> Callable[[Sequence[OffsetSample]], DataFrame]:
    """Samples as Spark reads them from files."""
    return lambda samples: spark.createDataFrame([astuple(sample) for sample in samples], SAMPLES_SCHEMA)


@pytest.fixture(name="intervals")
def intervals_fixture(frame: Callable[[Sequence[OffsetSample]], DataFrame]) -> Intervals:
    """The base rows of some samples, by group and time."""
    return lambda samples: group_intervals(frame(samples)).orderBy("cluster", "group", "interval_end_at").collect()


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    """An empty folder of this test."""
    return tmp_path
