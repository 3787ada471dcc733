"""The samples that a micro-batch keeps: few, and all that the next rows depend on."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest

from collector.sample import OffsetSample
from collector.sinks import arrow_table
from spark_features.recent import after_marks, late_samples, newest_ends, thinned
from spark_features.schema import GROUP_INTERVALS_ARROW, SAMPLES_ARROW

Sampled = Callable[..., OffsetSample]

_MIDNIGHT = datetime(2026, 5, 4, tzinfo=UTC)
_KEY = "c\0g"


def _us(seconds: int) -> int:
    return int((_MIDNIGHT + timedelta(seconds=seconds)).timestamp()) * 1_000_000


def _seconds(samples: pa.Table, partition: int) -> list[float]:
    return sorted(
        (row["sampled_at"] - _MIDNIGHT).total_seconds() for row in samples.to_pylist() if row["partition"] == partition
    )


def _table(samples: list[OffsetSample]) -> pa.Table:
    return arrow_table(samples).cast(SAMPLES_ARROW)


def test_of_an_hour_and_more_five_minutes_remain(sampled: Sampled) -> None:
    """Of 264 samples of the look-back 22 remain: 21 rounds of 15 s before the mark and the newest one before those."""
    rounds = _table([sampled(15 * step - 1, step) for step in range(1, 265)])
    kept = thinned(rounds, {_KEY: _us(3960)})
    assert _seconds(kept, 0) == [15.0 * step - 1 for step in range(243, 265)]
    assert thinned(kept, {_KEY: _us(3960)}).equals(kept)


def test_the_newest_sample_of_a_silent_partition_is_kept(sampled: Sampled) -> None:
    """The sample is kept for the look-back of 3,960 s, with the highest offsets of its instant."""
    silent = [sampled(60, 7, None, 1), sampled(30, 5, 5, 1), sampled(60, 7, 6, 1)]
    samples = _table([*silent, sampled(4000, 1)])
    kept = thinned(samples, {_KEY: _us(4005)})
    assert [(row["partition"], row["committed_offset"]) for row in kept.to_pylist()] == [(1, 6), (0, None)]
    assert _seconds(thinned(samples, {_KEY: _us(4020)}), 1) == []


def test_a_group_without_rows_keeps_everything(sampled: Sampled) -> None:
    """All samples of a group without rows in the table are kept, and none of them is late."""
    samples = _table([sampled(0, 1), sampled(9000, 2)])
    assert thinned(samples, {"c\0another": _us(9000)}).num_rows == 2
    assert late_samples(samples, {}).num_rows == 0


@pytest.mark.parametrize(("mark", "late"), [(15, 1), (14, 0), (30, 2)])
def test_samples_of_a_row_in_the_table_are_late(mark: int, late: int, sampled: Sampled) -> None:
    """A sample on an interval's end belongs to that interval."""
    assert late_samples(_table([sampled(15, 1), sampled(30, 2)]), {_KEY: _us(mark)}).num_rows == late


def test_rows_after_the_mark_are_new() -> None:
    """The row at the mark is in the table, and a mark is the newest row of its group in its own cluster."""
    ends = [("c", "g", 15), ("c", "g", 30), ("d", "g", 45)]
    columns = {
        "cluster": [cluster for cluster, _, _ in ends],
        "group": [group for _, group, _ in ends],
        "interval_end_at": pa.array([_us(end) for _, _, end in ends]).cast(pa.timestamp("us", tz="UTC")),
    }
    rows = pa.table(columns, pa.schema([GROUP_INTERVALS_ARROW.field(name) for name in columns]))
    assert newest_ends(rows) == {_KEY: _us(30), "d\0g": _us(45)}
    assert after_marks(rows, {_KEY: _us(15)})["cluster"].to_pylist() == ["c", "d"]
    assert after_marks(rows, newest_ends(rows)).num_rows == 0
