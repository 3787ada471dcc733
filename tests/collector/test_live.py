"""A live cluster remembers what could not be read, and writes what could."""

from pathlib import Path

import pytest

from collector.errors import AdapterError, RejectedError, UnavailableError, UnsupportedError
from collector.kafka_admin import Collected
from collector.live import LiveCluster
from tests.collector.conftest import NOON, SAMPLE


@pytest.fixture(name="live")
def live_fixture(tmp_path: Path) -> LiveCluster:
    """A broker that nobody asks."""
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
    """One partition without a leader is no reason; a share group and an unknown one are, until a round without them."""
    errors: tuple[AdapterError, ...] = (
        UnavailableError("no leader of partition 1", group=SAMPLE.group),
        share := UnsupportedError("a share group is not supported", group="clicks"),
        unknown := RejectedError("no group 'odrers'", group="odrers"),
        UnavailableError("one broker did not list its groups"),
    )
    live._hear(Collected(samples=(SAMPLE,), errors=errors))
    assert live.unread == {"clicks": share, "odrers": unknown}
    live._hear(Collected(samples=(SAMPLE,), errors=()))
    assert live.unread == {}
    assert live._attention.groups == (SAMPLE.group,)


def test_the_first_samples_that_are_written_are_told_of(live: LiveCluster) -> None:
    """A round without samples writes no file, and nobody is told of it."""
    live._keep(())
    assert not live.arrived.is_set()
    live._keep((SAMPLE,))
    assert live.arrived.is_set()
    assert [path.suffix for path in live.samples.rglob("*") if path.is_file()] == [".parquet"]
