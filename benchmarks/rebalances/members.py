"""Members of consumer groups in processes of their own, Java's and librdkafka's, that take the same commands.

    python -m benchmarks.rebalances.members BOOTSTRAP LOG      reads the commands from standard input

The commands and the log are those of `tests/live/harness/java/BatchMembers.java`.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from confluent_kafka import Consumer, Message

Client = Literal["java", "librdkafka"]

# Of both clients; Kafka's default is 45 s, too long to wait for often in a benchmark of a quarter of an hour.
SESSION_SECONDS = 10.0
MOST_RECORDS = 500
# Kubernetes' own terminationGracePeriodSeconds.
GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOrder:
    """A new member: `protocol` is `consumer` or an assignor; a batch takes its seconds and those of its records.

    `settings` are its client's own, and win over those that all members have. `max.poll.records` is read for every
    client.
    """

    name: str
    group: str
    topic: str
    protocol: str
    batch_seconds: float
    record_seconds: float = 0.0
    instance: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The line that starts it."""
        batch, record = round(1e3 * self.batch_seconds), round(1e6 * self.record_seconds)
        words = ("start", self.name, self.group, self.topic, self.protocol, batch, record, self.instance or "-")
        return " ".join(map(str, (*words, *(f"{key}={value}" for key, value in self.settings.items()))))


class Host:
    """A process with members of one client; if it is killed, all of them leave ungracefully."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        with errors.open("ab") as said:
            self._process = subprocess.Popen(  # noqa: S603  # our own programs
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
            )
        if self._process.stdout is None or self._process.stdout.readline().strip() != "ready":
            message = f"a host of members did not start: {errors.read_text()[-2000:]}"
            raise RuntimeError(message)

    def start(self, order: MemberOrder) -> None:
        """Make a member join."""
        self._say(order.words)

    def close(self, name: str) -> None:
        """Make a member leave after its batch, with LeaveGroup if it is not static."""
        self._say(f"close {name}")

    def kill(self) -> None:
        """Send SIGKILL, while its members work."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def end(self) -> None:
        """Make all members leave, and wait for it; the process is killed if that takes longer than half a minute."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._wait_and_kill()

    def terminate(self) -> None:
        """Send SIGTERM, as a kubelet does, then SIGKILL after the grace period; librdkafka members send LeaveGroup."""
        self._process.terminate()
        self._wait_and_kill()

    def _wait_and_kill(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE_SECONDS)
        self.kill()

    def _say(self, words: str) -> None:
        if self._process.stdin is None:
            message = "the host of members takes no words"
            raise RuntimeError(message)
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()


def host(client: Client, bootstrap: str, folder: Path, *, jars: Path, classes: Path) -> Host:
    """A host of members of that client, whose batches are written to `folder`/batches.log."""
    log = folder / "batches.log"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = {
        "java": ["java", "-Xmx512m", quiet, "-cp", f"{jars}/*:{classes}", "BatchMembers", bootstrap, str(log)],
        "librdkafka": [sys.executable, "-m", __name__, bootstrap, str(log)],
    }
    return Host(command[client], folder / f"{client}.err")


def serve(bootstrap: str, log: Path) -> None:
    """Run a librdkafka host until its standard input ends, or SIGTERM comes."""
    # Appended by one write each, so that lines of several members and processes stay whole, and remain after a kill.
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    run_members(lambda words, closing: work(bootstrap, out, words, closing))


def run_members(member: Callable[[Sequence[str], threading.Event], None]) -> None:
    """Start and close members by the commands on standard input, until it ends or SIGTERM comes."""
    # The exception of Ctrl-C ends a waiting read of standard input.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    members: dict[str, tuple[threading.Thread, threading.Event]] = {}
    print("ready", flush=True)
    with suppress(KeyboardInterrupt):
        for line in sys.stdin:
            order, *words = line.split()
            if order == "start":
                closing = threading.Event()
                thread = threading.Thread(target=member, args=(words, closing))
                members[words[0]] = thread, closing
                thread.start()
            else:
                members.pop(words[0])[1].set()
    for _, closing in members.values():
        closing.set()
    for thread, _ in members.values():
        thread.join()


def work(bootstrap: str, out: int, words: Sequence[str], closing: threading.Event) -> None:
    """Run one member until `closing` is set."""
    name, group, topic, protocol, batch_milliseconds, record_microseconds, instance, *own = words
    settings: dict[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
    }
    if protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings |= {"partition.assignment.strategy": protocol, "session.timeout.ms": round(1e3 * SESSION_SECONDS)}
    if instance != "-":
        settings["group.instance.id"] = instance
    settings |= dict(setting.split("=", 1) for setting in own)
    most_records = int(settings.pop("max.poll.records", MOST_RECORDS))
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not closing.is_set():
        messages = [message for message in consumer.consume(most_records, timeout=0.1) if message.error() is None]
        if messages:
            begin = milliseconds()
            time.sleep(int(batch_milliseconds) / 1e3 + len(messages) * int(record_microseconds) / 1e6)
            os.write(out, f"{name} {group} {begin} {milliseconds()} {parts_of(messages)}\n".encode())
    consumer.close()


def parts_of(messages: Sequence[Message]) -> str:
    """`PARTITION:FIRST:LAST:PRODUCED_MS` for each partition of a batch."""
    firsts: dict[int, Message] = {}
    lasts: dict[int, Message] = {}
    for message in messages:
        firsts.setdefault(message.partition() or 0, message)
        lasts[message.partition() or 0] = message
    return " ".join(
        f"{number}:{first.offset()}:{lasts[number].offset()}:{first.timestamp()[1]}" for number, first in firsts.items()
    )


def milliseconds() -> int:
    """The clock that the messages' time stamps come from."""
    return round(1e3 * time.time())  # noqa: TID251  # Java's members write the same clock down


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
