"""A live cluster keeps the errors of groups that could not be read, and writes the samples of the others."""

from pathlib import Path

import pytest

from collector.errors import AdapterError, RejectedError, UnavailableError, UnsupportedError
from collector.kafka_admin import Collected
from collector.live import LiveCluster
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
