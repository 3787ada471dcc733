"""The groups of the soak: some with real members on Kafka, and a fleet whose samples arrive on a topic.

The samples of the fleet are those that a collector of another Kafka would have sent, a simulated minute in a message.
"""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.soak.clock import Clock
from collector.sample import OffsetSample
from collector.sinks import write_samples
from collector.topic import SamplePublisher
from forecasting.columns import BASE_INTERVAL_SECONDS

FLEET, REAL = "fleet", "real"
SAMPLES_TOPIC = "soak.samples"
PARTITIONS, MEMBERS = 2, 2
_MINUTE = timedelta(minutes=1)
_ROUND = timedelta(seconds=BASE_INTERVAL_SECONDS)
# A collector reads a second before the end of the interval.
_LEAD = timedelta(seconds=1)
_LEVEL = 200.0
_DAY_SECONDS = 86_400.0


def fleet_names(count: int) -> list[str]:
    """The groups of the fleet."""
    return [f"fleet-{number:03d}" for number in range(count)]


class Fleet:
    """Sends the samples of the groups that live, as the simulated time passes; they exist since `since`."""

    def __init__(self, bootstrap: str, names: Sequence[str], *, since: datetime) -> None:
        self.names, self.dead = tuple(names), set[str]()
        self._bootstrap, self._since = bootstrap, since

    def write_past(self, samples_dir: Path, *, until: datetime) -> None:
        """Write the samples of the time before the soak, a file for each hour."""
        at = self._since
        while at < until:
            minutes = [at + number * _MINUTE for number in range(min(60, round((until - at) / _MINUTE)))]
            rows = (row for minute in minutes for name in self.names for row in self.samples_of(name, minute))
            write_samples(rows, samples_dir)
            at += timedelta(hours=1)

    @contextmanager
    def sending(self, clock: Clock) -> Iterator[None]:
        """Send a message for each simulated minute until the block ends."""
        stop = threading.Event()
        with SamplePublisher(self._bootstrap, SAMPLES_TOPIC, client_config={}) as publish:
            sent_until = clock.shown_at

            def send() -> None:
                nonlocal sent_until
                while not stop.wait(0.1):
                    while sent_until + _MINUTE <= clock.now() and not stop.is_set():
                        alive = [name for name in self.names if name not in self.dead]
                        publish([row for name in alive for row in self.samples_of(name, sent_until)])
                        sent_until += _MINUTE

            thread = threading.Thread(target=send)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()

    def samples_of(self, name: str, minute: datetime) -> Iterator[OffsetSample]:
        """The samples of a group in the minute from `minute` on."""
        return _samples_of(name, minute, since=self._since)


def _samples_of(name: str, minute: datetime, *, since: datetime) -> Iterator[OffsetSample]:
    """The samples of a group in the minute from `minute` on; its offsets count from `since`."""
    number = int(name.rpartition("-")[2])
    level = _LEVEL * (1 + number % 7)
    for place in range(1, int(_MINUTE / _ROUND) + 1):
        at = minute + place * _ROUND - _LEAD
        produced = level * _seconds_of_load((at - since).total_seconds(), phase=number / 24.0)
        for partition in range(PARTITIONS):
            end = int(produced / PARTITIONS) + 1_000_000
            yield OffsetSample(
                cluster=FLEET,
                group=name,
                topic=name,
                partition=partition,
                sampled_at=at,
                end_offset=end,
                committed_offset=end - int(level),
                log_start_offset=0,
                group_state="STABLE",
                group_protocol="consumer",
                group_assignor="range",
                members=MEMBERS,
                static_members=0,
                clients="java",
            )


def _seconds_of_load(seconds: float, *, phase: float) -> float:
    """The integral of a day's wave between 0.5 and 1.5, from 0 to `seconds`."""
    turn = 2.0 * math.pi / _DAY_SECONDS
    return seconds + 0.5 / turn * (math.cos(2.0 * math.pi * phase) - math.cos(turn * seconds + 2.0 * math.pi * phase))


class RealGroups:
    """Groups with members on Kafka, a topic each, and a producer; in one thread."""

    def __init__(self, bootstrap: str, names: Sequence[str]) -> None:
        self.names, self.dead = tuple(names), set[str]()
        self._bootstrap = bootstrap
        self._dying = set[str]()
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Their topics, members and messages, until the block ends."""
        for created in self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in self.names]).values():
            created.result()
        stop, began = threading.Event(), threading.Event()
        thread = threading.Thread(target=self._work, args=(stop, began))
        thread.start()
        began.wait()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def die(self, name: str) -> None:
        """End the members of a group, and delete it. Errors: TimeoutError."""
        self._dying.add(name)
        until = time.monotonic() + 30.0
        while name not in self.dead:
            _wait(until, f"the members of {name} do not end")
        while not self._is_deleted(name):
            _wait(until, f"{name} is not deleted")

    def _is_deleted(self, name: str) -> bool:
        try:
            self._admin.delete_consumer_groups([name], request_timeout=5)[name].result()
        except KafkaException as error:
            return bool(error.args[0].name() == "GROUP_ID_NOT_FOUND")
        return True

    def _work(self, stop: threading.Event, began: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        settings = {"bootstrap.servers": self._bootstrap, "auto.offset.reset": "earliest"}
        # Half a minute of the simulated time.
        settings["auto.commit.interval.ms"] = "500"
        members = {name: [Consumer(settings | {"group.id": name}) for _ in range(MEMBERS)] for name in self.names}
        for name, of_group in members.items():
            for member in of_group:
                member.subscribe([name])
        while not stop.wait(0.1):
            for name in self._dying - self.dead:
                for member in members.pop(name):
                    member.close()
                self.dead.add(name)
            for name in members:
                for partition in range(PARTITIONS):
                    producer.produce(name, b"m", partition=partition)
            producer.poll(0)
            for member in (member for of_group in members.values() for member in of_group):
                member.consume(100, timeout=0)
            began.set()
        for member in (member for of_group in members.values() for member in of_group):
            member.close()
        producer.flush(5)


def _wait(until: float, message: str) -> None:
    if time.monotonic() > until:
        raise TimeoutError(message)
    time.sleep(0.1)
