"""`lagcast up` as the chart runs it, beside a real broker and a real API server: advice, channels, and two replicas.

The processes have the arguments and variables of the release's StatefulSet, in the form for several replicas, which
has every option. Measured are the seconds from a sample to its advice, from a message to the advice to start a group
that stands at zero and to the first commit of the pod that it starts, and from the end of the leader to the advice of
the other.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # ships no types
import httpx2
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from api.keda.protocol import SERVICE, IsActiveResponse, ScaledObjectRef
from recommender.adapters.store_sql import sqlite_url
from tests.live.harness.clients import (
    commit,
    create_topic,
    fresh_name,
    member,
    producer_in_order,
    read_topic,
    wait_until,
)
from tests.live.harness.contained import Contained, contained
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import executor_in, read_clock
from tests.live.harness.helm import CHART, Helm
from tests.live.harness.scalers import orders_in, scaler

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes, pytest.mark.spark, pytest.mark.alone]

CLUSTER = "live"
RELEASE, WORKLOAD = "lagcast", "lagcast-recommender"
MINUTES_OF_HISTORY = 180
PARTITIONS = 3
SAMPLE = timedelta(seconds=15)
# A sample is taken a second before the end of the interval whose row is made of it.
LEAD = timedelta(seconds=1)
SAMPLES_MEASURED = 5
MOST_SECONDS_FROM_A_SAMPLE = 20.0
# A message waits for the next sample, too.
MOST_SECONDS_FROM_A_MESSAGE = 15.0 + MOST_SECONDS_FROM_A_SAMPLE
# Groups that stand at zero get a message each at another moment between two samples.
IDLE_GROUPS = 3
IDLE_STEP_SECONDS = 5.0
# The real executor looks each 15 s, as it does by default; a pod is ready after so long, and its consumer joins then.
POD_START_SECONDS = 5
MOST_SECONDS_TO_A_COMMIT = MOST_SECONDS_FROM_A_MESSAGE + 15.0 + POD_START_SECONDS + 20.0
# A lease that is released is taken within 2 s, and a table that exists is decided on at once.
MOST_SECONDS_FROM_A_LEADER = 10.0


@pytest.fixture
def orders(bootstrap: str) -> Iterator[str]:
    """A topic with three hours of messages behind it and some each second from now on, and a group that reads it."""
    name = fresh_name("orders")
    create_topic(bootstrap, name, partitions=PARTITIONS)
    producer = producer_in_order(bootstrap)
    for ago in range(MINUTES_OF_HISTORY, 0, -1):
        stamp = stamp_of(read_clock() - timedelta(minutes=ago))
        for number in range(60):
            producer.produce(name, b"m", partition=number % PARTITIONS, timestamp=stamp + 1000 * number)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "latest"})
    consumer.subscribe([name])
    stopping = threading.Event()

    def live() -> None:
        while not stopping.wait(0.2):
            for partition in range(PARTITIONS):
                producer.produce(name, b"m", partition=partition)
            while consumer.poll(0.0) is not None:
                pass
        producer.flush(5)
        consumer.close()

    thread = threading.Thread(target=live)
    thread.start()
    yield name
    stopping.set()
    thread.join()


@pytest.fixture
def idle(bootstrap: str) -> list[str]:
    """Groups without members that have read their topics, in which nothing was produced for three hours."""
    names = [fresh_name("idle") for _ in range(IDLE_GROUPS)]
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in names:
        create_topic(bootstrap, name, partitions=1)
        producer.produce(name, b"m", timestamp=stamp_of(read_clock() - timedelta(minutes=MINUTES_OF_HISTORY)))
        assert producer.flush(20) == 0
        commit(bootstrap, name, TopicPartition(name, 0, 1))
    return names


def stamp_of(instant: datetime) -> int:
    """The instant as Kafka stamps messages."""
    return round(instant.timestamp() * 1000)


@pytest.fixture
def objects(installed: ControlPlane, orders: str, idle: list[str]) -> str:
    """A fresh namespace with a ConsumerGroupScaler for each group; the idle ones may stand at zero.

    The last one has a Deployment, at zero, which the executor may start.
    """
    namespace = fresh_name("shop")
    installed.kubectl("create", "namespace", namespace)
    orders_in(installed, namespace)
    group = {"capacityMessagesPerSecondPerReplica": 30}
    mine = scaler(namespace, orders, cluster=CLUSTER, group=group, target={"name": "orders"})
    at_zero: dict[str, Any] = {"group": group, "minReplicas": 0, "scaleToZero": {"enabled": True}}
    theirs = [scaler(namespace, name, cluster=CLUSTER, **at_zero) for name in idle[:-1]]
    orders_in(installed, namespace, name=idle[-1], replicas=0, start_delay_seconds=POD_START_SECONDS)
    target = {"target": {"name": idle[-1]}, "mode": "Apply", "maxReplicas": 1}
    theirs.append(scaler(namespace, idle[-1], cluster=CLUSTER, **at_zero, **target))
    for document in (mine, *theirs):
        installed.apply(json.dumps(document))
    return namespace


@pytest.fixture
def prefix() -> str:
    """A prefix of topics for decisions that no other test has."""
    return fresh_name("advice")


@pytest.fixture
def release(
    *, installed: ControlPlane, helm: Helm, bootstrap: str, objects: str, prefix: str, tmp_path: Path
) -> Iterator[str]:
    """The namespace of a release of the chart with two replicas, which share a store."""
    namespace = fresh_name("lagcast")
    installed.kubectl("create", "namespace", namespace)
    secrets = {"lagcast-kafka": "client.properties=", "lagcast-store": f"url={sqlite_url(tmp_path / 'store.sqlite')}"}
    for name, literal in secrets.items():
        installed.kubectl("-n", namespace, "create", "secret", "generic", name, f"--from-literal={literal}")
    values = {
        "kafka.bootstrap": bootstrap,
        "kafka.cluster": CLUSTER,
        "kafka.publish": prefix,
        "scalers.namespaces": f"{{{objects}}}",
        "scalers.definition": "false",
        "recommender.replicas": "2",
        "recommender.storeSecret": "lagcast-store",
    }
    theirs = helm.using(installed.kubeconfig)
    words = [f"--set={name}={value}" for name, value in values.items()]
    theirs("install", RELEASE, str(CHART), f"--namespace={namespace}", *words)
    yield namespace
    theirs("uninstall", RELEASE, f"--namespace={namespace}")


@pytest.fixture
def replica(installed: ControlPlane, release: str, tmp_path: Path) -> Callable[[int], Any]:
    """The recommender's container of a replica, as a context."""
    return lambda number: contained(installed, release, WORKLOAD, replica=number, folder=tmp_path / "volumes")


@pytest.fixture
def executing(installed: ControlPlane, objects: str, tmp_path: Path) -> Callable[[str], AbstractContextManager[object]]:
    """The real executor against the REST of an address, until the block ends."""
    kubeconfig = executor_in(installed, objects)
    program = str(Path(sys.executable).with_name("lagcast-executor"))
    words = [program, "--all", "--mode", "apply", "--kubeconfig", str(kubeconfig), "--api"]

    @contextmanager
    def running(url: str) -> Iterator[object]:
        with (tmp_path / "executor.log").open("wb") as log, subprocess.Popen([*words, url], stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()

    return running


def test_the_charts_recommender_advises_within_twenty_seconds_of_a_sample_on_every_channel(
    *,
    bootstrap: str,
    orders: str,
    idle: list[str],
    objects: str,
    prefix: str,
    installed: ControlPlane,
    executing: Callable[[str], AbstractContextManager[object]],
    replica: Callable[[int], Any],
) -> None:
    """One release from nothing to advice on Kafka, REST, metrics, in the objects and for KEDA; then a second replica.

    The second one reads Kafka for itself, and publishes only once the first is stopped. The first is started again on
    its own data, reads no history twice, and leads again when the second is stopped.
    """

    def bodies() -> list[dict[str, Any]]:
        return [
            json.loads(message.value() or b"") | {"came_at": came_at(message)}
            for message in read_topic(bootstrap, prefix)
        ]

    def advised(group: str, *, reason: str = "") -> list[dict[str, Any]]:
        ours = [body for body in bodies() if (body["kind"], body["group_id"]) == ("Recommendation", group)]
        return [body for body in ours if reason in ("", body["reason"]["code"])]

    def in_objects() -> dict[str, int]:
        found = json.loads(installed.kubectl("-n", objects, "get", "cgs", "-o", "json"))["items"]
        return {each["metadata"]["name"]: each["status"]["recommendation"]["desiredReplicas"] for each in found}

    with replica(0) as first:
        # The broker has groups of other tests too.
        assert int(first.printed(r"history +(\d+) groups") or 0) > IDLE_GROUPS
        wait_until(lambda: advised_counts(first, idle) == {0}, seconds=240)
        wait_until(lambda: advised(orders), seconds=60)
        assert f'lagcast_desired_replicas{{cluster="{CLUSTER}",group="{orders}"}}' in page(first)
        assert is_active(first, orders)
        assert not is_active(first, idle[0])

        woken_at = {}
        with executing(first.url):
            for name in idle:
                time.sleep(IDLE_STEP_SECONDS)  # another phase of the samples
                woken_at[name] = wake(bootstrap, name)
            committed_at = commit_of_a_started_pod(installed, objects, idle[-1], bootstrap)
        to_commit = (committed_at - woken_at[idle[-1]]).total_seconds()
        report("seconds from a message to the first commit of the pod that it started", [to_commit])
        assert to_commit <= MOST_SECONDS_TO_A_COMMIT
        wait_until(lambda: advised_counts(first, idle) == {1}, seconds=60)
        assert is_active(first, idle[0])
        waited = [
            (min(body["came_at"] for body in advised(name, reason="Activating")) - at).total_seconds()
            for name, at in woken_at.items()
        ]
        report("seconds from a message to the advice to start its group", waited)
        assert max(waited) <= MOST_SECONDS_FROM_A_MESSAGE
        wait_until(lambda: {in_objects()[name] for name in idle} == {1})

        seen_rebalance(first, bootstrap, orders)
        wait_until(lambda: len(delays(advised(orders))) >= SAMPLES_MEASURED, seconds=120)
        seconds = delays(advised(orders))
        report("seconds from a sample to its advice", seconds)
        assert max(seconds) <= MOST_SECONDS_FROM_A_SAMPLE

        # Groups of other tests have their turn in which the meter learns this, too.
        wait_until(lambda: "commit_interval_seconds" in detected_in(advised(orders)[-1]), seconds=240)
        with replica(1) as second:
            handed_over(first, second, advised, orders)
            with replica(0) as again:
                assert again.printed(r"history +(0) groups")
                handed_over(second, again, advised, orders)
                assert again.stop(signal.SIGTERM) == 0

    history, latest = (read_topic(bootstrap, topic) for topic in (prefix, f"{prefix}.latest"))
    assert [message.value() for message in history] == [message.value() for message in latest]
    advice = advised(orders)
    assert len({body["recommendation_id"] for body in bodies()}) == len(bodies())
    # Each process resumes where the one before it stopped: each advice names the one before it.
    assert [body["supersedes"] for body in advice[1:]] == [body["recommendation_id"] for body in advice[:-1]]
    detected = detected_in(advice[-1])
    in_kafka = {
        "protocol": "eager",
        "assignor": "range",
        "static_membership": False,
        "client": "librdkafka",
        "session_timeout_seconds": 45.0,
        "max_poll_interval_seconds": 300.0,
    }
    # Nobody tells how often its member commits, which is librdkafka's own 5 s.
    assert detected.pop("commit_interval_seconds") == pytest.approx(5.0, rel=0.1)
    # Its pods were ready within the second in which they were made.
    assert detected == {**in_kafka, "start_up_seconds": 1.0, "termination_grace_seconds": 30.0}
    assert in_objects()[orders] == advice[-1]["desired_replicas"]


def detected_in(advice: dict[str, Any]) -> dict[str, Any]:
    """The figures of the group that the advice has as detected, by name."""
    return {figure["name"]: figure["value"] for figure in advice["profile"] if figure["source"] == "detected"}


def came_at(message: Any) -> datetime:  # noqa: ANN401  # Kafka's
    """The instant at which the producer stamped the message."""
    return datetime.fromtimestamp(message.timestamp()[1] / 1000.0, tz=read_clock().tzinfo)


def advised_counts(running: Contained, groups: list[str]) -> set[int | None]:
    """The counts that REST has for these groups, None for a group without advice."""
    found = httpx2.get(f"{running.url}/api/v1/groups", timeout=30).json()["groups"]
    known = {row["group_id"]: row.get("desired_replicas") for row in found}
    return {known.get(name) for name in groups}


def page(running: Contained) -> str:
    """The metrics."""
    return str(httpx2.get(f"{running.url}/metrics", timeout=30).text)


def is_active(running: Contained, group: str) -> bool:
    """KEDA's question whether the group has to have replicas now."""
    reference = ScaledObjectRef(name=group, scalerMetadata={"cluster": CLUSTER, "groupId": group})
    with grpc.insecure_channel(running.keda) as channel:
        ask = channel.unary_unary(
            f"/{SERVICE}/IsActive", ScaledObjectRef.SerializeToString, IsActiveResponse.FromString
        )
        return bool(ask(reference, timeout=10).result)


def wake(bootstrap: str, topic: str) -> datetime:
    """A message for a group that stands at zero; when it was delivered."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"m")
    assert producer.flush(10) == 0
    return read_clock()


def commit_of_a_started_pod(cluster: ControlPlane, namespace: str, group: str, bootstrap: str) -> datetime:
    """When the group has read all, by a consumer that begins as soon as the Deployment of its name has a ready pod."""
    ready = ("-n", namespace, "get", "deployment", group, "-o", "jsonpath={.status.readyReplicas}")
    wait_until(lambda: cluster.kubectl(*ready) == "1", seconds=MOST_SECONDS_TO_A_COMMIT)
    admin, asked = AdminClient({"bootstrap.servers": bootstrap}), [ConsumerGroupTopicPartitions(group)]

    def has_read_all() -> bool:
        read = admin.list_consumer_group_offsets(asked)[group].result().topic_partitions
        return [partition.offset for partition in read] == [2]

    with member(bootstrap, group, group, **{"auto.commit.interval.ms": "1000"}):
        wait_until(has_read_all, seconds=60)
        return read_clock()


def seen_rebalance(running: Contained, bootstrap: str, group: str) -> None:
    """A member that joins is a rebalance on the metrics page; the first one may join before the meter's first look."""
    counted = f'lagcast_interruptions_total{{cluster="{CLUSTER}",group="{group}",kind="rebalance"}}'
    for _ in range(3):
        with member(bootstrap, group, group):
            until = time.monotonic() + 30
            while time.monotonic() < until:
                if counted in page(running):
                    return
                time.sleep(0.2)
    pytest.fail("no rebalance was counted")


def delays(advice: list[dict[str, Any]]) -> list[float]:
    """Seconds from each sample to the first advice that uses it or a later one, but for those of the start."""
    known = [(datetime.fromisoformat(body["data"]["as_of"]), body["came_at"]) for body in advice]
    # The first advice waits for the lease, and the second one may use rows that came meanwhile.
    used = sorted({end for end, _ in known})[1:]
    if not used:
        return []
    begin, newest = used[0], used[-1]
    ends = [begin + number * SAMPLE for number in range(1, (newest - begin) // SAMPLE + 1)]
    return [(min(came for at, came in known if at >= end) - (end - LEAD)).total_seconds() for end in ends]


def handed_over(leader: Contained, other: Contained, advised: Callable[..., list[dict[str, Any]]], group: str) -> None:
    """The other stands by until its table is there and the leader is stopped; then its advice comes soon."""
    other.printed(r'("standing_by")')
    assert "lagcast_leader 0.0" in page(other)
    stopped_at = read_clock()
    assert leader.stop(signal.SIGTERM) == 0

    def since() -> list[datetime]:
        at = (datetime.fromisoformat(body["issued_at"]) for body in advised(group))
        return [issued_at for issued_at in at if issued_at > stopped_at]

    wait_until(since, seconds=60)
    report("seconds from a leader's end to the other's advice", [(min(since()) - stopped_at).total_seconds()])
    assert (min(since()) - stopped_at).total_seconds() <= MOST_SECONDS_FROM_A_LEADER
    assert "lagcast_leader 1.0" in page(other)


def report(what: str, seconds: list[float]) -> None:
    """Print what was measured."""
    print(f"{what}:", *(f"{each:.1f}" for each in seconds))  # noqa: T201  # the measurement
