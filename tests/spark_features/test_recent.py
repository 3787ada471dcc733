"""The samples that a micro-batch keeps: few, and all that the next rows depend on."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest

from collector.sample import OffsetSample
from collector.sinks import arrow_table, write_samples
from spark_features.recent import after_marks, late_samples, newest_ends, read_samples, thinned
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


def test_of_an_hour_and_more_two_rounds_remain(sampled: Sampled) -> None:
    """Of 264 samples of the look-back 2 remain: one for the next difference, one to see that an end came back."""
    rounds = _table([sampled(15 * step - 1, step, step) for step in range(1, 265)])
    kept = thinned(rounds, {_KEY: _us(3960)})
    assert _seconds(kept, 0) == [3944, 3959]
    assert thinned(kept, {_KEY: _us(3960)}).equals(kept)


def test_the_newest_commit_is_kept_while_it_counts_as_lost(sampled: Sampled) -> None:
    """Of an interval the newest sample counts: a commit that was gone within its interval was never there."""
    seen = [sampled(second, 5, 5) for second in (14, 29, 31)]
    rounds = _table([*seen, *(sampled(second, 5, None) for second in (44, 59, 74, 89))])
    assert _seconds(thinned(rounds, {_KEY: _us(90)}), 0) == [29, 74, 89]
    assert _seconds(thinned(rounds, {_KEY: _us(3989)}), 0) == [74, 89]


def test_the_newest_sample_of_a_silent_partition_is_kept(sampled: Sampled) -> None:
    """The sample is kept for the look-back of 3,960 s, with the highest offsets of its instant."""
    silent = [sampled(60, 7, None, 1), sampled(50, 5, 5, 1), sampled(60, 7, 6, 1)]
    samples = _table([*silent, sampled(4000, 1)])
    kept = thinned(samples, {_KEY: _us(4005)})
    assert [(row["partition"], row["committed_offset"]) for row in kept.to_pylist()] == [(1, 6), (0, None)]
    assert _seconds(thinned(samples, {_KEY: _us(4020)}), 1) == []


def test_a_large_file_is_read_in_spans_of_whole_intervals(folder: Path, sampled: Sampled) -> None:
    """Whatever its order: no more rows at once than asked for, unless one interval has more, and no row twice."""
    seen = [sampled(15 * step - each, step, step, each) for each in range(3) for step in (1, 2, 3, 7, 8)]
    seen += [sampled(75, 5, 5, each) for each in range(9)]
    (path,) = write_samples(seen, folder)
    pieces = list(read_samples(path, most_rows=7))
    ends = [{-(-second // 15) for second in _seconds(piece, 0)} for piece in pieces]
    assert ends == [{1, 2}, {3}, {5}, {7, 8}]
    assert [piece.num_rows for piece in pieces] == [6, 3, 9, 6]
    assert [piece.num_rows for piece in read_samples(path, most_rows=24)] == [24]


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
