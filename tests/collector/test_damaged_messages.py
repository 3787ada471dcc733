"""Messages of any content: each is landed or set aside, whole; the messages around it are landed, and it is read once.

Kafka's own checksum finds bytes that were changed on the way. What is damaged here was damaged before it was sent, or
sent by another program.
"""

from collections import Counter

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from collector.batches import CONTENT_TYPE, VERSION_HEADER, UnknownVersionError, table_of
from collector.errors import MalformedError
from collector.landing import Arrived
from collector.sinks import arrow_schema, arrow_table
from tests.collector.test_landing import HEADERS, arrived, land, rows_of
from tests.collector.test_sinks import read

DAMAGES = 300
BEFORE, DAMAGED, AFTER = range(3)
ROWS = len(rows_of(DAMAGED))
VALID = arrived(DAMAGED).value
# A column of each of these in place of one of ours: other types, other values, and what no type allows.
COLUMNS: dict[str, pa.Array] = {
    "small numbers": pa.array([7] * ROWS, pa.int8()),
    "negative numbers": pa.array([-(2**63)] * ROWS, pa.int64()),
    "no numbers": pa.array([float("nan")] * ROWS),
    "words": pa.array(["orders", "", "\0", "grüße"]),
    "no UTF-8": pa.array([b"\xff\xfe"] * ROWS, pa.binary()).view(pa.string()),
    "bytes": pa.array([b"\xff"] * ROWS),
    "nothing": pa.nulls(ROWS),
    "gaps": pa.array([None, "a", None, "b"]),
    "one word": pa.array(["orders"] * ROWS).dictionary_encode(),
    "lists": pa.array([["orders"]] * ROWS),
    "structs": pa.array([{"orders": 1}] * ROWS),
    "days": pa.array([2**31 - 1] * ROWS, pa.date32()),
    "instants beyond every calendar": pa.array([2**62] * ROWS, pa.timestamp("us", tz="UTC")),
    "instants without a zone": pa.array([0] * ROWS, pa.timestamp("s")),
}

NOT_OURS: tuple[dict[str, str], ...] = ({}, {VERSION_HEADER.upper(): "1"}, {"content-type": CONTENT_TYPE})


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message of ours with some bytes changed, and some left out."""
    value = bytearray(VALID)
    for place, bits in draw(st.lists(st.tuples(st.integers(0, len(value) - 1), st.integers(1, 255)), max_size=4)):
        value[place] ^= bits
    begin, length = draw(st.integers(0, len(value))), draw(st.sampled_from([0, 0, 0, 1, 8, len(value)]))
    return bytes(value[:begin] + value[begin + length :])


@st.composite
def foreign(draw: st.DrawFn) -> bytes:
    """A table in which columns are of another kind, left out, double or more than ours, or which has no row."""
    table = arrow_table(rows_of(DAMAGED))
    names = st.sampled_from(arrow_schema().names)
    for name, kind in draw(st.dictionaries(names, st.sampled_from(sorted(COLUMNS)), max_size=2)).items():
        table = table.set_column(table.schema.get_field_index(name), name, COLUMNS[kind])
    table = table.drop_columns(sorted(draw(st.sets(names, max_size=1))))
    for name in draw(st.sampled_from([(), (), ("rack",), ("group",)])):
        table = table.append_column(name, COLUMNS["words"])
    return parquet(table.slice(0, draw(st.sampled_from([ROWS, ROWS, 1, 0]))))


@pytest.mark.slow
def test_of_messages_of_any_content_each_is_landed_or_set_aside(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Random bytes, damaged messages and tables of others, between two good ones: nothing else is left in the folder.

    Some are landed and some are set aside: damage that is never found, or always, would prove little.
    """
    tally = {"landed": 0, "set aside": 0}

    @given(
        value=st.one_of(st.binary(max_size=200), damaged(), damaged(), foreign(), foreign()),
        headers=st.sampled_from([*[HEADERS] * 5, HEADERS | {"content-type": "text/plain"}, *NOT_OURS]),
    )
    @example(value=parquet(arrow_table([])), headers=HEADERS)
    @example(value=VALID, headers=HEADERS)
    @settings(max_examples=DAMAGES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def arrives(value: bytes, headers: dict[str, str]) -> None:
        out = tmp_path_factory.mktemp("samples")
        folder = land(out)
        folder.land([arrived(BEFORE), Arrived(0, DAMAGED, headers, value), arrived(AFTER)])
        assert (folder.done.messages + folder.done.parked, folder.next_offsets) == (3, {0: 3})
        assert land(out).next_offsets == {0: 3}
        kept = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
        tables = {path for path in kept if path.match("date=*/[!.]*.parquet")}
        parked = {path for path in kept if path.match(".landed/k/samples-0-1.parked")}
        assert {str(path) for path in kept - tables - parked} == {".landed/k/samples.json"}
        assert [(out / path).read_bytes() for path in parked] == [value] * folder.done.parked
        landed = Counter(read(out))
        landed.subtract(rows_of(BEFORE) + rows_of(AFTER))
        assert min(landed.values()) >= 0
        assert folder.done.parked == 0 or landed.total() == 0
        tally["set aside" if folder.done.parked else "landed"] += 1

    arrives()
    print(tally)  # noqa: T201  # shown by `pytest -s`
    assert tally["landed"] > DAMAGES / 20
    assert tally["set aside"] > DAMAGES / 4


@pytest.mark.parametrize("name", ["cluster", "group", "topic", "clients"])
def test_names_that_are_no_text_are_refused(name: str) -> None:
    """Bytes that are no UTF-8 pass for text until a reader of the table asks for the name, which then fails it all."""
    table = arrow_table(rows_of(DAMAGED))
    with pytest.raises(MalformedError, match="its value holds no samples"):
        table_of(parquet(table.set_column(table.schema.get_field_index(name), name, COLUMNS["no UTF-8"])), HEADERS)


def test_a_message_without_samples_is_refused() -> None:
    """No collector sends one; its rows would have neither an instant nor a file."""
    with pytest.raises(MalformedError, match="its value holds no samples"):
        table_of(parquet(arrow_table([])), HEADERS)


@given(st.text(max_size=9).filter(lambda version: version != HEADERS[VERSION_HEADER]))
def test_any_other_version_stops_the_landing_before_the_message(version: str) -> None:
    """It may be of a newer lagcast, whatever its value is: nothing of it is judged, and it is read again later."""
    with pytest.raises(UnknownVersionError):
        table_of(VALID, {VERSION_HEADER: version})
