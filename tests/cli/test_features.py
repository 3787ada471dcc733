"""`lagcast features`: from sample files to a table that the recommender can read."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.sample import OffsetSample
from collector.sinks import write_samples
from recommender.adapters.feature_table import FeatureTable
from spark_features.samples import FeaturesError
from spark_features.table import writing

Lagcast = Callable[..., tuple[int, str, str]]


def _samples(minutes: int) -> list[OffsetSample]:
    """One group, one partition, 10 messages/s, all of it consumed at once."""
    first = datetime(2026, 5, 4, tzinfo=UTC)
    return [
        OffsetSample(
            cluster="c",
            group="orders",
            topic="orders",
            partition=0,
            sampled_at=first + timedelta(seconds=15 * step),
            end_offset=150 * step,
            committed_offset=150 * step,
            log_start_offset=0,
            group_state="STABLE",
            group_protocol="consumer",
            group_assignor="range",
            members=1,
        )
        for step in range(4 * minutes + 1)
    ]


@pytest.mark.spark
def test_samples_become_a_feature_table(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The table's folder is printed to stdout, each stage to stderr, and the rates are those of the samples."""
    write_samples(_samples(minutes=5), tmp_path / "samples")
    code, out, err = lagcast_process("features", "--samples", tmp_path / "samples", "--out", tmp_path / "features")
    assert (code, out) == (0, f"{tmp_path / 'features'}\n")
    assert " Spark " in err
    assert " features " in err
    rows = FeatureTable(tmp_path / "features").intervals("c", "orders")
    assert {row.produce_messages_per_second for row in rows[1:]} == {10.0}


@pytest.mark.spark
def test_rows_older_than_they_are_to_be_kept_are_removed(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """Samples of May and of the last minutes are read; of the table those of 36 days are left, counted from today."""
    old = _samples(minutes=1)
    lately = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)  # noqa: TID251  # as the command does
    new = [replace(each, sampled_at=lately + (each.sampled_at - old[0].sampled_at)) for each in old]
    write_samples([*old, *new], tmp_path / "samples")
    words = ("features", "--samples", tmp_path / "samples", "--out", tmp_path / "features", "--keep-rows", 36)
    assert lagcast_process(*words)[0] == 0
    rows = FeatureTable(tmp_path / "features").intervals("c", "orders")
    assert rows
    assert all(row.interval_end_at >= lately for row in rows)


@pytest.mark.spark
def test_followed_samples_become_rows_until_the_command_is_stopped(tmp_path: Path) -> None:
    """SIGTERM ends it with 0 and prints the table's folder; a second writer is refused, a broken file is set aside."""
    samples, out = tmp_path / "samples", tmp_path / "features"
    write_samples(_samples(minutes=5), samples)
    (samples / "date=2026-05-04" / "broken.parquet").write_bytes(b"PAR1")
    arguments = [sys.executable, "-m", "cli.main", "features", "--samples", str(samples), "--out", str(out)]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(
        [*arguments, "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as following:
        until = time.monotonic() + 600
        while not list(out.glob("versions/*/interval_seconds=15/*/*.parquet")) and time.monotonic() < until:
            time.sleep(0.1)
        with pytest.raises(FeaturesError, match=r"another run is writing to .*; wait for it, stop it"), writing(out):
            pass
        following.send_signal(signal.SIGTERM)
        printed, err = following.communicate(timeout=60)
    assert (following.returncode, printed) == (0, f"{out}\n"), err
    assert "broken.parquet is no readable parquet file" in err
    # 21 base rows, 6 of a minute, 2 of five and 1 of an hour: the first sample is the last of the day before.
    assert "1 sample files -> 30 rows; 1 files set aside, 0 samples too late" in err
    rows = FeatureTable(out).intervals("c", "orders")
    assert [row.produce_messages_per_second for row in rows] == [None, *[10.0] * 20]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--samples", "nowhere", "--out", "o"), "nowhere is no folder"),
        (("--samples", ".", "--out", "o"), "holds no parquet file"),
        (("--samples", ".", "--out", "o", "--from", "May"), "--from 'May' is no date; write it as 2026-05-12"),
        (("--samples", "nowhere", "--out", "o", "--follow"), "nowhere is no folder"),
        (("--samples", ".", "--out", "o", "--follow", "--to", "2026-05-12"), "give it without --from and --to"),
        (
            ("--samples", ".", "--out", "o", "--keep-rows", "35"),
            "'--keep-rows': Input should be greater than or equal to 36",
        ),
    ],
)
def test_bad_input_is_an_error_before_spark_starts(
    arguments: tuple[str, ...], message: str, lagcast: Lagcast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a folder without samples or an invalid date the command exits 2 with one sentence, and makes no folder."""
    monkeypatch.chdir(tmp_path)
    code, out, err = lagcast("features", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "o").exists()
