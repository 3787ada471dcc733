"""Traces: the required file format, the error for each fault, and the traces stored beside the repository."""

import gzip
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay.trace import Trace, TraceError, read_trace
from replay.workload import MEAN_MESSAGES_PER_SECOND, orders_workload
from tests.recorded_loads import TRACES, WITHOUT

HEADER = "timestamp,messages_per_second\n"
GOOD = HEADER + "2026-01-05T00:00:00Z,10\n2026-01-05T00:01:00Z,20.5\n2026-01-05T00:02:00Z,0\n"
# The folder of the real traces: beside the repository, unless the environment variable names another one.
REAL = sorted(TRACES.glob("*.csv"))

BROKEN = {
    "an empty file": ("", "row 1 lacks the column 'timestamp'; it has nothing", "name the columns"),
    "a column missing": ("timestamp,rate\n", "row 1 lacks the column 'messages_per_second'", "name the columns"),
    "no rows": (HEADER, "has 0 data rows; a trace needs at least 2", "give a longer series"),
    "one row": (HEADER + "2026-01-05T00:00:00Z,1\n", "has 1 data rows", "give a longer series"),
    "a short row": (GOOD + "2026-01-05T00:03:00Z\n", "row 5 has 1 fields", "fill the row"),
    "no instant": (GOOD + "yesterday,1\n", "row 5: timestamp 'yesterday' is not ISO-8601", "write it like"),
    "an instant before the year 1": (
        GOOD + "0001-01-01T00:00:00+05:00,1\n",
        "row 5: timestamp '0001-01-01T00:00:00+05:00' is not",
        "write it like",
    ),
    "no zone": (GOOD + "2026-01-05T00:03:00,1\n", "'2026-01-05T00:03:00' has no time zone", "add Z"),
    "an instant twice": (
        GOOD + "2026-01-05T00:02:00Z,1\n",
        "row 5: timestamp 2026-01-05T00:02:00+00:00",
        "keep one row",
    ),
    "out of order": (GOOD + "2026-01-05T00:00:30Z,1\n", "is 90 s before the row above it", "sort the rows"),
    "a hole": (GOOD + "2026-01-05T00:04:00Z,1\n", "after 120 s where the first step is 60 s", "resample"),
    "no number": (
        GOOD + "2026-01-05T00:03:00Z,many\n",
        "row 5: messages_per_second 'many' is not a number",
        "give a rate",
    ),
    "no rate": (GOOD + "2026-01-05T00:03:00Z,\n", "row 5: messages_per_second '' is not a number", "give a rate"),
    "a negative rate": (GOOD + "2026-01-05T00:03:00Z,-1\n", "is -1; it must lie between 0 and", "correct the row"),
    "not a number": (GOOD + "2026-01-05T00:03:00Z,nan\n", "is nan; it must lie between 0 and", "correct the row"),
    "infinity": (GOOD + "2026-01-05T00:03:00Z,inf\n", "is inf; it must lie between 0 and", "correct the row"),
    "an absurd rate": (GOOD + "2026-01-05T00:03:00Z,1e30\n", "between 0 and 1,000,000,000", "correct the row"),
    "half a second": (
        HEADER + "2026-01-05T00:00:00Z,1\n2026-01-05T00:00:00.5Z,1\n",
        "has a step of 0.5 s; whole seconds from 1 to 3600",
        "resample it",
    ),
    "two hours": (HEADER + "2026-01-05T00:00:00Z,1\n2026-01-05T02:00:00Z,1\n", "has a step of 7200 s", "resample it"),
    "a zero byte": (GOOD + "2026-01-05T00:03:00Z,\x00\n", r"messages_per_second '\x00' is not a number", "give a rate"),
}


@pytest.mark.parametrize(("text", "complaint", "next_step"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_gets_one_sentence(tmp_path: Path, text: str, complaint: str, next_step: str) -> None:
    """The error names the fault, the file, the row and the value, and gives the next step."""
    path = tmp_path / "load.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=re.escape(complaint)) as caught:
        read_trace(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert sentence.rpartition(": ")[2].startswith(next_step)
    assert "\n" not in sentence


def corrupt(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + b"\xff" * 8 + whole[middle + 8 :]


UNREADABLE: dict[str, tuple[str, bytes | None]] = {
    "absent": ("load.csv", None),
    "not gzip": ("load.csv.gz", GOOD.encode()),
    "cut short": ("load.csv.gz", gzip.compress(GOOD.encode())[:-12]),
    "corrupt": ("load.csv.gz", corrupt(gzip.compress(GOOD.encode()))),
    "not text": ("load.csv", HEADER.encode() + b"\xff\xfe\n"),
}


@pytest.mark.parametrize(("name", "content"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_gets_one_sentence(tmp_path: Path, name: str, content: bytes | None) -> None:
    """The error for a missing file or for bytes that do not match the file's ending names the file and what to use."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        TraceError, match=r"(does not exist|cannot be read as CSV text).*: give (a|the path of a) \.csv"
    ):
        read_trace(path)


def test_a_file_that_unpacks_to_more_than_any_trace_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of zeros took 6.3 GB."""
    monkeypatch.setattr("replay.trace.MOST_BYTES", 2**20)
    for name, content in (("load.csv.gz", gzip.compress(bytes(2**26))), ("load.csv", bytes(2**21))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TraceError, match=r"holds more than 1 MiB of text.*give a part of it"):
            read_trace(tmp_path / name)


def test_a_directory_is_no_trace(tmp_path: Path) -> None:
    """A directory gets the same error as an unreadable file."""
    with pytest.raises(TraceError, match="cannot be read as CSV text"):
        read_trace(tmp_path)


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    """Name, start, step and rates are read; extra columns, a byte-order mark, blank lines and zones are accepted."""
    path = tmp_path / "load.csv"
    path.write_text(
        "\ufefftimestamp,host,messages_per_second\n2026-01-05T01:00:00+01:00,a,10\n\n2026-01-05T00:01:00Z,b,20.5\n"
    )
    trace = read_trace(path)
    assert (trace.name, trace.start_at, trace.step_seconds) == ("load", datetime(2026, 1, 5, tzinfo=UTC), 60)
    assert trace.messages_per_second.tolist() == [10.0, 20.5]


def test_a_compressed_file_gives_the_same_trace(tmp_path: Path) -> None:
    """`.csv.gz` differs from `.csv` in its bytes only; the name loses both endings."""
    plain, packed = tmp_path / "load.csv", tmp_path / "load.csv.gz"
    plain.write_text(GOOD)
    packed.write_bytes(gzip.compress(GOOD.encode()))
    one, other = read_trace(plain), read_trace(packed)
    assert (one.name, one.start_at, one.step_seconds) == (other.name, other.start_at, other.step_seconds)
    assert one.messages_per_second.tolist() == other.messages_per_second.tolist()


def test_a_trace_cannot_be_written_to(tmp_path: Path) -> None:
    """The arrays of a trace are read-only."""
    path = tmp_path / "load.csv"
    path.write_text(GOOD)
    with pytest.raises(ValueError, match="read-only"):
        read_trace(path).messages_per_second[0] = 1.0


def test_splitting_loses_nothing(load: Callable[..., Trace]) -> None:
    """Both parts together equal the whole trace, and the second starts where the first ends."""
    trace = load(*range(10))
    before, last = trace.split(150)  # two and a half steps: rounded up to three
    assert before is not None
    assert (before.end_at, last.end_at) == (last.start_at, trace.end_at)
    assert [*before.messages_per_second, *last.messages_per_second] == list(trace.messages_per_second)
    assert len(last.messages_per_second) == 3


def test_nothing_comes_before_all_of_it(load: Callable[..., Trace]) -> None:
    """A split longer than the trace returns the whole trace and None."""
    trace = load(1, 2, 3)
    before, last = trace.split(10_000)
    assert before is None
    assert last.messages_per_second.tolist() == [1, 2, 3]


@pytest.mark.parametrize("step_seconds", [1, 7, 60, 300])
def test_minute_rates_hold_every_message(load: Callable[..., Trace], step_seconds: int) -> None:
    """The rates per minute, multiplied by the seconds of each, give as many messages as the steps have."""
    trace = load(*range(40), step_seconds=step_seconds)
    rates = trace.minute_rates()
    lasting = np.full(rates.size, 60.0)
    lasting[-1] = trace.duration_seconds - 60 * (rates.size - 1)
    assert float(rates @ lasting) == pytest.approx(sum(range(40)) * step_seconds)


def test_the_own_workload_is_the_same_for_the_same_seed() -> None:
    """The same seed gives the same two weeks of orders, another seed others; the mean is MEAN_MESSAGES_PER_SECOND."""
    one, same, other = orders_workload(), orders_workload(), orders_workload(seed=8)
    assert one.messages_per_second.tolist() == same.messages_per_second.tolist()
    assert one.messages_per_second.tolist() != other.messages_per_second.tolist()
    assert one.days == 14
    assert float(one.messages_per_second.mean()) == pytest.approx(MEAN_MESSAGES_PER_SECOND, rel=1e-3)
    assert float(one.messages_per_second.min()) > 0


def test_the_own_workload_keeps_its_promises() -> None:
    """Nights are quiet, the peak is in the evening, weekends are slower, and one promotion day exceeds the noise."""
    by_day = orders_workload().messages_per_second.reshape(14, 24, 60).mean(axis=2)
    typical = np.median(by_day, axis=0)
    assert typical[3:5].max() < typical[12:14].min() < typical[19:21].min()
    daily = by_day.mean(axis=1)
    weekend = [5, 6, 12, 13]
    promotion = int(np.argmax(daily[7:] / daily[:7])) + 7  # the second week over the first
    weekdays = [day for day in range(14) if day not in (*weekend, promotion)]
    assert daily[[day for day in weekend if day != promotion]].max() < daily[weekdays].min()
    assert daily[promotion] > 1.2 * daily[promotion - 7]


@pytest.mark.skipif(not REAL, reason=WITHOUT)
@pytest.mark.parametrize("path", REAL or [TRACES], ids=lambda path: path.stem)
def test_real_traces_can_be_read(path: Path) -> None:
    """Every trace beside the repository is a regular grid of rates, of which one day or all can be read."""
    trace = read_trace(path)
    assert float(trace.messages_per_second.min()) >= 0
    assert trace.split(86_400)[1].days == pytest.approx(min(1, trace.days))
    assert float(trace.minute_rates().mean()) == pytest.approx(
        float(trace.messages_per_second.mean()),
        rel=1e-3,  # the last minute may be incomplete
    )


FIELDS = st.one_of(
    st.sampled_from(["2026-01-05T00:00:00Z", "2026-01-05T00:01:00+00:00", "2026-01-05", "9999-12-31T23:59:59-14:00"]),
    st.sampled_from(["10", "1e400", "nan", "-1", "0x10", "\uff11", "1_000", "", '"', "\n", "timestamp", "\x00"]),
    st.floats().map(str),
    st.text(max_size=6),
)
ROWS = st.lists(st.lists(FIELDS, max_size=3).map(",".join), max_size=4).map("\n".join)
CONTENTS = st.one_of(
    st.binary(max_size=80),
    ROWS.map(str.encode),
    ROWS.map(lambda rows: (GOOD + rows).encode()),
)


@settings(max_examples=200, deadline=None)
@given(content=CONTENTS, packed=st.sampled_from(["", "packed", "cut", "not packed"]))
@example(content=b'"a\nb",messages_per_second\n', packed="")
def test_p20_a_file_of_any_content_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, packed: str
) -> None:
    """The sentence names the file, whatever stands in it."""
    path = tmp_path_factory.mktemp("any") / ("load.csv.gz" if packed else "load.csv")
    whole = gzip.compress(content) if packed in {"packed", "cut"} else content
    path.write_bytes(whole[: len(whole) // 2] if packed == "cut" else whole)
    sentence = f"{path} is read"
    try:
        assert len(read_trace(path).messages_per_second) >= 2
    except TraceError as error:
        sentence = str(error)
    assert sentence.startswith(str(path))
    assert len(sentence.splitlines()) == 1
