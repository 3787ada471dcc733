"""Files of the feature table, linked, so that a job reads them to the end while the table goes on changing."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_features.samples import FeaturesError
from spark_features.table import Part, read_manifest

# A table that changes during this many reads in a row is being written faster than it can be read.
_MOST_TRIES = 5


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An empty folder, removed at the end of the block; files that a killed run left in it are removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parts_of(features_dir: Path, days: tuple[str, str], *, interval_seconds: int) -> list[Part]:
    """The feature table's parts with rows of that length, from the first to the last of these days."""
    first, last = days
    parts = read_manifest(features_dir).parts
    return [part for part in parts if part.interval_seconds == interval_seconds and first <= part.date <= last]


def pinned(features_dir: Path, folder: Path, days: tuple[str, str], *, interval_seconds: int) -> Path:
    """Link the files of these days' rows of that length into `folder`, and return it.

    The features job removes a folder two runs after it has replaced it. With a run every two minutes that is before
    Spark has read a large table.
    """
    for _ in range(_MOST_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            for number, part in enumerate(parts_of(features_dir, days, interval_seconds=interval_seconds)):
                for file in _files_in(features_dir / part.folder):
                    _link(file, folder / f"{part.date}-{number}-{file.name}")
        except FileNotFoundError:
            continue  # replaced since we read the manifest
        return folder
    message = f"{features_dir} was replaced during {_MOST_TRIES} reads in a row; write it less often"
    raise FeaturesError(message)


def _files_in(folder: Path) -> Iterable[Path]:
    """The parquet files of one part. Errors: FileNotFoundError if there are none, as a listed part has at least one."""
    files = list(folder.glob("*.parquet"))
    if not files:
        message = f"{folder} holds no parquet file"
        raise FileNotFoundError(message)
    return files


def _link(file: Path, name: Path) -> None:
    """Make `name` a link to the file, or a copy on another disk."""
    try:
        name.hardlink_to(file)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, name)
