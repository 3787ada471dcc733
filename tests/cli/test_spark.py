"""How far a job of Spark is."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cli.progress import Stage
from cli.spark import tasks_shown
from tests.spark_features.conftest import spark_fixture

__all__ = ["spark_fixture"]


class Shown:
    """What a stage was told, and an event at the first word."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, str]] = []
        self.first = Event()
        self.stage = Stage("features", self._show)

    def _show(self, _: Stage, done: int, total: int, unit: str) -> None:
        self.told.append((done, total, unit))
        self.first.set()


@pytest.mark.spark
def test_the_tasks_of_a_job_are_counted_while_it_runs(spark: SparkSession) -> None:
    """Of a job whose tasks wait until the first of them was told, all tasks are told, and none more than there are."""
    shown = Shown()
    with tasks_shown(spark, shown.stage):
        slow = spark.sparkContext.parallelize(range(8), 8).map(lambda number: __import__("time").sleep(0.5) or number)
        assert slow.sum() == 28
    assert shown.first.is_set()
    assert {(total, unit) for _, total, unit in shown.told} == {(8, "tasks of Spark")}
    counts = [done for done, *_ in shown.told]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= 8


def test_a_jvm_that_dies_meanwhile_is_left_to_the_job_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """The look ends, and no thread writes its traceback."""
    asked = Event()

    def fail() -> None:
        asked.set()
        message = "the JVM has died"
        raise ConnectionError(message)

    tracker = SimpleNamespace(getActiveStageIds=fail)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    shown = Shown()
    with tasks_shown(session, shown.stage):
        assert asked.wait(10)
    assert (shown.told, capsys.readouterr().err) == ([], "")
