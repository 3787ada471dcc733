"""The job from sample files to the table: idempotent, atomic, a day at a time, and clear about bad input."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from collector.sample import OffsetSample
from collector.sinks import arrow_table, write_samples
from forecasting.columns import DAY_FILE
from forecasting.history import GroupInterval
from recommender.adapters.feature_table import FeatureTable
from spark_features import batch
from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.recent import read_samples
from spark_features.samples import FeaturesError, find_samples
from spark_features.table import Part, fresh_folder, read_manifest, swap, writing

Sampled = Callable[..., OffsetSample]

_LENGTHS = (15, 60, 300, 3600)


@pytest.fixture(name="night")
def night_fixture(sampled: Sampled) -> list[OffsetSample]:
    """From 22:00 to 02:00 two partitions a minute apart; one of them begins at 23:30 and pauses over midnight."""
    first = [sampled(60 * m, 7 * m * m, 7 * m * m - m) for m in range(1320, 1561)]
    second = [sampled(60 * m + 1, 5000 + 11 * m, 4900 + 11 * m, 1) for m in range(1410, 1561) if not 1435 < m < 1445]
    return [*first, *second]


def _rows(table: Path) -> dict[int, list[GroupInterval]]:
    return {seconds: FeatureTable(table).intervals("c", "g", interval_seconds=seconds) for seconds in _LENGTHS}


@pytest.mark.spark
def test_a_run_reports_its_rows_and_a_second_run_writes_the_same(
    spark: SparkSession, folder: Path, night: list[OffsetSample]
) -> None:
    """A second run writes the same table as the next version, and one version before the newest is kept on disk."""
    write_samples(night, folder / "samples")
    first = build_features(spark, folder / "samples", folder / "out")
    assert (first.feature_table_version, first.sample_rows) == (1, len(night))
    assert (first.first, first.last) == (date(2026, 5, 4), date(2026, 5, 5))
    before = _rows(folder / "out")
    assert {seconds: len(rows) for seconds, rows in before.items()} == dict(first.rows)
    build_features(spark, folder / "samples", folder / "out")
    build_features(spark, folder / "samples", folder / "out")
    assert _rows(folder / "out") == before
    assert FeatureTable(folder / "out").version == 3
    assert sorted(path.name for path in (folder / "out" / "versions").iterdir()) == ["v2", "v3"]


@pytest.mark.spark
def test_more_samples_are_sorted_in_more_tasks_and_give_the_same_table(
    spark: SparkSession, folder: Path, night: list[OffsetSample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted in as many tasks whatever their number, they would need ever more memory."""
    write_samples(night, folder / "samples")
    build_features(spark, folder / "samples", folder / "out")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
    monkeypatch.setattr(batch, "SAMPLES_OF_A_TASK", -(-len(night) // 7))
    build_features(spark, folder / "samples", folder / "out-of-seven")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    assert _rows(folder / "out-of-seven") == _rows(folder / "out")


@pytest.mark.spark
def test_a_day_is_written_in_row_groups_of_a_few_groups_each(
    spark: SparkSession, folder: Path, sampled: Sampled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of one group skips the others: no group's rows are in more than two of several row groups."""
    monkeypatch.setattr(batch, "ROW_GROUP_BYTES", 4096)
    names = [f"group-{number:02d}" for number in range(40)]
    seen = [sampled(15 * n + 14, 977 * n, 971 * n, group=name) for name in names for n in range(40)]
    write_samples(seen, folder / "samples")
    build_features(spark, folder / "samples", folder / "out")
    (part,) = [part for part in read_manifest(folder / "out").parts if part.interval_seconds == 15]
    (path,) = (folder / "out" / part.folder).glob("*.parquet")
    file = pq.ParquetFile(path)
    held = [set(file.read_row_group(place, ["group"])["group"].to_pylist()) for place in range(file.num_row_groups)]
    assert len(held) > 4
    assert all(sum(name in names_of for names_of in held) <= 2 for name in names)


@pytest.mark.spark
def test_one_day_alone_gives_the_rows_that_all_days_give(
    spark: SparkSession, folder: Path, night: list[OffsetSample]
) -> None:
    """Samples of the evening before are read where a day needs them, and days outside of the span are not changed."""
    write_samples(night, folder / "samples")
    build_features(spark, folder / "samples", folder / "whole")
    build_features(spark, folder / "samples", folder / "out", last=date(2026, 5, 4))
    build_features(spark, folder / "samples", folder / "out", first=date(2026, 5, 5), last=date(2026, 5, 5))
    assert _rows(folder / "out") == _rows(folder / "whole")


@pytest.mark.spark
def test_files_without_dates_give_the_same_table(spark: SparkSession, folder: Path, night: list[OffsetSample]) -> None:
    """A plain folder of parquet files gives the same table, without the files that are still being written."""
    write_samples(night, folder / "samples")
    (folder / "plain").mkdir()
    pq.write_table(arrow_table(night), folder / "plain" / "all.parquet")
    (folder / "plain" / "_unfinished.parquet").write_bytes(b"PAR1")
    build_features(spark, folder / "samples", folder / "out")
    build_features(spark, folder / "plain", folder / "plain-out")
    assert _rows(folder / "plain-out") == _rows(folder / "out")


@pytest.mark.spark
def test_a_run_that_dies_before_the_swap_changes_nothing(
    spark: SparkSession, folder: Path, night: list[OffsetSample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the new manifest readers see the old table, though all files are there, and the next run goes on."""

    def power_cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_samples(night, folder / "samples")
    build_features(spark, folder / "samples", folder / "out", last=date(2026, 5, 4))
    before = _rows(folder / "out")
    with monkeypatch.context() as patch:
        patch.setattr(batch, "swap", power_cut)
        with pytest.raises(KeyboardInterrupt):
            build_features(spark, folder / "samples", folder / "out")
    assert (FeatureTable(folder / "out").version, _rows(folder / "out")) == (1, before)
    build_features(spark, folder / "samples", folder / "out")
    assert len(_rows(folder / "out")[15]) > len(before[15])


@pytest.mark.spark
def test_p16_a_jvm_that_is_killed_in_mid_write_changes_nothing_and_the_next_run_gives_the_same_table(
    spark: SparkSession, folder: Path, night: list[OffsetSample]
) -> None:
    """The process exits with an error, readers see the old table all the while, and the next run's is that of one run.

    The JVM is killed while a parquet file is half written, so that the new version's folder has unfinished files.
    """
    many = [replace(seen, group=f"g{number}") for number in range(30) for seen in night]
    write_samples([*night, *many], folder / "samples")
    build_features(spark, folder / "samples", folder / "out", last=date(2026, 5, 4))
    before = _rows(folder / "out")
    script = Path(__file__).with_name("build_and_lose_java.py")
    command = [sys.executable, str(script), str(folder / "samples"), str(folder / "out")]
    seen, done = [], False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        while not done:
            done = job.poll() is not None  # the table is read once more after the end
            seen.append((FeatureTable(folder / "out").version, FeatureTable(folder / "out").intervals("c", "g")))
        assert job.stdout is not None
        assert job.stdout.read() == "killed\n"
        assert job.returncode not in (0, None)
    assert list((folder / "out" / "versions" / "v2").glob("**/_temporary"))
    assert all(shown == (1, before[15]) for shown in seen)
    build_features(spark, folder / "samples", folder / "out")
    build_features(spark, folder / "samples", folder / "whole")
    assert _rows(folder / "out") == _rows(folder / "whole")
    assert FeatureTable(folder / "out").groups() == FeatureTable(folder / "whole").groups()


def test_a_writer_that_is_killed_leaves_the_table_and_the_lock(folder: Path) -> None:
    """SIGKILL half-way through a part leaves the old manifest, and the next writer gets the lock and clears up."""
    _swap_one_part(folder)
    before = read_manifest(folder)
    script = (
        "import sys, time; from pathlib import Path; from spark_features.table import fresh_folder, writing\n"
        "out = Path(sys.argv[1])\n"
        "with writing(out):\n"
        "    part = fresh_folder(out, version=2) / 'interval_seconds=15' / 'date=2026-05-05'\n"
        "    part.mkdir(parents=True); (part / 'half.parquet').write_bytes(b'PAR1')\n"
        "    print('half', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, folder], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        with pytest.raises(FeaturesError, match="another run is writing"), writing(folder):
            pass
        writer.send_signal(signal.SIGKILL)
    assert read_manifest(folder) == before
    with writing(folder):
        assert not fresh_folder(folder, version=2).exists()


def _swap_one_part(folder: Path) -> None:
    part = Part(
        interval_seconds=15, date="2026-05-04", folder="versions/v1/interval_seconds=15/date=2026-05-04", rows=0
    )
    (folder / part.folder).mkdir(parents=True)
    swap(folder, before=read_manifest(folder), after=read_manifest(folder).replaced_by((part,)))


def test_another_programs_manifest_is_left_alone(folder: Path) -> None:
    """A folder with the manifest of another program is refused and not overwritten."""
    (folder / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(FeaturesError, match=r"manifest\.json is no manifest of .*; choose another --out"):
        read_manifest(folder)


def test_folders_without_samples_are_refused_in_one_sentence(folder: Path, night: list[OffsetSample]) -> None:
    """The error for no folder, no file, no row and no day in the span has the folder and the next step."""
    with pytest.raises(FeaturesError, match=r"missing is no folder; --samples is the folder"):
        find_samples(folder / "missing", first=None, last=None)
    with pytest.raises(FeaturesError, match="holds no parquet file; let the collector run first"):
        find_samples(folder, first=None, last=None)
    write_samples(night, folder)
    with pytest.raises(FeaturesError, match="hold no sample from 2027-01-01 to the end; name other days"):
        find_samples(folder, first=date(2027, 1, 1), last=None)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: table.drop_columns(["end_offset", "topic"]), "lacks topic, end_offset; a sample has cluster,"),
        (
            lambda table: table.set_column(5, "end_offset", table["end_offset"].cast(pa.float64())),
            "column end_offset is DOUBLE NONE, and has to be int64",
        ),
        (
            lambda table: table.set_column(1, "group", pa.nulls(table.num_rows, pa.string())),
            "column group holds 2 nulls, and every sample needs it",
        ),
    ],
)
def test_wrong_columns_are_named(
    spoil: Callable[[pa.Table], pa.Table], message: str, folder: Path, sampled: Sampled
) -> None:
    """Missing columns, wrong types and nulls are refused, which Spark alone would read as nulls without an error."""
    pq.write_table(spoil(arrow_table([sampled(0, 1), sampled(15, 2)])), folder / "samples.parquet")
    with pytest.raises(FeaturesError, match=message):
        find_samples(folder, first=None, last=None)


def test_files_older_than_a_column_are_taken(folder: Path, sampled: Sampled) -> None:
    """A file from before the column `static_members` is read."""
    old, new = folder / "old.parquet", folder / "new.parquet"
    pq.write_table(arrow_table([sampled(0, 1), sampled(15, 2)]).drop_columns(["static_members"]), old)
    pq.write_table(arrow_table([sampled(30, 3)]), new)
    assert find_samples(folder, first=None, last=None).rows == 3
    (samples,) = read_samples(old, most_rows=2)
    assert samples["static_members"].null_count == 2


@pytest.mark.spark
def test_files_older_than_a_column_give_the_same_table(
    spark: SparkSession, folder: Path, night: list[OffsetSample]
) -> None:
    """With half of the files from before `static_members` the table is the one of files that all have it."""
    half = len(night) // 2
    write_samples(night, folder / "new")
    (folder / "mixed").mkdir()
    table = arrow_table(night)
    pq.write_table(table.slice(0, half).drop_columns(["static_members"]), folder / "mixed" / "old.parquet")
    pq.write_table(table.slice(half), folder / "mixed" / "new.parquet")
    for kind in ("new", "mixed"):
        build_features(spark, folder / kind, folder / f"table-{kind}")
    assert _rows(folder / "table-mixed") == _rows(folder / "table-new")


def test_a_broken_file_is_named(folder: Path) -> None:
    """The error for a file that ends half-way is one sentence with its path."""
    (folder / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(FeaturesError, match=r"broken\.parquet is no readable parquet file"):
        find_samples(folder, first=None, last=None)


@pytest.mark.spark
def test_a_broken_file_is_set_aside_where_others_can_be_read(
    spark: SparkSession, folder: Path, sampled: Sampled
) -> None:
    """One corrupt file failed the whole job, while the stream set it aside."""
    seen = [sampled(15 * step - 1, 300 * step, 300 * step) for step in range(1, 20)]
    (path,) = write_samples(seen, folder / "samples")
    build_features(spark, folder / "samples", folder / "whole")
    (path.parent / "broken.parquet").write_bytes(b"PAR1")
    (path.parent / f"broken{DAY_FILE}").write_bytes(b"")
    pq.write_table(arrow_table(seen).drop_columns(["end_offset"]), path.parent / "lacking.parquet")
    with capture_logs() as lines:
        run = build_features(spark, folder / "samples", folder / "out")
    assert run.set_aside_files == 3
    assert [line["event"] for line in lines] == ["sample_file_set_aside"] * 3
    assert _rows(folder / "out") == _rows(folder / "whole")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_submit_runs_the_same_job(folder: Path, sampled: Sampled) -> None:
    """The job exits 0 with a table, and 2 with one sentence where there are no samples."""
    first = datetime(2026, 5, 4, tzinfo=UTC)
    seen = [replace(sampled(0, 150 * step), sampled_at=first + timedelta(seconds=15 * step)) for step in range(9)]
    write_samples(seen, folder / "samples")
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]", str(Path(batch.__file__))]
    environment = {**os.environ, "JAVA_HOME": str(find_java(os.environ).home), "PYSPARK_PYTHON": sys.executable}
    root = str(Path(batch.__file__).parents[1])
    environment["PYTHONPATH"] = root

    def run(samples: str) -> subprocess.CompletedProcess[str]:
        command = [*submit, "--samples", str(folder / samples), "--out", str(folder / "out")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)

    assert run("samples").returncode == 0
    assert {row.produce_messages_per_second for row in FeatureTable(folder / "out").intervals("c", "g")} == {None, 10.0}
    refused = run("nowhere")
    assert refused.returncode == 2
    # spark-submit in client mode prints the output of a Python program to its own stdout.
    assert "nowhere is no folder" in refused.stdout + refused.stderr
