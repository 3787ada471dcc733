"""The files that are announced to the stream: those of the newest days, each once, when its intervals are over."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.keeping import keep_days
from collector.sample import OffsetSample
from collector.sinks import write_samples
from spark_features import announce
from spark_features.announce import AtOnce, Journal, SampleFiles
from spark_features.growth import MERGED_PARTS, MOST_PARTS, alike_parts
from spark_features.table import Followed, Manifest, Part

Sampled = Callable[..., OffsetSample]

_MIDNIGHT = datetime(2026, 5, 4, tzinfo=UTC)
_LONG_AFTER = datetime(2027, 1, 1, tzinfo=UTC)


def _files(
    folder: Path,
    *,
    now: Callable[[], datetime] = lambda: _LONG_AFTER,
    started_from: str | None = None,
    samples: int = 1000,
    files: int = 1000,
) -> SampleFiles:
    at_once = AtOnce(samples=samples, files=files)
    journal = Journal(folder / "files")
    return SampleFiles(folder / "samples", journal, started_from=started_from, at_once=at_once, clock=now)


def _announced(files: SampleFiles, after: int) -> tuple[list[tuple[int, str]], int]:
    rows, end = files.read({"files": after})
    return [(position, day) for position, day, _ in rows], end["files"]


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    """A test's own folder, with an empty one for samples in it."""
    (tmp_path / "samples").mkdir()
    return tmp_path


def test_a_file_is_announced_once_also_after_a_restart(folder: Path, sampled: Sampled) -> None:
    """Positions count up, two positions stand for the same files for ever, and unfinished files have none."""
    write_samples([sampled(0, 1)], folder / "samples")
    (folder / "samples" / "date=2026-05-04" / ".unfinished.parquet").write_bytes(b"")
    files = _files(folder)
    assert _announced(files, 0) == ([(1, "2026-05-04")], 1)
    assert _announced(files, 1) == ([], 1)
    write_samples([sampled(15, 1)], folder / "samples")
    again = _files(folder)
    assert _announced(again, 1) == ([(2, "2026-05-04")], 2)
    assert list(again.readBetweenOffsets({"files": 0}, {"files": 1})) == list(_files(folder).read({"files": 0})[0])[:1]


def test_a_line_that_a_kill_cut_short_was_not_announced(folder: Path, sampled: Sampled) -> None:
    """The file gets the position that the torn line would have had."""
    write_samples([sampled(0, 1)], folder / "samples")
    _announced(_files(folder), 0)
    write_samples([sampled(15, 1)], folder / "samples")
    (journal,) = (folder / "files").glob("*.jsonl")
    with journal.open("a") as lines:
        lines.write('{"position": 2, "day": "2026')
    assert _announced(_files(folder), 1) == ([(2, "2026-05-04")], 2)
    assert [file.position for file in Journal(folder / "files").up_to(9)] == [1, 2]


def test_a_file_waits_for_the_end_of_its_last_interval(folder: Path, sampled: Sampled) -> None:
    """A sample of 00:00:14 may change its row until 00:00:15, and a file without an instant is announced at once."""
    write_samples([sampled(14, 1)], folder / "samples")
    (folder / "samples" / "date=2026-05-04" / "broken.parquet").write_bytes(b"PAR1")
    now = [_MIDNIGHT + timedelta(seconds=14.9)]
    files = _files(folder, now=lambda: now[0])
    assert _announced(files, 0) == ([(1, "2026-05-04")], 1)
    now[0] += timedelta(seconds=0.1)
    assert _announced(files, 1) == ([(2, "2026-05-04")], 2)


def test_only_the_newest_days_are_listed(folder: Path, sampled: Sampled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty days two are listed and the journal drops the others, so that the time of a look does not grow."""
    for day in range(40):
        write_samples([sampled(86_400 * day + 30, 1)], folder / "samples")
    files = _files(folder)
    assert len(_announced(files, 0)[0]) == 40
    files.commit({"files": 40})
    assert len(list((folder / "files").glob("*.jsonl"))) == 2
    listed: list[str] = []
    list_names = announce._names_in

    def names_in(path: Path) -> list[str]:
        listed.append(path.name)
        return list_names(path)

    monkeypatch.setattr(announce, "_names_in", names_in)
    write_samples([sampled(86_400 * 39 + 45, 1)], folder / "samples")
    assert _announced(files, 40) == ([(41, "2026-06-12")], 41)
    assert listed == ["samples", "date=2026-06-11", "date=2026-06-12"]


def test_a_change_in_a_day_that_is_no_longer_listed_is_announced(folder: Path, sampled: Sampled) -> None:
    """A changed day is announced once, also where it changed while the stream was stopped."""
    for day in range(4):
        write_samples([sampled(86_400 * day + 30, 1)], folder / "samples")
    files = _files(folder)
    assert _announced(files, 0)[1] == 4
    files.commit({"files": 4})
    assert _announced(files, 4) == ([], 4)
    write_samples([sampled(45, 1)], folder / "samples")
    again = _files(folder)
    assert _announced(again, 4) == ([(5, "2026-05-04")], 5)
    assert _announced(again, 5) == ([], 5)


def test_a_days_files_that_became_one_are_not_announced(folder: Path, sampled: Sampled) -> None:
    """Merged files are not announced, before or after a restart, and a file that comes into their day is."""
    for day in range(4):
        write_samples([sampled(86_400 * day + 30, 1)], folder / "samples")
        write_samples([sampled(86_400 * day + 45, 1)], folder / "samples")
    files = _files(folder)
    assert _announced(files, 0)[1] == 8
    files.commit({"files": 8})
    assert _announced(files, 8) == ([], 8)
    assert keep_days(folder / "samples", now=_MIDNIGHT + timedelta(days=4), kept_days=35).merged_files == 4
    assert _announced(files, 8) == ([], 8)
    assert _announced(_files(folder), 8) == ([], 8)
    write_samples([sampled(60, 1)], folder / "samples")
    assert _announced(files, 8) == ([(9, "2026-05-04")], 9)


@pytest.mark.parametrize(("samples", "files"), [(5, 1000), (1000, 2)])
def test_a_micro_batch_has_a_limited_number_of_samples_and_of_files(
    samples: int, files: int, folder: Path, sampled: Sampled
) -> None:
    """Months of samples are taken in parts, oldest first, and positions go on after the journal was removed."""
    for second in (0, 15, 30):
        write_samples([sampled(second, 1, None, partition) for partition in (0, 1)], folder / "samples")
    bounded = _files(folder, samples=samples, files=files)
    assert _announced(bounded, 7) == ([(8, "2026-05-04"), (9, "2026-05-04")], 9)
    assert _announced(bounded, 9) == ([(10, "2026-05-04")], 10)


def test_a_file_of_more_samples_than_a_micro_batch_has_comes_alone(folder: Path, sampled: Sampled) -> None:
    """It neither waits for ever nor takes others with it."""
    for second in (0, 15, 30):
        seen = [sampled(second, 1, None, partition) for partition in range(3 if second == 15 else 1)]
        write_samples(seen, folder / "samples")
    bounded = _files(folder, samples=2)
    assert [_announced(bounded, after)[1] for after in (0, 1, 2, 3)] == [1, 2, 3, 3]


def test_a_start_from_a_day_leaves_older_ones_to_the_batch_job(folder: Path, sampled: Sampled) -> None:
    """With a start from a day the samples begin on the day on which the table begins."""
    write_samples([sampled(0, 1), sampled(86_400, 2), sampled(2 * 86_400, 3)], folder / "samples")
    assert _announced(_files(folder, started_from="2026-05-05"), 0)[0] == [(1, "2026-05-05"), (2, "2026-05-06")]


def test_a_footer_has_the_newest_instant(folder: Path, sampled: Sampled) -> None:
    """The newest instant is read over several row groups, and is unknown without the column."""
    (path,) = write_samples([sampled(30, 1), sampled(15, 1)], folder / "samples")
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, row_group_size=1)
    assert announce._footer(path) == (2, int((_MIDNIGHT + timedelta(seconds=30)).timestamp() * 1e6))
    pq.write_table(table.drop_columns(["sampled_at"]), path)
    assert announce._footer(path) == (0, None)


def _part(rows: int, number: int = 0) -> Part:
    return Part(interval_seconds=15, date="2026-05-04", folder=f"versions/v{number}", rows=rows)


@given(st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=600))
def test_few_parts_remain_and_a_row_is_seldom_written_again(appended: list[int]) -> None:
    """There are at most MOST_PARTS, none is lost, and a row is written again about as often as the rows double."""
    parts: list[Part] = []
    written = 0
    for number, rows in enumerate(appended):
        parts.append(_part(rows, number))
        merged = alike_parts(parts)
        assert merged == parts[len(parts) - len(merged) :]
        if merged:
            assert len(merged) >= MERGED_PARTS
            written += sum(part.rows for part in merged)
            parts = [*parts[: -len(merged)], _part(sum(part.rows for part in merged), number)]
        assert len(parts) <= MOST_PARTS
    assert sum(part.rows for part in parts) == sum(appended)
    # 600 parts are less than 2^10: a row is written again at most ten times.
    assert written <= 10 * sum(appended)


def test_the_batch_jobs_day_replaces_all_its_parts() -> None:
    """The manifest no longer states how far the stream had come, so the stream begins again from the new day."""
    streamed = Manifest().followed_by((_part(3, 1), _part(4, 2)), followed=Followed(journal="j", files=2))
    replaced = streamed.replaced_by((_part(7, 3),))
    assert [part.folder for part in replaced.parts] == ["versions/v3"]
    assert (replaced.feature_table_version, replaced.followed) == (2, None)
