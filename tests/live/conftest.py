"""A real Apache Kafka for the tests marked `kafka`: one combined broker and controller on loopback, for one session."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_HERE = Path(__file__).parent
_START_LIMIT_SECONDS = 30.0


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running broker, `127.0.0.1:PORT`; a skip with its reason where it cannot be had."""
    missing = [tool for tool in ("mvn", "java") if shutil.which(tool) is None]
    if missing:
        reason = f"the live tests need {' and '.join(missing)} on the PATH: Kafka comes from Maven Central"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with running_broker(_fetched_jars(), tmp_path_factory.mktemp("kafka")) as address:
        yield address


@contextmanager
def running_broker(jars: Path, folder: Path) -> Iterator[str]:
    """A formatted, started broker on free ports with all its files in `folder`; stopped by SIGTERM."""
    broker_port, controller_port = _free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(_properties(broker_port, controller_port, folder / "data"), encoding="utf-8")
    java = ["java", "-Xmx512m", "-cp", f"{jars}/*", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    cluster_id = "bGFnY2FzdC1saXZlLXRlcw"  # any 16 bytes in URL-safe base64
    format_storage = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
    subprocess.run(format_storage, check=True, capture_output=True)
    log = folder / "broker.log"
    with log.open("wb") as output:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_for_port(broker, broker_port, log)
        _wait_for_coordinator(f"127.0.0.1:{broker_port}")
        yield f"127.0.0.1:{broker_port}"
    finally:
        broker.send_signal(signal.SIGTERM)
        try:
            broker.wait(timeout=15)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()


def _fetched_jars() -> Path:
    fetched = subprocess.run([_HERE / "fetch_kafka.sh"], check=False, capture_output=True, text=True)
    if fetched.returncode:
        pytest.fail(f"Kafka did not come from Maven Central: {fetched.stderr.strip()[-2000:]}")
    return Path(fetched.stdout.strip())


def _free_ports(count: int) -> list[int]:
    # All are held at once before any is let go: asked for one after the other, the same port may come twice.
    sockets = [socket.socket() for _ in range(count)]
    for held in sockets:
        held.bind(("127.0.0.1", 0))
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def _wait_for_port(broker: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START_LIMIT_SECONDS
    while time.monotonic() < until and broker.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"the broker did not open port {port} within {_START_LIMIT_SECONDS:.0f} s: {log.read_text()[-2000:]}")


def _wait_for_coordinator(address: str) -> None:
    """The first question about a group makes the broker create its offsets topic; until that is read, groups fail."""
    client = AdminClient({"bootstrap.servers": address})
    until = time.monotonic() + _START_LIMIT_SECONDS
    while True:
        try:
            client.describe_consumer_groups(["first"])["first"].result()
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def _properties(broker_port: int, controller_port: int, data: Path) -> str:
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
