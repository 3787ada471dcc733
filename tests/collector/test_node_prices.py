"""Prices of nodes, read from a server that has scraped the text of OpenCost."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from collector.client_config import ClientConfigError
from collector.node_prices import NodePrice, NodePriceReader
from collector.prometheus_http import PrometheusRequests
from tests.collector.memory_prometheus import MemoryPrometheus, exposition, serving

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
# A node whose exporter has one price for it as a whole.
WHOLE_ONLY = 'node_total_hourly_cost{node="node-1"} 0.1\n'
ALLOCATABLE = """\
kube_node_status_allocatable{node="node-1",resource="cpu",unit="core"} 4
kube_node_status_allocatable{node="node-1",resource="memory",unit="byte"} 8e9
"""


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    with serving(MemoryPrometheus()) as server:
        yield server


@pytest.fixture
def reader(memory: MemoryPrometheus) -> Iterator[NodePriceReader]:
    with PrometheusRequests(memory.url, settings={}, wait=lambda _: None) as requests:
        yield NodePriceReader(requests, clock=lambda: AT)


def read(reader: NodePriceReader) -> dict[str, NodePrice]:
    """The prices after one more reading."""
    reader.read()
    newest = reader.newest()
    assert newest is not None
    return dict(newest.nodes)


def test_the_prices_of_opencost_are_by_core_and_gibibyte(memory: MemoryPrometheus, reader: NodePriceReader) -> None:
    """Where both are known, three queries are enough."""
    memory.scrape(exposition("opencost"), at=AT.timestamp() - 20)
    assert read(reader) == {"node-0": NodePrice(per_core=0.032, per_gibibyte=0.004, whole=3.072)}
    assert len(memory.requests) == 3
    newest = reader.newest()
    assert newest is not None
    assert (newest.seen_at, newest.where) == (AT, memory.url)


def test_a_node_with_a_price_as_a_whole_has_what_is_allocatable(
    memory: MemoryPrometheus, reader: NodePriceReader
) -> None:
    """Other nodes keep their prices; what a node has no series of is unknown and no 0."""
    memory.scrape(exposition("opencost") + WHOLE_ONLY + ALLOCATABLE, at=AT.timestamp() - 20)
    prices = read(reader)
    assert prices["node-1"] == NodePrice(whole=0.1, allocatable_cores=4.0, allocatable_bytes=8e9)
    assert prices["node-0"].per_core == 0.032


def test_equal_prices_of_two_exporters_are_one_and_others_are_a_contradiction(
    memory: MemoryPrometheus, reader: NodePriceReader
) -> None:
    """A second pod of the exporter has the same series; two clusters may have nodes of one name at two prices."""
    at = AT.timestamp() - 20
    memory.scrape(exposition("opencost"), at=at, instance="a")
    memory.scrape(exposition("opencost"), at=at, instance="b")
    assert read(reader)["node-0"] == NodePrice(per_core=0.032, per_gibibyte=0.004, whole=3.072)
    memory.scrape('node_cpu_hourly_cost{node="node-0"} 0.064\n', at=at, instance="c")
    assert read(reader)["node-0"].contradiction == "0.032 to 0.064 per_core"


def test_series_without_a_node_are_left_out(memory: MemoryPrometheus, reader: NodePriceReader) -> None:
    """A server without prices has none, which is an answer."""
    memory.scrape('node_cpu_hourly_cost{instance_type="m5.large"} 0.03\n', at=AT.timestamp() - 20)
    assert read(reader) == {}


def test_prices_hold_while_the_server_is_away_which_is_logged_once(
    memory: MemoryPrometheus, reader: NodePriceReader, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line when it goes, one when it is back."""
    memory.scrape(exposition("opencost"), at=AT.timestamp() - 20)
    known = read(reader)
    memory.refusals = [(403, "")] * 2
    assert read(reader) == read(reader) == known
    assert read(reader) == known
    logged = capsys.readouterr().out
    assert logged.count("node_prices_unread") == 1
    assert logged.count("node_prices_read") == 2
    assert "allow this user to query the server" in logged


def test_the_outcome_of_each_reading_is_told(memory: MemoryPrometheus) -> None:
    """A server without prices has answered; one that refuses has not."""
    told: list[str] = []
    with PrometheusRequests(memory.url, settings={}, wait=lambda _: None) as requests:
        reader = NodePriceReader(requests, clock=lambda: AT, on_request=told.append)
        reader.read()
        memory.refusals = [(403, "")]
        reader.read()
    assert told == ["answered", "rejected"]


def test_prices_are_read_before_the_block_begins(memory: MemoryPrometheus, reader: NodePriceReader) -> None:
    """The first decision has them."""
    memory.scrape(exposition("opencost"), at=AT.timestamp() - 20)
    assert reader.newest() is None
    with reader.following():
        assert reader.newest() is not None


def test_an_address_that_is_none_is_refused_by_the_option_that_gave_it() -> None:
    """The sentence names the option, and how an address is written."""
    with pytest.raises(ClientConfigError, match="--node-prices prometheus:9090 is no address; write it as http://"):
        PrometheusRequests("prometheus:9090", settings={}, option="--node-prices")
