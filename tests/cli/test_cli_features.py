"""`lagcast features`: from sample files to a table that the recommender can read."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.sample import OffsetSample
from collector.sinks import write_samples
from recommender.adapters.feature_table import FeatureTable

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
    """The table's folder is the answer on stdout, each stage a line on stderr, and rates are those of the samples."""
    write_samples(_samples(minutes=5), tmp_path / "samples")
    code, out, err = lagcast_process("features", "--samples", tmp_path / "samples", "--out", tmp_path / "features")
    assert (code, out) == (0, f"{tmp_path / 'features'}\n")
    assert " Spark " in err
    assert " features " in err
    rows = FeatureTable(tmp_path / "features").intervals("c", "orders")
    assert {row.produce_messages_per_second for row in rows[1:]} == {10.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--samples", "nowhere", "--out", "o"), "nowhere is no folder"),
        (("--samples", ".", "--out", "o"), "holds no parquet file"),
        (("--samples", ".", "--out", "o", "--from", "May"), "--from 'May' is no date; write it as 2026-05-12"),
    ],
)
def test_bad_input_is_said_before_spark_starts(
    words: tuple[str, ...], said: str, lagcast: Lagcast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without samples or a word that is no date: one sentence, code 2, and no output folder is made."""
    monkeypatch.chdir(tmp_path)
    code, out, err = lagcast("features", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "o").exists()
