"""Kafka Connect on a real broker: two workers, and a sink whose tasks are the members of its group."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import pytest

from collector.errors import UnsupportedError
from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample
from cost_model.physics.detected import observed_in
from recommender.configuring.settings_group import GroupSettings
from tests.live.harness.broker import free_ports
from tests.live.harness.clients import NOON, create_topic, fresh_name, has_members, produce, read_until, wait_until
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

JavaClient = Callable[..., AbstractContextManager[None]]
PARTITIONS, TASKS = 4, 2
# Kafka's own default is 300 s.
REASSIGNED_AFTER_SECONDS = 12.0
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"


@dataclass(frozen=True)
class Cluster:
    """Two workers of Connect, the second of which can be stopped, and a sink that reads `topic`."""

    workers: str
    group: str
    topic: str
    second: ExitStack


@contextmanager
def worker(java_client: JavaClient, bootstrap: str, name: str, folder: Path) -> Iterator[str]:
    """A running worker, by the address of its REST server."""
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        **{f"{what}.storage.topic": f"{name}-{what}" for what in ("config", "offset", "status")},
        **{f"{what}.storage.replication.factor": "1" for what in ("config", "offset", "status")},
        **{f"{what}.storage.partitions": "1" for what in ("offset", "status")},
        **{f"{what}.converter": "org.apache.kafka.connect.converters.ByteArrayConverter" for what in ("key", "value")},
        "listeners": address,
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": f"{1000 * REASSIGNED_AFTER_SECONDS:.0f}",
    }
    file = folder / f"{port}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    # A worker needs more memory than the consumers of other tests.
    with java_client(WORKER, str(file), java_options=("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")):
        yield address


def is_open(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/connectors", timeout=2).is_success
    except httpx2.TransportError:
        return False


@pytest.fixture
def connect(bootstrap: str, java_client: JavaClient, tmp_path: Path) -> Iterator[Cluster]:
    """The sink's tasks are on both workers."""
    name, sink, topic = fresh_name("workers"), fresh_name("sink"), fresh_name("orders")
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    with ExitStack() as first, ExitStack() as second:
        addresses = []
        # Whoever joins first leads, and only a leader that stays knows what another worker had when it went.
        for stack in (first, second):
            addresses.append(stack.enter_context(worker(java_client, bootstrap, name, tmp_path)))
            wait_until(partial(is_open, addresses[-1]))
        settings = {"connector.class": "CountingSink", "tasks.max": str(TASKS), "topics": topic}
        httpx2.put(f"{addresses[0]}/connectors/{sink}/config", json=settings, timeout=60).raise_for_status()

        def is_on_both() -> bool:
            status = httpx2.get(f"{addresses[0]}/connectors/{sink}/status", timeout=10)
            tasks = status.json().get("tasks", []) if status.is_success else []
            return len({task["worker_id"] for task in tasks if task["state"] == "RUNNING"}) == TASKS

        wait_until(is_on_both)
        yield Cluster(workers=name, group=f"connect-{sink}", topic=topic, second=second)


def lag(rows: tuple[OffsetSample, ...]) -> int:
    return sum(row.end_offset - (row.committed_offset or 0) for row in rows)


def test_b19_a_sink_of_connect_is_a_group_of_its_tasks(
    bootstrap: str, collector: KafkaAdminCollector, connect: Cluster
) -> None:
    """Four partitions and two tasks are two members; when a worker goes, the other task takes all, and then both.

    The tasks of the worker that has gone run elsewhere after `scheduled.rebalance.max.delay.ms`; its partitions are
    consumed before, because the tasks' consumers are a group of their own.
    """
    produce(bootstrap, connect.topic, dict.fromkeys(range(PARTITIONS), 50))
    rows = read_until(collector, connect.group, has_members(TASKS))[-1]
    assert {row.topic for row in rows} == {connect.topic}
    assert (rows[0].clients, rows[0].group_assignor, rows[0].static_members) == ("java", "range", 0)
    profile = GroupSettings().profile("live", connect.group, observed_in([interval_of(rows)]))
    assert (profile.client, profile.protocol, profile.source_of("client")) == ("java", "eager", "detected")

    everything = collector.collect(None, now=NOON)
    assert connect.group in {row.group for row in everything.samples}
    (refused,) = (error for error in everything.errors if error.group == connect.workers)
    assert isinstance(refused, UnsupportedError)
    assert "a 'connect' group is not supported" in str(refused)

    wait_until(lambda: lag(collector.collect([connect.group], now=NOON).samples) == 0)
    # A worker takes seconds to end after its tasks have.
    ending = threading.Thread(target=connect.second.close)
    ending.start()
    read_until(collector, connect.group, has_members(1))
    alone_since = time.monotonic()
    produce(bootstrap, connect.topic, dict.fromkeys(range(PARTITIONS), 50))
    wait_until(lambda: lag(collector.collect([connect.group], now=NOON).samples) == 0)
    consumed_after = time.monotonic() - alone_since
    read_until(collector, connect.group, has_members(TASKS))
    assert consumed_after < time.monotonic() - alone_since
    assert time.monotonic() - alone_since > REASSIGNED_AFTER_SECONDS / 2.0
    ending.join()
