"""The lab while it runs: a broker, the members of the groups, their load with its past, and lagcast beside them.

lagcast is `lagcast up --bootstrap ADDRESS` in a state folder of its own and on a free port. Nothing else is set.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.discovery.groups import DEPLOY_AT, DEPLOY_SECONDS, LabGroup
from benchmarks.discovery.judge import Reading, reading_of
from benchmarks.rebalances.members import Host, MemberOrder
from collector.errors import AdapterError
from collector.kafka_admin import KafkaAdminCollector
from tests.live.harness.broker import compiled, fetched_jars, running_brokers
from tests.live.harness.libraries import built_go_members

ROOT = Path(__file__).parents[2]
# More than the half hour of produce rates that the first forecast takes, as topics of a cluster that exists have.
PAST_MINUTES = 45
LOOK_SECONDS = 5.0
PRODUCE_EVERY_SECONDS = 0.2
# Each transaction leaves a marker in each partition, which counts as a message where offsets are read.
TRANSACTION_SECONDS = 5.0
START_LIMIT_SECONDS = 120.0
# A backlog of so much work at each look of a whole minute shows what the replicas do at most.
EXPERIMENT_LAG_SECONDS, EXPERIMENT_SECONDS = 5.0, 60.0
KEYS = 2_400
VALUE_BYTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group as the lab itself reads it from Kafka, at a minute of the lab."""

    minute: float
    members: int
    lag: float
    committed: float


@dataclass(slots=True, kw_only=True)
class Seen:
    """All that was seen of one group: what lagcast told, and what the lab read itself."""

    readings: list[Reading] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    deployed_at_minute: float | None = None
    state_bytes: float | None = None


class Members:
    """The members of all groups; those of one client are in one process."""

    def __init__(self, groups: Sequence[LabGroup], bootstrap: str, folder: Path, ends: ExitStack) -> None:
        self._hosts: dict[str, Host] = {}
        for client in sorted({group.client for group in groups}):
            self._hosts[client] = Host(command(client, bootstrap, folder), folder / f"{client}.err")
            ends.callback(self._hosts[client].kill)

    def start(self, group: LabGroup) -> None:
        """Make all replicas of a group join."""
        for order in orders(group):
            self._hosts[group.client].start(order)

    def close(self, group: LabGroup) -> None:
        """Make all replicas of a group leave in order."""
        for order in orders(group):
            self._hosts[group.client].close(order.name)


def orders(group: LabGroup) -> list[MemberOrder]:
    """One order for each replica."""
    return [
        MemberOrder(
            name=f"{group.name}-{number}",
            group=group.name,
            topic=",".join(group.topic_names),
            protocol=group.protocol,
            batch_seconds=0.0,
            record_seconds=group.record_seconds,
            instance=f"{group.name}-{number}" if group.static else None,
            settings=group.settings,
        )
        for number in range(group.replicas)
    ]


def command(client: str, bootstrap: str, folder: Path) -> list[str]:
    """The command of the process that has the members of a client. Errors: RuntimeError where it cannot be had."""
    quiet = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    java = ["java", "-Xmx512m", *quiet, "-cp", f"{fetched_jars()}/*:{folder / 'classes'}"]
    if client == "java":
        return [*java, "BatchMembers", bootstrap, os.devnull]
    if client == "streams":
        return [*java, "StreamsMembers", bootstrap, str(folder / "state")]
    if client == "librdkafka":
        return [sys.executable, "-m", "benchmarks.rebalances.members", bootstrap, os.devnull]
    if client == "kafka-python":
        return [sys.executable, "-m", "benchmarks.discovery.kafka_python_members", bootstrap]
    return [str(built_go_members()), client, bootstrap]


class Load:
    """The produce rates of all groups: a past with time stamps, and messages from now on until it is closed."""

    def __init__(self, groups: Sequence[LabGroup], bootstrap: str, *, day_minutes: float) -> None:
        self._groups, self._bootstrap, self._day_minutes = groups, bootstrap, day_minutes
        # Messages that are sent again, as after a topic was made, keep their order: Kafka finds an instant by it.
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
        self._began = time.time()  # noqa: TID251  # the clock that messages are stamped by
        self._sent: dict[str, int] = {}
        self._due_rest: dict[str, float] = {}
        self._value = bytes(VALUE_BYTES)

    def past(self, minutes: int, *, unread_seconds: int = 0) -> None:
        """Write messages of so many minutes before now, each stamped with its time, and commit them for the groups.

        Those of the last `unread_seconds` are not committed: the groups begin with a backlog.
        """
        now = time.time()  # noqa: TID251  # the clock that messages are stamped by
        for group in self._groups:
            self._write(group, now, range(-60 * minutes, -unread_seconds))
            commit_all(self._bootstrap, group)
            self._write(group, now, range(-unread_seconds, 0))

    def _write(self, group: LabGroup, now: float, seconds: range) -> None:
        """Write the messages of these seconds, counted from now."""
        for second in seconds:
            due = self._due(group, now + second, 1.0)
            for number in range(due):
                self._one(self._producer, group, timestamp=round(1e3 * (now + second + number / due)))
        self._producer.flush(60)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Produce until the block ends."""
        stop = threading.Event()
        plain = [group for group in self._groups if not group.transactional]
        runs = [(plain, self._producer)]
        runs += [([group], self._transactional(group)) for group in self._groups if group.transactional]
        threads = [threading.Thread(target=self._run, args=(*run, stop)) for run in runs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _transactional(self, group: LabGroup) -> Producer:
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": group.name})
        producer.init_transactions(30)
        return producer

    def _run(self, groups: Sequence[LabGroup], producer: Producer, stop: threading.Event) -> None:
        transactional = any(group.transactional for group in groups)
        every = TRANSACTION_SECONDS if transactional else PRODUCE_EVERY_SECONDS
        before = time.time()  # noqa: TID251  # the hour of the load
        while not stop.wait(every):
            now = time.time()  # noqa: TID251
            if transactional:
                producer.begin_transaction()
            for group in groups:
                for _ in range(self._due(group, now, now - before)):
                    self._one(producer, group)
            if transactional:
                producer.commit_transaction(30)
            producer.poll(0)
            before = now
        producer.flush(10)

    def _due(self, group: LabGroup, at: float, seconds: float) -> int:
        """The number of messages that are due by now, whose fractions are kept."""
        share = (at - self._began) / 60.0 / self._day_minutes % 1.0
        total = self._due_rest.get(group.name, 0.0) + group.messages_per_second(share) * seconds
        self._due_rest[group.name] = total % 1.0
        return int(total)

    def _one(self, producer: Producer, group: LabGroup, *, timestamp: int = 0) -> None:
        number = self._sent.get(group.name, 0)
        self._sent[group.name] = number + 1
        topic = group.topic_names[number // group.partitions % group.topics]
        key = f"{number % KEYS}" if group.keyed else None
        while True:
            try:
                producer.produce(topic, self._value, key, partition=number % group.partitions, timestamp=timestamp)
            except BufferError:
                producer.poll(0.1)
            else:
                return


def commit_all(bootstrap: str, group: LabGroup) -> None:
    """Commit the ends of its topics for a group that has no members yet."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group.name, "enable.auto.commit": False})
    places = [TopicPartition(topic, number) for topic in group.topic_names for number in range(group.partitions)]
    for place in places:
        place.offset = reader.get_watermark_offsets(place)[1]
    reader.commit(offsets=places, asynchronous=False)
    reader.close()


class Lagcast:
    """`lagcast up` as a process, with nothing set, and what it tells by REST."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._log = folder / "lagcast.log"
        words = ["up", "--bootstrap", bootstrap, "--state-dir", str(folder / "lagcast"), "--port", "0"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LAGCAST_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own command
                [sys.executable, "-m", "cli.main", *words], stdout=log, stderr=log, env=environment
            )

    def latest(self) -> Mapping[str, Mapping[str, Any]]:
        """The newest decision on each group; none while it does not answer. Errors: RuntimeError where it has ended."""
        if self._process.poll() is not None:
            message = f"lagcast up ended: {self._log.read_text()[-2000:]}"
            raise RuntimeError(message)
        found = re.search(r"serves (http://\S+?);", self._log.read_text())
        if found is None:
            return {}
        try:
            page = _json(f"{found[1]}/api/v1/groups?limit=100")
            return {
                row["group_id"]: _json(f"{found[1]}/api/v1/groups/{row['group_key']}")["latest"]
                for row in page["groups"]
            }
        except OSError:
            return {}

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _json(url: str) -> Any:  # noqa: ANN401  # JSON
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310  # loopback
        return json.load(answer)


def played(
    groups: Sequence[LabGroup],
    folder: Path,
    *,
    minutes: float,
    day_minutes: float,
    loads: list[float],
    enough: Callable[[Mapping[str, Seen]], bool] = lambda _: False,
) -> dict[str, Seen]:
    """Run the lab, from a broker without topics to the last reading, or to the one that is `enough`.

    The mean loads of the machine are added to `loads`. Errors: TimeoutError where members did not join; RuntimeError
    where lagcast has ended, or members have.
    """
    classes = folder / "classes"
    classes.mkdir()
    jars = fetched_jars()
    compiled(jars, classes)
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka"))
        admin = AdminClient({"bootstrap.servers": broker.address})
        topics = [NewTopic(topic, group.partitions, 1) for group in groups for topic in group.topic_names]
        for created in admin.create_topics(topics).values():
            created.result()
        load = Load(groups, broker.address, day_minutes=day_minutes)
        load.past(PAST_MINUTES)
        ends.enter_context(load.live())
        members = Members(groups, broker.address, folder, ends)
        for group in groups:
            members.start(group)
        collector = KafkaAdminCollector(broker.address, cluster="lab")
        _wait_for_members(collector, groups)
        lagcast = Lagcast(broker.address, folder)
        ends.callback(lagcast.end)
        seen = {group.name: Seen() for group in groups}
        _follow(lagcast, collector, members, groups, seen, minutes=minutes, loads=loads, enough=enough)
        gone = [group for group in groups if seen[group.name].looks[-1].members != group.replicas]
        if gone:
            said = "; ".join(f"{each.name}: {(folder / f'{each.client}.err').read_text()[-500:]}" for each in gone)
            message = f"members have left their groups: {said}"
            raise RuntimeError(message)
        data = folder / "kafka" / "node-1" / "data"
        for group in groups:
            if group.truth.get("stateful"):
                logs = data.glob(f"{group.name}-*-changelog-*/*.log")
                seen[group.name].state_bytes = float(sum(log.stat().st_size for log in logs))
    return seen


def _wait_for_members(collector: KafkaAdminCollector, groups: Sequence[LabGroup]) -> None:
    """Errors: TimeoutError with what was seen last."""
    until, wanted = time.monotonic() + START_LIMIT_SECONDS, {group.name: group.replicas for group in groups}
    found: dict[str, int] = {}
    while found != wanted:
        if time.monotonic() > until:
            message = f"after {START_LIMIT_SECONDS:.0f} s the groups have these members: {found}"
            raise TimeoutError(message)
        time.sleep(1.0)
        rows = collector.collect(list(wanted), now=_clock()).samples
        found = {row.group: row.members or 0 for row in rows if row.group_state == "STABLE"}


def _follow(
    lagcast: Lagcast,
    collector: KafkaAdminCollector,
    members: Members,
    groups: Sequence[LabGroup],
    seen: Mapping[str, Seen],
    *,
    minutes: float,
    loads: list[float],
    enough: Callable[[Mapping[str, Seen]], bool],
) -> None:
    began = time.monotonic()
    # Replicas leave one group after the other, so that not all start at once.
    deploys = [(60.0 * DEPLOY_AT * minutes + 30.0 * place, group) for place, group in enumerate(_deployed(groups))]
    starts: list[tuple[float, LabGroup]] = []
    told: dict[str, str] = {}
    while (passed := time.monotonic() - began) < 60.0 * minutes and not enough(seen):
        for due in [due for due in deploys if due[0] <= passed]:
            deploys.remove(due)
            members.close(due[1])
            seen[due[1].name].deployed_at_minute = passed / 60.0
            starts.append((passed + DEPLOY_SECONDS, due[1]))
        for start in [start for start in starts if start[0] <= passed]:
            starts.remove(start)
            members.start(start[1])
        for name, latest in lagcast.latest().items():
            if name in seen:
                seen[name].readings.append(reading_of(latest, minute=passed / 60.0))
                _say(told, name, seen[name].readings[-1])
        for name, look in _looks(collector, groups, minute=passed / 60.0):
            seen[name].looks.append(look)
        loads.append(os.getloadavg()[0])
        time.sleep(LOOK_SECONDS)


def _deployed(groups: Sequence[LabGroup]) -> list[LabGroup]:
    return [group for group in groups if group.day == "deploy"]


def _looks(collector: KafkaAdminCollector, groups: Sequence[LabGroup], *, minute: float) -> Iterator[tuple[str, Look]]:
    try:
        samples = collector.collect([group.name for group in groups], now=_clock()).samples
    except AdapterError:
        return
    for group in groups:
        rows = [row for row in samples if row.group == group.name]
        if rows:
            ends, committed = sum(row.end_offset for row in rows), sum(row.committed_offset or 0 for row in rows)
            lag = float(ends - committed)
            yield group.name, Look(minute=minute, members=rows[0].members or 0, lag=lag, committed=float(committed))


def _say(told: dict[str, str], name: str, reading: Reading) -> None:
    """A line on stderr where something else is told of the group than before."""
    capacity = reading.figures.get("capacity")
    words = reading.reason if capacity is None else f"advice, capacity {capacity.source}"
    if told.get(name) != words:
        told[name] = words
        value = "" if capacity is None else f" {capacity.value:.1f}"
        print(f"{reading.minute:5.1f} min {name}: {words}{value}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Minutes in which a group had more to do than it could: how many, the first, and what a replica did in them."""

    minutes: float
    first_minute: float
    messages_per_second_per_replica: float


def experiment_of(looks: Sequence[Look], group: LabGroup) -> Experiment | None:
    """What the load and the replicas' replacement have shown; None without a whole minute of backlog."""
    least = EXPERIMENT_LAG_SECONDS * group.capacity * group.replicas
    stretches: list[list[Look]] = [[]]
    for look in looks:
        if look.lag >= least and look.members == group.replicas:
            stretches[-1].append(look)
        elif stretches[-1]:
            stretches.append([])
    whole = [each for each in stretches if each and 60.0 * (each[-1].minute - each[0].minute) >= EXPERIMENT_SECONDS]
    if not whole:
        return None
    minutes = sum(each[-1].minute - each[0].minute for each in whole)
    done = sum(each[-1].committed - each[0].committed for each in whole)
    return Experiment(
        minutes=minutes,
        first_minute=whole[0][0].minute + EXPERIMENT_SECONDS / 60.0,
        messages_per_second_per_replica=done / (60.0 * minutes) / group.replicas,
    )


def _clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # a process entry point
