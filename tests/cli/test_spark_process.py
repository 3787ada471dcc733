"""Spark of `up` in a process of its own: its death costs time, and no row."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.parts import parts_until
from cli.spark_process import SparkProcess, spark_process
from collector.sample import OffsetSample
from collector.sinks import write_samples
from recommender.adapters.feature_table import FeatureTable
from recommender.borders import Borders
from spark_features.samples import FeaturesError
from tests.feature_folder import add_rows, steady_row

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
_MOST_SECONDS = 600.0


def sample(minute: float) -> OffsetSample:
    """A sample of the only partition, which gets 100 messages/s."""
    return OffsetSample(
        cluster="c",
        group="g",
        topic="t",
        partition=0,
        sampled_at=NOON + timedelta(minutes=minute, seconds=14),
        end_offset=round(6000 * minute),
        committed_offset=round(6000 * minute),
        log_start_offset=None,
        group_state="STABLE",
        group_protocol="consumer",
        group_assignor="range",
        members=2,
    )


def processes_of(parent: int, program: str) -> Iterator[int]:
    """The living processes of a program below another process."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    children = [
        (int(pid), int(above), name) for pid, above, name in (line.split(None, 2) for line in listed.splitlines())
    ]
    for pid, above, name in children:
        if above == parent:
            if name.startswith(program):
                yield pid
            yield from processes_of(pid, program)


def lives(pid: int) -> bool:
    """True for a process that has not ended; one that has may wait for its new parent to ask."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] not in ("", "Z")


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, ten minutes at most: beside other tests a JVM may take two to start."""
    last = time.monotonic() + _MOST_SECONDS
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Samples of ten minutes."""
    write_samples([sample(minute / 4) for minute in range(40)], tmp_path / "samples")
    return tmp_path


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "end"), [("java", signal.SIGKILL), ("python", signal.SIGKILL), ("java", signal.SIGSTOP)]
)
def test_p16_spark_that_is_killed_or_hangs_costs_the_rows_nothing_but_time(
    *,
    folder: Path,
    victim: str,
    end: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The JVM ended advice and REST with it; the next one goes on where the table ends, and every row is there once."""
    others = set(processes_of(os.getpid(), "java"))
    counted: list[str] = []
    stop, samples, out = threading.Event(), folder / "samples", folder / "features"
    with (
        spark_process(samples, out, log_path=folder / "spark.log") as spark,
        parts_until(stop, Borders(counted.append)) as parts,
    ):
        spark.make(stop)
        table = FeatureTable(out)
        before = len(table.intervals("c", "g"))
        parts.start("features", spark.follow)
        write_samples([sample(10 + minute / 4) for minute in range(4)], samples)
        until(lambda: len(table.intervals("c", "g")) > before)
        process, _ = spark.start()
        assert process.pid is not None
        (victim_pid,) = processes_of(process.pid, "java") if victim == "java" else (process.pid,)
        os.kill(victim_pid, end)
        # A JVM takes longer than this to start on a busy machine, and is not to be taken for one that hangs.
        with monkeypatch.context() as impatient:
            impatient.setattr("cli.spark_process.HUNG_AFTER_SECONDS", 20.0)
            until(lambda: counted)
        write_samples([sample(11 + minute / 4) for minute in range(8)], samples)
        until(lambda: table.newest_interval_end_at() == NOON + timedelta(minutes=12, seconds=45 + 15))
        stop.set()
    ends = [row.interval_end_at for row in table.intervals("c", "g")]
    assert ends == [ends[0] + timedelta(seconds=15) * step for step in range(len(ends))]
    assert counted[0] == "part"
    assert set(processes_of(os.getpid(), "java")) <= others
    # A JVM that was frozen does not hear that its parent is gone: it is killed as well.
    until(lambda: not lives(victim_pid))
    # The one line of the border has the parent's traceback; PySpark's threads have none of their own.
    assert "Exception occurred during processing" not in capfd.readouterr().err


@pytest.mark.spark
@pytest.mark.slow
def test_both_orders_keep_rows_for_as_many_days_as_the_process_is_told(tmp_path: Path) -> None:
    """The job leaves out days that are too old, and so does the stream, of a table that somebody else has made."""
    samples, out, stop = tmp_path / "samples", tmp_path / "features", threading.Event()
    lately = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)  # noqa: TID251  # the process reads a clock
    recent = [replace(sample(minute / 4), sampled_at=lately + timedelta(minutes=minute / 4)) for minute in range(12)]
    write_samples([sample(0), sample(1), *recent[:8]], samples)

    def oldest() -> datetime:
        return FeatureTable(out).intervals("c", "g")[0].interval_end_at

    with spark_process(samples, out, log_path=tmp_path / "spark.log", keep_rows=36) as spark:
        spark.make(stop)
        assert oldest() >= lately
        add_rows(out, [steady_row("g", NOON)])
        assert oldest() == NOON
        following = threading.Thread(target=spark.follow, args=(stop,))
        following.start()
        write_samples(recent[8:], samples)
        until(lambda: oldest() >= lately)
        stop.set()
        following.join()


@pytest.mark.spark
@pytest.mark.slow
def test_errors_of_the_job_come_as_they_are_and_a_stop_ends_the_process(tmp_path: Path) -> None:
    """A folder without samples is one sentence, as in `lagcast features`."""
    (tmp_path / "samples").mkdir()
    others = set(processes_of(os.getpid(), "java"))
    spark = SparkProcess(tmp_path / "samples", tmp_path / "features", log_path=tmp_path / "spark.log")
    with pytest.raises(FeaturesError, match="holds no parquet file"):
        spark.make(threading.Event())
    stopped = threading.Event()
    stopped.set()
    spark.follow(stopped)
    assert set(processes_of(os.getpid(), "java")) <= others
