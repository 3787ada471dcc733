"""Scalers on a real Kafka: the same compressed load, real replicas, one arm after the other.

    python benchmarks/lab.py --minutes 5 --protocol cooperative      or: make lab PROTOCOL=cooperative MINUTES=5

Each arm has a topic of 12 partitions on a broker on loopback, a producer that follows a stretch of the project's own
workload (an hour of it in a minute), and replicas that are processes of librdkafka consumers and take 1/60 s a message.
Every 15 s the arm looks at what the collector reads and says how many replicas there should be: `fixed` as many as the
peak takes, `keda` by lag (5 s of a replica's work each, an HPA without `behavior`), `lagcast` through its session. The
table's figures come from time stamps, offsets and batches of messages; but replica-seconds are those of processes, and
rebalances are counted by the meter. Exit code 1 where a message was lost.

lagcast's forecast is at a disadvantage: an hour of past rows is all that it knows, and days of 24 minutes are none that
it looks for. What the lab judges is what moves really cost.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from decisions_page import table
from lab_account import Account, account
from lab_arms import ARMS, CAPACITY, PARTITIONS, Setting, rows_before, setting_of
from lab_group import LocalReplicas, load, read_back, seen
from rebalances_expected import PROTOCOLS
from rebalances_measure import batches_of
from rebalances_members import Host, MemberOrder, host

from api.schemas import Target
from collector.kafka_admin import KafkaAdminCollector
from collector.meter import Interruption
from collector.watch import watch_forever
from cost_model.price import Prices
from executor.plan import Act, Move
from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.units import MessagesPerSecond
from replay.plant import Observation
from replay.policies.policy import Policy
from replay.sampling import Names
from tests.live.broker import fetched_jars, running_brokers

MOST_DRAIN_SECONDS = 120.0
START_LIMIT_SECONDS = 60.0
WORKLOAD = Target(api_version="apps/v1", kind="Deployment", name="lab")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an arm came to."""

    arm: str
    moves: int
    interruptions: tuple[Interruption, ...]
    account: Account


def main() -> int:
    """Run all arms and print their table; 1 where a message was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long each arm runs (default 5)")
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), default="cooperative", help="of the group")
    arguments = parser.parse_args()
    setting = setting_of(arguments.protocol, seconds=round(60 * arguments.minutes))
    results = play(setting, tuple(ARMS))
    print(table_of(results, setting))
    return 1 if any(result.account.lost_messages for result in results) else 0


def play(setting: Setting, arms: Sequence[str]) -> list[Result]:
    """Each arm on a broker of its own, one after the other."""
    results = []
    for arm in arms:
        with tempfile.TemporaryDirectory() as name:
            results.append(play_one(arm, setting, Path(name)))
        print(f"{arm}: {results[-1].account}", file=sys.stderr, flush=True)
    return results


def play_one(arm: str, setting: Setting, folder: Path) -> Result:
    """One arm from an empty topic to the last message."""
    jars = fetched_jars()
    names, found = Names(cluster="lab", group=f"lab-{arm}"), list[Interruption]()
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka"))
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(names.group, PARTITIONS, 1)])[names.group].result()

        def make(number: int) -> Host:
            started = host("librdkafka", broker.address, folder, jars=jars, classes=folder)
            started.start(
                MemberOrder(
                    name=f"replica-{number}",
                    group=names.group,
                    topic=names.group,
                    protocol=PROTOCOLS[setting.world.protocol],
                    batch_seconds=0.0,
                    record_seconds=1.0 / CAPACITY,
                )
            )
            return started

        replicas = LocalReplicas(make)
        replicas.set(ARMS[arm].replicas(setting))
        collector = KafkaAdminCollector(broker.address, cluster=names.cluster)
        wait_for_members(collector, names.group, replicas.count)
        group = Group(setting=setting, names=names, collector=collector, replicas=replicas)
        policy = group.policy_of(arm)
        stop = threading.Event()
        watch = threading.Thread(
            target=watch_forever,
            args=(KafkaAdminCollector(broker.address, cluster=names.cluster), lambda: [names.group], found.append),
            kwargs={"clock": clock, "wait": stop.wait},
        )
        watch.start()
        over = ends.enter_context(load(broker.address, names.group, setting.trace, partitions=PARTITIONS))
        moves_at = group.follow(policy, over)
        drain(collector, names.group)
        stop.set()
        watch.join()
        replica_seconds = replicas.end()
        produced = read_back(broker.address, names.group, partitions=PARTITIONS)
    with (folder / "batches.log").open() as log:
        batches = batches_of(log)
    return Result(
        arm=arm,
        moves=len(moves_at),
        interruptions=tuple(each for each in found if each.kind != "stall"),
        account=account(
            produced,
            batches,
            moves_at=moves_at,
            replica_seconds=replica_seconds,
            max_lag_seconds=setting.settings.max_lag_seconds,
        ),
    )


@dataclass(slots=True, kw_only=True)
class Group:
    """The group that an arm scales, looked at on the 15 s grid of the clock."""

    setting: Setting
    names: Names
    collector: KafkaAdminCollector
    replicas: LocalReplicas
    _first_at: datetime | None = None

    def policy_of(self, arm: str) -> Policy:
        """The arm's policy, which has seen the hour before and one look at the idle group.

        That look is made before the load begins: lagcast reviews its forecasts with the first one, which takes seconds.
        """
        at = next_grid(clock())
        before = rows_before(self.setting.before, self.names, until=at, members=self.replicas.count)
        policy = ARMS[arm].policy(self.setting, before, self.names)
        time.sleep(max(0.0, (at - clock()).total_seconds()))
        sight = self._seen(at)
        if sight is not None:
            policy.decide(sight)
        return policy

    def follow(self, policy: Policy, over: threading.Event) -> list[float]:
        """Let the policy decide each 15 s until the load is over; when it moved, in seconds since 1970."""
        moves_at: list[float] = []
        at = next_grid(clock())
        while not over.wait(max(0.0, (at - clock()).total_seconds())):
            sight = self._seen(at)
            wanted = policy.decide(sight) if sight is not None else self.replicas.count
            if wanted != self.replicas.count:
                moves_at.append(clock().timestamp())
                carry_out(self.replicas, wanted)
            at = next_grid(clock())
        return moves_at

    def _seen(self, at: datetime) -> Observation | None:
        self._first_at = self._first_at or at
        return seen(
            self.collector,
            self.names.group,
            partitions=PARTITIONS,
            at=at,
            time_seconds=round((at - self._first_at).total_seconds()),
            replicas=self.replicas.count,
        )


def carry_out(replicas: LocalReplicas, wanted: int) -> None:
    """Move the workload through the port that the executor uses."""
    scale = replicas.read("lab", WORKLOAD)
    move = Move(
        recommendation_id="lab",
        group_id="lab",
        mode="apply",
        namespace="lab",
        target=WORKLOAD,
        seen_replicas=scale.replicas,
        seen_at=clock(),
        desired_replicas=wanted,
        through_zero=False,
    )
    replicas.apply(Act(move=move, scale=scale))


def longest_pause(interruptions: Sequence[Interruption]) -> str:
    """The longest mean stop that the meter saw, and by how much it may be off: commits each 5 s tell no better."""
    stopped = [each for each in interruptions if each.stops]
    if not stopped:
        return "-"
    longest = max(stopped, key=lambda each: each.pause_seconds)
    return f"{longest.pause_seconds:.1f} +/- {longest.resolution_seconds:.1f} s"


def wait_for_members(collector: KafkaAdminCollector, group: str, count: int) -> None:
    """Until the group is stable with so many members. Errors: TimeoutError after a minute."""
    until = time.monotonic() + START_LIMIT_SECONDS
    while time.monotonic() < until:
        rows = collector.collect([group], now=clock()).samples
        if rows and rows[0].members == count and rows[0].group_state == "STABLE":
            return
        time.sleep(0.2)
    message = f"the group {group!r} did not have {count} members within {START_LIMIT_SECONDS:.0f} s"
    raise TimeoutError(message)


def drain(collector: KafkaAdminCollector, group: str) -> None:
    """Until every message is committed, for two minutes at most: what is not done by then counts as lost."""
    until = time.monotonic() + MOST_DRAIN_SECONDS
    while time.monotonic() < until:
        rows = collector.collect([group], now=clock()).samples
        if rows and all((row.committed_offset or 0) >= row.end_offset for row in rows):
            return
        time.sleep(0.5)


def table_of(results: Sequence[Result], setting: Setting) -> str:
    """A row for each arm."""
    prices = Prices.from_replica_hour(setting.settings.replica_hour, capacity=MessagesPerSecond(CAPACITY))
    lines = []
    for result in results:
        found = result.account
        lines.append(
            (
                result.arm,
                f"{found.replica_seconds:,.0f}",
                f"{found.mean_lag_messages:,.0f}",
                f"{found.wait_p50_seconds:.1f} s",
                f"{found.wait_p99_seconds:.1f} s",
                f"{found.late_messages:,} of {found.messages:,}",
                str(result.moves),
                str(len(result.interruptions)),
                longest_pause(result.interruptions),
                f"{found.stopped_partition_seconds:.0f}",
                f"{found.longest_stop_seconds:.1f} s",
                f"{found.duplicate_messages:,}",
                f"{found.lost_messages:,}",
                f"{found.cost(prices):.4f} {prices.currency}",
            )
        )
    head = (
        *("arm", "replica-seconds", "mean lag", "wait p50", "wait p99", "late", "moves", "rebalances"),
        *("longest pause, meter", "stopped partition-seconds", "longest stop", "duplicates", "lost", "cost"),
    )
    return table(head, lines)


def next_grid(now: datetime) -> datetime:
    """The next instant of the 15 s grid, at least a second away."""
    seconds = (now.timestamp() + 1.0) // BASE_INTERVAL_SECONDS + 1
    return datetime.fromtimestamp(seconds * BASE_INTERVAL_SECONDS, tz=UTC)


def clock() -> datetime:
    """The clock that messages are stamped by."""
    return datetime.now(UTC)  # noqa: TID251  # a process entry point


if __name__ == "__main__":
    sys.exit(main())
