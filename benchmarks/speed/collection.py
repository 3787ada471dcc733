"""Measures the cost of collecting from a large cluster: rounds over many groups of a real Kafka, started for it.

    python -m benchmarks.speed.collection --groups 1000          or: make bench-collection

One broker on loopback; each group has committed to all 24 partitions of one of 50 topics. All groups are read, as
`lagcast collect` reads them: Kafka's client in a process of its own, and the samples of five rounds, more than there
are in a minute, written as parquet at once. Memory is the sum of the peaks of all its processes. Requests are those
that the client counts itself (`tx` of its statistics). Exit code 1 where a bar is missed.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from collector.isolated import IsolatedCollector
from collector.kafka_admin import Collected, KafkaAdminCollector
from tests.live.harness.broker import fetched_jars, running_brokers

PARTITIONS = 24
TOPICS = 50
ROUNDS = 5
# A third of the time between rounds; one connection to each of twenty brokers; a small container.
MOST_SECONDS, MOST_CONNECTIONS, MOST_MEGABYTES = 5.0, 20, 300.0
BEGIN = datetime(2026, 1, 5, 12, tzinfo=UTC)
STATISTICS_MILLISECONDS = 200
READY_LIMIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCost:
    """The cost of the rounds; `samples` are those of the round with the fewest, none where a round had an error."""

    samples: int
    round_seconds: Sequence[float]
    connections: int
    peak_megabytes: float
    requests_a_round: float


def main() -> int:
    """Start Kafka, make groups, collect, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000, help="how many groups of 24 partitions")
    groups: int = parser.parse_args().groups
    with tempfile.TemporaryDirectory() as folder, running_brokers(fetched_jars(), Path(folder)) as (broker,):
        prepare(broker.address, groups)
        # A process that did not prepare the groups: its memory is that of a collector.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
            cost = fresh.submit(measured, broker.address, Path(folder)).result()
    seconds = median(cost.round_seconds)
    print("| groups | samples a round | median round | requests a round | connections | peak memory |")
    print("|---:|---:|---:|---:|---:|---:|")
    print(
        f"| {groups} | {cost.samples} | {seconds:.2f} s | {cost.requests_a_round:.0f} | {cost.connections} "
        f"| {cost.peak_megabytes:.0f} MB |"
    )
    if cost.samples != groups * PARTITIONS:
        print(f"{groups * PARTITIONS} samples were due", file=sys.stderr)
        return 1
    is_kept = seconds <= MOST_SECONDS and cost.connections <= MOST_CONNECTIONS and cost.peak_megabytes <= MOST_MEGABYTES
    bars = f"{MOST_SECONDS} s, {MOST_CONNECTIONS} connections, {MOST_MEGABYTES:.0f} MB"
    print(f"bars ({bars}) {'kept' if is_kept else 'missed'}")
    return 0 if is_kept else 1


def prepare(address: str, groups: int) -> None:
    """Topics without messages, and groups that have committed offset 0 of each partition."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = [f"topic-{number:02d}" for number in range(TOPICS)]
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        created.result()
    for begin in range(0, groups, 100):
        commits = [
            ConsumerGroupTopicPartitions(
                f"group-{number:05d}",
                [TopicPartition(topics[number % TOPICS], partition, 0) for partition in range(PARTITIONS)],
            )
            for number in range(begin, min(groups, begin + 100))
        ]
        for stored in [admin.alter_consumer_group_offsets([commit]) for commit in commits]:
            next(iter(stored.values())).result()


def measured(address: str, folder: Path) -> RoundCost:
    """First rounds until all partitions have leaders and all connections are open, then the measured rounds."""
    # Imported where samples are written: the process of Kafka's client imports this module as well, and needs no Arrow.
    from collector.sinks import write_samples  # noqa: PLC0415

    statistics = folder / "statistics.jsonl"
    port = int(address.rpartition(":")[2])
    with IsolatedCollector(partial(counting_collector, address, statistics)) as collector:

        def one_round(number: int) -> tuple[Collected, float]:
            begun = time.monotonic()
            collected = collector.collect(None, now=BEGIN + timedelta(seconds=15 * number))
            return collected, time.monotonic() - begun

        until = time.monotonic() + READY_LIMIT_SECONDS
        while one_round(0)[0].errors and time.monotonic() < until:
            time.sleep(1)
        marks = [after_statistics()]
        rounds = [one_round(number) for number in range(1, ROUNDS + 1)]
        marks.append(after_statistics())
        write_samples([sample for collected, _ in rounds for sample in collected.samples], folder / "samples")
        connections = sum(established(process, port) for process in family())
        megabytes = sum(peak_megabytes(process) for process in family())
        one_round(ROUNDS + 1)  # the client emits its statistics at the next request
    first, last = (sent_until(mark, statistics) for mark in marks)
    return RoundCost(
        samples=min(0 if collected.errors else len(collected.samples) for collected, _ in rounds),
        round_seconds=[seconds for _, seconds in rounds],
        connections=connections,
        peak_megabytes=megabytes,
        requests_a_round=(last - first) / ROUNDS,
    )


def counting_collector(address: str, statistics: Path) -> KafkaAdminCollector:
    """A collector whose client writes its statistics to a file."""

    def keep(text: str) -> None:
        with statistics.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    counting: dict[str, str | Callable[[str], None]] = {
        "statistics.interval.ms": str(STATISTICS_MILLISECONDS),
        "stats_cb": keep,
    }
    # The client takes callbacks among its settings; a user's file has none.
    return KafkaAdminCollector(address, cluster="bench", client_config=counting)  # type: ignore[arg-type]


def after_statistics() -> int:
    """The instant, in microseconds of the client's clock, by which it has counted all requests sent before."""
    time.sleep(3 * STATISTICS_MILLISECONDS / 1000)
    return time.monotonic_ns() // 1000


def sent_until(mark: int, statistics: Path) -> int:
    """The number of requests sent to all brokers until `mark`."""
    counted = [json.loads(line) for line in statistics.read_text(encoding="utf-8").splitlines()]
    newest = [count for count in counted if count["ts"] <= mark][-1]
    return sum(broker["tx"] for broker in newest["brokers"].values())


def family() -> Iterator[int]:
    """This process and its children."""
    yield os.getpid()
    for task in Path("/proc/self/task").iterdir():
        yield from map(int, (task / "children").read_text(encoding="ascii").split())


def established(process: int, port: int) -> int:
    """Open connections of the process to the port."""
    own = {str(entry.readlink()) for entry in Path(f"/proc/{process}/fd").iterdir() if entry.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    # Local address, remote address, state (01: established), ..., inode.
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" and f"socket:[{row[9]}]" in own for row in rows)


def peak_megabytes(process: int) -> float:
    """The most memory that the process has held."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


if __name__ == "__main__":
    sys.exit(main())
