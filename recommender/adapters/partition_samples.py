"""The newest samples of a group by partition, as the page shows them: from the collector's own files. No JVM.

    FOLDER/date=2026-05-04/20260504T120000.000000Z-20260504T120000.000000Z-<groups>.parquet

A file has the samples of one reading, and its name their first and last instant. The files of finished days, which are
merged, are not read: what they hold is not of now. Two readings, minutes apart, are enough for rates.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.columns import DAY_FILE
from recommender.ports import GroupLoads, PartitionLoad

# Rates are means over about so long, as lag in seconds is.
APART = timedelta(minutes=5)
# What is older is not of now.
_FRESH_FOR = timedelta(minutes=15)
# So many files are tried for a reading with the group in it: others have other groups, or are being removed.
_MOST_TRIED = 4
_NAMES = ["topic", "partition", "sampled_at", "end_offset", "committed_offset"]

_Reading = dict[tuple[str, int], tuple[datetime, int, int | None]]


class PartitionSamplesFolder:
    """The samples in the folder `path`, that a collector of this process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def loads(self, cluster: str, group: str, *, until: datetime) -> GroupLoads | None:
        """The group's partitions as of its newest reading, up to `until`; None where none is of the last minutes."""
        files = list(self._newest_files(until))
        newest = _first_with(files, cluster, group)
        if newest is None:
            return None
        until_at = max(at for at, *_ in newest.values())
        earlier = [file for file in files if file[0] <= until_at - APART]
        before = _first_with(earlier, cluster, group) or {}
        return GroupLoads(
            since_at=min((at for at, *_ in before.values()), default=until_at),
            until_at=until_at,
            partitions=tuple(
                PartitionLoad(topic, number, _rate(before.get((topic, number)), now), _lag(now))
                for (topic, number), now in sorted(newest.items())
            ),
        )

    def _newest_files(self, until: datetime) -> Iterator[tuple[datetime, Path]]:
        """The files of readings of the last minutes by their last instant, newest first."""
        days = {(until - back).astimezone(UTC).strftime("date=%Y-%m-%d") for back in (timedelta(), _FRESH_FOR)}
        dated = ((_end_of(file), file) for day in days for file in (self.path / day).glob("*.parquet"))
        found = ((at, file) for at, file in dated if at is not None and until - _FRESH_FOR <= at <= until)
        yield from sorted(found, reverse=True)


def _first_with(files: list[tuple[datetime, Path]], cluster: str, group: str) -> _Reading | None:
    """The first reading that has the group, of the first few files."""
    for _, file in files[:_MOST_TRIED]:
        reading = _reading(file, cluster, group)
        if reading:
            return reading
    return None


def _reading(file: Path, cluster: str, group: str) -> _Reading:
    """The newest sample of each partition of the group in the file; empty where it cannot be read."""
    wanted = (pc.field("cluster") == cluster) & (pc.field("group") == group)
    try:
        rows = pq.read_table(file, columns=_NAMES, filters=wanted, partitioning=None).sort_by("sampled_at")
    except (OSError, pa.ArrowException):  # removed meanwhile, or broken, which the features job tells
        return {}
    columns = (rows[name].to_pylist() for name in _NAMES)
    return {(topic, number): (at, end, committed) for topic, number, at, end, committed in zip(*columns, strict=True)}


def _end_of(file: Path) -> datetime | None:
    """The last instant of the file's samples, from its name; None for a file with another kind of name."""
    parts = file.name.split("-")
    if file.name.startswith(".") or file.name.endswith(DAY_FILE) or len(parts) != 3:  # begin, end, groups
        return None
    try:
        return datetime.strptime(parts[1], "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _rate(before: tuple[datetime, int, int | None] | None, now: tuple[datetime, int, int | None]) -> float | None:
    """Messages/s between two samples; None without the first one, and where offsets went back."""
    if before is None or now[0] <= before[0] or now[1] < before[1]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0]).total_seconds()


def _lag(now: tuple[datetime, int, int | None]) -> int | None:
    """Messages that wait, never fewer than 0; None where nothing was committed yet."""
    _, end, committed = now
    return None if committed is None or committed < 0 else max(0, end - committed)
