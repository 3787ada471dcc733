"""Landing: every batch is landed exactly once, wherever the process ends; unreadable messages are kept aside."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from collector.batches import VERSION_HEADER, UnknownVersionError, batches_of
from collector.landing import Arrived, Landing, LandingError, landing
from collector.sample import OffsetSample
from tests.collector.conftest import NOON, SAMPLE
from tests.collector.test_sinks import read

HEADERS = {VERSION_HEADER: "1"}


class Death(BaseException):
    """Stands for the end of the process."""


def rows_of(number: int) -> list[OffsetSample]:
    """The samples of a minute of one cluster; the 720th begins a new day."""
    at = NOON + timedelta(minutes=number)
    return [replace(SAMPLE, cluster=f"c-{number % 3}", sampled_at=at + timedelta(seconds=s)) for s in (14, 29, 44, 59)]


def arrived(number: int, *, partition: int = 0, offset: int | None = None) -> Arrived:
    (batch,) = batches_of(rows_of(number))
    return Arrived(partition, number if offset is None else offset, batch.headers, batch.value)


def clock() -> datetime:
    return NOON + timedelta(days=2)


def land(out: Path) -> Landing:
    return Landing(out, kafka="k", topic="samples", clock=clock)


@contextmanager
def dying_at(step: int, *, after: bool) -> Iterator[None]:
    """End the process before or after its n-th rename, since each visible change is a rename."""
    renames = 0
    rename = Path.replace

    def replace_and_die(self: Path, target: Path) -> Path:
        nonlocal renames
        renames += 1
        if renames == step and not after:
            raise Death
        renamed = rename(self, target)
        if renames == step:
            raise Death
        return renamed

    with patch.object(Path, "replace", replace_and_die):
        yield


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    deaths=st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=6),
    at_once=st.integers(1, 5),
    broken=st.sets(st.integers(0, 11), max_size=3),
)
def test_each_batch_is_landed_once_wherever_the_process_ends(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[tuple[int, bool]], at_once: int, broken: set[int]
) -> None:
    """Twelve batches around midnight, some damaged, are landed or kept aside once, with deaths around any rename."""
    out = tmp_path_factory.mktemp("samples")
    first = 714
    messages = [
        arrived(first + number, offset=number) if number not in broken else Arrived(0, number, HEADERS, b"PAR1")
        for number in range(12)
    ]
    for step, after in [*deaths, (10**9, False)]:
        try:
            with dying_at(step, after=after):
                folder = land(out)
                while folder.next_offsets.get(0, 0) < len(messages):
                    begin = folder.next_offsets.get(0, 0)
                    folder.land(messages[begin : begin + at_once])
        except Death:
            continue
    expected = [row for number in range(12) if number not in broken for row in rows_of(first + number)]
    assert Counter(read(out) if expected else []) == Counter(expected)
    parked = {path.name: path.read_bytes() for path in out.rglob("*.parked") if not path.name.startswith(".")}
    assert parked == {f"samples-0-{number}.parked": b"PAR1" for number in broken}


def test_damaged_messages_are_kept_aside_and_logged_in_one_line(tmp_path: Path) -> None:
    """Messages before and after the damaged ones are landed, and the damaged ones are outside of the table."""
    folder = land(tmp_path)
    with capture_logs() as lines:
        folder.land([arrived(0), Arrived(0, 1, HEADERS, b"PAR1"), Arrived(0, 2, {}, b"hello"), arrived(3)])
    assert Counter(read(tmp_path)) == Counter([*rows_of(0), *rows_of(3)])
    assert (folder.done.messages, folder.done.parked, folder.done.expired) == (2, 2, 0)
    (line,) = lines
    assert (line["event"], line["messages"]) == ("messages_set_aside", 2)
    assert str(line["last"]).startswith("message 2 in partition 0 of topic 'samples': it lacks the header ")
    assert Path(str(line["kept_as"])).read_bytes() == b"hello"


def test_a_flood_of_damaged_messages_fills_neither_the_disk_nor_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest thousand are kept, a line each minute has their number, and the batch behind them is landed."""
    now = NOON
    folder = Landing(tmp_path, kafka="k", topic="samples", clock=lambda: now)
    with capture_logs() as lines:
        for first in range(0, 3000, 100):
            folder.land([Arrived(0, offset, {}, b"%d" % offset) for offset in range(first, first + 100)])
            now += timedelta(seconds=5)
        folder.land([arrived(0, offset=3000)])
        folder.land([])
        now += timedelta(seconds=60)
        folder.land([])
        folder.land([])
    assert Counter(read(tmp_path)) == Counter(rows_of(0))
    assert folder.done.parked == 3000
    assert [line["messages"] for line in lines] == [100, 1200, 1200, 500]
    parked = {int(path.read_bytes()) for path in tmp_path.rglob("*.parked")}
    assert parked == set(range(2000, 3000))
    other = tmp_path / ".landed" / "k" / "samples-1-0-17.parked"  # of the topic samples-1, its partition 0
    other.write_bytes(b"")
    os.utime(other, (0, 0))
    monkeypatch.setattr("collector.landing.MOST_PARKED_BYTES", 2_000_000)
    for offset in range(3001, 3004):
        folder.land([Arrived(0, offset, {}, bytes(900_000))])
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.parked")) == 1_800_000
    assert other.exists()


def test_a_batch_of_a_later_schema_stops_the_landing_before_it(tmp_path: Path) -> None:
    """The batches before it stay landed, and a newer lagcast continues with it."""
    folder = land(tmp_path)
    later = arrived(1)._replace(headers={VERSION_HEADER: "2"})
    with pytest.raises(UnknownVersionError) as caught:
        folder.land([arrived(0), later, arrived(2)])
    assert str(caught.value) == (
        "message 1 in partition 0 of topic 'samples': its samples are of schema version 2, and this lagcast reads 1; "
        "install a newer lagcast here and start `lagcast land` again: it goes on with this message"
    )
    assert Counter(read(tmp_path)) == Counter(rows_of(0))
    assert land(tmp_path).next_offsets == {0: 1}


def test_messages_that_retention_removed_before_they_were_read_are_counted_and_logged(tmp_path: Path) -> None:
    """The gap is counted for each partition, and a partition from which nothing was landed yet has none."""
    folder = land(tmp_path)
    with capture_logs() as lines:
        folder.land([arrived(0, offset=70), arrived(1, partition=1, offset=5)])
        folder.land([arrived(2, offset=80), arrived(3, partition=1, offset=6)])
    assert folder.done.expired == 9
    assert [(line["event"], line["messages"]) for line in lines] == [("messages_expired", 9)]
    assert land(tmp_path).next_offsets == {0: 81, 1: 7}


def test_a_collector_whose_clock_is_ahead_is_logged_once(tmp_path: Path) -> None:
    """A clock up to five minutes ahead is logged once for each cluster; thirty seconds ahead are not logged."""
    folder = Landing(tmp_path, kafka="k", topic="samples", clock=lambda: NOON)
    with capture_logs() as lines:
        folder.land([arrived(number, offset=offset) for offset, number in enumerate((0, 4, 7))])
    # The fourth and the seventh minute are of cluster c-1; the fourth ends 299 s after noon.
    assert [(line["event"], line["cluster"], line["ahead_seconds"]) for line in lines] == [
        ("clock_ahead", "c-0", 59),
        ("clock_ahead", "c-1", 299),
    ]
    assert "set the clocks of both machines by NTP" in lines[0]["next_step"]
    with capture_logs() as quiet:
        Landing(tmp_path / "other", kafka="k", topic="samples", clock=lambda: NOON + timedelta(seconds=30)).land(
            [arrived(0)]
        )
    assert quiet == []


def test_topics_and_kafkas_are_kept_apart(tmp_path: Path) -> None:
    """Offsets of topics with the same name in two Kafka clusters are kept apart, in one folder."""
    land(tmp_path).land([arrived(0)])
    assert Landing(tmp_path, kafka="k", topic="others", clock=clock).next_offsets == {}
    assert Landing(tmp_path, kafka="../k", topic="samples", clock=clock).next_offsets == {}
    assert land(tmp_path).next_offsets == {0: 1}


def test_a_topic_is_landed_by_one_process_at_a_time(tmp_path: Path) -> None:
    """A second process for the same topic is refused with a next step, and may land after the first has ended."""
    with landing(tmp_path, kafka="k", topic="samples", clock=clock):
        with (
            pytest.raises(LandingError, match="another `lagcast land` writes topic 'samples' into"),
            landing(tmp_path, kafka="k", topic="samples", clock=clock),
        ):
            pass
        with landing(tmp_path, kafka="k", topic="others", clock=clock):
            pass
    with landing(tmp_path, kafka="k", topic="samples", clock=clock):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"lagcast_next_offsets": {"0": "x"}}'])
def test_offsets_that_cannot_be_read_are_not_guessed(tmp_path: Path, content: str) -> None:
    """The error names the file and the effect of removing it, and after its removal the batches are landed again."""
    folder = land(tmp_path)
    folder.land([arrived(0)])
    (path,) = tmp_path.glob(".landed/k/samples.json")
    path.write_text(content)
    with pytest.raises(
        LandingError, match=r"samples.json does not contain the next offsets of the topic; remove it, and"
    ):
        land(tmp_path)
    path.unlink()
    land(tmp_path).land([arrived(0)])
    assert Counter(read(tmp_path)) == Counter(rows_of(0))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """A folder below a file is refused with one sentence."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LandingError, match=r"cannot be written to .*; choose another --out"),
        landing(tmp_path / "file" / "out", kafka="k", topic="samples", clock=clock),
    ):
        pass
