"""Samples over a topic of a real broker: published by collectors, landed by a process that may be killed any time."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]  # documented, not in __all__
from structlog.testing import capture_logs

from cli.instants import read_clock
from collector.batches import VERSION_HEADER
from collector.errors import RejectedError
from collector.sample import OffsetSample
from collector.topic import SamplePublisher, land_forever
from spark_features.samples import find_samples, reading
from tests.collector.conftest import NOON, SAMPLE
from tests.collector.test_keeping import seen
from tests.collector.test_sinks import read
from tests.live.harness.broker import running_brokers
from tests.live.harness.clients import commit, create_topic, fresh_name, wait_until
from tests.live.harness.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka

CLUSTERS = ("prod-eu", "prod-us", "prod-ap")


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A fresh samples topic of three partitions."""
    name = fresh_name("samples")
    create_topic(bootstrap, name, partitions=3)
    return name


def batch(number: int) -> list[OffsetSample]:
    """A minute of three clusters."""
    at = NOON + timedelta(minutes=number)
    return [replace(SAMPLE, cluster=cluster, partition=p, sampled_at=at) for cluster in CLUSTERS for p in range(4)]


@contextmanager
def lander(bootstrap: str, topic: str, out: Path) -> Iterator["subprocess.Popen[str]"]:
    """`lagcast land` in a process of its own."""
    # The samples are of a day that is long over: it becomes one file each time, and may not be removed.
    words = ["land", "--bootstrap", bootstrap, "--topic", topic, "--out", str(out), "--keep-days", "36500"]
    command = [sys.executable, "-m", "cli.main", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def landed_rows(out: Path) -> int:
    """By the ends of the files alone, so that looking often takes no processor time from the lander."""
    if not any(out.glob("date=*/[!.]*.parquet")):
        return 0
    with reading(out):
        return find_samples(out, first=None, last=None).rows


def landed(out: Path, *, rows: int) -> Counter[OffsetSample]:
    """The rows that the features job reads, once there are so many, or when none has come for a minute."""
    found, until = 0, time.monotonic() + 60
    while found < rows and time.monotonic() < until:
        time.sleep(0.2)
        now = landed_rows(out)
        if now > found:
            found, until = now, time.monotonic() + 60
    with reading(out):
        return seen(out) if found else Counter()


def test_ten_kills_lose_no_row_and_repeat_none(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """SIGKILL at random points of the work, while batches come in; an eleventh process lands the rest of them."""
    sent: list[OffsetSample] = []
    stopping = threading.Event()

    def publish() -> None:
        with SamplePublisher(bootstrap, topic, client_config={}) as publisher:
            number = 0
            while not stopping.wait(0.1):
                publisher(batch(number))
                sent.extend(batch(number))
                number += 1

    publishing = threading.Thread(target=publish)
    publishing.start()
    points = random.Random(7)  # noqa: S311  # where it dies, not a secret
    killed_at_work = 0
    try:
        for _ in range(10):
            with lander(bootstrap, topic, tmp_path) as process:
                before, until = landed_rows(tmp_path), time.monotonic() + 120
                while landed_rows(tmp_path) == before and time.monotonic() < until:
                    time.sleep(0.1)
                time.sleep(points.uniform(0.0, 1.5))
                process.send_signal(signal.SIGKILL)
                process.wait()
            killed_at_work += landed_rows(tmp_path) > before
    finally:
        stopping.set()
        publishing.join()
    with lander(bootstrap, topic, tmp_path) as process:
        assert landed(tmp_path, rows=len(sent)) == Counter(sent)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert killed_at_work == 10


def test_damaged_and_foreign_messages_are_set_aside_and_a_later_schema_stops_it(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Stderr counts them, everything around them is landed; exit 2 at the message of the later schema."""
    producer = Producer({"bootstrap.servers": bootstrap})
    with SamplePublisher(bootstrap, topic, client_config={}) as publisher:
        publisher(batch(0))
    producer.produce(topic, b"PAR1", "prod-eu", headers={VERSION_HEADER: "1"})
    producer.produce(topic, b"{}", "prod-eu")
    assert producer.flush(10) == 0
    with SamplePublisher(bootstrap, topic, client_config={}) as publisher:
        publisher(batch(1))
    expected = Counter([*batch(0), *batch(1)])
    with lander(bootstrap, topic, tmp_path) as process:
        assert landed(tmp_path, rows=24) == expected
        producer.produce(topic, b"", "prod-eu", headers={VERSION_HEADER: "2"})
        assert producer.flush(10) == 0
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert len(list(tmp_path.rglob("*.parked"))) == 2
    assert 1 <= stderr.count("messages_set_aside") <= 2
    assert "Traceback" not in stderr
    last = stderr.splitlines()[-1]
    assert last.startswith("lagcast: message ")
    assert "schema version 2, and this lagcast reads 1; install a newer lagcast here" in last
    assert landed(tmp_path, rows=24) == expected


def test_partitions_that_are_added_are_landed_too(
    bootstrap: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples that a collector then puts on the new partition are landed too."""
    monkeypatch.setattr("collector.topic._PARTITIONS_EVERY_LOOKS", 2)
    stop = threading.Event()
    words = {"client_config": {}, "clock": read_clock, "stop": stop}
    thread = threading.Thread(target=land_forever, args=(bootstrap, topic, tmp_path), kwargs=words)
    thread.start()
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_partitions([NewPartitions(topic, 6)])[topic].result()
        wait_until(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 6)
        sent = [row for number in range(8) for row in batch(number)]
        sent = [replace(row, cluster=f"{row.cluster}-{row.sampled_at:%M}") for row in sent]
        with SamplePublisher(bootstrap, topic, client_config={}) as publisher:
            publisher(sent)
        assert landed(tmp_path, rows=len(sent)) == Counter(sent)
    finally:
        stop.set()
        thread.join()


def test_a_broker_that_goes_and_comes_back_is_logged_once_each(jars: Path, tmp_path: Path) -> None:
    """Samples published meanwhile are delivered and landed when the broker is there again."""
    quick = {"reconnect.backoff.max.ms": "500"}
    stop = threading.Event()
    with running_brokers(jars, tmp_path / "kafka") as (broker,), capture_logs() as lines:
        create_topic(broker.address, "samples", partitions=1)
        words = {"client_config": quick, "clock": read_clock, "stop": stop}
        args = (broker.address, "samples", tmp_path / "out")
        thread = threading.Thread(target=land_forever, args=args, kwargs=words)
        thread.start()
        try:
            with SamplePublisher(broker.address, "samples", client_config=quick) as publisher:
                publisher(batch(0))
                assert landed(tmp_path / "out", rows=12) == Counter(batch(0))
                broker.stop()
                publisher(batch(1))
                wait_until(lambda: any(line["event"] == "brokers_unreachable" for line in lines))
                broker.start()
                broker.wait_until_open()
                assert landed(tmp_path / "out", rows=24) == Counter([*batch(0), *batch(1)])
        finally:
            stop.set()
            thread.join()
    changes = [line for line in lines if line["event"].startswith("brokers_")]
    assert [line["event"] for line in changes] == ["brokers_unreachable", "brokers_reachable"]
    assert changes[0]["where"] == f"Kafka at {broker.address}"


def test_a_collector_puts_its_samples_on_the_topic(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """`lagcast collect --topic`, stopped by SIGTERM, publishes what it has read, with the rows of a file beside it."""
    group, orders = fresh_name("group"), fresh_name("orders")
    create_topic(bootstrap, orders, partitions=2)
    commit(bootstrap, group, TopicPartition(orders, 0, 0), TopicPartition(orders, 1, 0))
    words = ["--bootstrap", bootstrap, "--group", group, "--topic", topic, "--out", str(tmp_path / "files")]
    # An absent group gives an error in the first round, after the others were read.
    command = [sys.executable, "-m", "cli.main", "collect", *words, "--group", "absent", "--cluster", "prod-eu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert f"writes to {tmp_path / 'files'} and topic {topic} once a minute" in process.stderr.readline()
        assert any("group_failed" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    written = read(tmp_path / "files")
    assert {(row.cluster, row.group, row.topic) for row in written} == {("prod-eu", group, orders)}
    with lander(bootstrap, topic, tmp_path / "landed"):
        assert landed(tmp_path / "landed", rows=len(written)) == Counter(written)


def test_a_topic_that_is_not_there_is_named_with_the_next_step(bootstrap: str, tmp_path: Path) -> None:
    """Neither side creates it, and neither waits for it."""
    message = "for the partitions of topic 'no-such-topic'.*; make the topic with a retention that outlasts any pause"
    with pytest.raises(RejectedError, match=message):
        SamplePublisher(bootstrap, "no-such-topic", client_config={})
    with pytest.raises(RejectedError, match=message):
        land_forever(bootstrap, "no-such-topic", tmp_path, client_config={}, clock=read_clock, stop=threading.Event())


def test_a_grant_that_is_missing_is_named(secured: Secured, tmp_path: Path) -> None:
    """Describe alone shows the topic; to read it needs Read."""
    name = fresh_name("samples")
    create_topic(secured.address("PLAINTEXT"), name, partitions=1)
    secured.grant("lagcast", topic=name)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "lagcast",
        "sasl.password": PASSWORD,
    }
    where = secured.address("PLAIN")
    with pytest.raises(RejectedError, match=f"grant this user Read on Topic '{name}'") as caught:
        land_forever(where, name, tmp_path, client_config=login, clock=read_clock, stop=threading.Event())
    assert PASSWORD not in str(caught.value)
