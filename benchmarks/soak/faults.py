"""The faults of the soak. Each one begins, lasts for a while, and is over when its function returns."""

import json
import os
import random
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import httpx2
import psutil  # type: ignore[import-untyped]  # ships no types
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import sqlalchemy as sa
from confluent_kafka import Producer

from benchmarks.soak.groups import FLEET, SAMPLES_TOPIC
from benchmarks.soak.stage import Stage
from cli.spark_process import HUNG_AFTER_SECONDS as SPARK_HUNG_AFTER_SECONDS
from collector.batches import SCHEMA_VERSION, VERSION_HEADER, batches_of
from collector.isolated import HUNG_AFTER_SECONDS as COLLECTOR_HUNG_AFTER_SECONDS
from collector.sinks import arrow_table
from forecasting.columns import BASE_INTERVAL_SECONDS
from tests.live.harness.broker import wait_for_coordinator

# Real seconds that a fault lasts; what hangs is left so until lagcast ends it in the long form alone.
_LONG_SECONDS, _SHORT_SECONDS = 6.0, 3.0
_TO_END_SECONDS = 240.0
_STORM, _HALVES = 40, 60
_HUGE_BYTES = 900_000
_AHEAD = timedelta(minutes=20)
_LEAST_PARTS = 4


@dataclass(frozen=True, slots=True)
class Blow:
    """One occurrence of a fault; in the `short` form of the soak nothing waits for lagcast to end what hangs."""

    stage: Stage
    dice: random.Random
    short: bool

    def last(self) -> None:
        """Wait for as long as a fault lasts."""
        time.sleep(_SHORT_SECONDS if self.short else _LONG_SECONDS)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault by its name and its words."""

    name: str
    words: str
    strike: Callable[[Blow], object]


def postgres_restarted(at: Blow) -> None:
    """The database is away until a cycle has said so."""
    before = at.stage.logged().count('"name": "store"')
    at.stage.server.stop()
    _until(lambda: at.stage.logged().count('"name": "store"') > before)
    at.stage.server.start()


def features_away(at: Blow) -> None:
    """The folder of the table is not there for some seconds, as a volume that is mounted again."""
    elsewhere = at.stage.features.with_name("elsewhere")
    at.stage.features.rename(elsewhere)
    at.last()
    if at.stage.features.exists():  # what was written below the place of the volume is hidden by it
        shutil.rmtree(at.stage.features)
    elsewhere.rename(at.stage.features)


def part_truncated(at: Blow) -> None:
    """The newest file of the table ends in its middle."""

    def truncate() -> bool:
        parts = json.loads((at.stage.features / "manifest.json").read_text())["parts"]
        of_rows = [part for part in parts if part["interval_seconds"] == BASE_INTERVAL_SECONDS]
        files = list((at.stage.features / of_rows[-1]["folder"]).glob("*.parquet"))
        # Merged meanwhile, or so soon that the rows before those of this file are of the start, which is hours ago.
        if len(of_rows) < _LEAST_PARTS or not files:
            return False
        with suppress(FileNotFoundError):
            os.truncate(files[0], files[0].stat().st_size // 2)
            return True
        return False

    _until(truncate)


def sample_corrupt(at: Blow) -> None:
    """A file of samples that is none."""
    name = f"corrupt-{at.dice.randrange(10**9)}.parquet"
    folder = at.stage.data / "samples" / f"date={at.stage.clock.now():%Y-%m-%d}"
    (folder / f".{name}").write_bytes(at.dice.randbytes(4096))
    (folder / f".{name}").rename(folder / name)


def message_after_9999(at: Blow) -> None:
    """A sample of the year 10000 arrives on the topic."""
    table = arrow_table(at.stage.fleet.samples_of(at.stage.fleet.names[0], at.stage.clock.now()))
    beyond = pa.array([253_402_300_800_000_000] * table.num_rows, pa.timestamp("us", tz="UTC"))
    table = table.set_column(table.column_names.index("sampled_at"), table.schema.field("sampled_at"), beyond)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    _send(at.stage, bytes(sink.getvalue()))


def message_huge(at: Blow) -> None:
    """As many bytes as a broker takes, which mean nothing, arrive on the topic."""
    _send(at.stage, at.dice.randbytes(_HUGE_BYTES))


def collector_hangs(at: Blow) -> None:
    """A process of the collector is frozen."""
    _freeze(at, at.dice.choice(at.stage.roles()["collectors"]), ended_after=COLLECTOR_HUNG_AFTER_SECONDS)


def row_ahead(at: Blow) -> None:
    """A group's sample is 20 minutes ahead of the clock; the group is refused until the clock has reached it."""
    victim = at.dice.choice([name for name in at.stage.fleet.names if name not in at.stage.fleet.dead])
    minute = at.stage.clock.now() + _AHEAD
    for batch in batches_of(list(at.stage.fleet.samples_of(victim, minute))[:2]):
        _send(at.stage, batch.value)
    _until(lambda: at.stage.clock.now() > minute + timedelta(minutes=1))


def requests_half_sent(at: Blow) -> None:
    """Sixty callers send half of a request each, and wait."""
    url = httpx2.URL(at.stage.url)
    with ExitStack() as ends:
        for _ in range(_HALVES):
            with suppress(OSError):  # those that are too many are turned away
                caller = ends.enter_context(socket.create_connection((str(url.host), url.port or 80), timeout=5))
                caller.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
        at.last()


def document_unreadable(at: Blow) -> None:
    """The newest decision of a group is no document any more."""
    words = "UPDATE decisions SET document = '{}' WHERE newest AND cluster = :cluster AND \"group\" = :group"
    with at.stage.engine.begin() as connection:
        connection.execute(sa.text(words), {"cluster": FLEET, "group": at.dice.choice(at.stage.fleet.names)})


def broker_restarted(at: Blow) -> None:
    """The only broker ends, in order or by SIGKILL, is away for some seconds, and starts again."""
    at.stage.broker.stop(at.dice.choice([signal.SIGTERM, signal.SIGKILL]))
    at.last()
    at.stage.broker.start()
    at.stage.broker.wait_until_open()
    wait_for_coordinator(at.stage.broker.address)


def spark_killed(at: Blow) -> None:
    """Spark's JVM is killed; the fault is over when rows come again."""
    for machine in _machines(at.stage):
        machine.kill()
    _rows_again(at.stage)


def spark_frozen(at: Blow) -> None:
    """Spark's JVM is frozen; the fault is over when rows come again."""
    _freeze(at, at.dice.choice(_machines(at.stage)), ended_after=SPARK_HUNG_AFTER_SECONDS)
    _rows_again(at.stage)


def groups_die(at: Blow) -> None:
    """A real group is deleted with its members, if another one is left, and the samples of a group of the fleet end."""
    alive = [name for name in at.stage.real.names if name not in at.stage.real.dead]
    if len(alive) > 1:
        at.stage.real.die(at.dice.choice(alive))
    at.stage.fleet.dead.add(at.dice.choice([name for name in at.stage.fleet.names if name not in at.stage.fleet.dead]))


def readers_storm(at: Blow) -> None:
    """Forty readers ask for the metrics at once, five times each."""

    def read() -> None:
        with httpx2.Client(base_url=at.stage.url, timeout=60) as client:
            for _ in range(5):
                try:
                    at.stage.seen.statuses[str(client.get("/metrics").status_code)] += 1
                except httpx2.HTTPError as error:
                    at.stage.seen.statuses[type(error).__name__] += 1

    readers = [threading.Thread(target=read) for _ in range(_STORM)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


FAULTS = tuple(
    Fault(strike.__name__, (strike.__doc__ or "").strip(), strike)
    for strike in (
        postgres_restarted,
        features_away,
        part_truncated,
        sample_corrupt,
        message_after_9999,
        message_huge,
        collector_hangs,
        row_ahead,
        requests_half_sent,
        document_unreadable,
        broker_restarted,
        spark_killed,
        spark_frozen,
        groups_die,
        readers_storm,
    )
)


def _machines(stage: Stage) -> list[psutil.Process]:
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = stage.roles().get("Spark's JVM", [])
        return bool(found)

    _until(look)
    return found


def _freeze(at: Blow, process: psutil.Process, *, ended_after: float) -> None:
    """Freeze a process for some seconds, or in the long form until lagcast has ended it."""
    process.suspend()
    if at.short:
        at.last()
        with suppress(psutil.NoSuchProcess):
            process.resume()
        return
    _until(lambda: _has_ended(process), seconds=ended_after + _TO_END_SECONDS)


def _has_ended(process: psutil.Process) -> bool:
    """True also for one that waits for its new parent to ask for its result."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _rows_again(stage: Stage) -> None:
    before = stage.version()
    _until(lambda: stage.version() > before)


def _send(stage: Stage, value: bytes) -> None:
    """A message on the topic of samples. Errors: TimeoutError."""
    producer = Producer({"bootstrap.servers": stage.broker.address})
    producer.produce(SAMPLES_TOPIC, value, FLEET, headers=[(VERSION_HEADER, SCHEMA_VERSION)])
    _until(partial(_is_flushed, producer))


def _is_flushed(producer: Producer) -> bool:
    return producer.flush(1.0) == 0


def _until(holds: Callable[[], object], *, seconds: float = _TO_END_SECONDS) -> None:
    """Check repeatedly. Errors: TimeoutError."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            message = f"a fault is not over after {seconds:.0f} s"
            raise TimeoutError(message)
        time.sleep(0.1)
