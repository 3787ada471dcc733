"""Real exporters and a real Prometheus beside a broker, each a process of its own on a free port."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from tests.live.harness.broker import BrokerError, free_ports
from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent
# Exporters of Java's beans read the log ends of a broker, the lag that a client has of each of its partitions and the
# share of its time in which it waits for messages, and what a Kafka Streams application restores.
JMX_BEANS = {
    "broker": '"kafka.log:type=Log,name=LogEndOffset,*"',
    "client": '"kafka.consumer:type=consumer-fetch-manager-metrics,*", "kafka.consumer:type=consumer-metrics,*"',
    "application": '"kafka.consumer:type=consumer-fetch-manager-metrics,*", '
    '"kafka.streams:type=stream-state-updater-metrics,*"',
}


def fetched(program: str) -> Path:
    """The path of `prometheus`, `klag-exporter` or `jmx-agent`, fetched the first time. Errors: BrokerError."""
    done = ran(_HERE / "fetch_exporters.sh", program)
    if done.returncode:
        message = f"{program} could not be had: {done.stderr.strip()[-2000:]}"
        raise BrokerError(message)
    return Path(done.stdout.strip())


def jmx_option(agent: Path, folder: Path, *, of: str, port: int) -> str:
    """The option that makes a JVM export the beans of a `broker`, a `client` or an `application` on that port."""
    config = folder / f"jmx-{of}.yaml"
    config.write_text(f'includeObjectNames: [{JMX_BEANS[of]}]\nrules: [{{pattern: ".*"}}]\n', encoding="utf-8")
    return f"-javaagent:{agent}=127.0.0.1:{port}:{config}"


class KlagExporter:
    """One klag-exporter of one cluster; it can be stopped and started again."""

    def __init__(
        self, program: Path, folder: Path, *, bootstrap: str, cluster: str, port: int, every_seconds: int = 1
    ) -> None:
        self.port = port
        self._program, self._log, self._config = program, folder / "klag.log", folder / "klag.toml"
        self._process: subprocess.Popen[bytes] | None = None
        self._config.write_text(
            f'[exporter]\npoll_interval = "{every_seconds}s"\nhttp_host = "127.0.0.1"\nhttp_port = {port}\n'
            'granularity = "partition"\n'
            "[exporter.timestamp_sampling]\nenabled = false\n"
            f'[[clusters]]\nname = "{cluster}"\nbootstrap_servers = "{bootstrap}"\n',
            encoding="utf-8",
        )

    def start(self) -> None:
        """Start it, and wait until it exports offsets. Errors: BrokerError with the end of its log."""
        with self._log.open("ab") as output:
            command = [str(self._program), "--config", str(self._config)]
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        wait_until(f"http://127.0.0.1:{self.port}/metrics", holds="kafka_partition_latest_offset{", log=self._log)

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_prometheus(
    program: Path,
    folder: Path,
    *,
    jobs: Mapping[str, Sequence[int]],
    options: Sequence[str] = (),
    every_seconds: int = 1,
) -> Iterator[str]:
    """A Prometheus that scrapes these ports so often, by job, until the block ends: its address.

    The job `self` is its own port. `options` are more words of its command line.
    """
    (port,) = free_ports(1)
    folder.mkdir()
    config, log = folder / "prometheus.yml", folder / "prometheus.log"
    lines = [f"global: {{scrape_interval: {every_seconds}s, scrape_timeout: 1s}}", "scrape_configs:"]
    for job, ports in {"self": [port], **jobs}.items():
        targets = ", ".join(f"'127.0.0.1:{target}'" for target in ports)
        lines.append(f"  - {{job_name: {job}, static_configs: [{{targets: [{targets}]}}]}}")
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        *options,
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        # A server with a password or a certificate is ready when the port is open.
        wait_until(f"http://127.0.0.1:{port}/-/ready", log=log, any_answer=bool(options))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def serving_text(text: Callable[[], str]) -> Iterator[int]:
    """The port of an exporter whose page is what `text` returns at each scrape."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(httpx2.codes.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text().encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def wait_until(url: str, *, holds: str = "", log: Path, any_answer: bool = False, seconds: float = 60.0) -> None:
    """Wait until the page answers with these words in it, or at all. Errors: BrokerError with the end of the log."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            answer = httpx2.get(url, timeout=5)
            if any_answer or (answer.status_code == httpx2.codes.OK and holds in answer.text):
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)
    message = f"{url} does not answer with {holds!r} within {seconds:.0f} s: {log.read_text(encoding='utf-8')[-2000:]}"
    raise BrokerError(message)
