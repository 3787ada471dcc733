"""A real consumer group for the lab: its load, its replicas as local processes, and its observation from outside."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from api.schemas import Target
from collector.errors import AdapterError
from collector.kafka_admin import KafkaAdminCollector
from executor.errors import ScaleConflictError
from executor.plan import Act, Scale
from forecasting.units import FloatArray
from replay.plant import Observation
from replay.trace import Trace

PRODUCE_EVERY_SECONDS = 0.1
READ_BACK_SECONDS = 60.0


class Replica(Protocol):
    """A process that works for one replica."""

    def end(self) -> None:
        """Make the replica leave its group, and wait for it."""
        ...


Process = TypeVar("Process")


class Processes(Generic[Process]):
    """One consumer process for each pod that is ready; `follow` gets the list of pods whenever it may have changed.

    `make(pod)` starts the process of a pod and makes it join, `end(host)` makes it leave. A pod counts from its first
    listing until it is removed, or until its process has ended where it had one.
    """

    def __init__(self, make: Callable[[str], Process], end: Callable[[Process], None]) -> None:
        self._make, self._end_host = make, end
        self._since: dict[str, float] = {}
        self._running: dict[str, Future[Process]] = {}
        self._spent_seconds: list[float] = []
        self._leaving: list[Future[None]] = []
        # The number of processes that may start or leave at once.
        self._threads = ThreadPoolExecutor(16)

    def __len__(self) -> int:
        """The number of processes that run or are starting."""
        return len(self._running)

    def follow(self, pods: Mapping[str, bool]) -> None:
        """Keep a process for each of these pods that is ready, and none for others; the youngest end first."""
        for pod in [pod for pod in reversed(self._since) if pod not in pods]:
            self._leaving.append(self._threads.submit(self._end, self._since.pop(pod), self._running.pop(pod, None)))
        for pod, ready in pods.items():
            self._since.setdefault(pod, time.monotonic())
            if ready and pod not in self._running:
                self._running[pod] = self._threads.submit(self._make, pod)

    def end(self) -> float:
        """End all of them, and wait for it; returns the pod-seconds used."""
        self.follow({})
        for leaving in self._leaving:
            leaving.result()
        self._threads.shutdown()
        return sum(self._spent_seconds)

    def _end(self, began: float, starting: "Future[Process] | None") -> None:
        if starting is not None:
            self._end_host(starting.result())
        self._spent_seconds.append(time.monotonic() - began)


class LocalReplicas:
    """Replicas of one workload as processes of this machine; the port that an executor acts through.

    `make(number)` starts the process of one replica and makes it join. The youngest end first, and in order; each
    counts from the command that made it until its process has ended.
    """

    def __init__(self, make: Callable[[int], Replica]) -> None:
        self._processes = Processes[Replica](lambda pod: make(int(pod)), lambda host: host.end())
        self._names: list[str] = []
        self._made, self._version = 0, 0

    @property
    def count(self) -> int:
        """The desired number of replicas."""
        return len(self._names)

    def read(self, namespace: str, target: Target) -> Scale:
        """The scale of the workload; there is only one."""
        del namespace, target
        return Scale(replicas=self.count, resource_version=str(self._version))

    def apply(self, act: Act) -> None:
        """Start or end replicas. Errors: ScaleConflictError where the count was changed in between."""
        if act.scale.resource_version != str(self._version):
            message = f"version {act.scale.resource_version} is not the newest, which is {self._version}"
            raise ScaleConflictError(message)
        self.set(act.move.desired_replicas)

    def set(self, replicas: int) -> None:
        """Set the desired number of replicas; it is reached soon afterwards."""
        self._version += 1
        more = range(self._made, self._made + max(0, replicas - self.count))
        self._names = [*self._names[:replicas], *map(str, more)]
        self._made = more.stop
        self._processes.follow(dict.fromkeys(self._names, True))

    def end(self) -> float:
        """End all of them, and wait for it; returns the replica-seconds used."""
        return self._processes.end()


@contextmanager
def load(bootstrap: str, topic: str, trace: Trace, *, partitions: int) -> Iterator[threading.Event]:
    """Produces the messages of the trace once, from now on, each with its number, over the partitions in turn.

    Gives an event that is set when the trace is over.
    """
    producer, over, stop = Producer({"bootstrap.servers": bootstrap}), threading.Event(), threading.Event()

    def produce() -> None:
        began, sent, due = time.monotonic(), 0, 0.0
        before = began
        while not stop.wait(PRODUCE_EVERY_SECONDS):
            now = time.monotonic()
            if now - began >= trace.duration_seconds:
                break
            due += trace.rate_at(int(now - began)) * (now - before)
            before = now
            while sent < int(due):
                producer.produce(topic, str(sent).encode(), partition=sent % partitions)
                sent += 1
            producer.poll(0)
        producer.flush(10)
        over.set()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield over
    finally:
        stop.set()
        thread.join()


def seen(
    collector: KafkaAdminCollector, group: str, *, partitions: int, at: datetime, time_seconds: int, replicas: int
) -> Observation | None:
    """The group as the collector reads it now, stamped `at`; None where a partition has no value."""
    try:
        rows = sorted(collector.collect([group], now=at).samples, key=lambda row: row.partition)
    except AdapterError:
        return None
    if len(rows) < partitions:
        return None
    return Observation(
        at=at,
        time_seconds=time_seconds,
        replicas=replicas,
        ready_members=rows[0].members or 0,
        group_state=rows[0].group_state,
        end_offsets=np.array([row.end_offset for row in rows]),
        committed_offsets=np.array([row.committed_offset or 0 for row in rows]),
        group_protocol=rows[0].group_protocol,
        group_assignor=rows[0].group_assignor,
        static_members=rows[0].static_members,
        clients=rows[0].clients,
    )


def read_back(bootstrap: str, topic: str, *, partitions: int) -> Mapping[int, FloatArray]:
    """The time stamp of every message of the topic, in seconds since 1970, by partition and offset.

    Errors: TimeoutError where they did not come within a minute.
    """
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-reader", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ends = [reader.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(partitions)]
    stamps = {number: np.zeros(end) for number, end in enumerate(ends)}
    missing, until = sum(ends), time.monotonic() + READ_BACK_SECONDS
    while missing and time.monotonic() < until:
        for message in reader.consume(10_000, timeout=1.0):
            offset = message.offset() or 0
            if message.error() is None and offset < stamps[message.partition() or 0].size:
                stamps[message.partition() or 0][offset] = message.timestamp()[1] / 1e3
                missing -= 1
    reader.close()
    if missing:
        error = f"{missing:,} of {sum(ends):,} messages of {topic} were not read back in {READ_BACK_SECONDS:.0f} s"
        raise TimeoutError(error)
    return stamps
