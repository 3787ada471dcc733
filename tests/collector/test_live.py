"""A live cluster keeps the errors of groups that could not be read, and writes the samples of the others."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from collector.errors import AdapterError, RejectedError, UnavailableError, UnsupportedError
from collector.kafka_admin import Collected
from collector.live import LiveCluster, LivePrometheus
from collector.sinks import last_samples, write_samples
from tests.collector.conftest import NOON, SAMPLE


@pytest.fixture(name="live")
def live_fixture(tmp_path: Path) -> LiveCluster:
    """A live cluster whose broker receives no request."""
    return LiveCluster(
        bootstrap="127.0.0.1:9092",
        cluster="prod-eu",
        groups=None,
        read_committed=(),
        client_config={},
        samples=tmp_path,
        clock=lambda: NOON,
    )


def test_groups_that_brought_an_error_and_no_sample_are_unread(live: LiveCluster) -> None:
    """A group with an error and no sample is unread until a round without it; a group with samples is not."""
    errors: tuple[AdapterError, ...] = (
        UnavailableError("no leader of partition 1", group=SAMPLE.group),
        share := UnsupportedError("a share group is not supported", group="clicks"),
        unknown := RejectedError("no group 'odrers'", group="odrers"),
        UnavailableError("one broker did not list its groups"),
    )
    live._note_round(Collected(samples=(SAMPLE,), errors=errors))
    assert live.unread == {"clicks": share, "odrers": unknown}
    live._note_round(Collected(samples=(SAMPLE,), errors=()))
    assert live.unread == {}
    assert live._attention.groups == (SAMPLE.group,)


def test_the_first_written_samples_set_the_event(live: LiveCluster) -> None:
    """A round without samples writes no file and does not set the event; the first samples do."""
    live._keep(())
    assert not live.arrived.is_set()
    live._keep((SAMPLE,))
    assert live.arrived.is_set()
    assert [path.suffix for path in live.samples.rglob("*") if path.is_file()] == [".parquet"]


def test_a_scrape_that_is_in_the_folder_is_not_written_again(tmp_path: Path) -> None:
    """After a restart the newest scrape is there already, under its own time or that of the minute after it."""
    live = LivePrometheus(
        url="http://127.0.0.1:1", cluster="prod-eu", groups=None, client_config={}, samples=tmp_path, clock=lambda: NOON
    )
    write_samples([SAMPLE], tmp_path)
    for seconds in (-2, 0):
        live._keep([replace(SAMPLE, sampled_at=NOON + timedelta(seconds=seconds))])
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert live.arrived.is_set()
    live._keep([replace(SAMPLE, sampled_at=NOON + timedelta(seconds=58))])
    newest = last_samples(tmp_path, cluster="prod-eu", groups=frozenset({SAMPLE.group}))
    assert newest == {SAMPLE.group: NOON + timedelta(seconds=58)}
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


@dataclass
class _Rounds:
    """A collector whose rounds end as a test says; after the last one it is stopped."""

    rounds: list[Collected | AdapterError]
    stop: Event

    def collect(self, _groups: Sequence[str] | None, *, now: datetime) -> Collected:
        del now
        found = self.rounds.pop(0)
        if not self.rounds:
            self.stop.set()
        if isinstance(found, AdapterError):
            raise found
        return found


def test_the_outcome_of_each_round_and_of_each_unread_group_is_told(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answered round is one, whatever it could not read; one that was not answered is its error."""
    stop, told = Event(), list[str]()
    share = UnsupportedError("a share group is not supported", group="clicks")
    found: list[Collected | AdapterError] = [
        Collected(samples=(SAMPLE,), errors=(share,)),
        UnavailableError("no broker answered"),
        Collected(samples=(SAMPLE,), errors=()),
    ]
    # The clock of rounds stands still, so that no round is waited for.
    instants = iter(NOON + timedelta(seconds=15 * number) for number in range(100))
    live.clock, live.on_request = lambda: next(instants), told.append
    monkeypatch.setattr(LiveCluster, "_collector", lambda *_: nullcontext(_Rounds(list(found), stop)))
    monkeypatch.setattr(stop, "wait", lambda _: stop.is_set())
    live.collect(stop)
    assert told == ["answered", "unsupported", "unavailable", "answered"]
