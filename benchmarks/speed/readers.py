"""Measures what readers cost the loop: `python -m benchmarks.speed.readers --groups 3000 --readers 100`.

One process decides on all groups in cycles and answers REST, as `lagcast serve` does. Another one is the readers: each
asks for every route in turn, without a pause. The cycles with and without them are of the same run. Prints the CPU and
wall seconds of a cycle, the memory of the process, and the answers by status.
"""

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx2
import psutil  # type: ignore[import-untyped]  # ships no types
import structlog

from api.app import create_app
from api.keys import group_key
from cli.server import listen, serving, url_of
from forecasting.history import GroupInterval
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.known_groups import KnownGroups
from recommender.run import Recommender
from tests.recommender.loop import ReadInTurn

BEGIN_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
CYCLES = 3
MINUTES = 60
PARTITIONS, MEMBERS = 24, 8
ROUTES = (
    "/",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/api/v1/groups",
    "/api/v1/groups?limit=500",
    "/api/v1/ledger",
    "/api/v1/holds",
    "/api/v1/groups/{key}",
    "/api/v1/groups/{key}/recommendation",
    "/api/v1/groups/{key}/due-replicas",
    "/api/v1/groups/{key}/recommendations",
    "/api/v1/groups/{key}/outcomes",
    "/api/v1/groups/{key}/forecast",
    "/api/v1/groups/{key}/ledger",
)


@dataclass(slots=True)
class Fleet(ReadInTurn):
    """A feature table of so many groups with rates of their own; `now` is its end."""

    names: Sequence[tuple[str, str]]
    now: datetime = BEGIN_AT

    def groups(self, *, now: datetime) -> Sequence[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """All of them."""
        return self.names

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """A minute a row: between 3,000/s and 5,000/s, up and down by a tenth."""
        oldest = self.now - timedelta(minutes=MINUTES)
        since, until = max(since or oldest, oldest), min(until or self.now, self.now)
        minutes = int((until - since).total_seconds() // 60)
        level = 3000.0 + float(group) % 1000
        ends = [until - timedelta(minutes=back) for back in reversed(range(minutes))]
        return [_row(cluster, group, level * _swing(end, int(group)), end) for end in ends]


@dataclass(slots=True)
class Took:
    """Seconds of each cycle, and the most memory of the process during them."""

    wall_seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    resident_bytes: int = 0


def main() -> int:
    """Read the arguments, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=3000)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--read", metavar="URL", help="be the readers of this service, until standard input is closed")
    arguments = parser.parse_args()
    if arguments.read:
        sys.stdout.write(json.dumps(asyncio.run(_read(arguments.read, arguments.readers, arguments.groups))))
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        alone, beside, answers = measure(Path(folder), groups=arguments.groups, readers=arguments.readers)
    print(f"{arguments.groups} groups, {arguments.readers} readers of every route, medians of {CYCLES} cycles\n")
    print("| | wall seconds of a cycle | CPU seconds of the loop | resident MB |")
    print("|---|---:|---:|---:|")
    for name, took in (("no readers", alone), ("readers", beside)):
        wall, cpu = median(took.wall_seconds), median(took.cpu_seconds)
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {took.resident_bytes / 2**20:.0f} |")
    print(f"\nratio of the wall seconds: {median(beside.wall_seconds) / median(alone.wall_seconds):.2f}")
    print(f"answers by status: {', '.join(f'{status}: {number:,}' for status, number in sorted(answers.items()))}")
    return 0


def measure(folder: Path, *, groups: int, readers: int) -> tuple[Took, Took, dict[str, int]]:
    """The cycles without readers, those with them, and the answers by status."""
    url = sqlite_url(folder / "decisions.sqlite")
    store, readers_store = SqlDecisionStore(url), SqlDecisionStore(url)
    fleet = Fleet([("c", str(number)) for number in range(groups)])
    metrics = Metrics(readers_store, clock=lambda: fleet.now, version="bench")
    known_groups, deciding = KnownGroups(), threading.Event()
    loop = Recommender(
        histories=fleet,
        profile_of=GroupSettings().profile,
        settings=DecisionSettings(),
        store=store,
        timer=time.perf_counter,
        publishers=[metrics],
        known_groups=known_groups,
        deciding=deciding,
    )
    app = create_app(
        readers_store,
        clock=lambda: fleet.now,
        version="bench",
        metrics=metrics,
        known_groups=known_groups,
        is_deciding=deciding.is_set,
    )
    bound = listen("127.0.0.1", 0, search=False)
    with serving(app, bound):
        loop.run_once(now=fleet.now)  # reads the past, and compiles
        alone = _cycles(loop, fleet)
        command = [sys.executable, "-m", "benchmarks.speed.readers", "--read", url_of(bound)]
        words = ["--readers", str(readers), "--groups", str(groups)]
        with subprocess.Popen([*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reading:  # noqa: S603  # this program
            for line in reading.stdout or ():  # the only one, when each reader has had an answer
                print(line, end="")
                break
            beside = _cycles(loop, fleet)
            answers, _ = reading.communicate()
    store.close()
    readers_store.close()
    return alone, beside, json.loads(answers)


def _cycles(loop: Recommender, fleet: Fleet) -> Took:
    took, process, over = Took(), psutil.Process(), threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            took.resident_bytes = max(took.resident_bytes, process.memory_info().rss)

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(CYCLES):
        fleet.now += timedelta(minutes=1)
        wall, cpu = time.perf_counter(), time.thread_time()
        loop.run_once(now=fleet.now)
        took.wall_seconds.append(time.perf_counter() - wall)
        took.cpu_seconds.append(time.thread_time() - cpu)
    over.set()
    looking.join()
    return took


async def _read(url: str, readers: int, groups: int) -> dict[str, int]:
    """The answers by status, of readers that ask until standard input is closed."""
    answers: Counter[str] = Counter()
    over = asyncio.Event()

    async def ask(number: int) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            asked = number
            while not over.is_set():
                path = ROUTES[asked % len(ROUTES)].format(key=group_key("c", str(asked * 7919 % groups)))
                try:
                    answers[str((await client.get(path)).status_code)] += 1
                except httpx2.HTTPError as error:
                    answers[type(error).__name__] += 1
                asked += 1
                waiting.discard(number)
                if not waiting and not begun:
                    begun.append(True)
                    print(flush=True)

    begun, waiting = list[bool](), set(range(readers))
    asking = [asyncio.ensure_future(ask(number)) for number in range(readers)]
    await asyncio.to_thread(sys.stdin.read)
    over.set()
    await asyncio.gather(*asking)
    return dict(answers)


def _swing(end: datetime, group: int) -> float:
    return 1.0 + 0.1 * ((7919 * int(end.timestamp() // 60) + group) % 13 - 6) / 6


def _row(cluster: str, group: str, rate: float, end: datetime) -> GroupInterval:
    return GroupInterval(
        cluster=cluster,
        group=group,
        topics="orders",
        interval_end_at=end,
        interval_seconds=60,
        produce_messages_per_second=rate,
        consume_messages_per_second=rate,
        lag_messages=2.5 * rate,
        lag_seconds=2.5,
        partitions=PARTITIONS,
        sampled_partitions=PARTITIONS,
        members=MEMBERS,
    )


if __name__ == "__main__":
    sys.exit(main())
