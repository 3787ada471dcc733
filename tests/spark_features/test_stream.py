"""The stream against the batch job: the same rows, in whatever order files come, and wherever the process dies."""

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]  # as above
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from structlog.testing import CapturingLogger

from collector.keeping import keep_days
from collector.sample import OffsetSample
from collector.sinks import write_samples
from forecasting.history import GroupInterval
from recommender.adapters.feature_table import FeatureTable
from spark_features import growth, stream
from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.stream import FollowRun, follow_features
from spark_features.table import read_manifest
from tests.spark_features.conftest import START_AT

Sampled = Callable[..., OffsetSample]
Rows = dict[tuple[str, int], list[GroupInterval]]

_LENGTHS = (15, 60, 300, 3600)
_DAY_SECONDS = 86_400
_MOST_SECONDS = 120


def _rows(table: Path, groups: Sequence[str]) -> Rows:
    return {
        (group, seconds): FeatureTable(table).intervals("c", group, interval_seconds=seconds)
        for group in groups
        for seconds in _LENGTHS
    }


def _a_day_of(group: str, sampled: Sampled, *, every: int, seed: int) -> list[OffsetSample]:
    """Two partitions for a day: one begins late, one pauses, offsets go back once, and rounds are missed."""
    dice = random.Random(seed)  # noqa: S311  # a test's dice
    seen, ends = [], [1000, 5000]
    for second in range(every, _DAY_SECONDS + 1, every):
        ends = [end + dice.randrange(40 * every) for end in ends]
        if second == _DAY_SECONDS // 3:
            ends = [0, ends[1]]
        if dice.random() < 0.02 and second != _DAY_SECONDS:
            continue
        states = {"group_state": "PREPARING_REBALANCING" if dice.random() < 0.05 else "STABLE", "group": group}
        seen.append(sampled(second - 0.8, ends[0], max(0, ends[0] - dice.randrange(500)), **states))
        if second > 7200 and not 30_000 < second < 36_000:
            seen.append(sampled(second - 0.8, ends[1], ends[1] - dice.randrange(500), 1, **states))
    return seen


def _in_files(samples: Sequence[OffsetSample], folder: Path, *, seconds: int) -> list[Path]:
    """The samples in files of so many seconds each, oldest first."""
    spans: dict[float, list[OffsetSample]] = {}
    for sample in samples:
        spans.setdefault((sample.sampled_at - START_AT).total_seconds() // seconds, []).append(sample)
    return [path for span in spans.values() for path in write_samples(span, folder)]


@contextmanager
def _fed(samples_dir: Path, out_dir: Path, chunks: Iterable[Sequence[Path]], source: Path) -> Iterator[threading.Event]:
    """An event that is set when these chunks are all in the table; each is given when the one before is in it."""
    stop = threading.Event()
    # A new journal counts the existing files; a broken one may have been removed since the old journal counted it.
    is_new = not (out_dir / ".follow").exists()
    done = len(list(samples_dir.glob("date=*/*.parquet"))) if is_new else _files_in(out_dir)
    # The count of the old journal stands in the table until the new one has counted a file.
    followed = read_manifest(out_dir).followed
    old_journal = followed.journal if is_new and followed is not None else None

    def feed() -> None:
        goal = done
        for chunk in chunks:
            for path in chunk:
                target = samples_dir / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            goal += len(chunk)
            until = time.monotonic() + _MOST_SECONDS
            while _files_in(out_dir, but_journal=old_journal) < goal:
                if time.monotonic() > until:
                    return
                time.sleep(0.02)

    def feed_to_the_end() -> None:
        try:
            feed()
        finally:
            stop.set()

    samples_dir.mkdir(exist_ok=True)
    feeder = threading.Thread(target=feed_to_the_end)
    feeder.start()
    yield stop
    feeder.join()


def _files_in(out_dir: Path, *, but_journal: str | None = None) -> int:
    followed = read_manifest(out_dir).followed
    return followed.files if followed is not None and followed.journal != but_journal else 0


def _follow(spark: SparkSession, folder: Path, chunks: Iterable[Sequence[Path]]) -> FollowRun:
    with _fed(folder / "samples", folder / "out", chunks, folder / "made") as stop:
        return follow_features(spark, folder / "samples", folder / "out", stop=stop)


@pytest.mark.spark
@pytest.mark.slow
def test_a_day_in_random_chunks_is_the_batch_jobs_day(spark: SparkSession, folder: Path, sampled: Sampled) -> None:
    """With two collectors, one always behind the other, and a restart, every row of every length is the batch job's."""
    quick = _in_files(_a_day_of("quick", sampled, every=15, seed=1), folder / "made", seconds=900)
    slow = _in_files(_a_day_of("slow", sampled, every=60, seed=2), folder / "made", seconds=1800)
    dice = random.Random(3)  # noqa: S311  # a test's dice
    chunks: list[list[Path]] = []
    files = {"quick": quick, "slow": slow}
    while files["quick"] or files["slow"]:
        # The files of the slow collector come some hours after those of the quick one.
        taken = {"quick": dice.randrange(1, 48), "slow": dice.randrange(0, 14) if files["quick"] else len(slow)}
        chunks.append([path for name, count in taken.items() for path in files[name][:count]])
        files = {name: left[taken[name] :] for name, left in files.items()}
    middle = len(chunks) // 2
    first = _follow(spark, folder, chunks[:middle])
    second = _follow(spark, folder, chunks[middle:])
    run = build_features(spark, folder / "samples", folder / "batch")
    streamed, wanted = _rows(folder / "out", ("quick", "slow")), _rows(folder / "batch", ("quick", "slow"))
    assert first.late_samples == second.late_samples == 0
    assert first.rows + second.rows == sum(rows for _, rows in run.rows)
    for key, rows in wanted.items():
        assert streamed[key] == rows, key


def _a_large_group(sampled: Sampled) -> list[OffsetSample]:
    """Sixteen rounds of 45 s of 60 groups: g00 has 2,000 partitions, the others two.

    In g00 an end goes back and comes back, and a partition is silent; g01 has no commits for eight minutes.
    """
    seen = []
    for step in range(1, 17):
        for partition in range(2000):
            end = 10 if partition == 7 and step in (5, 9) else 1000 * step + partition * step
            if partition != 11 or step not in (7, 8):
                seen.append(sampled(45 * step - 1, end, end - partition % 10, partition, group="g00"))
        for number in range(1, 60):
            committed = None if number == 1 and 2 < step < 14 else 290 * step
            states = {"group": f"g{number:02}", "log_start_offset": 0}
            seen.extend(sampled(45 * step - 1, 300 * step, committed, each, **states) for each in (0, 1))
    return seen


@pytest.mark.spark
@pytest.mark.slow
def test_a_group_of_2000_partitions_beside_many_small_ones_has_the_batch_jobs_rows(
    spark: SparkSession, folder: Path, sampled: Sampled
) -> None:
    """With a restart, where commits are lost for longer than the samples of the last five minutes go back."""
    files = _in_files(_a_large_group(sampled), folder / "made", seconds=45)
    chunks = [files[:4], files[4:5], files[5:8], files[8:12], files[12:13], files[13:]]
    first = _follow(spark, folder, chunks[:3])
    second = _follow(spark, folder, chunks[3:])
    build_features(spark, folder / "samples", folder / "batch")
    groups = [f"g{number:02}" for number in range(60)]
    streamed, wanted = _rows(folder / "out", groups), _rows(folder / "batch", groups)
    assert first.late_samples == second.late_samples == 0
    assert sum(row.partitions for row in wanted["g00", 15]) == 2000 * 16
    for key, rows in wanted.items():
        assert streamed[key] == [row for row in rows if row.interval_end_at <= START_AT + timedelta(minutes=12)], key


@pytest.mark.spark
def test_after_an_outage_micro_batches_are_bounded_and_every_row_comes_once(
    spark: SparkSession, folder: Path, sampled: Sampled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day's file is larger than a micro-batch, and cut off in its middle once; half an hour of files follows."""
    sizes = (("g", 0), ("g", 1), ("g", 2), ("h", 0))
    rounds = [
        [sampled(60 * minute - 1, 60 * minute + 1800, 50 * minute + 1500, n, group=group) for group, n in sizes]
        for minute in range(-29, 31)
    ]
    for samples in rounds[:30]:
        write_samples(samples, folder / "samples")
    assert keep_days(folder / "samples", now=START_AT + timedelta(days=1, hours=1), kept_days=35).merged_files == 30
    for samples in rounds[30:]:
        write_samples(samples, folder / "samples")
    monkeypatch.setattr(stream, "MOST_SAMPLES", 40)
    monkeypatch.setattr(stream, "MOST_FILES", 8)
    taken: list[tuple[int, int]] = []
    add = stream._MicroBatches._add

    def spied(batches: stream._MicroBatches, read: list[tuple[Path, pa.Table]], *, files: int) -> None:
        taken.append((len(read), sum(samples.num_rows for _, samples in read)))
        if len(taken) == 3:
            message = "cut off"
            raise InterruptedError(message)
        add(batches, read, files=files)

    monkeypatch.setattr(stream._MicroBatches, "_add", spied)
    with pytest.raises(InterruptedError, match="cut off"):
        follow_features(spark, folder / "samples", folder / "out", stop=threading.Event())
    stop = threading.Event()
    ending = threading.Thread(target=_stop_at, args=(folder / "out", 31, stop))
    ending.start()
    run = follow_features(spark, folder / "samples", folder / "out", stop=stop)
    ending.join()
    assert taken == [(1, 40)] * 6 + [(8, 32)] * 3 + [(6, 24)]
    assert (run.files, run.late_samples) == (31, 0)
    build_features(spark, folder / "samples", folder / "batch")
    streamed, wanted = _rows(folder / "out", ("g", "h")), _rows(folder / "batch", ("g", "h"))
    assert len(wanted["g", 15]) == 60
    for key, rows in wanted.items():
        assert streamed[key] == [row for row in rows if row.interval_end_at <= START_AT + timedelta(minutes=30)], key


def _stop_at(out_dir: Path, files: int, stop: threading.Event) -> None:
    until = time.monotonic() + _MOST_SECONDS
    while _files_in(out_dir) < files and time.monotonic() < until:
        time.sleep(0.02)
    stop.set()


@pytest.mark.spark
def test_days_whose_files_became_one_give_no_row_twice(spark: SparkSession, folder: Path, sampled: Sampled) -> None:
    """Of two days merged between two runs, one not yet read to its end, the rows are those of the single files."""
    seen = [sampled(21_600 * number + second, 100 * number + second) for number in range(18) for second in (14, 29)]
    made = _in_files(seen, folder / "made", seconds=15)
    read, unread = made[:11], made[11:]
    first = _follow(spark, folder, [read])
    for path in unread[:-2]:
        target = folder / "samples" / path.relative_to(folder / "made")
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    kept = keep_days(folder / "samples", now=START_AT + timedelta(days=4, hours=1, minutes=1), kept_days=35)
    assert kept.merged_files == 24
    second = _follow(spark, folder, [unread[-2:]])
    build_features(spark, folder / "samples", folder / "batch")
    assert first.late_samples == second.late_samples == 0
    streamed, wanted = _rows(folder / "out", ("g",)), _rows(folder / "batch", ("g",))
    assert streamed["g", 15] == wanted["g", 15]
    assert len(wanted["g", 15]) == len(seen)


def _truncate_newest(out_dir: Path) -> None:
    """Cut the newest file of base rows in half."""
    newest = [part for part in read_manifest(out_dir).parts if part.interval_seconds == 15][-1]
    (file,) = (out_dir / newest.folder).glob("*.parquet")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.spark
def test_a_truncated_file_of_the_table_costs_its_own_rows_and_at_a_start_none(
    spark: SparkSession, folder: Path, sampled: Sampled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream failed at each start, and where it merged that file: no group had a new row any more.

    While it runs the rows of the file are missing from then on; at a start those of the newest file are made again.
    """
    made = _in_files([sampled(15 * n + 14, 100 * n) for n in range(1, 13)], folder / "made", seconds=15)
    monkeypatch.setattr(growth, "MOST_PARTS", 4)
    monkeypatch.setattr(growth, "MERGED_PARTS", 3)

    def chunks() -> Iterator[list[Path]]:
        for number, path in enumerate(made[:8]):
            if number == 3:  # its fifth part makes the stream merge the newest three
                _truncate_newest(folder / "out")
            yield [path]

    _follow(spark, folder, chunks())
    ends = [row.interval_end_at for row in _rows(folder / "out", ("g",))["g", 15]]
    build_features(spark, folder / "samples", folder / "batch")
    wanted = [row.interval_end_at for row in _rows(folder / "batch", ("g",))["g", 15]]
    assert [end for end in wanted if end not in ends] == [wanted[2]]

    _truncate_newest(folder / "out")
    _follow(spark, folder, [made[8:]])
    build_features(spark, folder / "samples", folder / "all")
    rows, whole = _rows(folder / "out", ("g",))["g", 15], _rows(folder / "all", ("g",))["g", 15]
    newest = [row for row in whole if row.interval_end_at > wanted[-2]]
    assert [row for row in rows if row.interval_end_at > wanted[-2]] == newest


@pytest.fixture(name="outliving_jvm")
def outliving_jvm_fixture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of processes that share a JVM, as the start of one takes longer than all that is tested here."""
    monkeypatch.setenv("JAVA_HOME", str(find_java(os.environ).home))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).set("spark.driver.memory", "512m")
    conf.set("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    with (folder / "jvm.log").open("ab") as log:
        gateway = launch_gateway(conf=conf, popen_kwargs={"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    parameters = gateway.gateway_parameters
    yield os.environ | {
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=30)


def _run_until_it_dies(folder: Path, point: str, environment: dict[str, str]) -> int:
    command = [sys.executable, str(Path(__file__).with_name("follow_and_die.py"))]
    command += [str(folder / "samples"), str(folder / "out"), point]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.spark
@pytest.mark.slow
def test_ten_kills_lose_nothing_and_repeat_nothing(
    spark: SparkSession, folder: Path, sampled: Sampled, outliving_jvm: dict[str, str]
) -> None:
    """With SIGKILL before the manifest, after it, in a merge and in between, the rows are the batch job's, once."""
    # Three hours before midnight and one after it.
    days = [(day, seen) for day in (0, 1) for seen in _a_day_of("g", sampled, every=60, seed=day)]
    made = [replace(seen, sampled_at=seen.sampled_at + timedelta(days=day)) for day, seen in days]
    night = [seen for seen in made if 75_600 < (seen.sampled_at - START_AT).total_seconds() <= 90_000]
    files = _in_files(night, folder / "made", seconds=600)
    points = ["commit", "rows", "merge", "settled", "rows", "commit", "commit", "merge", "rows", "settled"]
    (folder / "samples").mkdir()
    share = len(files) // (len(points) + 1)
    kills = 0
    for number, point in enumerate([*points, "never"]):
        for path in files[share * number : share * (number + 1) if point != "never" else None]:
            target = folder / "samples" / path.relative_to(folder / "made")
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
        kills += _run_until_it_dies(folder, point, outliving_jvm) == -signal.SIGKILL
    build_features(spark, folder / "samples", folder / "batch")
    streamed, wanted = _rows(folder / "out", ("g",)), _rows(folder / "batch", ("g",))
    assert kills == len(points)
    for key, rows in wanted.items():
        ends = [row.interval_end_at for row in streamed[key]]
        assert len(ends) - len(set(ends)) == 0
        assert {row.interval_end_at for row in rows} - set(ends) == set()
        assert streamed[key] == rows, key


@pytest.mark.spark
@pytest.mark.slow
def test_late_samples_are_counted_and_the_batch_job_reads_them(
    spark: SparkSession, folder: Path, sampled: Sampled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late samples change no row and stop no other group; the batch job completes the day, and the stream goes on."""
    seen = [sampled(15 * step - 1, 300 * step, 300 * step) for step in range(1, 382)]
    files = _in_files(seen, folder / "made", seconds=900)
    other = write_samples(
        [sampled(60 * minute - 1, minute, minute, group="h") for minute in (1, 2, 61)], folder / "made"
    )
    broken = folder / "made" / "date=2026-05-04" / "broken.parquet"
    table = pq.read_table(files[0], partitioning=None)
    pq.write_table(table.drop_columns(["topic"]), broken)
    in_time, late, later, last = [files[0], *files[2:5]], files[1], files[5:6], files[6:]
    logged = CapturingLogger()
    monkeypatch.setattr("spark_features.stream._log", logged)
    run = _follow(spark, folder, [in_time, [late, broken, *other]])
    assert (run.files, run.set_aside_files, run.late_samples) == (6, 1, 60)
    events = {call.args[0]: call.kwargs for call in logged.calls}
    assert "broken.parquet lacks topic" in events["sample_file_set_aside"]["error"]
    assert "`lagcast features --from 2026-05-04 --to 2026-05-04` takes them in" in events["late_samples"]["next_step"]
    streamed = _rows(folder / "out", ("g", "h"))
    assert (len(streamed["g", 15]), len(streamed["h", 15])) == (4 * 60, 3)
    (folder / "samples" / "date=2026-05-04" / "broken.parquet").unlink()
    build_features(spark, folder / "samples", folder / "out")
    assert len(_rows(folder / "out", ("g",))["g", 15]) == 5 * 60
    assert _follow(spark, folder, [later]).late_samples == 0
    # Without its journal the stream reads the newest days again, and finds their rows in the table.
    shutil.rmtree(folder / "out" / ".follow")
    assert _follow(spark, folder, [last]).late_samples == 0
    build_features(spark, folder / "samples", folder / "batch")
    wanted = _rows(folder / "batch", ("g",))
    newest = wanted["g", 15][-1].interval_end_at
    streamed = _rows(folder / "out", ("g",))
    assert newest == streamed["g", 15][-1].interval_end_at
    for key, rows in streamed.items():
        assert rows == [row for row in wanted[key] if row.interval_end_at <= newest], key


@pytest.mark.spark
def test_a_micro_batch_leaves_nothing_in_the_jvm(spark: SparkSession, folder: Path, sampled: Sampled) -> None:
    """Without Python's own collections, which come as they like, its objects held all rows of all micro-batches."""
    samples = [sampled(15 * number - 1, 100 * number, 90 * number) for number in range(1, 61)]
    files = _in_files(samples, folder / "made", seconds=300)
    assert len(files) >= 3
    gc.collect()
    gc.disable()
    try:
        before = _java_objects()
        _follow(spark, folder, ([file] for file in files))
        assert _java_objects() - before < 40  # uncollected they are 5,600
    finally:
        gc.enable()


def _java_objects() -> int:
    return sum(type(each) is JavaObject for each in gc.get_objects())
