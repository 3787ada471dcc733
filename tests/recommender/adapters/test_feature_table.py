"""The feature table as the recommender reads it, from tables that are written here without Spark."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model.physics.detected import observed_in
from cost_model.physics.pods import changes_in
from forecasting.columns import GROUP_INTERVALS
from forecasting.history import GroupInterval, Minutes, intervals_from_columns
from recommender.adapters import feature_table
from recommender.adapters.arrow_rows import condensed
from recommender.adapters.feature_table import FeatureTable, FeatureTableError
from recommender.borders import Borders, Unit
from recommender.ports import AdapterError

MakeRow = Callable[..., GroupInterval]

_START_AT = datetime(2026, 5, 4, tzinfo=UTC)
_FORMAT = {"format": "lagcast group_intervals", "schema_version": 1}


def _at(seconds: float) -> datetime:
    return _START_AT + timedelta(seconds=seconds)


def _table_of(rows: Sequence[GroupInterval]) -> pa.Table:
    types = {"timestamp": pa.timestamp("us", tz="UTC"), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
    kinds = types | {"string": pa.string(), "boolean": pa.bool_()}
    schema = pa.schema([pa.field(column.name, kinds[column.kind]) for column in GROUP_INTERVALS])
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=schema)


def _write(table: Path, rows: Sequence[GroupInterval], *, version: int = 1) -> None:
    """One version of the table: a folder for each day and interval length, and the manifest that lists them."""
    days: dict[tuple[int, str], list[GroupInterval]] = {}
    for row in rows:
        day = (row.interval_end_at - timedelta(microseconds=1)).date().isoformat()
        days.setdefault((row.interval_seconds, day), []).append(row)
    parts = []
    for (seconds, day), of_day in days.items():
        folder = f"versions/v{version}/interval_seconds={seconds}/date={day}"
        (table / folder).mkdir(parents=True)
        pq.write_table(_table_of(of_day), table / folder / "part-0.parquet")
        parts.append({"interval_seconds": seconds, "date": day, "folder": folder, "rows": len(of_day)})
    (table / "manifest.json").write_text(json.dumps(_FORMAT | {"feature_table_version": version, "parts": parts}))


def test_rows_come_back_as_they_were_written(row: MakeRow, tmp_path: Path) -> None:
    """Every column is equal, unknown is None, instants are in UTC, in order of time for any order of files."""
    unknown = row(_at(30), 1.0, produce_messages_per_second=None, lag_seconds=None, members=None, gap_count=3)
    late = {"worst_lag_seconds": 40.0, "worst_partition": "orders-3"}
    known = row(_at(15), 2.5, partition_skew_ratio=1.25, busiest_partition="orders-17", in_rebalance=True, **late)
    _write(tmp_path, [unknown, known])
    rows = FeatureTable(tmp_path).intervals("c", "orders")
    assert rows == [known, unknown]
    assert {found.interval_end_at.tzinfo for found in rows} == {UTC}


def test_a_table_from_before_a_column_is_read_with_nulls(row: MakeRow, tmp_path: Path) -> None:
    """Files of the same schema version may lack nullable columns of later ones, also beside newer files."""
    old, new = row(_at(15), 2.5), row(_at(86_400 + 15), 2.5, worst_lag_seconds=7.5, worst_partition="orders-3")
    _write(tmp_path, [old, new])
    (first, _) = sorted(tmp_path.rglob("*.parquet"))
    pq.write_table(pq.read_table(first).drop_columns(["worst_lag_seconds", "worst_partition"]), first)
    assert FeatureTable(tmp_path).intervals("c", "orders") == [old, new]


def test_since_is_out_and_until_is_in_across_midnight(row: MakeRow, tmp_path: Path) -> None:
    """The row that ends at midnight belongs to the old day; reading in steps gives each row once."""
    rows = [row(_at(86_400 + 15 * step), float(step)) for step in range(-2, 3)]
    _write(tmp_path, rows)
    table = FeatureTable(tmp_path)
    midnight = _at(86_400)
    assert table.intervals("c", "orders", until=midnight) == rows[:3]
    assert table.intervals("c", "orders", since=midnight) == rows[3:]
    assert table.intervals("c", "orders", since=rows[0].interval_end_at, until=rows[3].interval_end_at) == rows[1:4]
    assert table.intervals("c", "orders", since=_at(10 * 86_400)) == []


def test_of_a_window_only_its_own_days_are_opened(row: MakeRow, tmp_path: Path) -> None:
    """With the files of all other days gone, and those of other lengths, the rows of the window are read as before."""
    rows = [row(_at(86_400 * day + 15), float(day)) for day in range(9)]
    minutes = [row(_at(86_400 * day + 60), float(day), interval_seconds=60) for day in range(9)]
    _write(tmp_path, [*rows, *minutes])
    table = FeatureTable(tmp_path)
    for folder in tmp_path.glob("versions/v1/*/date=*"):
        if folder.parent.name != "interval_seconds=15" or folder.name not in {"date=2026-05-07", "date=2026-05-08"}:
            shutil.rmtree(folder)
    since, until = _at(86_400 * 3), _at(86_400 * 4 + 15)
    assert table.intervals("c", "orders", since=since, until=until) == rows[3:5]
    assert dict(table.intervals_in_turn([("c", "orders")], since=since, until=until)) == {("c", "orders"): rows[3:5]}
    assert table.newest_interval_end_at(until=until) == until
    with pytest.raises(FeatureTableError):
        table.intervals("c", "orders", since=since, until=_at(86_400 * 5 + 15))


def test_the_newest_rows_of_groups_in_turn_are_those_of_each_in_order(row: MakeRow, tmp_path: Path) -> None:
    """Each group gets the rows that it gets when it is read alone; one without such rows gets none."""
    rows = [row(_at(15 * step), float(step), group=group) for step in range(1, 5) for group in ("a", "b")]
    silent = row(_at(15), 1.0, group="silent")
    _write(tmp_path, [*rows[::-1], silent, row(_at(60), 9.0, group="a", interval_seconds=60)])
    table = FeatureTable(tmp_path)
    since, until = _at(15), _at(45)
    names = [("c", group) for group in ("a", "b", "silent")]
    found = dict(table.intervals_in_turn(names, since=since, until=until))
    assert found == {name: table.intervals(*name, since=since, until=until) for name in names}
    assert [each.produce_messages_per_second for each in found["c", "a"]] == [2, 3]
    assert found["c", "silent"] == []


@pytest.mark.parametrize("objects_at_once", [1, 3, 1000])
@pytest.mark.parametrize("rows_at_once", [1, 5, 1000])
def test_groups_in_turn_get_what_each_gets_alone(
    row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int, objects_at_once: int
) -> None:
    """However many are read or made at once; a group of the same name in another cluster is another one."""
    monkeypatch.setattr("recommender.adapters.feature_table._ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr("recommender.adapters.feature_table._OBJECTS_AT_ONCE", objects_at_once)
    rows = [row(_at(15 * step), float(step), group=group) for step in range(1, 5) for group in ("a", "b", "c")]
    _write(tmp_path, [*rows, row(_at(15), 7.0, cluster="other", group="a")])
    table = FeatureTable(tmp_path)
    names = [("c", "c"), ("c", "a"), ("other", "a"), ("c", "gone")]
    since, until = _at(15), _at(45)
    alone = [(name, table.intervals(*name, since=since, until=until)) for name in names]
    assert list(table.intervals_in_turn(names, since=since, until=until)) == alone


@pytest.mark.parametrize("values_at_once", [1, 100, 10_000])
def test_rows_are_the_same_however_many_columns_of_them_are_decoded_at_once(
    row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values_at_once: int
) -> None:
    """In each of several row groups, of which some have no wanted rows; a column that an older file lacks is null."""
    rows = [row(_at(15 * step), float(step), group=group) for group in ("a", "b") for step in range(1, 9)]
    _write(tmp_path, rows)
    (file,) = tmp_path.rglob("*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["clients"]), file, row_group_size=3)
    monkeypatch.setattr("recommender.adapters.feature_table._VALUES_AT_ONCE", values_at_once)
    found = FeatureTable(tmp_path).intervals("c", "a", since=_at(30), until=_at(105))
    assert found == rows[2:7]


# Prints how many bytes Arrow held at most, in a process of its own: the highest mark of a pool is never lowered.
NEWEST_OF_ALL_GROUPS = """
import sys
from datetime import datetime
from pathlib import Path
import pyarrow
from recommender.adapters import feature_table
folder, since, until, groups, feature_table._VALUES_AT_ONCE = sys.argv[1], *sys.argv[2:4], *map(int, sys.argv[4:])
names = [("c", f"group-{number:03d}") for number in range(groups)]
instants = {"since": datetime.fromisoformat(since), "until": datetime.fromisoformat(until)}
found = list(feature_table.FeatureTable(Path(folder)).intervals_in_turn(names, **instants))
assert [len(of_group) for _, of_group in found] == [1] * groups
print(pyarrow.default_memory_pool().max_memory())
"""


def test_of_a_large_row_group_of_which_few_rows_are_wanted_few_columns_are_in_memory_at_once(
    row: MakeRow, tmp_path: Path
) -> None:
    """The newest rows of all groups, once the parts of an hour are merged: the rows of the hour are 10 MB."""
    groups, steps = 200, 240
    (at, group) = (np.tile(np.arange(steps), groups), np.repeat(np.arange(groups), steps))
    rows = _table_of([row(_at(0), 1.0)]).take(np.zeros(groups * steps, dtype=np.int64))
    for name, values in (
        ("interval_end_at", pa.array((1_000_000 * (_START_AT.timestamp() + 15 * (at + 1))).astype(np.int64))),
        ("group", pa.array([f"group-{number:03d}" for number in group])),
        ("produce_messages_per_second", pa.array(np.random.default_rng(0).normal(size=groups * steps))),
    ):
        field = rows.schema.field(name)
        rows = rows.set_column(rows.schema.get_field_index(name), field, values.cast(field.type))
    _write(tmp_path, [row(_at(15), 1.0)])
    (file,) = tmp_path.rglob("*.parquet")
    pq.write_table(rows, file)
    newest = (_at(15 * (steps - 1)).isoformat(), _at(15 * steps).isoformat())

    def most_bytes(values_at_once: int) -> int:
        given = (tmp_path, *newest, groups, values_at_once)
        command = [sys.executable, "-c", NEWEST_OF_ALL_GROUPS, *map(str, given)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert most_bytes(4 * groups * steps) < rows.nbytes / 2
    assert most_bytes(rows.num_columns * groups * steps) > rows.nbytes


def test_of_groups_that_are_read_together_few_rows_are_objects_at_once(
    row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty groups that are an hour behind: with 500 objects at once, two groups' 480 rows are made, then the next."""
    monkeypatch.setattr("recommender.adapters.feature_table._OBJECTS_AT_ONCE", 500)
    names = [("c", f"group-{number:02d}") for number in range(50)]
    _write(tmp_path, [row(_at(15 * step), 1.0, group=group) for step in range(1, 241) for _, group in names])
    made: list[int] = []
    whole = intervals_from_columns

    def counting(columns: Mapping[str, Sequence[object]]) -> list[GroupInterval]:
        made.append(len(columns["group"]))
        return whole(columns)

    monkeypatch.setattr("recommender.adapters.arrow_rows.intervals_from_columns", counting)
    in_turn = FeatureTable(tmp_path).intervals_in_turn(names, since=_at(0), until=_at(3600))
    assert [len(rows) for _, rows in in_turn] == [240] * 50
    assert made == [480] * 25


@pytest.mark.parametrize("groups_at_once", [1, 4, 1000])
def test_condensed_pasts_in_turn_are_those_of_each_group_alone(
    row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups_at_once: int
) -> None:
    """However many are read at once, of a group that is behind and one of the same name in another cluster too."""
    monkeypatch.setattr("recommender.adapters.feature_table._GROUPS_AT_ONCE", groups_at_once)
    until, newest = _at(600), timedelta(seconds=120)
    rows = [row(_at(15 * step), float(step), group=group) for step in range(1, 41) for group in ("a", "b")]
    rows += [row(_at(15 * step), float(step), group="behind", members=step // 10) for step in range(1, 31)]
    rows += [row(_at(600), 7.0, cluster="other", group="a"), row(_at(15), 1.0, group="silent")]
    _write(tmp_path, rows)
    table = FeatureTable(tmp_path)
    names = [("c", "b"), ("c", "behind"), ("c", "a"), ("other", "a"), ("c", "silent"), ("c", "gone")]
    turns = table.condensed_in_turns(names, newest=newest, since=_at(0), until=until)
    found = dict(chain.from_iterable(turns))
    assert list(found) == names
    for name, past in found.items():
        alone = condensed(_table_of(table.intervals(*name)), newest=newest)
        assert (past.telling, past.rows) == (alone.telling, alone.rows)
        assert are_equal(past.before, alone.before)
    assert [len(past.rows) for past in found.values()] == [8, 10, 8, 1, 1, 0]
    assert [each.members for each in found["c", "behind"].telling] == [0, 1, 2]


def are_equal(one: Minutes | None, other: Minutes | None) -> bool:
    """The same minutes, to the last bit, or none on both sides."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one.ends, other.ends) and np.array_equal(one.values, other.values, equal_nan=True)


@pytest.mark.parametrize("newest_hours", [1, 30, 60, 400])
def test_a_condensed_past_of_days_is_that_of_all_its_rows(row: MakeRow, tmp_path: Path, newest_hours: int) -> None:
    """Days are read apart, and the older ones without what minutes do not hold; those of a silent group too.

    A telling row more, the first one of a day, tells nothing else.
    """
    ends = [_at(1800 * step) for step in range(1, 192)]
    known = {"lag_seconds": 2.0, "worst_lag_seconds": 3.0, "partition_skew_ratio": 1.5}
    rows = [row(at, float(place), members=place // 30, **known) for place, at in enumerate(ends)]
    rows += [row(at, float(place), group="silent", **known) for place, at in enumerate(ends[:140])]
    _write(tmp_path, rows)
    table, names = FeatureTable(tmp_path), [("c", "orders"), ("c", "silent")]
    newest = timedelta(hours=newest_hours)
    turns = table.condensed_in_turns(names, newest=newest, since=_at(-7 * 86_400), until=ends[-1])
    found = dict(chain.from_iterable(turns))
    for name, past in found.items():
        alone = condensed(_table_of(table.intervals(*name)), newest=newest)
        assert past.rows == alone.rows
        assert are_equal(past.before, alone.before)
        assert len(past.telling) in range(len(alone.telling), len(alone.telling) + 5)
        told, all_told = ([*each.telling, *each.rows] for each in (past, alone))
        assert observed_in(told) == observed_in(all_told)
        assert changes_in(told) == changes_in(all_told)


told = st.fixed_dictionaries(
    {
        "members": st.sampled_from([None, 0, 2, 3]),
        "partitions": st.sampled_from([4, 4, 8]),
        "in_rebalance": st.booleans(),
        "group_protocol": st.sampled_from([None, "consumer", "classic"]),
        "group_assignor": st.sampled_from([None, "range", "cooperative-sticky"]),
        "static_members": st.sampled_from([None, 0, 2]),
        "clients": st.sampled_from([None, "java", "librdkafka"]),
        "commit_interval_seconds": st.sampled_from([None, 5.0, 30.0]),
        "session_timeout_seconds": st.sampled_from([None, 45.0]),
        "rebalance_timeout_seconds": st.sampled_from([None, 300.0]),
    }
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(st.tuples(st.integers(1, 8), told), min_size=1, max_size=30), newest=st.integers(0, 600))
def test_a_condensed_past_tells_of_the_group_what_all_of_its_rows_do(
    row: MakeRow, drawn: list[tuple[int, dict[str, object]]], newest: int
) -> None:
    """Its profile and its changes of members; and the rows that are left begin at a whole minute."""
    rows: list[GroupInterval] = []
    for repeats, values in drawn:
        rows += [row(_at(15 * (len(rows) + each + 1)), 1.0, **values) for each in range(repeats)]
    past = condensed(_table_of(rows), newest=timedelta(seconds=newest))
    told_by = [*past.telling, *past.rows]
    assert observed_in(told_by) == observed_in(rows)
    assert changes_in(told_by) == changes_in(rows)
    older = 0 if past.before is None else 4 * past.before.ends.size
    assert past.rows == rows[older:]
    since = rows[-1].interval_end_at - timedelta(seconds=newest)
    assert all(each.interval_end_at <= since for each in rows[:older])
    # Whole minutes of four rows, and none of those that could be spared is left.
    assert older == max(0, len(rows) - -(-newest // 15)) // 4 * 4


def test_groups_and_interval_lengths_are_kept_apart(row: MakeRow, tmp_path: Path) -> None:
    """Groups are sorted; another group, cluster or interval length is another series."""
    base = [row(_at(15), 1.0), row(_at(15), 2.0, group="a"), row(_at(15), 3.0, cluster="b")]
    minutes = [row(_at(60), found.produce_messages_per_second, **_names(found), interval_seconds=60) for found in base]
    _write(tmp_path, [*base, *minutes])
    table = FeatureTable(tmp_path)
    assert table.groups() == (("b", "orders"), ("c", "a"), ("c", "orders"))
    assert table.intervals("c", "a") == [base[1]]
    assert table.intervals("b", "orders", interval_seconds=60) == [minutes[2]]
    assert table.intervals("c", "absent") == []
    assert table.newest_interval_end_at() == _at(15)


def _names(row: GroupInterval) -> dict[str, object]:
    return {"cluster": row.cluster, "group": row.group}


def test_a_day_in_several_parts_is_one_day(row: MakeRow, tmp_path: Path) -> None:
    """The stream adds a part every few seconds; a group that began since the last whole hour is read at once."""
    _write(tmp_path, [row(_at(15), 1.0), row(_at(3600), 1.0, interval_seconds=3600)])
    parts = json.loads((tmp_path / "manifest.json").read_text())["parts"]
    _write(tmp_path, [row(_at(3615), 2.0), row(_at(3615), 3.0, group="new")], version=2)
    parts += json.loads((tmp_path / "manifest.json").read_text())["parts"]
    (tmp_path / "manifest.json").write_text(json.dumps(_FORMAT | {"feature_table_version": 2, "parts": parts}))
    table = FeatureTable(tmp_path)
    assert table.newest_interval_end_at() == _at(3615)
    assert [found.produce_messages_per_second for found in table.intervals("c", "orders")] == [1.0, 2.0]
    assert table.groups() == (("c", "new"), ("c", "orders"))


def test_groups_that_are_gone_are_left_out_and_a_row_of_a_wrong_clock_makes_none_look_gone(
    row: MakeRow, tmp_path: Path
) -> None:
    """A hundred groups that had died a month before took 3.2 s of every cycle."""
    day, hour = 86_400, 3600
    ends = {"dead": day, "alive": 30 * day + hour, "new": 30 * day + hour + 15, "ahead": 30 * day + 5 * hour}
    rows = [row(_at(end), 1.0, group=group) for group, end in ends.items()]
    hours = [row(_at(end), 1.0, group=group, interval_seconds=hour) for group, end in ends.items() if group != "new"]
    _write(tmp_path, [*rows, *hours])
    table, now = FeatureTable(tmp_path), _at(30 * day + hour + 14)
    assert ("c", "dead") in table.groups()
    assert table.groups(now=now) == (("c", "ahead"), ("c", "alive"), ("c", "new"))
    assert table.newest_interval_end_at(until=now) == _at(30 * day + hour)
    assert table.ahead(now) == {("c", "ahead"): _at(30 * day + 5 * hour)}


def test_of_a_group_with_rows_before_and_ahead_the_newest_one_before_counts(row: MakeRow, tmp_path: Path) -> None:
    """Its clock was set forward: nobody waits for what ends in five hours, and its last row of before is not lost."""
    _write(tmp_path, [row(_at(15), 1.0), row(_at(30), 2.0, group="ahead"), row(_at(5 * 3600), 3.0, group="ahead")])
    table = FeatureTable(tmp_path)
    assert table.newest_interval_end_at(until=_at(60)) == _at(30)
    assert table.newest_interval_end_at() == _at(5 * 3600)
    assert table.ahead(_at(60)) == {("c", "ahead"): _at(5 * 3600)}


def test_each_file_is_looked_through_once_for_its_groups(
    row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of 1,000 groups took 0.5 s of each cycle; what is known of files that are gone is forgotten."""
    looked_through: list[str] = []

    def looked(file: str) -> pa.Table:
        looked_through.append(file.split("versions/")[1][:2])
        return of_file(file)

    of_file = feature_table._newest_ends_of
    monkeypatch.setattr(feature_table, "_newest_ends_of", looked)
    _write(tmp_path, [row(_at(15), 1.0)])
    table = FeatureTable(tmp_path)
    for _ in range(2):
        assert table.groups(now=_at(20)) == (("c", "orders"),)
        assert table.newest_interval_end_at() == _at(15)
    _write(tmp_path, [row(_at(30), 1.0, group="new")], version=2)
    shutil.rmtree(tmp_path / "versions" / "v1")
    assert table.groups(now=_at(35)) == (("c", "new"),)
    assert looked_through == ["v1", "v2"]
    shutil.rmtree(tmp_path / "versions" / "v2")
    _write(tmp_path, [row(_at(45), 1.0, group="made-anew")], version=2)
    assert table.groups(now=_at(50)) == (("c", "made-anew"),)
    assert [file.split("versions/")[1][:2] for file in table._newest_ends] == ["v2"]


def test_a_file_that_cannot_be_read_costs_its_own_rows(row: MakeRow, tmp_path: Path) -> None:
    """One truncated file ended the loop; its rows are a gap, counted, and tried again when the table has grown."""
    counted: list[Unit] = []
    _write(tmp_path, [row(_at(86_400 * day + 15), 1.0) for day in range(3)])
    table = FeatureTable(tmp_path, borders=Borders(counted.append))
    broken = tmp_path / "versions" / "v1" / "interval_seconds=15" / f"date={_at(86_400).date()}" / "part-0.parquet"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    ends = [found.interval_end_at for found in table.intervals("c", "orders")]
    assert ends == [_at(15), _at(2 * 86_400 + 15)]
    assert [found.interval_end_at for found in table.intervals("c", "orders")] == ends
    assert counted == ["file"]
    broken.write_bytes(whole)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"feature_table_version": 21}))
    assert len(table.intervals("c", "orders")) == 3


def test_a_table_of_which_no_file_can_be_read_is_not_empty(row: MakeRow, tmp_path: Path) -> None:
    """It looked empty from the second look on: all groups were forgotten, and nobody was refused."""
    _write(tmp_path, [row(_at(15), 1.0)])
    table = FeatureTable(tmp_path)
    (broken,) = tmp_path.glob("versions/v1/interval_seconds=15/*/*.parquet")
    broken.write_bytes(broken.read_bytes()[:100])
    for _ in range(2):
        with pytest.raises(FeatureTableError, match="cannot be read"):
            table.groups()


def test_an_open_table_sees_the_next_version(row: MakeRow, tmp_path: Path) -> None:
    """A loop that runs for weeks reads added rows, and never a file that the manifest does not list."""
    _write(tmp_path, [row(_at(15), 1.0)])
    table = FeatureTable(tmp_path)
    manifest = (tmp_path / "manifest.json").read_text()
    _write(tmp_path, [row(_at(15), 1.0), row(_at(30), 2.0)], version=2)
    assert (table.version, len(table.intervals("c", "orders")), table.newest_interval_end_at()) == (2, 2, _at(30))
    (tmp_path / "manifest.json").write_text(manifest)
    assert (table.version, len(table.intervals("c", "orders"))) == (1, 1)


def test_an_empty_table_has_no_groups(tmp_path: Path) -> None:
    """A table without parts is no error."""
    _write(tmp_path, [])
    table = FeatureTable(tmp_path)
    assert (table.groups(), table.intervals("c", "orders"), table.newest_interval_end_at()) == ((), [], None)


def test_a_folder_that_is_no_table_gets_one_sentence(tmp_path: Path) -> None:
    """The error for a missing folder, or one without a manifest, names it and the command to run."""
    with pytest.raises(FeatureTableError, match="nowhere is no folder; name the one"):
        FeatureTable(tmp_path / "nowhere")
    with pytest.raises(FeatureTableError, match=r"holds no feature table .*; run `lagcast features --out"):
        FeatureTable(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        '{"name": "an app"}',
        json.dumps(_FORMAT | {"schema_version": 2, "feature_table_version": 1, "parts": []}),
        json.dumps(_FORMAT | {"feature_table_version": 1, "parts": [{"interval_seconds": 15}]}),
        json.dumps(
            _FORMAT
            | {
                "feature_table_version": 1,
                "parts": [{"interval_seconds": 15, "date": "2026-05-04", "folder": "../elsewhere", "rows": 1}],
            }
        ),
    ],
)
def test_a_foreign_manifest_is_refused(content: str, tmp_path: Path) -> None:
    """The manifest is another program's, a later version's, broken, or points out of the table."""
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(FeatureTableError, match=r"manifest\.json is no manifest of a lagcast group_intervals table"):
        FeatureTable(tmp_path)


@pytest.mark.parametrize("harm", [lambda part: part.unlink(), lambda part: part.write_bytes(b"PAR1")])
def test_a_damaged_part_is_the_adapters_error(harm: Callable[[Path], None], row: MakeRow, tmp_path: Path) -> None:
    """A file that is missing or cut short is an error and no empty history; the loop turns it into refusals."""
    _write(tmp_path, [row(_at(15), 1.0)])
    table = FeatureTable(tmp_path)
    harm(next(tmp_path.rglob("*.parquet")))
    with pytest.raises(
        AdapterError, match=r"version 1, cannot be read .*; remove the folder and run `lagcast features`"
    ):
        table.intervals("c", "orders")
