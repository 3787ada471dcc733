"""Measures what readers cost the loop, on every route that the service has.

    python -m benchmarks.speed.readers --groups 3000 --readers 100 --out FILE          or: make bench-readers
    python -m benchmarks.speed.readers --page FILE > docs/readers-bench.md

One process decides on all groups in cycles and answers REST and pages, as `lagcast serve` does. Another one is the
readers: each asks for every route in turn, without a pause, and keeps one stream of events open, as a browser does that
shows a page. The routes are those of the service itself. The cycles with and without readers are of the same run.
Prints the seconds of a cycle, the memory of the process, the bars, and the answers by route and status. FILE is a JSON
document. Exit code 1 where a bar is missed. The second form prints the page of such a document, and runs nothing.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil  # type: ignore[import-untyped]  # ships no types
import structlog
from fastapi import FastAPI

from api.app import create_app
from api.pages.replays import KeptReplay, Replays
from api.pages.work import Work
from api.pictures.league import Standing, league
from benchmarks.command import commit, print_page, swap_in
from benchmarks.speed.asking import Ask, Service
from benchmarks.speed.readers_page import answers_table, bars_of, cycles_table, page_of
from cli.server import listen, serving, url_of
from forecasting.history import GroupInterval
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.known_groups import KnownGroups
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.api.every_route import requests_of
from tests.recommender.loop import ReadInTurn

BEGIN_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
CYCLES = 3
MINUTES = 60
PARTITIONS, MEMBERS = 24, 8
# The end of the path of a stream, which is kept open; every other route is asked in turn.
STREAM = "/events"
REPLAYED = Standing(
    policy="lagcast",
    replicas=7.0,
    late=0.5,
    duplicates=0.0,
    late_share=0.01,
    wait_p99_seconds=1.0,
    moves=9,
    part="ours",
)
# Routes that answer in another form too: to a browser, and with the most rows that a page may have.
MORE = (Ask("GET", "/", "text/html"), Ask("GET", "/api/v1/groups?limit=500"))


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
    resident_megabytes: float = 0.0


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print tables and write JSON; or print the page of a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=3000)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], page_of, of="readers")
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    document = document_of(groups=arguments.groups, readers=arguments.readers)
    if arguments.out is not None:
        swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    print(f"{arguments.groups} groups, {arguments.readers} readers of every route, medians of {CYCLES} cycles\n")
    print(cycles_table(document))
    print(answers_table(document))
    bars = bars_of(document)
    for bar in bars:
        print(f"{'kept  ' if bar.is_kept else 'MISSED'} {bar.what}: {bar.figure:,.2f} (bar {bar.most:g})")
    return 0 if all(bar.is_kept for bar in bars) else 1


def document_of(*, groups: int, readers: int) -> dict[str, Any]:
    """The document of a run."""
    begun_at, loads = commit(), [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="lagcast-readers-") as folder:
        alone, beside, answers = measure(Path(folder), groups=groups, readers=readers)
    loads.append(os.getloadavg()[0])
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "mean_load": fmean(loads),
        "groups": groups,
        "readers": readers,
        "alone": asdict(alone),
        "beside": asdict(beside),
        "answers": answers,
    }


def measure(folder: Path, *, groups: int, readers: int) -> tuple[Took, Took, dict[str, dict[str, int]]]:
    """The cycles without readers, those with them, and the answers by route and status."""
    url = sqlite_url(folder / "decisions.sqlite")
    store, readers_store = SqlDecisionStore(url), SqlDecisionStore(url)
    fleet = Fleet([("c", str(number)) for number in range(groups)])
    metrics = Metrics(readers_store, clock=lambda: fleet.now, version="bench")
    known_groups, deciding = KnownGroups(), threading.Event()
    loop = Recommender(
        watched=WatchedGroups(
            histories=fleet,
            profile_of=GroupSettings().profile,
            settings=DecisionSettings(),
            store=store,
            timer=time.perf_counter,
        ),
        publishers=[metrics],
        known_groups=known_groups,
        deciding=deciding,
    )
    work, replays = Work(), Replays(folder / "replays")
    work.replay(league([REPLAYED], currency="USD"), "A replay.")
    kept = KeptReplay(
        title="load", played_at=BEGIN_AT, currency="USD", sentences=(), standings=(REPLAYED,), lost_days=()
    )
    replays.keep(kept)
    app = create_app(
        readers_store,
        clock=lambda: fleet.now,
        version="bench",
        metrics=metrics,
        known_groups=known_groups,
        is_deciding=deciding.is_set,
        work=work,
        replays=replays,
    )
    asks, streams = asked_of(app)
    bound = listen("127.0.0.1", 0, search=False)
    with serving(app, bound):
        loop.run_once(now=fleet.now)  # reads the past, and compiles
        alone = _cycles(loop, fleet)
        service = Service(url=url_of(bound), groups=groups, replay_id=kept.replay_id, asks=asks, streams=streams)
        with asking(service, readers=readers) as reading:
            beside = _cycles(loop, fleet)
            app.state.events.close()
            answers, _ = reading.communicate()
    store.close()
    readers_store.close()
    return alone, beside, json.loads(answers)


@contextmanager
def asking(service: Service, *, readers: int) -> Iterator["subprocess.Popen[str]"]:
    """The process of so many readers, each of whom has had an answer; `communicate` ends it and has their answers."""
    command = [sys.executable, "-m", "benchmarks.speed.asking"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reading:  # noqa: S603  # fixed words
        print(json.dumps(asdict(service) | {"readers": readers}), file=reading.stdin, flush=True)
        next(iter(reading.stdout or ()))
        yield reading


def asked_of(app: FastAPI) -> tuple[list[Ask], list[str]]:
    """What readers ask in turn, and the streams that they keep open: together every route of the service."""
    routes = requests_of(app)
    return (
        [*(Ask(method, path) for method, path in routes if not path.endswith(STREAM)), *MORE],
        [path for _, path in routes if path.endswith(STREAM)],
    )


def _cycles(loop: Recommender, fleet: Fleet) -> Took:
    took, process, over = Took(), psutil.Process(), threading.Event()

    def look() -> None:
        is_over = False
        while not is_over:
            took.resident_megabytes = max(took.resident_megabytes, process.memory_info().rss / 1e6)
            is_over = over.wait(0.2)

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
