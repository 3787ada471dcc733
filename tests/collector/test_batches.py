"""Samples as messages: none is changed on the way, and a message of another schema is refused with its reason."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.batches import VERSION_HEADER, UnknownVersionError, batches_of, table_of
from collector.errors import MalformedError
from collector.sample import OffsetSample
from collector.sinks import arrow_table
from tests.collector.conftest import NOON, SAMPLE

rows = st.builds(
    lambda cluster, group, partition, minute: replace(
        SAMPLE, cluster=cluster, group=group, partition=partition, sampled_at=NOON + timedelta(minutes=minute)
    ),
    st.sampled_from(["prod-eu", "prod-us"]),
    st.sampled_from(["orders", "billing", "grüße"]),
    st.integers(0, 30),
    st.integers(0, 4),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(rows, max_size=40, unique=True), st.integers(1, 20_000))
def test_landed_rows_are_the_sent_rows_for_any_size_of_message(sent: list[OffsetSample], most_bytes: int) -> None:
    """Each row lands once, each message has one cluster, and no two messages share a group at an instant."""
    batches = list(batches_of(sent, most_bytes=most_bytes))
    landed = [table_of(batch.value, batch.headers).to_pylist() for batch in batches]
    assert Counter(OffsetSample(**row) for of_batch in landed for row in of_batch) == Counter(sent)
    parts = []
    for batch, of_batch in zip(batches, landed, strict=True):
        assert {row["cluster"] for row in of_batch} == {batch.key}
        keys = {(row["cluster"], row["group"], row["sampled_at"]) for row in of_batch}
        assert len(batch.value) <= most_bytes or len(keys) == 1
        parts += list(keys)
    assert len(parts) == len(set(parts))


def test_samples_of_a_minute_are_one_message_of_each_cluster() -> None:
    """100 partitions of each of 20 groups and four rounds fit into one message of a broker's default size."""
    minute = [
        replace(SAMPLE, cluster=cluster, group=f"group-{number % 20}", partition=number // 20, sampled_at=at)
        for cluster in ("prod-eu", "prod-us")
        for number in range(2000)
        for at in (NOON, NOON + timedelta(seconds=15), NOON + timedelta(seconds=30), NOON + timedelta(seconds=45))
    ]
    assert [batch.key for batch in batches_of(minute)] == ["prod-eu", "prod-us"]


def test_a_later_version_is_refused_by_its_number() -> None:
    """A message of a later schema version is refused, and the error names both versions."""
    (batch,) = batches_of([SAMPLE])
    with pytest.raises(UnknownVersionError, match=r"of schema version 2, and this lagcast reads 1"):
        table_of(batch.value, {**batch.headers, VERSION_HEADER: "2"})


def test_foreign_damaged_and_incomplete_messages_are_refused() -> None:
    """The error of each message is one sentence that names what is wrong with it."""
    (batch,) = batches_of([SAMPLE])
    with pytest.raises(MalformedError, match=r"lacks the header lagcast-samples-version: it is not from"):
        table_of(b"{}", {"content-type": "application/json"})
    for value in (b"", batch.value[: len(batch.value) // 2], b"PAR1" + bytes(200) + b"PAR1"):
        with pytest.raises(MalformedError, match="its value holds no samples"):
            table_of(value, batch.headers)
    sink = pa.BufferOutputStream()
    pq.write_table(arrow_table([SAMPLE]).drop_columns(["end_offset"]), sink)
    with pytest.raises(MalformedError, match="no column 'end_offset'"):
        table_of(bytes(sink.getvalue()), batch.headers)


def test_messages_that_nothing_of_ours_could_have_sent_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instant beyond every calendar stopped the landing again at each start; five million rows took 757 MB."""
    (batch,) = batches_of([SAMPLE])
    for microseconds in (-1, 253_402_300_800_000_000, 2**62):
        sink = pa.BufferOutputStream()
        table = arrow_table([SAMPLE])
        instant = pa.array([microseconds], pa.timestamp("us", tz="UTC"))
        position = table.schema.get_field_index("sampled_at")
        pq.write_table(table.set_column(position, table.schema.field(position), instant), sink)
        with pytest.raises(MalformedError, match="a sample from before 1970 or after 9998"):
            table_of(bytes(sink.getvalue()), batch.headers)
    monkeypatch.setattr("collector.batches.MOST_ROWS", 1)
    (two,) = batches_of([SAMPLE, replace(SAMPLE, partition=SAMPLE.partition + 1)])
    with pytest.raises(MalformedError, match="its value holds 2 samples, more than 1"):
        table_of(two.value, two.headers)


def test_a_column_that_came_later_may_be_missing_and_one_that_is_not_known_is_left_out() -> None:
    """Messages of older and newer collectors of the same schema version are landed alike."""
    (batch,) = batches_of([SAMPLE])
    for table, static_members in (
        (arrow_table([SAMPLE]).drop_columns(["static_members"]), None),
        (arrow_table([SAMPLE]).append_column("rack", pa.array(["a"])), 2),
    ):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        (row,) = table_of(bytes(sink.getvalue()), batch.headers).to_pylist()
        assert OffsetSample(**row) == replace(SAMPLE, static_members=static_members)
