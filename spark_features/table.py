"""The feature table on disk: immutable folders of parquet files, and one manifest that lists the valid ones.

    OUT/manifest.json                                     swapped whole by rename, read first by every reader
    OUT/versions/v7/interval_seconds=60/date=2026-01-05/  written once, listed in the manifest, never changed

A day of one interval length is one part if the batch job wrote it; the stream adds parts to it and merges them.

A reader that opened the manifest sees that whole version, even if a writer changes the table or is killed. The folders
of the version before stay until the next swap, for readers that still use them.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from collector.locks import locked
from spark_features.samples import FeaturesError

FORMAT = "lagcast group_intervals"
# A new nullable column does not raise the version: older files lack the column, and readers use null there.
SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
# A file is read in row groups, and those without the wanted groups are skipped: rows are sorted by group. Spark is told
# bytes of encoded rows: 6 MiB are some 200,000 rows, and a day takes 8 % more room than in one row group; 4 MiB are
# 18,000 rows, and 60 % more.
ROW_GROUP_BYTES, ROW_GROUP_ROWS = 6 * 2**20, 200_000
_VERSIONS = "versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one day and one interval length; `folder` is relative to the table."""

    interval_seconds: int
    date: str
    folder: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The progress of the stream: the rows of the first `files` sample files of its journal are in the table."""

    journal: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One version of the table. Version 0 is a table that was never written."""

    feature_table_version: int = 0
    parts: tuple[Part, ...] = ()
    followed: Followed | None = None  # None: the batch job has written since the stream

    def replaced_by(self, parts: tuple[Part, ...]) -> "Manifest":
        """The next version: these parts, and the present parts of the other days and interval lengths."""
        replaced = {(part.interval_seconds, part.date) for part in parts}
        kept = tuple(part for part in self.parts if (part.interval_seconds, part.date) not in replaced)
        return self.followed_by((*kept, *parts), followed=None)

    def since(self, first: date) -> "Manifest":
        """The same version without the parts of days before `first`."""
        return replace(self, parts=tuple(part for part in self.parts if part.date >= first.isoformat()))

    def followed_by(self, parts: tuple[Part, ...], *, followed: Followed | None) -> "Manifest":
        """The next version, with these parts; parts of one day and length stay in the given order."""
        return Manifest(
            feature_table_version=self.feature_table_version + 1,
            parts=tuple(sorted(parts, key=lambda part: (part.interval_seconds, part.date))),
            followed=followed,
        )


def read_manifest(table_dir: Path) -> Manifest:
    """The table's present manifest. Errors: FeaturesError if it is another program's or of a later format."""
    path = table_dir / MANIFEST
    if not path.exists():
        return Manifest()
    try:
        content: Mapping[str, object] = json.loads(path.read_text())
        if content["format"] != FORMAT or content["schema_version"] != SCHEMA_VERSION:
            raise FeaturesError(_foreign(path))
        parts = content["parts"]
        version = content["feature_table_version"]
        if not isinstance(parts, list) or not isinstance(version, int):
            raise FeaturesError(_foreign(path))
        followed = content.get("followed")
        return Manifest(
            feature_table_version=version,
            parts=tuple(Part(**part) for part in parts),
            followed=Followed(**followed) if isinstance(followed, dict) else None,
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise FeaturesError(_foreign(path)) from error


def _foreign(path: Path) -> str:
    return f"{path} is no manifest of a {FORMAT} table, schema version {SCHEMA_VERSION}; choose another --out"


@contextmanager
def writing(table_dir: Path) -> Iterator[None]:
    """Lock the table until the end of the block; the lock is released when the process ends, even by a kill."""
    try:
        lock = locked(table_dir / ".lock")
    except BlockingIOError as error:
        message = (
            f"another run is writing to {table_dir}; wait for it, stop it if it is one with --follow, "
            "or choose another --out"
        )
        raise FeaturesError(message) from error
    except OSError as error:
        message = f"{table_dir} cannot be written to ({error.strerror}); choose another --out"
        raise FeaturesError(message) from error
    with lock:
        yield


def fresh_folder(table_dir: Path, *, version: int) -> Path:
    """The folder for the files of `version`; files that a killed run left there are removed."""
    folder = table_dir / _VERSIONS / f"v{version}"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def parts_in(table_dir: Path, folder: Path) -> tuple[Part, ...]:
    """The parts that were written below `folder`, with their numbers of rows from the files."""
    return tuple(
        Part(
            interval_seconds=int(day.parent.name.removeprefix("interval_seconds=")),
            date=date.fromisoformat(day.name.removeprefix("date=")).isoformat(),
            folder=day.relative_to(table_dir).as_posix(),
            rows=sum(int(pq.read_metadata(file).num_rows) for file in day.glob("*.parquet")),
        )
        for day in sorted(folder.glob("interval_seconds=*/date=*"))
    )


def swap(table_dir: Path, *, before: Manifest, after: Manifest) -> None:
    """Make `after` the present version in one step, then remove the folders that neither manifest lists."""
    unfinished = table_dir / f".{MANIFEST}"
    content = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(after)}
    with unfinished.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(table_dir / MANIFEST)
    wanted = {table_dir / part.folder for part in (*before.parts, *after.parts)}
    for day in (table_dir / _VERSIONS).glob("*/*/date=*"):
        if day not in wanted:
            shutil.rmtree(day)
    for version in (table_dir / _VERSIONS).glob("*"):
        if not any(version in folder.parents for folder in wanted):
            shutil.rmtree(version)
