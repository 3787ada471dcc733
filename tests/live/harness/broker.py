"""Real Kafka processes on loopback: combined brokers and controllers, for the live tests and for benchmarks."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent
_START_LIMIT_SECONDS = 120.0
_CLUSTER_ID = "bGFnY2FzdC1saXZlLXRlcw"  # any 16 bytes in URL-safe base64
_PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


# A request that was sent too early may never be answered; the next one is.
_ANSWER_SECONDS = 5.0


# A broker of a test lives for a minute or two: a quick compiler and no collector threads take 5.8 CPU-s instead of 11.0
# to start it, make 24 partitions and store 200,000 messages.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class BrokerError(RuntimeError):
    """Kafka could not be fetched, or did not start; the message ends with the last log lines."""


class Broker:
    """One Kafka process; all its files are in `folder`. Stopped or killed, it can be started again as it was.

    `ports` are the ports of its listeners by name, PLAINTEXT and CONTROLLER among them; others have the protocol that
    `properties` gives them.
    """

    def __init__(
        self,
        jars: Path,
        folder: Path,
        *,
        node: int,
        ports: Mapping[str, int],
        properties: Mapping[str, str],
        java_options: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ports = ports
        self.address = f"127.0.0.1:{ports['PLAINTEXT']}"
        self._jars, self._file, self._log = jars, folder / "server.properties", folder / "broker.log"
        self._java_options = java_options
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            **_PROPERTIES,
            "node.id": str(node),
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(folder / "data"),
            **properties,
        }
        self._file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        format_storage = _java(jars, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._file))
        subprocess.run(format_storage, check=True, capture_output=True)

    def start(self) -> None:
        """Start the process; `wait_until_open` returns when it answers."""
        with self._log.open("ab") as output:
            command = _java(self._jars, *self._java_options, "kafka.Kafka", str(self._file))
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def wait_until_open(self) -> None:
        """Wait until its port takes connections. Errors: BrokerError with the end of its log."""
        until = time.monotonic() + _START_LIMIT_SECONDS
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.ports["PLAINTEXT"])) == 0:
                    return
            time.sleep(0.1)
        log_end = self._log.read_text(encoding="utf-8")[-2000:]
        message = f"the broker did not open {self.address} within {_START_LIMIT_SECONDS:.0f} s: {log_end}"
        raise BrokerError(message)

    def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> None:
        """End the process, if it runs, and wait for its end; SIGKILL is a crash."""
        if self._process is None:
            return
        self._process.send_signal(signal_number)
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextmanager
def running_brokers(
    jars: Path,
    folder: Path,
    *,
    count: int = 1,
    listeners: Sequence[str] = (),
    properties: Mapping[str, str] = {},
    java_options: Sequence[str] = (),
) -> Iterator[tuple[Broker, ...]]:
    """Brokers of one cluster on free ports, each with PLAINTEXT and with `listeners`; the first is the controller.

    They answer requests about groups when the block begins, and are stopped by SIGTERM when it ends.
    """
    names = ("PLAINTEXT", *listeners, "CONTROLLER")
    free = iter(free_ports(count * len(names)))
    ports = [{name: next(free) for name in names} for _ in range(count)]
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{ports[0]['CONTROLLER']}", **properties}
    broker_only = {**voters, "process.roles": "broker"}
    with ExitStack() as stops:
        brokers = []
        for node, own in enumerate(ports, start=1):
            # A broker that is no controller listens for brokers and clients alone.
            open_ports = own if node == 1 else {name: port for name, port in own.items() if name != "CONTROLLER"}
            settings = voters if node == 1 else broker_only
            place = folder / f"node-{node}"
            broker = Broker(jars, place, node=node, ports=open_ports, properties=settings, java_options=java_options)
            stops.callback(broker.stop)
            broker.start()
            brokers.append(broker)
        for broker in brokers:
            broker.wait_until_open()
        wait_for_coordinator(brokers[0].address)
        yield tuple(brokers)


def fetched_jars() -> Path:
    """The folder with Kafka's jars, fetched from Maven Central the first time. Errors: BrokerError."""
    fetched = ran(_HERE / "fetch_kafka.sh")
    if fetched.returncode:
        message = f"Kafka did not come from Maven Central: {fetched.stderr.strip()[-2000:]}"
        raise BrokerError(message)
    return Path(fetched.stdout.strip())


def compiled(jars: Path, classes: Path) -> Path:
    """The Java programs beside this file, compiled into `classes`."""
    sources = sorted((_HERE / "java").glob("*.java"))
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, *sources], check=True, capture_output=True)
    # Connect finds its connectors by these files; without them it opens every jar, which takes seconds.
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True, exist_ok=True)
    (services / "org.apache.kafka.connect.sink.SinkConnector").write_text("CountingSink\n", encoding="utf-8")
    return classes


@contextmanager
def running_java(
    jars: Path, classes: Path, program: str, *words: str, java_options: Sequence[str] = ()
) -> Iterator[None]:
    """One of those programs, ended by SIGTERM with the block."""
    with (classes / f"{program}.log").open("ab") as output:
        command = ["java", "-Xmx128m", *java_options, "-cp", f"{jars}/*:{classes}", program, *words]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for_coordinator(address: str) -> None:
    """The first request about a group makes the broker create its offsets topic; until that is read, groups fail."""
    client = AdminClient({"bootstrap.servers": address})
    until = time.monotonic() + _START_LIMIT_SECONDS
    while True:
        try:
            client.describe_consumer_groups(["first"], request_timeout=_ANSWER_SECONDS)["first"].result()
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def limit_reads(jars: Path, bootstrap: str, quotas: Mapping[str, int]) -> None:
    """Quotas of bytes per second, by client id."""
    for client, rate in quotas.items():
        words = ("--bootstrap-server", bootstrap, "--alter", "--add-config", f"consumer_byte_rate={rate}")
        command = _java(jars, "kafka.admin.ConfigCommand", *words, "--entity-type", "clients", "--entity-name", client)
        subprocess.run(command, check=True, capture_output=True)


def _java(jars: Path, *words: str) -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx512m", *_SHORT_LIVED, "-cp", f"{jars}/*", quiet, *words]


def free_ports(count: int) -> list[int]:
    """So many unused ports of loopback."""
    # All are held at once before any is released: requested one after the other, the same port may come twice.
    sockets = [socket.socket() for _ in range(count)]
    for held in sockets:
        held.bind(("127.0.0.1", 0))
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports
