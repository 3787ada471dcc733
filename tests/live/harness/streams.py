"""Processes of Kafka Streams applications that keep every record, the records that they keep, and what they wrote down.

For the live tests and for benchmarks.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.rebalances.measure import ProcessedBatch, batches_of

KEY_BYTES = 8
# As many records as a producer may hold before it is waited for.
_AT_A_TIME = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsOrder:
    """A process of an application: its own name, the topic that it reads, its settings, and options of its JVM."""

    name: str
    application: str
    topic: str
    settings: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()


class StreamsProcess:
    """One process of `java/StatefulStreams.java`, whose lines are in `folder`/batches.log beside those of all others.

    `state` is its state directory. `stop` is what a kubelet does at first, `kill` what it does at last.
    """

    def __init__(self, order: StreamsOrder, *, bootstrap: str, folder: Path, jars: Path, classes: Path) -> None:
        self.state = folder / "state" / order.name
        words = (bootstrap, order.application, order.topic, str(self.state), str(folder / "batches.log"), order.name)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = ["java", "-Xmx160m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", quiet, *order.java_options]
        command += ["-cp", f"{jars}/*:{classes}", "StatefulStreams", *words, "0"]
        with (folder / f"{order.name}.err").open("ab") as said:
            self._process = subprocess.Popen(
                [*command, *(f"{key}={value}" for key, value in order.settings.items())], stdout=said, stderr=said
            )

    def stores_created_at(self) -> list[float]:
        """When the stores on its disk were created, seconds since 1970, oldest first: one for each copy of a task."""
        return sorted(identity.stat().st_mtime for identity in self.state.glob("**/rocksdb/*/IDENTITY"))

    def stop(self) -> None:
        """Send SIGTERM, after which it closes in order; `wait` returns when it has."""
        self._process.terminate()

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        self._process.kill()
        self.wait()


class BatchLog:
    """What the processes that have a folder together have written down, by application."""

    def __init__(self, folder: Path) -> None:
        self._log, self._read = folder / "batches.log", 0
        self._batches: dict[str, list[ProcessedBatch]] = {}

    def of(self, application: str) -> Sequence[ProcessedBatch]:
        """All of an application until now, in the order in which they were written."""
        if self._log.exists():
            with self._log.open("rb") as log:
                log.seek(self._read)
                text = log.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            for batch in batches_of(whole.decode().splitlines(keepends=True)):
                self._batches.setdefault(batch.group, []).append(batch)
        return self._batches.get(application, [])


def produce_keyed(bootstrap: str, topic: str, count: int, *, partitions: int, value_bytes: int) -> None:
    """Records of as many keys, evenly over the partitions: state is as large as what was written, however compacted."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(count):
        key = f"{number:0{KEY_BYTES}}"
        producer.produce(topic, os.urandom(value_bytes), key, partition=number % partitions)
        producer.poll(0)
        if number % _AT_A_TIME == 0:
            producer.flush(60)
    left = producer.flush(60)
    assert left == 0, f"{left:,} of {count:,} records were not taken"


def restorer_of(name: str) -> str:
    """The client that restores state in a process whose `client.id` is its name."""
    return f"{name}-StateUpdater-1-restore-consumer"
