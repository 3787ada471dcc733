"""Measures what a change of size stops in a Kafka Streams application with state, and compares it with the formula.

    python -m benchmarks.rebalances.streams --out FILE      or: make bench-streams OUT=FILE ROUNDS=1
    python -m benchmarks.rebalances.streams --page FILE > docs/rebalances-streams.md

The first form starts Kafka on loopback and one application of each kind, all at once and on one topic: plain, static,
with a standby, and with a state directory that outlives its process. In each round one of three processes leaves in
order, comes back and is killed. FILE is a JSON document of every change; one round takes nine minutes. The second form
writes the page from the JSON alone, which docs/rebalances.md has a part of too.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.rebalances.expected import PARTITIONS, Change
from benchmarks.rebalances.measure import ProcessedBatch, batches_of, measured
from benchmarks.rebalances.members import SESSION_SECONDS
from benchmarks.rebalances.run import TOPIC, kafka_version, produced
from benchmarks.rebalances.streams_page import (
    AFTER_SECONDS,
    APPLICATIONS,
    FEW,
    MANY,
    MOST_WARM_UPS,
    PROBING_SECONDS,
    Application,
    page_of,
)
from collector.kafka_admin import KafkaAdminCollector
from tests.live.harness.broker import compiled, fetched_jars, running_brokers
from tests.live.harness.streams import StreamsOrder, StreamsProcess, produce_keyed

# More records for each task than `acceptable.recovery.lag`, 10,000: with fewer, Kafka Streams moves a task to a process
# that has nothing of its state, without a warm-up.
RECORDS, VALUE_BYTES = 150_000, 1_600
LEAVER = MANY - 1
LOADED_LIMIT_SECONDS = 900.0
LEAD_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One change of one application: the stop of each task, and when the newcomer had its full share of tasks."""

    application: str
    change: Change
    stops: tuple[float, ...]
    duplicates: int
    lead_seconds: float | None


def order(application: Application, number: int) -> StreamsOrder:
    """One of its processes."""
    settings = {
        "num.standby.replicas": str(application.standbys),
        "max.warmup.replicas": str(MOST_WARM_UPS),
        "probing.rebalance.interval.ms": f"{1e3 * PROBING_SECONDS:.0f}",
        "session.timeout.ms": f"{1e3 * SESSION_SECONDS:.0f}",
    }
    if application.static:
        settings["group.instance.id"] = f"pod-{number}"
    return StreamsOrder(name=member(application, number), application=application.name, topic=TOPIC, settings=settings)


def member(application: Application, number: int) -> str:
    """The name of a process in the log."""
    return f"{application.name}-{number}"


def document_of(rounds: int) -> dict[str, Any]:
    """All measurements, with the expected values."""
    loads: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events, restore_bytes = play(folder, rounds, loads)
        with (folder / "batches.log").open() as log:
            batches = batches_of(log)
    moved = [found for application in APPLICATIONS for found in _moved(application, batches, events)]
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "members": [FEW, MANY],
        "tasks": PARTITIONS,
        "restore_bytes": restore_bytes,
        "records": RECORDS,
        "written_bytes": RECORDS * VALUE_BYTES,
        "session_seconds": SESSION_SECONDS,
        "probing_seconds": PROBING_SECONDS,
        "processors": os.cpu_count(),
        "mean_load": sum(loads) / len(loads),
        "kafka": kafka_version(),
        "changes": [asdict(found) for found in moved],
    }


def play(folder: Path, rounds: int, loads: list[float]) -> tuple[list[tuple[Change, float, float]], dict[str, float]]:
    """Run all applications through all rounds: each change with its window, and the bytes of state of each."""
    jars, classes = fetched_jars(), folder / "classes"
    classes.mkdir()
    compiled(jars, classes)
    events: list[tuple[Change, float, float]] = []
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka"))
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        produce_keyed(broker.address, TOPIC, RECORDS, partitions=PARTITIONS, value_bytes=VALUE_BYTES)

        def begun(application: Application, number: int) -> StreamsProcess:
            process = StreamsProcess(
                order(application, number), bootstrap=broker.address, folder=folder, jars=jars, classes=classes
            )
            ends.callback(process.kill)
            return process

        processes = {member(each, number): begun(each, number) for each in APPLICATIONS for number in range(MANY)}
        collector = KafkaAdminCollector(broker.address, cluster="bench")
        restore_bytes = _loaded(collector)
        ends.enter_context(produced(broker.address))
        time.sleep(15.0)
        orders: tuple[Change, ...] = ("in", "out", "killed", "out")
        for number in range(rounds):
            for change in orders if number < rounds - 1 else orders[:-1]:
                began_at = _now() - LEAD_SECONDS
                for each in APPLICATIONS:
                    leaver = processes[member(each, LEAVER)]
                    if change == "in":
                        leaver.stop()
                    elif change == "killed":
                        leaver.kill()
                    else:
                        if not each.volume_kept:
                            leaver.kill()
                            shutil.rmtree(leaver.state)
                        processes[member(each, LEAVER)] = begun(each, LEAVER)
                time.sleep(AFTER_SECONDS[change])
                events.append((change, began_at, _now() - LEAD_SECONDS))
                loads.append(os.getloadavg()[0])
                print(f"round {number + 1} of {rounds}: {change}", file=sys.stderr, flush=True)
    return events, restore_bytes


def _loaded(collector: KafkaAdminCollector) -> dict[str, float]:
    """The bytes of state of each application as lagcast sees them, once all its records are in its store.

    Errors: TimeoutError with what was seen last.
    """
    names, until = [each.name for each in APPLICATIONS], time.monotonic() + LOADED_LIMIT_SECONDS
    at = datetime.now(UTC)  # noqa: TID251  # an instant that grows, so that sizes are read again
    while time.monotonic() < until:
        at = datetime.fromtimestamp(at.timestamp() + 600.0, UTC)
        rows = collector.collect(names, now=at).samples
        seen = {row.group: json.loads(row.streams) for row in rows if row.streams}
        lag = sum(row.end_offset - (row.committed_offset or 0) for row in rows)
        if lag == 0 and len(seen) == len(names) and len(rows) == len(names) * PARTITIONS:
            return {name: float(seen[name]["restore_bytes"]) for name in names}
        time.sleep(2.0)
    message = f"after {LOADED_LIMIT_SECONDS:.0f} s {lag:,} records were still to be read, and seen were {seen}"
    raise TimeoutError(message)


def _now() -> float:
    return time.time()  # noqa: TID251  # the clock that the processes write down


def _moved(
    application: Application, batches: Sequence[ProcessedBatch], events: Sequence[tuple[Change, float, float]]
) -> Iterator[Moved]:
    own = [batch for batch in batches if batch.group == application.name]
    found = measured(own, [(begin, end) for _, begin, end in events], partitions=PARTITIONS)
    name = member(application, LEAVER)
    for (change, begin_at, end_at), effect in zip(events, found, strict=True):
        yield Moved(
            application=application.name,
            change=change,
            stops=tuple(round(stop, 3) for stop in effect.stops),
            duplicates=effect.duplicates,
            lead_seconds=full_share_after(own, name, begin_at, end_at) if change == "out" else None,
        )


def full_share_after(batches: Sequence[ProcessedBatch], name: str, begin_at: float, end_at: float) -> float | None:
    """Seconds until a process has worked on as many tasks as its share; None if it did not within the window."""
    first: dict[int, float] = {}
    for batch in batches:
        if batch.member == name and begin_at <= batch.end_at < end_at:
            first[batch.partition] = min(batch.end_at, first.get(batch.partition, batch.end_at))
    in_order = sorted(first.values())
    share = PARTITIONS // MANY
    return round(in_order[share - 1] - begin_at, 1) if len(in_order) >= share else None


def main() -> int:
    """Run the comparison, or write the page of one."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rebalances.streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("build/rebalances-streams.json"), help="where the JSON goes")
    parser.add_argument("--rounds", type=int, default=1, help="how often a process leaves, and is killed (default 1)")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    arguments = parser.parse_args()
    if arguments.page is not None:
        print(page_of(json.loads(arguments.page.read_text())), end="")
        return 0
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document_of(arguments.rounds), indent=1) + "\n")
    print(f"written: {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
