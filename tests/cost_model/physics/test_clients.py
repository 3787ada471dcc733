"""How likely each client library is, by what Kafka shows of a group."""

from typing import get_args

import pytest

from collector.client_libraries import UNKNOWN, client_libraries
from cost_model.physics.clients import CERTAIN, client_of, likelihoods
from cost_model.physics.profile import Client

# Client ids that each library gives by default, as brokers show them.
DEFAULT_IDS = {
    "java": ("consumer-orders-1", "consumer-orders-pod-0", "consumer-17", "connector-consumer-sink-3"),
    "librdkafka": ("rdkafka",),
    "kafka-python": ("kafka-python-2.2.3", "kafka-python-3.0.12"),
    "aiokafka": ("aiokafka-0.14.0",),
    "kafkajs": ("kafkajs",),
    "sarama": ("sarama",),
    "franz-go": ("kgo",),
    "kafka-go": ("main@pod-7 (github.com/segmentio/kafka-go)",),
}


@pytest.mark.parametrize("library", [name for name in get_args(Client) if name != "other"])
def test_b24_each_library_is_known_by_the_ids_that_it_gives_by_default(library: str) -> None:
    """The collector names it by a word of the setting `client`, and its likelihood is next to 1."""
    for client_id in DEFAULT_IDS[library]:
        named = client_libraries("orders", [client_id])
        assert named == library
        seen = likelihoods(named, assignor=None, newer_protocol=False)
        assert max(seen, key=lambda name: seen[name]) == library
        assert max(seen.values()) > CERTAIN
        assert sum(seen.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("client_id", ["orders-5f7d", "consumer-payments-1", "rdkafka-2", "my-sarama", ""])
def test_ids_of_an_application_name_no_library(client_id: str) -> None:
    """Ids that only resemble a default are none; what every library may do then says nothing either."""
    named = client_libraries("orders", [client_id])
    assert named == UNKNOWN
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        assert client_of(named, assignor=assignor, newer_protocol=False) is None
    assert client_of(named, assignor="uniform", newer_protocol=True) is None


@pytest.mark.parametrize(("assignor", "library"), [("RoundRobinAssigner", "kafkajs"), ("rack-affinity", "kafka-go")])
def test_an_assignor_of_one_library_names_it(assignor: str, library: str) -> None:
    """Whatever its members are called."""
    assert client_of(UNKNOWN, assignor=assignor, newer_protocol=False) == library


def test_every_member_counts() -> None:
    """A group of two libraries is none of them, and one member of unknown kind leaves the group unknown."""
    assert client_libraries("orders", ["rdkafka", "consumer-orders-1", "rdkafka"]) == "java,librdkafka"
    assert client_of("java,librdkafka", assignor="range", newer_protocol=False) == "other"
    assert client_of("librdkafka,unknown", assignor="range", newer_protocol=False) is None
    assert client_libraries("orders", []) is None
