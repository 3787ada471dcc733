"""Kafka Streams applications of the classic protocol on a real broker, of which nothing is configured."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from collector.errors import RejectedError
from collector.kafka_admin import KafkaAdminCollector
from collector.log_dirs import LogDirs
from collector.streams import REFRESH
from cost_model.physics.detected import observed_in
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.account import STATE_FIGURES
from tests.live.harness.clients import NOON, create_topic, fresh_name, read_until, wait_until
from tests.live.harness.secured import PASSWORD, Secured
from tests.live.harness.streams import KEY_BYTES, produce_keyed
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

JavaClient = Callable[..., AbstractContextManager[None]]

SOURCE_PARTITIONS, REPARTITIONED = 4, 6
RECORDS, VALUE_BYTES = 20_000, 500


def written(bootstrap: str, topic: str) -> None:
    """Records of as many keys, so that compaction removes none of them."""
    produce_keyed(bootstrap, topic, RECORDS, partitions=SOURCE_PARTITIONS, value_bytes=VALUE_BYTES)


@pytest.fixture
def application(bootstrap: str, java_client: JavaClient, tmp_path: Path) -> Callable[..., AbstractContextManager[str]]:
    """Runs one that has kept every record of a topic, until the block ends; yields its application id."""

    @contextmanager
    def running(*settings: str) -> Iterator[str]:
        topic, name, log = fresh_name("orders"), fresh_name("shop"), tmp_path / "kept.log"
        create_topic(bootstrap, topic, partitions=SOURCE_PARTITIONS)
        written(bootstrap, topic)
        words = (bootstrap, name, topic, str(tmp_path / "state"), str(log), "one", str(REPARTITIONED), *settings)
        with java_client("StatefulStreams", *words):
            wait_until(lambda: log.exists() and log.read_text().count("\n") >= RECORDS)
            yield name

    return running


def test_b8_a_stateful_application_is_recognised_with_nothing_configured(
    collector: KafkaAdminCollector, application: Callable[..., AbstractContextManager[str]]
) -> None:
    """Tasks of both sub-topologies, a state of about the bytes that were written, and the source of each figure."""
    with application("num.stream.threads=2") as name:
        rows = read_until(collector, name, lambda rows: bool(rows and rows[0].streams))[-1]
    assert (rows[0].group_assignor, rows[0].clients, rows[0].members) == ("stream", "java", 2)
    profile = GroupSettings().profile("live", name, observed_in([interval_of(rows)]))
    assert (profile.client, profile.protocol, profile.source_of("client")) == ("java", "cooperative", "detected")
    streams = profile.streams
    assert streams is not None
    assert (streams.tasks, streams.stateful, streams.standbys) == (SOURCE_PARTITIONS + REPARTITIONED, True, 0)
    assert streams.restore_bytes == pytest.approx(RECORDS * (KEY_BYTES + VALUE_BYTES), rel=0.2)
    sources = {name: streams.source_of(name) for name in ("tasks", "stateful", *STATE_FIGURES)}
    assert {name for name, source in sources.items() if source == "detected"} == {
        *("tasks", "stateful", "standbys", "restore_bytes")
    }
    assert set(sources.values()) == {"detected", "assumed"}


def test_standbys_are_told_by_the_assignment(
    bootstrap: str,
    collector: KafkaAdminCollector,
    application: Callable[..., AbstractContextManager[str]],
    java_client: JavaClient,
    tmp_path: Path,
) -> None:
    """A standby needs another process; with one it has none, and its samples say so."""
    with application("num.standby.replicas=1") as name:
        alone = read_until(collector, name, lambda rows: bool(rows and rows[0].streams))[-1]
        assert json.loads(alone[0].streams or "")["standbys"] == 0
        topic = next(row.topic for row in alone if not row.topic.startswith(name))
        second = (str(tmp_path / "second"), str(tmp_path / "second.log"), "two", str(REPARTITIONED))
        with java_client("StatefulStreams", bootstrap, name, topic, *second, "num.standby.replicas=1"):
            read_until(collector, name, lambda rows: '"standbys": 1' in str(rows[0].streams))


def test_the_state_is_read_again_every_few_minutes(
    bootstrap: str, collector: KafkaAdminCollector, application: Callable[..., AbstractContextManager[str]]
) -> None:
    """Twice as many records are twice the bytes, at the next reading that is due and not before."""

    def bytes_at(minutes: float) -> float:
        samples = collector.collect([name], now=NOON + timedelta(minutes=minutes)).samples
        return float(json.loads(samples[0].streams or "{}")["restore_bytes"])

    with application("commit.interval.ms=100") as name:
        read_until(collector, name, lambda rows: bool(rows and rows[0].streams))
        first = bytes_at(0)
        topic = next(row.topic for row in collector.collect([name], now=NOON).samples if not row.topic.startswith(name))
        written(bootstrap, topic)
        wait_until(lambda: _lag(collector, name) == 0)
        assert bytes_at(1) == first
        assert bytes_at(REFRESH.total_seconds() / 60.0) == pytest.approx(2.0 * first, rel=0.2)


def _lag(collector: KafkaAdminCollector, group: str) -> int:
    rows = collector.collect([group], now=NOON).samples
    return sum(row.end_offset - (row.committed_offset or 0) for row in rows)


LOGINS = {
    "PLAIN": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN"},
    "SCRAM": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "SCRAM-SHA-512"},
    "TLS": {"security.protocol": "SSL"},
}


@pytest.fixture(scope="module")
def stored(secured: Secured) -> str:
    """A topic of 10 messages of 1,000 bytes on the broker with permissions."""
    topic = fresh_name("stored")
    create_topic(secured.address("PLAINTEXT"), topic, partitions=1)
    producer = Producer({"bootstrap.servers": secured.address("PLAINTEXT")})
    for _ in range(10):
        producer.produce(topic, os.urandom(1000), partition=0)
    assert producer.flush(10) == 0
    return topic


@pytest.mark.parametrize("listener", LOGINS)
def test_sizes_of_logs_are_told_to_a_user_with_describe_on_the_cluster(
    secured: Secured, stored: str, listener: str
) -> None:
    """With each login that is supported; a user without the permission is told which one is missing."""
    port = secured.ports[listener]
    settings = {**LOGINS[listener], "sasl.password": PASSWORD, "ssl.ca.location": str(secured.certificates / "ca.pem")}

    def told(user: str) -> dict[tuple[str, int], int]:
        return LogDirs({**settings, "sasl.username": user}).bytes_of([(stored, 0)], "127.0.0.1", port)

    if listener != "TLS":  # there every client is the superuser
        with pytest.raises(RejectedError, match="grant this user Describe on Cluster 'kafka-cluster'"):
            told("nobody")
        with pytest.raises(RejectedError, match="refused the login"):
            LogDirs({**settings, "sasl.username": "stranger"}).bytes_of([(stored, 0)], "127.0.0.1", port)
        secured.grant("lagcast", cluster=True)
    assert told("lagcast")[stored, 0] == pytest.approx(10_000, rel=0.2)
