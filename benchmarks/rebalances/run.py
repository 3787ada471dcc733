"""Measures the stops and repeats of a change of a group's size, on a real broker, and compares them with expectations.

    python -m benchmarks.rebalances --out FILE      or: make bench-rebalances OUT=FILE ROUNDS=4
    python -m benchmarks.rebalances --page FILE --streams docs/rebalances-streams.json > docs/rebalances.md

The first form starts Kafka on loopback and groups of each client, protocol, batch length and membership, all at once
and on one topic. In each round two members join four, leave in order, join again and are killed, in all groups at the
same instants. FILE is a JSON document of every change of every group; four rounds take twelve minutes. The second form
writes the page from that JSON and from the one of `benchmarks.rebalances.streams`.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.rebalances.expected import (
    FEW,
    MANY,
    MESSAGES_PER_SECOND,
    PARTITIONS,
    PROTOCOLS,
    Change,
    GroupKind,
    by_formula,
    by_plant,
)
from benchmarks.rebalances.measure import batches_of, measured
from benchmarks.rebalances.members import SESSION_SECONDS, Client, Host, MemberOrder, host
from benchmarks.rebalances.page import write_page
from benchmarks.rebalances.streams_page import section_of
from tests.live.harness.broker import compiled, fetched_jars, running_brokers
from tests.live.harness.clients import produced_steadily

TOPIC = "orders"
SHORT_SECONDS, LONG_SECONDS = 0.1, 2.0
# The time from a change to the next one: with batches of 2 s KIP-848 takes longest to become stable, two heartbeats
# and twelve batches, and a killed member is removed after a session of 10 s.
FIRST_SECONDS = 40.0
AFTER_SECONDS: dict[Change, float] = {"out": 35.0, "in": 38.0, "killed": 45.0}
# All groups get a change within this time; batches that began before it are not counted.
LEAD_SECONDS = 0.2
BROKER = {
    "group.consumer.session.timeout.ms": str(round(1e3 * SESSION_SECONDS)),
    "group.consumer.min.session.timeout.ms": str(round(1e3 * SESSION_SECONDS)),
}
PRODUCE_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of all groups: its kind, and the window of time in which it is measured."""

    change: Change
    begin_at: float
    end_at: float


def main() -> int:
    """Run the comparison, or write the page of one."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rebalances",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("build/rebalances.json"), help="where the JSON goes")
    parser.add_argument("--rounds", type=int, default=4, help="how often two members come and go, twice (default 4)")
    parser.add_argument("--page", type=Path, metavar="JSON", help="write the page of an earlier run")
    parser.add_argument("--streams", type=Path, metavar="JSON", help="a run of Kafka Streams, as the page's last part")
    arguments = parser.parse_args()
    if arguments.page is not None:
        write_page(json.loads(arguments.page.read_text()))
        if arguments.streams is not None:
            print(section_of(json.loads(arguments.streams.read_text())), end="")
        return 0
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document_of(arguments.rounds), indent=1) + "\n")
    print(f"written: {arguments.out}")
    return 0


def group_kinds() -> list[GroupKind]:
    """Every client and protocol with short and long batches, and static members with short ones."""
    kinds = ((SHORT_SECONDS, False), (LONG_SECONDS, False), (SHORT_SECONDS, True))
    return [
        GroupKind(client=client, protocol=protocol, batch_seconds=batch, static=static)
        for client in get_args(Client)
        for protocol in PROTOCOLS
        for batch, static in kinds
    ]


def document_of(rounds: int) -> dict[str, Any]:
    """All measurements, with the expected values."""
    kinds = group_kinds()
    loads: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = play(kinds, folder, rounds, loads)
        with (folder / "batches.log").open() as log:
            batches = batches_of(log)
    changes = []
    for kind in kinds:
        own = [batch for batch in batches if batch.group == kind.name]
        windows = [(event.begin_at, event.end_at) for event in events]
        changes += [
            {
                "group_kind": asdict(kind),
                "change": event.change,
                "stops": [round(stop, 3) for stop in found.stops],
                "duplicates": found.duplicates,
                "lost": found.lost,
            }
            for event, found in zip(events, measured(own, windows, partitions=PARTITIONS), strict=True)
        ]
    quiet = min(AFTER_SECONDS.values())
    expected = [
        {
            "group_kind": asdict(kind),
            "change": change,
            "formula": asdict(by_formula(kind, change, quiet_seconds=quiet)),
            "plant": asdict(by_plant(kind, change, quiet_seconds=quiet)),
        }
        for kind in kinds
        for change in AFTER_SECONDS
    ]
    return {
        "members": [FEW, MANY],
        "partitions": PARTITIONS,
        "messages_per_second": MESSAGES_PER_SECOND,
        "session_seconds": SESSION_SECONDS,
        "processors": os.cpu_count(),
        "mean_load": sum(loads) / len(loads),
        "versions": {"kafka": kafka_version(), "confluent-kafka": version("confluent-kafka")},
        "changes": changes,
        "expected": expected,
    }


def kafka_version() -> str:
    """The version of the broker and of Java's client, by the name of its jar."""
    (jar,) = fetched_jars().glob("kafka-clients-*.jar")
    return jar.stem.removeprefix("kafka-clients-")


def play(kinds: Sequence[GroupKind], folder: Path, rounds: int, loads: list[float]) -> list[Event]:
    """Run all groups through all rounds; each change notes the machine's load in `loads`."""
    jars, classes = fetched_jars(), folder / "classes"
    classes.mkdir()
    compiled(jars, classes)
    events: list[Event] = []
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka", properties=BROKER))
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        ends.enter_context(produced(broker.address))

        def hosts() -> dict[Client, Host]:
            clients: tuple[Client, ...] = ("java", "librdkafka")
            return {client: host(client, broker.address, folder, jars=jars, classes=classes) for client in clients}

        stay = hosts()
        for each in stay.values():
            ends.callback(each.end)
        order(stay, kinds, range(FEW))
        time.sleep(FIRST_SECONDS)
        for number in range(rounds):
            come = hosts()
            for change in ("out", "in", "out", "killed"):
                began_at = time.time() - LEAD_SECONDS  # noqa: TID251  # the clock that the members write down
                carry_out(change, come, kinds)
                time.sleep(AFTER_SECONDS[change])
                events.append(Event(change=change, begin_at=began_at, end_at=time.time() - LEAD_SECONDS))  # noqa: TID251
                loads.append(os.getloadavg()[0])
                print(f"round {number + 1} of {rounds}: {change}", file=sys.stderr, flush=True)
        time.sleep(LONG_SECONDS)
    return events


def carry_out(change: Change, hosts: dict[Client, Host], kinds: Sequence[GroupKind]) -> None:
    """Make the two members of every group join or leave, or kill them."""
    if change == "out":
        order(hosts, kinds, range(FEW, MANY))
    elif change == "in":
        for kind in kinds:
            for number in range(FEW, MANY):
                hosts[kind.client].close(member_name(kind, number))
    else:
        for each in hosts.values():
            each.kill()


def order(hosts: dict[Client, Host], kinds: Sequence[GroupKind], numbers: Sequence[int]) -> None:
    """Make members of these numbers join each group."""
    for kind in kinds:
        for number in numbers:
            hosts[kind.client].start(
                MemberOrder(
                    name=member_name(kind, number),
                    group=kind.name,
                    topic=TOPIC,
                    protocol=PROTOCOLS[kind.protocol],
                    batch_seconds=kind.batch_seconds,
                    instance=f"pod-{number}" if kind.static else None,
                )
            )


def member_name(kind: GroupKind, number: int) -> str:
    """The name of a member."""
    return f"{kind.name}-{number}"


def produced(address: str) -> AbstractContextManager[None]:
    """Messages at the set rate, evenly over the partitions, until the block ends."""
    each = round(MESSAGES_PER_SECOND * PRODUCE_EVERY_SECONDS / PARTITIONS)
    return produced_steadily(address, [TOPIC], partitions=PARTITIONS, each=each, every_seconds=PRODUCE_EVERY_SECONDS)
