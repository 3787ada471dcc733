"""Files of a finished day become one: no row is lost and none is seen twice, wherever the process ends."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from collector.keeping import Kept, keep_days, keep_days_forever
from collector.sample import OffsetSample
from collector.sinks import arrow_schema, write_samples
from spark_features.samples import find_samples, reading
from tests.collector.conftest import SAMPLE

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
# Monday and Tuesday are over for more than a day, Wednesday is not.
THURSDAY = MONDAY + timedelta(days=3, hours=2)


def sample(minute: int, group: str = "orders") -> OffsetSample:
    return replace(SAMPLE, group=group, sampled_at=MONDAY + timedelta(minutes=minute))


def seen(samples_dir: Path) -> Counter[OffsetSample]:
    """The rows that the features job reads."""
    paths = find_samples(samples_dir, first=None, last=None).paths
    tables = [pq.read_table(path, columns=arrow_schema().names, partitioning=None) for path in paths]
    return Counter(OffsetSample(**row) for table in tables for row in table.to_pylist())


def files(samples_dir: Path) -> dict[str, int]:
    """The count of files of each day."""
    return dict(Counter(path.parent.name.removeprefix("date=") for path in samples_dir.glob("date=*/[!.]*.parquet")))


def keep(samples_dir: Path, *, now: datetime = THURSDAY, kept_days: int = 35) -> Kept:
    return keep_days(samples_dir, now=now, kept_days=kept_days)


@pytest.fixture
def three_days(tmp_path: Path) -> list[OffsetSample]:
    """Four files on each of three days."""
    rows = [sample(360 * number) for number in range(12)]
    for row in rows:
        write_samples([row], tmp_path)
    return rows


class Death(BaseException):
    """Stands for the end of the process."""


@contextmanager
def dying_at(step: int, *, after: bool) -> Iterator[None]:
    """End the process before or after its n-th rename or removal, the only steps that change what readers see."""
    steps = 0

    def mortal(work: object) -> object:
        def worked(*positional: object, **named: object) -> object:
            nonlocal steps
            steps += 1
            if steps == step and not after:
                raise Death
            done = work(*positional, **named)  # type: ignore[operator]  # a function or a method
            if steps == step:
                raise Death
            return done

        return worked

    with (
        patch.object(Path, "replace", mortal(Path.replace)),
        patch.object(Path, "unlink", mortal(Path.unlink)),
        patch.object(shutil, "rmtree", mortal(shutil.rmtree)),
    ):
        yield


def test_finished_days_become_one_file_each(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """Days over for more than 25 hours become one file each; the newest stays, and a second run does nothing."""
    assert keep(tmp_path) == Kept(merged_files=8)
    assert files(tmp_path) == {"2026-01-05": 1, "2026-01-06": 1, "2026-01-07": 4}
    assert seen(tmp_path) == Counter(three_days)
    assert keep(tmp_path) == Kept()
    (monday,) = tmp_path.glob("date=2026-01-05/*")
    assert monday.name.startswith("20260105T000000.000000Z-20260105T180000.000000Z-")
    assert monday.name.endswith(".day.parquet")


def test_rows_that_come_late_join_their_day(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """Late rows of any group join the file of their day, and a file that comes again is not counted twice."""
    keep(tmp_path)
    late = [sample(1), sample(2, "billing")]
    write_samples(late, tmp_path)
    write_samples([three_days[1]], tmp_path)
    assert seen(tmp_path) == Counter([*three_days, *late])
    assert keep(tmp_path) == Kept(merged_files=2)
    assert files(tmp_path)["2026-01-05"] == 1
    assert seen(tmp_path) == Counter([*three_days, *late])


def test_a_days_file_that_keeps_its_name_is_not_removed_as_a_part(
    tmp_path: Path, three_days: list[OffsetSample]
) -> None:
    """Late rows within the day's span leave the name of its file as it is, and no row is lost, twice in succession."""
    keep(tmp_path)
    (before,) = tmp_path.glob("date=2026-01-05/*")
    for minute in (1, 2):
        write_samples([sample(minute)], tmp_path)
        assert keep(tmp_path) == Kept(merged_files=2)
        assert keep(tmp_path) == Kept()
        assert list(tmp_path.glob("date=2026-01-05/*")) == [before]
    assert seen(tmp_path) == Counter([*three_days, sample(1), sample(2)])


def test_days_that_are_too_old_are_removed_whole(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """Days older than the days kept are removed with all their files."""
    write_samples([sample(13 * 1440)], tmp_path)
    assert keep(tmp_path, now=MONDAY + timedelta(days=13), kept_days=11).removed_days == 2
    assert seen(tmp_path) == Counter([*three_days[8:], sample(13 * 1440)])
    assert not list(tmp_path.glob(".date=*"))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    minutes=st.lists(st.integers(0, 4 * 1440), min_size=1, max_size=12, unique=True),
    deaths=st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=4),
    late=st.lists(st.tuples(st.integers(0, 1440), st.sampled_from(["late", "orders"])), max_size=3, unique=True),
)
def test_each_row_is_seen_once_wherever_the_process_ends(
    tmp_path_factory: pytest.TempPathFactory,
    minutes: list[int],
    deaths: list[tuple[int, bool]],
    late: list[tuple[int, str]],
) -> None:
    """No row is lost or seen twice after any death, also with rows that come in between and a day to be removed."""
    samples_dir = tmp_path_factory.mktemp("samples")
    now = MONDAY + timedelta(days=5)
    rows = {sample(minute) for minute in minutes} | {sample(4 * 1440 + 60)}
    for row in rows:
        write_samples([row], samples_dir)
    of_monday = {row for row in rows if row.sampled_at < MONDAY + timedelta(days=1)}
    for step, after in deaths:
        try:
            with dying_at(step, after=after):
                keep(samples_dir, now=now, kept_days=4)
        except Death:
            pass
        for minute, group in late:
            row = sample(1440 + minute, group)
            rows.add(row)
            write_samples([row], samples_dir)
        there = seen(samples_dir)
        assert max(there.values()) == 1
        assert there.keys() in (rows, rows - of_monday)
    keep(samples_dir, now=now, kept_days=4)
    keep(samples_dir, now=now, kept_days=4)
    assert seen(samples_dir) == Counter(rows - of_monday)
    days = files(samples_dir)
    assert all(count == 1 for day, count in days.items() if day < "2026-01-08")
    assert not list(samples_dir.glob(".date=*"))


def test_an_unreadable_file_stays_and_the_others_become_one(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """An unreadable file is left in place for inspection, and the others of its day are merged."""
    broken = tmp_path / "date=2026-01-05" / "broken.parquet"
    broken.write_bytes(b"PAR1")
    assert keep(tmp_path) == Kept(merged_files=8)
    assert broken.read_bytes() == b"PAR1"
    assert keep(tmp_path) == Kept()
    broken.unlink()
    assert seen(tmp_path) == Counter(three_days)


def test_nothing_is_removed_while_the_table_is_being_read(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """While the features job reads the files that it listed, none is removed."""
    with reading(tmp_path):
        assert keep(tmp_path, kept_days=1) == Kept()
    assert keep(tmp_path) == Kept(merged_files=8)
    assert seen(tmp_path) == Counter(three_days)


def test_a_full_disk_is_logged_and_tried_again(
    tmp_path: Path, three_days: list[OffsetSample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread logs the error and tries again an hour later, and no row is lost."""
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        monkeypatch.undo()
        return len(waited) == 2

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collector.keeping.os.fsync", full)
    with capture_logs() as lines:
        keep_days_forever(tmp_path, kept_days=35, clock=lambda: THURSDAY, wait=wait)
    assert waited == [3600.0, 3600.0]
    assert [line["event"] for line in lines] == ["day_not_kept"] * 2 + ["samples_kept"]
    assert "No space left on device" in lines[0]["error"]
    assert not list(tmp_path.glob("date=*/.day*"))
    assert seen(tmp_path) == Counter(three_days)


def test_a_day_that_cannot_be_kept_leaves_the_others(tmp_path: Path, three_days: list[OffsetSample]) -> None:
    """A folder of the year 9999, whose end no calendar has, ended the thread."""
    for name in ("date=9999-12-31", "date=0001-01-01"):
        (tmp_path / name).mkdir()
    assert keep(tmp_path).merged_files == 8
    assert seen(tmp_path) == Counter(three_days)
    assert (tmp_path / "date=9999-12-31").exists()


def test_a_folder_that_does_not_exist_yet_is_no_error(tmp_path: Path) -> None:
    """Without a folder, which collectors make with their first file, there is nothing to do."""
    assert keep(tmp_path / "samples") == Kept()
