"""A sample, and a collector whose Kafka client answers from memory."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample
from tests.collector.memory_cluster import MemoryCluster, NoReader

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SAMPLE = OffsetSample(
    cluster="prod-eu",
    group="orders",
    topic="orders-in",
    partition=0,
    sampled_at=NOON,
    end_offset=1_203_950,
    committed_offset=1_203_900,
    log_start_offset=0,
    group_state="STABLE",
    group_protocol="classic",
    group_assignor="range",
    members=8,
    static_members=2,
    clients="java",
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster()
    make: Callable[..., MemoryCluster] = lambda *_, **__: memory  # noqa: E731  # stands where a class stands
    monkeypatch.setattr("collector.kafka_requests.AdminClient", make)
    monkeypatch.setattr("collector.timeouts.Consumer", NoReader)
    return memory


@pytest.fixture
def collector(cluster: MemoryCluster) -> KafkaAdminCollector:
    assert cluster.requests == []
    return KafkaAdminCollector("127.0.0.1:9092", cluster="prod-eu")
