"""New sample files: a Spark data source that lists the newest days and keeps a journal of announced files.

    OUT/.follow/files/2026-05-04.jsonl    a line for each file of that day's folder: its position, name and rows

Spark's own file source lists all folders at each look, and never forgets a file. This source lists only the folders
from the day before the newest file on: two folders, of any number. Positions count up from 1 without gaps; a position
always stands for the same file, so a micro-batch that is repeated has the same files.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from forecasting.columns import BASE_INTERVAL_SECONDS, DAY_FILE, SAMPLES

_FOLDER = "date="
_US = 1_000_000
_SAMPLED_AT = next(column.name for column in SAMPLES if column.kind == "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """The most that a micro-batch takes: samples, unless a single file has more, and files."""

    samples: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFile:
    """A sample file and its position in the journal; rows and newest instant (microseconds since 1970) from its footer.

    Both are unknown, 0 and None, if it has no readable footer. Without a name it is a day's whole folder, which has
    changed since it was last listed.
    """

    position: int
    day: str
    name: str
    rows: int
    newest_us: int | None

    @property
    def path(self) -> Path:
        """The file's path, relative to the folder of samples."""
        return Path(f"{_FOLDER}{self.day}", self.name)


class Journal:
    """The announced files, in the folder `path`, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._files: dict[int, SampleFile] = {}
        self._names: dict[str, set[str]] = {}
        self._keep([file for day in sorted(path.glob("*.jsonl")) for file in _lines_of(day)])

    @property
    def newest_position(self) -> int:
        """The highest used position; 0 for an empty journal."""
        return next(reversed(self._files), 0)

    @property
    def newest_day(self) -> str | None:
        """The newest day that has a file in the journal."""
        return max(self._names, default=None)

    def knows(self, day: str, name: str) -> bool:
        """True if this file of that day's folder is in the journal."""
        return name in self._names.get(day, ())

    def between(self, after: int, to: int) -> list[SampleFile]:
        """The files at the positions `after` + 1 to `to`."""
        return [self._files[position] for position in range(after + 1, to + 1) if position in self._files]

    def up_to(self, to: int) -> list[SampleFile]:
        """All files that are still in the journal, up to position `to`."""
        return [file for position, file in self._files.items() if position <= to]

    def add(self, files: list[SampleFile]) -> None:
        """Append these files; they are on the disk when this returns."""
        for day in sorted({file.day for file in files}):
            with (self.path / f"{day}.jsonl").open("a") as journal:
                journal.writelines(json.dumps(asdict(file)) + "\n" for file in files if file.day == day)
                journal.flush()
                os.fsync(journal.fileno())
        self._keep(files)

    def written_ns(self) -> int | None:
        """The last change of the journal on disk, in nanoseconds since 1970."""
        return max((day.stat().st_mtime_ns for day in self.path.glob("*.jsonl")), default=None)

    def mend(self) -> None:
        """Remove incomplete last lines that a kill left; for the one process that adds."""
        for day in self.path.glob("*.jsonl"):
            os.truncate(day, _whole(day.read_bytes()))

    def forget(self, *, before: str, to: int) -> None:
        """Remove the days before `before` whose files all are at or before position `to`."""
        for day in [day for day in self._names if day < before]:
            positions = [position for position, file in self._files.items() if file.day == day]
            if max(positions) <= to:
                (self.path / f"{day}.jsonl").unlink(missing_ok=True)
                self._files = {position: file for position, file in self._files.items() if file.day != day}
                del self._names[day]

    def _keep(self, files: list[SampleFile]) -> None:
        for file in sorted(files, key=lambda file: file.position):
            self._files[file.position] = file
            self._names.setdefault(file.day, set()).add(file.name)


def _lines_of(path: Path) -> list[SampleFile]:
    """The files of one day, without an incomplete last line that a kill left: that file was not announced."""
    written = path.read_bytes()
    return [SampleFile(**json.loads(line)) for line in written[: _whole(written)].splitlines()]


def _whole(written: bytes) -> int:
    return written.rfind(b"\n") + 1


def first_followed_day(journal: Journal, started_from: str | None) -> str:
    """The oldest day whose folder is listed: the one before the journal's newest, else `started_from`, else any."""
    newest = journal.newest_day
    return started_from or "" if newest is None else (date.fromisoformat(newest) - timedelta(days=1)).isoformat()


class SampleFiles(SimpleDataSourceStreamReader):
    """New files, oldest day first, each as soon as its newest interval is over.

    Until then a row of that interval could still change: another reading of the same interval may come. Rows may not be
    used before their interval's end anyway.
    """

    def __init__(
        self,
        samples_dir: Path,
        journal: Journal,
        *,
        started_from: str | None,
        at_once: AtOnce,
        clock: Callable[[], datetime],
    ) -> None:
        self._samples_dir = samples_dir
        self._journal = journal
        # Read before the journal is changed: a folder that is not listed and has changed since then has new files.
        self._began_ns = journal.written_ns() or int(clock().timestamp() * 1e9)
        self._changed_ns: dict[str, int] = {}
        journal.mend()
        self._started_from = started_from
        self._at_once = at_once
        self._clock = clock
        # The footers of files that wait for the end of their interval, or for the next micro-batch.
        self._waiting: dict[tuple[str, str], tuple[int, int | None]] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """The position before the first file."""
        return {"files": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int, str, str]], dict[str, int]]:
        """The files after position `start`, and the position of the last of them."""
        after = start["files"]
        if self._journal.newest_position <= after:
            self._discover(after)
        announced = self._journal.between(after, self._journal.newest_position)
        return iter([_row(file) for file in announced]), {"files": announced[-1].position if announced else after}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[int, str, str]]:  # noqa: N802
        """The same files again, for a micro-batch that was not finished."""
        return iter([_row(file) for file in self._journal.between(start["files"], end["files"])])

    def commit(self, end: dict[str, int]) -> None:
        """Remove days from the journal that are no longer listed and whose files are all in the table."""
        self._journal.forget(before=first_followed_day(self._journal, None), to=end["files"])

    def _discover(self, after: int) -> None:
        found: list[SampleFile] = []
        samples = 0
        now_us = int(self._clock().timestamp() * _US)
        for day, name in self._unknown():
            if len(found) >= self._at_once.files:
                break
            rows, newest_us = self._footer_of(day, name)
            if newest_us is not None and _interval_end_us(newest_us) > now_us:
                self._waiting[day, name] = (rows, newest_us)
                continue
            if found and samples + rows > self._at_once.samples:
                self._waiting[day, name] = (rows, newest_us)
                break
            position = max(after, self._journal.newest_position) + len(found) + 1
            found.append(SampleFile(position=position, day=day, name=name, rows=rows, newest_us=newest_us))
            samples += rows
        self._journal.add(found)

    def _footer_of(self, day: str, name: str) -> tuple[int, int | None]:
        if (day, name) in self._waiting:
            return self._waiting.pop((day, name))
        return _footer(self._samples_dir / f"{_FOLDER}{day}" / name)

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """Day and name of files that are not in the journal, in the order of their oldest samples.

        For new files in a day that is no longer listed, the name is empty: the time of the folder's last change shows
        whether there are any. A merge of a day's files into one does not count.
        """
        first = first_followed_day(self._journal, self._started_from)
        for folder in _names_in(self._samples_dir):
            if not folder.startswith(_FOLDER):
                continue
            day = folder.removeprefix(_FOLDER)
            changed_ns = _changed_ns(self._samples_dir / folder)
            known_ns = self._changed_ns.get(day, self._began_ns)
            self._changed_ns[day] = changed_ns
            if day < first:
                if changed_ns > known_ns and _arrived_ns(self._samples_dir / folder) > known_ns:
                    yield day, ""
                continue
            for name in _names_in(self._samples_dir / folder):
                # A name that starts with a dot or an underscore is an unfinished file.
                if name.endswith(".parquet") and name[0] not in "._" and not self._journal.knows(day, name):
                    yield day, name


class SampleFileSource(DataSource):
    """`SampleFiles` as a data source of Spark, with a name and options."""

    @classmethod
    def name(cls) -> str:
        """The name for `readStream.format`."""
        return "lagcast_sample_files"

    def schema(self) -> str:
        """A file's position, day and name."""
        return "position long, day string, name string"

    def simpleStreamReader(self, schema: StructType) -> SampleFiles:  # noqa: ARG002, N802  # Spark's names
        """The reader, in a process that Spark starts for it and that reads the clock."""
        return SampleFiles(
            Path(self.options["samples_dir"]),
            Journal(Path(self.options["journal_dir"])),
            started_from=self.options.get("started_from"),
            at_once=AtOnce(samples=int(self.options["most_samples"]), files=int(self.options["most_files"])),
            clock=lambda: datetime.now(UTC),  # noqa: TID251  # as above
        )


def _row(file: SampleFile) -> tuple[int, str, str]:
    return file.position, file.day, file.name


def _names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; empty if the folder does not exist."""
    try:
        return sorted(entry.name for entry in os.scandir(folder))
    except FileNotFoundError:
        return []


def _changed_ns(folder: Path) -> int:
    """The last change of the folder's files, in nanoseconds since 1970; 0 if the folder does not exist."""
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _arrived_ns(folder: Path) -> int:
    """The arrival of the newest file of samples, in nanoseconds since 1970; merged files of days do not count."""
    names = [name for name in _names_in(folder) if name.endswith(".parquet") and not name.endswith(DAY_FILE)]
    return max((_named_ns(folder / name) for name in names if name[0] not in "._"), default=0)


def _named_ns(path: Path) -> int:
    """The instant at which the file got its name, in nanoseconds since 1970; 0 if the file does not exist."""
    try:
        return path.stat().st_ctime_ns
    except FileNotFoundError:
        return 0


def _footer(path: Path) -> tuple[int, int | None]:
    """The number of samples, and the newest instant in microseconds; 0 and None if the footer has neither."""
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0, None
    columns = [footer.schema.column(index).path for index in range(footer.num_columns)]
    if _SAMPLED_AT not in columns:
        return 0, None
    position = columns.index(_SAMPLED_AT)
    chunks = [footer.row_group(index).column(position).statistics for index in range(footer.num_row_groups)]
    newest = [chunk.max for chunk in chunks if chunk is not None and chunk.has_min_max]
    instants = [instant for instant in newest if isinstance(instant, datetime)]
    return int(footer.num_rows), max((round(at.timestamp() * _US) for at in instants), default=None)


def _interval_end_us(instant_us: int) -> int:
    return -(-instant_us // (BASE_INTERVAL_SECONDS * _US)) * BASE_INTERVAL_SECONDS * _US
