"""Measures what a change of size stops in a Kafka Streams application with state, and compares it with the formula.

    python -m benchmarks.rebalances.streams --out FILE      or: make bench-streams OUT=FILE ROUNDS=1
    python -m benchmarks.rebalances.streams --page FILE > docs/rebalances-streams.md

The first form starts Kafka on loopback and one application of each kind, all at once and on one topic: plain, static,
with a standby, and with a state directory that outlives its process. In each round one of three processes leaves in
order, comes back and is killed. FILE is a JSON document of every change; one round takes nine minutes. The second form
writes the page from the JSON alone.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.command import table
from benchmarks.rebalances.expected import PARTITIONS, Change
from benchmarks.rebalances.measure import ProcessedBatch, batches_of, measured
from benchmarks.rebalances.members import SESSION_SECONDS
from benchmarks.rebalances.page import CHANGES, NEAR_SECONDS, is_near, marked, spread
from benchmarks.rebalances.run import TOPIC, kafka_version, produced
from collector.kafka_admin import KafkaAdminCollector
from cost_model.physics.profile import GroupProfile, StreamsProfile
from cost_model.physics.rebalance import move_effect
from cost_model.physics.streams import capacity_lead_seconds
from forecasting.units import Partitions, Replicas, Seconds
from tests.live.harness.broker import compiled, fetched_jars, running_brokers

FEW, MANY = 2, 3
# More records for each task than `acceptable.recovery.lag`, 10,000: with fewer, Kafka Streams moves a task to a process
# that has nothing of its state, without a warm-up.
RECORDS, VALUE_BYTES = 150_000, 1_600
# The least that Kafka Streams accepts for `probing.rebalance.interval.ms`; its default is 600 s.
PROBING_SECONDS = 60.0
MOST_WARM_UPS = 2
LEAVER = MANY - 1
# Warm-ups of four tasks, two at a time, take two probes, and the machine is busy; a leave takes a session of 10 s.
AFTER_SECONDS: dict[Change, float] = {"in": 75.0, "out": 200.0, "killed": 75.0}
LOADED_LIMIT_SECONDS = 900.0
LEAD_SECONDS = 0.2
# The start of a JVM on a busy machine.
NEAR_LEAD_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A kind of application: settings of its own, and whether its state directory outlives its process."""

    name: str
    words: str
    static: bool = False
    standbys: int = 0
    volume_kept: bool = False


APPLICATIONS = (
    Application(name="lost", words="state lost with its process"),
    Application(name="static", words="static members, state lost", static=True),
    Application(name="standby", words="one standby, state lost", standbys=1),
    Application(name="kept", words="state directory kept", volume_kept=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One change of one application: the stop of each task, and when the newcomer had its full share of tasks."""

    application: str
    change: Change
    stops: tuple[float, ...]
    duplicates: int
    lead_seconds: float | None


class Process:
    """One process of an application; `stop` is what a kubelet does at first, `kill` what it does at last."""

    def __init__(self, application: Application, number: int, *, broker: str, folder: Path, jars: Path) -> None:
        self.state = folder / application.name / str(number)
        settings = {
            "num.standby.replicas": str(application.standbys),
            "max.warmup.replicas": str(MOST_WARM_UPS),
            "probing.rebalance.interval.ms": f"{1e3 * PROBING_SECONDS:.0f}",
            "session.timeout.ms": f"{1e3 * SESSION_SECONDS:.0f}",
        }
        if application.static:
            settings["group.instance.id"] = f"pod-{number}"
        log, name = str(folder / "batches.log"), member(application, number)
        words = (broker, application.name, TOPIC, str(self.state), log, name)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = ["java", "-Xmx160m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", quiet]
        command += ["-cp", f"{jars}/*:{folder / 'classes'}", "StatefulStreams", *words, "0"]
        with (folder / f"{application.name}-{number}.err").open("ab") as said:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [*command, *(f"{key}={value}" for key, value in settings.items())], stdout=said, stderr=said
            )

    def stop(self) -> None:
        """Send SIGTERM, after which it closes in order; nobody waits for it here."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait()


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
        fill(broker.address)

        def begun(application: Application, number: int) -> Process:
            process = Process(application, number, broker=broker.address, folder=folder, jars=jars)
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


def fill(address: str) -> None:
    """Records of as many keys, so that state is as large as what was written."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(TOPIC, os.urandom(VALUE_BYTES), f"{number:08}", partition=number % PARTITIONS)
        producer.poll(0)
        if number % 10_000 == 0:
            producer.flush(60)
    producer.flush(60)


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


def profile_of(application: Application, restore_bytes: float) -> GroupProfile:
    """The profile of an application, of which the bytes are those that were seen and the restore rate is assumed."""
    return GroupProfile(
        cluster="c",
        group=application.name,
        partitions=Partitions(PARTITIONS),
        capacity=None,
        client="java",
        static_membership=application.static,
        session_timeout_seconds=Seconds(SESSION_SECONDS),
        start_up_seconds=Seconds(0.0),
        streams=StreamsProfile(
            stateful=True,
            tasks=PARTITIONS,
            max_warmup_replicas=MOST_WARM_UPS,
            probing_seconds=Seconds(PROBING_SECONDS),
            standbys=application.standbys,
            restore_bytes=restore_bytes,
            volume_kept=application.volume_kept,
        ),
    )


def expected_effect(application: Application, change: Change, restore_bytes: float) -> dict[str, float]:
    """By the formulas: seconds lost per task, the mean stop of the tasks that stop, and the time until a full share."""
    profile = profile_of(application, restore_bytes)
    before, after = (Replicas(FEW), Replicas(MANY)) if change == "out" else (Replicas(MANY), Replicas(FEW))
    if change == "killed":
        profile = replace(profile, termination_grace_seconds=Seconds(0.0))
    effect = move_effect(profile, from_replicas=before, to_replicas=after)
    lead = capacity_lead_seconds(profile, from_replicas=before, to_replicas=after)
    return {
        "lost_seconds": effect.lost_partition_seconds / PARTITIONS,
        "rebalance_pause_seconds": effect.rebalance_pause_seconds,
        "lead_seconds": lead,
    }


INTRODUCTION = """# Rebalances of Kafka Streams, measured

What a change of size stops in a Kafka Streams application with state on a real broker, compared with what the cost
model's formulas expect. The page is made from one JSON document, which one command writes:

    make bench-streams OUT=FILE ROUNDS={rounds}
    python -m benchmarks.rebalances.streams --page FILE > docs/rebalances-streams.md

- **Where and when.** {measured_at}, Kafka {kafka}, one broker on loopback, a machine with {processors} processors that
  was busy (mean load {load:.1f}) with all applications at once and with other work.
- **Applications.** {tasks} tasks of one sub-topology, classic protocol, the last value of each of {records:,} keys in a
  persistent store with a changelog; {many} processes of one thread. One leaves in order (SIGTERM), comes back, and is
  killed (SIGKILL); rounds of this: {rounds}. A session of {session:g} s, probes each {probing:g} s (Kafka's least; its
  default is 600 s), 2 warm-ups, defaults of Kafka elsewhere.
- **State.** {written:,.0f} bytes of values were written to each application; lagcast saw changelogs of
  {seen} bytes on the broker's disk, with nothing configured.
- **Measured** as on [rebalances.md](rebalances.md), for each task by the records that its processes wrote down. *Full
  share after* is the time from the command to add a process until it has worked on {share} tasks, the start of its JVM
  included.
- **Stops add up** over all rebalances of the time: a process that comes back without its state causes one when it
  joins, and one more at each probe; four JVMs start at that moment on the same processors. Where it has no full share
  yet, a kill stops fewer tasks. No state was written while a process was away, so that a kept directory was within
  `acceptable.recovery.lag` when it came back, and its tasks moved at once; the formula takes a volume to be further
  behind, and to wait for probes.
- **Expected** by the formulas, from the bytes seen and an assumed restore rate of 10 MB/s. Bold: not within 35% or
  {slack:g} s of the median; for the full share, 35% or {lead_slack:g} s.
"""


def page_of(document: dict[str, Any]) -> str:
    """The page of a run."""
    lines = []
    for application in APPLICATIONS:
        for change in AFTER_SECONDS:
            own = [
                found
                for found in document["changes"]
                if (found["application"], found["change"]) == (application.name, change)
            ]
            expected = expected_effect(application, change, document["restore_bytes"][application.name])
            lines.append(_line(application, change, own, expected))
    head = (
        *("application", "a process", "changes", "lost seconds per task", "formula"),
        *("stop of the four longest", "formula", "duplicates", "full share after", "formula"),
    )
    sizes = document["restore_bytes"].values()
    seen = f"{min(sizes):,.0f} to {max(sizes):,.0f}"
    introduction = INTRODUCTION.format(
        rounds=sum(found["change"] == "in" for found in document["changes"]) // len(APPLICATIONS),
        measured_at=document["measured_at"],
        kafka=document["kafka"],
        processors=document["processors"],
        load=document["mean_load"],
        tasks=document["tasks"],
        many=document["members"][1],
        records=document["records"],
        session=document["session_seconds"],
        probing=document["probing_seconds"],
        written=document["written_bytes"],
        seen=seen,
        share=document["tasks"] // document["members"][1],
        slack=NEAR_SECONDS,
        lead_slack=NEAR_LEAD_SECONDS,
    )
    return f"{introduction}\n{table(head, lines, words=2)}"


def _line(
    application: Application, change: Change, own: Sequence[dict[str, Any]], expected: dict[str, Any]
) -> tuple[str, ...]:
    lost = tuple(sum(found["stops"]) / len(found["stops"]) for found in own)
    longest = [stop for found in own for stop in sorted(found["stops"])[-PARTITIONS // MANY :]]
    leads = [found["lead_seconds"] for found in own if found["lead_seconds"] is not None]
    duplicates = [found["duplicates"] for found in own]
    words = {"out": "comes back"}.get(change, CHANGES[change])
    if change != "out":
        full = "-", "-"
    elif not leads:
        full = f"not within {AFTER_SECONDS['out']:.0f} s", marked(expected["lead_seconds"], False)  # noqa: FBT003
    else:
        near = is_near(median(leads), expected["lead_seconds"], NEAR_LEAD_SECONDS)
        full = f"{median(leads):.0f} s", marked(expected["lead_seconds"], near)
    return (
        application.words,
        words,
        str(len(own)),
        spread(lost),
        marked(expected["lost_seconds"], is_near(median(lost), expected["lost_seconds"], NEAR_SECONDS)),
        f"{median(longest):.1f}",
        f"{expected['rebalance_pause_seconds']:.1f}",
        f"{median(duplicates):,.0f}",
        *full,
    )


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
