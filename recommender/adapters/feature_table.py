"""The feature table as the recommender reads it: the parquet files that its manifest lists. No JVM.

    TABLE/manifest.json   format, schema_version, feature_table_version, and parts: one or several a day and length
    TABLE/<part.folder>/  parquet files that are written once and never changed

The manifest is read anew for every call, so that a loop which runs for weeks sees what the features job has added.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
from numpy.typing import NDArray

from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.history import GroupInterval
from recommender.adapters.arrow_rows import COLUMNS, COLUMNS_OF_MINUTES, SCHEMA, Condensing, instant_of, rows_of
from recommender.borders import Borders
from recommender.instants import MOST_AHEAD
from recommender.ports import Condensed, MalformedError

FORMAT = "lagcast group_intervals"
SCHEMA_VERSION = 1
MANIFEST = "manifest.json"

Answer = TypeVar("Answer")

_NEWEST = pa.schema([SCHEMA.field(name) for name in ("cluster", "group", "interval_end_at")])
_INSTANT = SCHEMA.field("interval_end_at").type
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
# A new group has a row of the longest intervals, an hour, after two hours at most.
_NEW_GROUP = timedelta(hours=2)
# A group without a row for so long before the newest row of any group is gone, and is asked for no more.
_GONE_AFTER = timedelta(days=1)
# A file that could not be read is tried again when the table has grown so often: five minutes of live rows.
_TRIED_AGAIN_AFTER_VERSIONS = 20
# Rows of several groups that are held at once as columns. Each read decodes whole row groups, of some 200,000 rows of a
# day, however few of their groups it takes.
_ROWS_AT_ONCE = 100_000
# Groups of a turn, of which a day is held at once as columns, 5,760 rows each at most. Their month is read in 4 s, and
# they are opened in 5: no cycle is much longer for them.
_GROUPS_AT_ONCE = 12
# Values that are decoded at once: a row group of 200,000 rows has 8 million. To read the newest of 324 rows of each of
# 1,000 groups took 61 to 98 MiB in a trial where row groups were decoded as a whole, and so 33 to 38, in the same time.
_VALUES_AT_ONCE = 2_000_000
# As objects, of some 0.9 kB each: what is allocated between them, and stays, keeps their memory from being given back.
_OBJECTS_AT_ONCE = 5_000
# A table whose manifest changes during this many reads in a row is being written faster than it can be read.
_MOST_TRIES = 5


class FeatureTableError(MalformedError, ValueError):
    """The folder holds no feature table, or none that this version reads; the message names the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows of one day and one interval length. A row belongs to the day of its interval, midnight included."""

    interval_seconds: int
    day_begins_at: datetime
    folder: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    version: int
    parts: tuple[_Part, ...]


class FeatureTable:
    """The table in the folder `path`. Each call reads one whole version, even while the features job writes the next.

    A file that cannot be read is left out and told to `borders`: its rows are missing, as those of a gap are.
    Errors: FeatureTableError where the folder is missing, or holds no feature table of this format.
    """

    def __init__(self, path: Path, *, borders: Borders | None = None) -> None:
        self.path = path
        self._borders = Borders() if borders is None else borders
        # Files that could not be read, each with the version of the table then.
        self._left_out: dict[str, int] = {}
        # By file, when it was written, and the end of the newest row of each of its groups.
        self._newest_ends: dict[str, tuple[int, pa.Table]] = {}
        _read_manifest(path)

    @property
    def version(self) -> int:
        """Number of the current version; every run of the features job makes the next one."""
        return _read_manifest(self.path).version

    @property
    def row_count(self) -> int:
        """The number of rows of all lengths: it changes as rows come, and not where files of rows are merged."""
        return sum(part.rows for part in _read_manifest(self.path).parts)

    def groups(self, *, now: datetime | None = None) -> tuple[tuple[str, str], ...]:
        """Every (cluster, group) that has rows of the longest intervals, or base rows of the newest hours, sorted.

        With `now`, those without a row in the day before the newest one are left out: a group that is gone costs
        nothing. Rows that end later than `MOST_AHEAD` after it, of a wrong clock, do not count as the newest.
        A group that is followed has base rows from its first minute on, and its first hour when that hour is over.
        """
        newest = self.newest_interval_end_at(until=None if now is None else now + MOST_AHEAD)
        if newest is None:
            return ()
        # The longest intervals hold every group in the fewest rows: 24 a day, not 5,760.
        lived_since = _EPOCH if now is None else newest - _GONE_AFTER
        tables = [
            self._lately_seen(_of_longest_interval, since=lived_since),
            self._lately_seen(_of_base, since=newest - _NEW_GROUP),
        ]
        found = _newest_of_each(pa.concat_tables(tables))
        return tuple(sorted(zip(found["cluster"].to_pylist(), found["group"].to_pylist(), strict=True)))

    def _lately_seen(self, of_length: Callable[[Sequence[_Part]], Sequence[_Part]], *, since: datetime) -> pa.Table:
        """Cluster and group of the rows that end after `since`, with the end of their newest row."""

        def may_hold(parts: Sequence[_Part]) -> list[_Part]:
            return [part for part in of_length(parts) if part.day_begins_at + _DAY > since]

        ends = _newest_of_each(self._read(may_hold, self._newest_ends_in))
        return ends.filter(pc.field("interval_end_at") > pa.scalar(since, _INSTANT))

    def _newest_ends_in(self, dataset: ds.Dataset) -> pa.Table:
        """Cluster, group and the end of their newest row, of each file: a file that never changes is read once."""
        found = [_NEWEST.empty_table()]
        for file in dataset.files:
            # A table that was removed and made anew may have a file of the same name.
            written_ns = Path(file).stat().st_mtime_ns
            known = self._newest_ends.get(file)
            if known is None or known[0] != written_ns:
                for gone in [each for each in tuple(self._newest_ends) if not Path(each).exists()]:
                    self._newest_ends.pop(gone, None)
                known = self._newest_ends[file] = written_ns, _newest_ends_of(file)
            found.append(known[1])
        return pa.concat_tables(found)

    def intervals(
        self,
        cluster: str,
        group: str,
        *,
        interval_seconds: int = BASE_INTERVAL_SECONDS,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[GroupInterval]:
        """The group's rows that end after `since` and no later than `until`, oldest first; unknown values are None."""
        of_group = (pc.field("cluster") == cluster) & (pc.field("group") == group)
        return rows_of(self._intervals(of_group, interval_seconds=interval_seconds, since=since, until=until))

    def intervals_in_turn(
        self, groups: Sequence[tuple[str, str]], *, since: datetime, until: datetime
    ) -> Iterator[tuple[tuple[str, str], list[GroupInterval]]]:
        """The same of each of these groups, in reads of `_ROWS_AT_ONCE` rows or of one group.

        A read looks through the parts of all days, whether it takes one group from them or twenty.
        """
        for names in self._turns(groups, since=since, until=until):
            table = self._of_groups(names, since=since, until=until)
            order, bounds = _by_group(table, names)
            rows: list[GroupInterval] = []
            first = 0
            for place, name in enumerate(names):
                begin, end = bounds[place], bounds[place + 1]
                if end > first + len(rows):
                    few = int(np.searchsorted(bounds, begin + _OBJECTS_AT_ONCE, side="right")) - 1
                    first, rows = begin, rows_of(table.take(order[begin : bounds[max(few, place + 1)]]))
                yield name, rows[begin - first : end - first]

    def condensed_in_turns(
        self, groups: Sequence[tuple[str, str]], *, newest: timedelta, since: datetime, until: datetime
    ) -> Iterator[Iterator[tuple[tuple[str, str], Condensed]]]:
        """The past of each of these groups, with rows of `newest` before the newest one, and minutes before these.

        The groups of a turn are read together, a day after the other, of which only the minutes are kept.
        """
        days = _days_back(since=since, until=until)
        for place in range(0, len(groups), _GROUPS_AT_ONCE):
            names = groups[place : place + _GROUPS_AT_ONCE]
            pasts = [Condensing(newest) for _ in names]
            for begins_at, ends_at in days:
                is_of_minutes = all(past.is_cut_before(ends_at) for past in pasts)
                columns = COLUMNS_OF_MINUTES if is_of_minutes else COLUMNS
                table = self._of_groups(names, since=begins_at, until=ends_at, columns=columns)
                order, bounds = _by_group(table, names)
                ordered = table.take(order[: bounds[-1]])
                for past, begin, end in zip(pasts, bounds, bounds[1:], strict=False):
                    past.take(ordered.slice(begin, end - begin))
            yield ((name, past.whole()) for name, past in zip(names, pasts, strict=True))

    def _turns(
        self, groups: Sequence[tuple[str, str]], *, since: datetime, until: datetime
    ) -> Iterator[Sequence[tuple[str, str]]]:
        """The groups, as many in each turn as have `_ROWS_AT_ONCE` together, if groups are alike; at least one."""
        wanted, may_hold = _within(since=since, until=until, interval_seconds=BASE_INTERVAL_SECONDS)
        rows = self._read(may_hold, lambda files: int(files.count_rows(filter=wanted)))
        at_once = max(1, _ROWS_AT_ONCE * len(groups) // max(1, rows))
        return (groups[begin : begin + at_once] for begin in range(0, len(groups), at_once))

    def _of_groups(
        self, groups: Sequence[tuple[str, str]], *, since: datetime, until: datetime, columns: Sequence[str] = COLUMNS
    ) -> pa.Table:
        """Base rows in order of time, perhaps with those of groups of the same names in other clusters."""
        wanted = pc.field("group").isin(sorted({group for _, group in groups}))
        return self._intervals(
            wanted, interval_seconds=BASE_INTERVAL_SECONDS, since=since, until=until, columns=columns
        )

    def _intervals(
        self,
        wanted: Any,  # noqa: ANN401  # an Arrow expression, which ships no types
        *,
        interval_seconds: int,
        since: datetime | None,
        until: datetime | None,
        columns: Sequence[str] = COLUMNS,
    ) -> pa.Table:
        """The wanted rows in the order of their ends."""
        lately, may_hold = _within(since=since, until=until, interval_seconds=interval_seconds)
        wanted = wanted if lately is None else wanted & lately
        return self._table(may_hold, columns=columns, wanted=wanted).sort_by("interval_end_at")

    def newest_interval_end_at(self, *, until: datetime | None = None) -> datetime | None:
        """End of the newest base row of any group, or of the newest one no later than `until`; None without rows."""

        def may_hold(parts: Sequence[_Part]) -> list[_Part]:
            return _of_newest_day([part for part in parts if until is None or part.day_begins_at <= until])

        newest = _newest(self._read(may_hold, self._newest_ends_in))
        if until is None or newest is None or newest <= until:
            return newest
        # A group of a wrong clock may have rows before it, too.
        no_later = pc.field("interval_end_at") <= pa.scalar(until, _INSTANT)
        return _newest(self._table(may_hold, columns=("interval_end_at",), wanted=no_later))

    def ahead(self, now: datetime) -> dict[tuple[str, str], datetime]:
        """The groups with base rows that end later than `MOST_AHEAD` after `now`, with the end of the newest one."""
        found = self._lately_seen(_of_base, since=now + MOST_AHEAD)
        names = zip(found["cluster"].to_pylist(), found["group"].to_pylist(), strict=True)
        ends_us = found["interval_end_at"].cast(pa.int64()).to_pylist()
        return {name: instant_of(end_us) for name, end_us in zip(names, ends_us, strict=True)}

    def _table(
        self,
        pick: Callable[[Sequence[_Part]], Sequence[_Part]],
        *,
        columns: Sequence[str],
        wanted: Any,  # noqa: ANN401  # an Arrow expression, which ships no types
    ) -> pa.Table:
        """These columns of the wanted rows of the picked parts."""
        return self._read(pick, partial(_table_from, columns=list(columns), wanted=wanted))

    def _read(self, pick: Callable[[Sequence[_Part]], Sequence[_Part]], work: Callable[[ds.Dataset], Answer]) -> Answer:
        """What `work` makes of the picked parts of one version; again if a writer removed that version meanwhile."""
        for _ in range(_MOST_TRIES):
            manifest = _read_manifest(self.path)
            listed: list[str] = []
            try:
                listed += [file for part in pick(manifest.parts) for file in _files(self.path / part.folder)]
                return work(self._dataset(listed, manifest))
            except (OSError, pa.ArrowException) as error:
                if _read_manifest(self.path).version == manifest.version and not self._leave_out(listed, manifest):
                    message = (
                        f"the feature table {self.path}, version {manifest.version}, cannot be read ({error}); "
                        "remove the folder and run `lagcast features` again"
                    )
                    raise FeatureTableError(message) from error
        message = f"the feature table {self.path} was replaced during {_MOST_TRIES} reads in a row; write it less often"
        raise FeatureTableError(message)

    def _dataset(self, files: Sequence[str], manifest: _Manifest) -> ds.Dataset:
        """The files without those that were left out lately. Errors: OSError where no other is left.

        Without the error the table would look empty, and its groups would be forgotten instead of refused.
        """
        readable = self._readable(files, manifest)
        if files and not readable:
            message = f"none of its {len(files)} files can be read"
            raise OSError(message)
        return ds.dataset(readable, schema=SCHEMA, format="parquet")

    def _readable(self, files: Sequence[str], manifest: _Manifest) -> list[str]:
        """The files without those that were left out lately."""
        since = manifest.version - _TRIED_AGAIN_AFTER_VERSIONS
        self._left_out = {file: version for file, version in self._left_out.items() if version > since}
        return [file for file in files if file not in self._left_out]

    def _leave_out(self, files: Sequence[str], manifest: _Manifest) -> bool:
        """Find the files that cannot be read, and leave them out from now on; False if there is none, or no other."""
        found = False
        for file in self._readable(files, manifest):
            try:
                pq.read_table(file, partitioning=None)
            except (OSError, pa.ArrowException) as error:
                self._left_out[file], found = manifest.version, True
                self._borders.failed("file", file, error, is_expected=True)
        return found and bool(self._readable(files, manifest))


def _within(
    *, since: datetime | None, until: datetime | None, interval_seconds: int
) -> tuple[Any, Callable[[Sequence[_Part]], list[_Part]]]:
    """The condition on rows that end after `since`, up to `until`, or None; and the parts that may hold some."""
    ends, wanted = pc.field("interval_end_at"), None
    if since is not None:
        wanted = ends > pa.scalar(since, _INSTANT)
    if until is not None:
        no_later = ends <= pa.scalar(until, _INSTANT)
        wanted = no_later if wanted is None else wanted & no_later

    def may_hold(parts: Sequence[_Part]) -> list[_Part]:
        return [
            part
            for part in parts
            if part.interval_seconds == interval_seconds
            and (since is None or part.day_begins_at + _DAY > since)
            and (until is None or part.day_begins_at < until)
        ]

    return wanted, may_hold


def _newest_ends_of(file: str) -> pa.Table:
    """The end of the newest row of each group in a file, batch by batch: a day of 1,000 groups would be 200 MB."""
    batches = ds.dataset([file], schema=SCHEMA, format="parquet").to_batches(
        columns=_NEWEST.names, batch_readahead=0, fragment_readahead=0
    )
    of_batches = (_newest_of_each(pa.Table.from_batches([batch])) for batch in batches)
    return _newest_of_each(pa.concat_tables([_NEWEST.empty_table(), *of_batches])).combine_chunks()


def _newest_of_each(ends: pa.Table) -> pa.Table:
    """Each cluster and group once, with the last of its ends."""
    found = ends.group_by(["cluster", "group"]).aggregate([("interval_end_at", "max")])
    return found.select(["cluster", "group", "interval_end_at_max"]).rename_columns(_NEWEST.names)


def _newest(ends: pa.Table) -> datetime | None:
    newest = pc.max(ends["interval_end_at"])
    return instant_of(newest.cast(pa.int64()).as_py()) if newest.is_valid else None


def _table_from(files: ds.Dataset, *, columns: list[str], wanted: Any) -> pa.Table:  # noqa: ANN401  # as above
    """The wanted rows, one row group after the other: by default many are decoded, and in memory, at once."""
    found = (
        _rows_from(row_group, columns=columns, wanted=wanted)
        for file in files.get_fragments(filter=wanted)
        for row_group in file.split_by_row_group(filter=wanted, schema=SCHEMA)
    )
    return pa.concat_tables([pa.schema([SCHEMA.field(name) for name in columns]).empty_table(), *found])


def _rows_from(row_group: ds.ParquetFileFragment, *, columns: list[str], wanted: Any) -> pa.Table:  # noqa: ANN401  # as above
    """The wanted rows, of which some columns are decoded after the other where there are many rows."""
    rows = sum(each.num_rows for each in row_group.row_groups)  # `count_rows` gives those of the whole file
    width = max(1, _VALUES_AT_ONCE // max(1, rows))
    if width >= len(columns):
        return row_group.to_table(schema=SCHEMA, columns=columns, filter=wanted)
    # By these columns rows are wanted.
    keys = row_group.to_table(schema=SCHEMA, columns=_NEWEST.names).append_column("place", pa.array(np.arange(rows)))
    places = keys.filter(wanted)["place"]
    del keys
    parts = (
        row_group.to_table(schema=SCHEMA, columns=columns[begin : begin + width]).take(places)
        for begin in range(0, len(columns), width)
    )
    return pa.Table.from_arrays([column for part in parts for column in part.columns], names=columns)


def _of_longest_interval(parts: Sequence[_Part]) -> list[_Part]:
    longest = max((part.interval_seconds for part in parts), default=0)
    return [part for part in parts if part.interval_seconds == longest]


def _of_base(parts: Sequence[_Part]) -> list[_Part]:
    return [part for part in parts if part.interval_seconds == BASE_INTERVAL_SECONDS]


def _of_newest_day(parts: Sequence[_Part]) -> list[_Part]:
    base = _of_base(parts)
    newest = max((part.day_begins_at for part in base), default=None)
    return [part for part in base if part.day_begins_at == newest]


def _read_manifest(path: Path) -> _Manifest:
    if not path.is_dir():
        message = f"{path} is no folder; name the one that `lagcast features --out` wrote"
        raise FeatureTableError(message)
    file = path / MANIFEST
    try:
        content = json.loads(file.read_text())
        if (content["format"], content["schema_version"]) == (FORMAT, SCHEMA_VERSION):
            return _Manifest(
                version=int(content["feature_table_version"]), parts=tuple(_part(part) for part in content["parts"])
            )
    except FileNotFoundError as error:
        message = f"{path} holds no feature table ({MANIFEST} is missing); run `lagcast features --out {path}` first"
        raise FeatureTableError(message) from error
    except OSError as error:
        message = f"{file} cannot be read ({error.strerror}); allow it, or name another feature table"
        raise FeatureTableError(message) from error
    except (ValueError, LookupError, TypeError) as error:
        raise FeatureTableError(_foreign(file)) from error
    raise FeatureTableError(_foreign(file))


def _foreign(file: Path) -> str:
    return (
        f"{file} is no manifest of a {FORMAT} table, schema version {SCHEMA_VERSION}; "
        "name another folder, or write this one again with `lagcast features`"
    )


def _part(entry: dict[str, Any]) -> _Part:
    folder = PurePosixPath(entry["folder"])
    if folder.is_absolute() or ".." in folder.parts:
        message = f"a part lies outside of the table: {folder}"
        raise ValueError(message)
    day = date.fromisoformat(entry["date"])
    return _Part(
        interval_seconds=int(entry["interval_seconds"]),
        day_begins_at=datetime(day.year, day.month, day.day, tzinfo=UTC),
        folder=str(folder),
        rows=int(entry["rows"]),
    )


def _files(folder: Path) -> list[str]:
    """The parquet files of one part. Errors: FileNotFoundError where there are none: a part that is listed has some."""
    files = sorted(str(file) for file in folder.glob("*.parquet"))
    if not files:
        message = f"{folder} holds no parquet file"
        raise FileNotFoundError(message)
    return files


def _days_back(*, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """The days of the table between two instants, the newest first, each as the instants it lies between."""
    days: list[tuple[datetime, datetime]] = []
    while until > since:
        begins_at = max(since, _EPOCH + (until - _MICROSECOND - _EPOCH) // _DAY * _DAY)
        days.append((begins_at, until))
        until = begins_at
    return days


def _by_group(table: pa.Table, groups: Sequence[tuple[str, str]]) -> tuple[NDArray[np.int64], Sequence[int]]:
    """The places of the rows of these groups, one group after the other, each in the order of the table.

    And where each group begins among these places; the last bound is where the last group ends.
    """
    names = pc.binary_join_element_wise(table["cluster"], table["group"], "\0")
    places = pc.index_in(names, value_set=pa.array(["\0".join(group) for group in groups], names.type))
    place_of_row = places.fill_null(len(groups)).to_numpy()
    order = np.argsort(place_of_row, kind="stable")
    return order, np.searchsorted(place_of_row[order], np.arange(len(groups) + 1)).tolist()
