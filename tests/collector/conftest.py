"""A collector whose Kafka client answers from memory."""

from collections.abc import Callable

import pytest

from collector.kafka_admin import KafkaAdminCollector
from tests.collector.memory_cluster import MemoryCluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster()
    make: Callable[..., MemoryCluster] = lambda *_, **__: memory  # noqa: E731  # stands where a class stands
    monkeypatch.setattr("collector.kafka_requests.AdminClient", make)
    return memory


@pytest.fixture
def collector(cluster: MemoryCluster) -> KafkaAdminCollector:
    assert cluster.asked == []
    return KafkaAdminCollector("127.0.0.1:9092", cluster="prod-eu")
