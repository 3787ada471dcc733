"""Samples in files: whole files, no duplicates, and no value changed."""

from collections import Counter
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from collector.sample import OffsetSample
from collector.sinks import arrow_schema, arrow_table, first_samples, last_samples, write_samples, write_table
from forecasting.columns import SAMPLES
from tests.collector.conftest import NOON, SAMPLE


def read(directory: Path) -> list[OffsetSample]:
    rows = ds.dataset(directory, format="parquet").to_table(columns=arrow_schema().names).to_pylist()
    return sorted((OffsetSample(**row) for row in rows), key=lambda row: (row.group, row.partition, row.sampled_at))


samples = st.builds(
    OffsetSample,
    cluster=st.text(max_size=4),
    group=st.sampled_from(["orders", "billing", "grüße"]),
    topic=st.text(max_size=4),
    partition=st.integers(0, 3),
    sampled_at=st.timedeltas(timedelta(), timedelta(days=2)).map(NOON.__add__),
    end_offset=st.integers(0, 2**62),
    committed_offset=st.none() | st.integers(0, 2**62),
    log_start_offset=st.none() | st.integers(0, 2**62),
    group_state=st.sampled_from(["STABLE", "EMPTY"]),
    group_protocol=st.none() | st.just("classic"),
    group_assignor=st.none() | st.just("range"),
    members=st.none() | st.integers(0, 9),
    static_members=st.none() | st.integers(0, 9),
    clients=st.none() | st.text(max_size=20),
    streams=st.none() | st.text(max_size=20),
    commit_interval_seconds=st.none() | st.floats(0.1, 900.0),
    busy_ratio=st.none() | st.floats(0.0, 1.0),
    session_timeout_seconds=st.none() | st.floats(0.1, 900.0),
    rebalance_timeout_seconds=st.none() | st.floats(0.1, 900.0),
    consumer_heartbeat_seconds=st.none() | st.floats(0.1, 900.0),
)


def test_fields_are_the_columns() -> None:
    """A sample's fields are the columns of the table, in the same order."""
    assert [field.name for field in fields(OffsetSample)] == [column.name for column in SAMPLES]


@settings(max_examples=40)
@given(st.lists(samples, max_size=8))
def test_written_samples_read_back_equal(tmp_path_factory: pytest.TempPathFactory, batch: list[OffsetSample]) -> None:
    """Written samples are read back with the same rows, the same instants, and None where nothing was known."""
    directory = tmp_path_factory.mktemp("samples")
    write_samples(batch, directory)
    assert Counter(read(directory) if batch else []) == Counter(batch)


def test_the_first_samples_of_groups_are_found_without_reading_later_files(tmp_path: Path) -> None:
    """Orders begin at noon and billing two minutes later, and no file that begins after that is opened."""
    minutes = [(0, "orders"), (1, "orders"), (2, "billing"), (2, "orders")]
    for minute, group in minutes:
        write_samples([replace(SAMPLE, group=group, sampled_at=NOON + timedelta(minutes=minute))], tmp_path)
    (late,) = write_samples([replace(SAMPLE, sampled_at=NOON + timedelta(minutes=3))], tmp_path)
    late.write_bytes(b"not to be opened")
    begins = {"orders": NOON, "billing": NOON + timedelta(minutes=2)}
    assert first_samples(tmp_path, cluster="prod-eu", groups=frozenset(begins)) == begins
    assert first_samples(tmp_path, cluster="prod-eu", groups=frozenset({"orders"})) == {"orders": NOON}


def test_unreadable_files_are_left_out_where_samples_begin(tmp_path: Path) -> None:
    """A torn file and one without a column are logged with a next step each, and a file of another name is read."""
    (path,) = write_samples([SAMPLE], tmp_path)
    path.with_name("torn.parquet").write_bytes(b"PAR1")
    pq.write_table(arrow_table([SAMPLE]).drop_columns(["cluster"]), path.with_name("bare.parquet"))
    pq.write_table(arrow_table([replace(SAMPLE, group="billing")]), path.with_name("export.parquet"))
    groups = frozenset({"orders", "billing"})
    for find in (first_samples, last_samples):
        with capture_logs() as lines:
            assert find(tmp_path, cluster="prod-eu", groups=groups) == {"orders": NOON, "billing": NOON}
        assert sorted(Path(str(line["file"])).name for line in lines) == ["bare.parquet", "torn.parquet"]
        assert {line["next_step"] for line in lines} == {"remove it, or write it again"}


def test_samples_of_other_clusters_and_groups_are_not_counted(tmp_path: Path) -> None:
    """There is no first sample for a group that was never sampled, nor in a folder without files."""
    assert first_samples(tmp_path, cluster="prod-eu", groups=frozenset({"orders"})) == {}
    write_samples([SAMPLE, replace(SAMPLE, cluster="prod-us", group="billing")], tmp_path)
    found = first_samples(tmp_path, cluster="prod-eu", groups=frozenset({"orders", "billing"}))
    assert found == {"orders": NOON}


def test_the_last_samples_of_groups_are_read_from_the_newest_files_alone(tmp_path: Path) -> None:
    """Billing's samples end three minutes before those of orders, and files that end before both are not opened."""
    (early,) = write_samples([SAMPLE], tmp_path)
    early.write_bytes(b"not to be opened")
    write_samples([replace(SAMPLE, group="billing", sampled_at=NOON + timedelta(minutes=2))], tmp_path)
    write_samples([replace(SAMPLE, sampled_at=NOON + timedelta(minutes=minute)) for minute in (3, 5)], tmp_path)
    ends = {"orders": NOON + timedelta(minutes=5), "billing": NOON + timedelta(minutes=2)}
    assert last_samples(tmp_path, cluster="prod-eu", groups=frozenset(ends)) == ends
    assert last_samples(tmp_path, cluster="prod-eu", groups=frozenset({"orders"})) == {"orders": ends["orders"]}
    assert last_samples(tmp_path / "nothing", cluster="prod-eu", groups=frozenset({"orders"})) == {}


def test_same_batch_twice_is_one_batch(tmp_path: Path) -> None:
    """A batch written again replaces itself instead of appearing twice."""
    batch = [replace(SAMPLE, partition=number) for number in range(3)]
    first = write_samples(batch, tmp_path)
    assert write_samples(reversed(batch), tmp_path) == first
    assert read(tmp_path) == batch


def test_groups_at_the_same_instant_do_not_replace_each_other(tmp_path: Path) -> None:
    """Two collectors that see different groups, or different clusters, at one instant both keep their rows."""
    for other in (SAMPLE, replace(SAMPLE, group="billing"), replace(SAMPLE, cluster="prod-us")):
        write_samples([other], tmp_path)
    assert len(read(tmp_path)) == 3


def test_one_file_for_each_utc_date(tmp_path: Path) -> None:
    """Rows go to the folder of their UTC date, the last microsecond before midnight to the day that ends."""
    midnight = datetime(2026, 1, 6, tzinfo=UTC)
    instants = (midnight - timedelta(microseconds=1), midnight)
    paths = write_samples([replace(SAMPLE, sampled_at=at) for at in instants], tmp_path)
    assert [path.parent.name for path in paths] == ["date=2026-01-05", "date=2026-01-06"]
    stored = [pq.read_table(path, partitioning=None)["sampled_at"].to_pylist() for path in paths]
    assert stored == [[at] for at in instants]


def test_files_carry_the_agreed_schema(tmp_path: Path) -> None:
    """A file's schema is the one built from the columns: microseconds in UTC, 32 and 64 bit integers as agreed."""
    (path,) = write_samples([SAMPLE], tmp_path)
    assert pq.read_schema(path).equals(arrow_schema())


def test_no_samples_no_file(tmp_path: Path) -> None:
    """An empty batch leaves the folder as it was."""
    assert write_samples([], tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a file nor a dot file stays when the disk fills up in the middle, and the older file is whole."""
    (path,) = write_samples([SAMPLE], tmp_path)

    def half(_: pa.Table, file: object, **__: object) -> None:
        file.write(b"PAR1")  # type: ignore[attr-defined]  # the open file that the sink passes
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collector.sinks.pq.write_table", half)
    with pytest.raises(OSError, match="No space left"):
        write_samples([SAMPLE], tmp_path)
    assert list(path.parent.iterdir()) == [path]
    assert read(tmp_path) == [SAMPLE]


def test_unfinished_files_are_invisible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a file is being written, readers of the folder see the table without it."""
    write_samples([SAMPLE], tmp_path)
    seen: list[int] = []
    real_write_table = pq.write_table

    def write_and_look(table: pa.Table, file: object, **options: object) -> None:
        real_write_table(table, file, **options)
        seen.append(len(read(tmp_path)))

    monkeypatch.setattr("collector.sinks.pq.write_table", write_and_look)
    write_samples([replace(SAMPLE, sampled_at=NOON + timedelta(seconds=15))], tmp_path)
    assert seen == [1]
    assert len(read(tmp_path)) == 2


def test_instant_without_zone_is_refused() -> None:
    """A naive instant is refused: read as UTC it could be hours off."""
    with pytest.raises(ValueError, match=r"2026-01-05T12:00:00 has no time zone"):
        arrow_table([replace(SAMPLE, sampled_at=NOON.replace(tzinfo=None))])


def test_missing_column_is_named(tmp_path: Path) -> None:
    """A table without a column is refused by that column's name, and nothing is written."""
    with pytest.raises(ValueError, match="no column 'end_offset'"):
        write_table(arrow_table([SAMPLE]).drop_columns(["end_offset"]), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_later_column_may_be_missing(tmp_path: Path) -> None:
    """A table made before the column came is written with nulls in it."""
    write_table(arrow_table([SAMPLE]).drop_columns(["static_members"]), tmp_path)
    assert read(tmp_path) == [replace(SAMPLE, static_members=None)]


def test_null_where_a_value_is_due_is_refused(tmp_path: Path) -> None:
    """A null end offset is refused when it is written, long before a reader would fail on it."""
    table = arrow_table([SAMPLE])
    broken = table.set_column(5, pa.field("end_offset", pa.int64()), pa.array([None], pa.int64()))
    with pytest.raises(ValueError, match=r"'end_offset' is null in 1 of 1 samples"):
        write_table(broken, tmp_path)


def test_tables_and_rows_write_the_same_file(tmp_path: Path) -> None:
    """Rows as an Arrow table, dictionary-encoded and in another column order, give the very file that samples give."""
    table = arrow_table([SAMPLE])
    encoded = table.set_column(0, "cluster", table["cluster"].dictionary_encode()).select(table.column_names[::-1])
    (path,) = write_table(encoded, tmp_path)
    assert path.relative_to(tmp_path) == write_samples([SAMPLE], tmp_path / "rows")[0].relative_to(tmp_path / "rows")
    assert [astuple(row) for row in read(path.parent)] == [astuple(SAMPLE)]
