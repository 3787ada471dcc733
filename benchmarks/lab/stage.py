"""The steps of every policy of a lab: a broker, a group that joins, the load, the drain, and the account."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.lab.account import Account, account
from benchmarks.lab.group import load, read_back, seen
from benchmarks.lab.policies import CAPACITY, PARTITIONS, Setting
from benchmarks.rebalances.expected import PROTOCOLS
from benchmarks.rebalances.measure import batches_of
from benchmarks.rebalances.members import Host, MemberOrder, host
from collector.kafka_admin import KafkaAdminCollector
from collector.meter import Interruption
from collector.watch import watch_forever
from forecasting.columns import BASE_INTERVAL_SECONDS
from replay.plant import Observation
from replay.sampling import Names
from tests.live.harness.broker import fetched_jars, running_brokers

MOST_DRAIN_SECONDS = 120.0
START_LIMIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The figures of a policy from `began_at` on, in seconds since 1970; `worked`: each member's number of batches."""

    policy: str
    began_at: float
    moves: int
    interruptions: tuple[Interruption, ...]
    account: Account
    worked: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class LabTopic:
    """An empty topic on a broker of its own, and the group that reads it; their files are in `folder`."""

    bootstrap: str
    setting: Setting
    names: Names
    folder: Path
    jars: Path
    _first_at: datetime | None = None

    @property
    def collector(self) -> KafkaAdminCollector:
        """A collector of that broker; each thread needs its own."""
        return KafkaAdminCollector(self.bootstrap, cluster=self.names.cluster)

    def member(self, name: str) -> Host:
        """Start the process of one more member, and make it join."""
        started = host("librdkafka", self.bootstrap, self.folder, jars=self.jars, classes=self.folder)
        started.start(
            MemberOrder(
                name=name,
                group=self.names.group,
                topic=self.names.group,
                protocol=PROTOCOLS[self.setting.world.protocol],
                batch_seconds=0.0,
                record_seconds=1.0 / CAPACITY,
            )
        )
        return started

    def wait_for_members(self, count: int) -> None:
        """Wait until the group is stable with so many members. Errors: TimeoutError after a minute."""
        collector, until = self.collector, time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < until:
            rows = collector.collect([self.names.group], now=clock()).samples
            if rows and rows[0].members == count and rows[0].group_state == "STABLE":
                return
            time.sleep(0.2)
        message = f"the group {self.names.group!r} did not have {count} members within {START_LIMIT_SECONDS:.0f} s"
        raise TimeoutError(message)

    def seen(self, collector: KafkaAdminCollector, at: datetime, *, replicas: int) -> Observation | None:
        """The group as it is now, stamped `at`; None where Kafka did not return every partition."""
        self._first_at = self._first_at or at
        return seen(
            collector,
            self.names.group,
            partitions=PARTITIONS,
            at=at,
            time_seconds=round((at - self._first_at).total_seconds()),
            replicas=replicas,
        )


class Scaled(Protocol):
    """The owner of the members of a stage's group, which scales it."""

    def ready(self) -> None:
        """Start the first members, and finish all preparation before the load."""
        ...

    def follow(self, over: threading.Event) -> list[float]:
        """Scale until the load is over; returns the times of moves, in seconds since 1970."""
        ...

    def end(self) -> float:
        """End all members; returns the replica-seconds used."""
        ...


def play_policy(
    policy: str, setting: Setting, folder: Path, scaled: Callable[[LabTopic, ExitStack], Scaled]
) -> PolicyResult:
    """One policy from an empty topic to the last message; processes that `scaled` starts for it end with the stack."""
    jars = fetched_jars()
    names, found = Names(cluster="lab", group=f"lab-{policy}"), list[Interruption]()
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka"))
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(names.group, PARTITIONS, 1)])[names.group].result()
        stage = LabTopic(bootstrap=broker.address, setting=setting, names=names, folder=folder, jars=jars)
        group = scaled(stage, ends)
        group.ready()
        stop = threading.Event()
        watch = threading.Thread(
            target=watch_forever,
            args=(stage.collector, lambda: [names.group], found.append),
            kwargs={"clock": clock, "wait": stop.wait},
        )
        watch.start()
        ends.callback(stop.set)
        over = ends.enter_context(load(broker.address, names.group, setting.trace, partitions=PARTITIONS))
        began_at = clock().timestamp()
        moves_at = group.follow(over)
        drain(stage)
        stop.set()
        watch.join()
        replica_seconds = group.end()
        produced = read_back(broker.address, names.group, partitions=PARTITIONS)
    with (folder / "batches.log").open() as log:
        batches = batches_of(log)
    worked: dict[str, int] = {}
    for batch in batches:
        worked[batch.member] = worked.get(batch.member, 0) + 1
    return PolicyResult(
        policy=policy,
        began_at=began_at,
        moves=len(moves_at),
        interruptions=tuple(each for each in found if each.kind != "stall"),
        account=account(
            produced,
            batches,
            moves_at=moves_at,
            replica_seconds=replica_seconds,
            max_lag_seconds=setting.settings.max_lag_seconds,
        ),
        worked=worked,
    )


def drain(stage: LabTopic) -> None:
    """Wait until every message is committed, for two minutes at most: messages not processed by then count as lost."""
    collector, until = stage.collector, time.monotonic() + MOST_DRAIN_SECONDS
    while time.monotonic() < until:
        rows = collector.collect([stage.names.group], now=clock()).samples
        if rows and all((row.committed_offset or 0) >= row.end_offset for row in rows):
            return
        time.sleep(0.5)


def next_grid(now: datetime) -> datetime:
    """The next instant of the 15 s grid, at least a second away."""
    seconds = (now.timestamp() + 1.0) // BASE_INTERVAL_SECONDS + 1
    return datetime.fromtimestamp(seconds * BASE_INTERVAL_SECONDS, tz=UTC)


def clock() -> datetime:
    """The clock that messages are stamped by."""
    return datetime.now(UTC)  # noqa: TID251  # a process entry point
