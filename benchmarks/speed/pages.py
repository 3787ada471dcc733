"""Measures how long the server takes for each page, and how many SQL statements it asks for it.

    python -m benchmarks.speed.pages --groups 15000 --out FILE          or: make bench-pages
    python -m benchmarks.speed.pages --page FILE [FILE ...] > docs/pages-bench.md

A store of so many groups, with advice of the loop as the latest decision of each and a whole day of decisions on one,
is read by the service in the process that has published it, on loopback, by one caller that waits for each answer. It
is a SQLite of its own, or the empty database of `--store`. Between two requests more time goes by than a page is kept,
so that each is made anew; advice stays in force. The service has tidied up its memory once by then, as it does each
minute. Then another process is 50 readers of REST, each of whom asks once a second for one route after the other, of
one group after the other.

Prints how long a cycle of the loop takes to be written, a move of each group among that, of which a cycle has few; of
each page the median, 95th percentile and longest time and its statements; and the answers to REST. The 95th percentile
of a page, the 99th of REST, and the statements of pages over all groups have bars: the exit code is 1 where one is
missed. FILE is a JSON document. The second form prints the page of such documents of several databases, and runs
nothing.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import httpx2
import sqlalchemy as sa
import structlog

from api.app import create_app
from api.convert import cursor_of_place
from api.keys import group_key
from benchmarks.command import commit, print_page, swap_in
from benchmarks.speed.pages_page import OF_ALL, bars_of, page_of, tables_of
from cli.memory import keep_little_of_what_is_freed
from cli.server import listen, serving, url_of
from forecasting.refusal import Refusal
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.known_groups import KnownGroups
from recommender.ports import AccountPart, issued_at, place_of
from recommender.run import STORED_AT_ONCE
from tests.conftest import MOVE
from tests.live.harness.decided import CLUSTER, DECIDED_AT, decisions, named

READERS, READER_SECONDS = 50, 30
REST = (
    "/api/v1/groups?limit=50",
    "/api/v1/groups/{key}",
    "/api/v1/groups/{key}/recommendation",
    "/api/v1/groups/{key}/due-replicas",
    "/api/v1/groups/{key}/recommendations",
    "/api/v1/groups/{key}/outcomes",
)
# A decision each 15 s.
DECISIONS_OF_A_DAY = 5760
ASKED = 60
# A quarter of an hour of the loop's account is 0.6 to 1.2 kB, of rows of a minute.
ACCOUNT = "a" * 1000
# A page is kept for 4 s at most.
APART = timedelta(seconds=5)
# Nine pages are asked for 540 times, 45 min apart in all: advice that expired meanwhile would leave `/metrics` and the
# sums almost empty.
VALID_FOR = timedelta(minutes=90)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print tables and write JSON; or print the page of documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=15_000)
    parser.add_argument("--store", metavar="URL", help="an empty database in place of SQLite")
    parser.add_argument("--out", type=Path, default=Path("build/pages.json"), help="where the JSON goes")
    parser.add_argument("--page", type=Path, nargs="+", metavar="FILE", help="print the page of these documents")
    parser.add_argument("--read", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, arguments.page, page_of, of="pages")
        return 0
    if arguments.read:
        sys.stdout.write(json.dumps(asyncio.run(_read(arguments.read, groups=arguments.groups))))
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        url = arguments.store or sqlite_url(Path(folder) / "decisions.sqlite")
        document = document_of(url, groups=arguments.groups)
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    print(tables_of(document), end="")
    return 0 if all(bar.is_kept for bar in bars_of(document)) else 1


def document_of(url: str, *, groups: int) -> dict[str, Any]:
    """The document of a run over this database."""
    begun_at, loads = commit(), [os.getloadavg()[0]]
    written, looks, rest = measure(url, groups=groups)
    loads.append(os.getloadavg()[0])
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "mean_load": fmean(loads),
        "database": _database(url),
        "groups": groups,
        "asked": ASKED,
        "written_seconds": written,
        "pages": {name: _figures(of_page) for name, of_page in looks.items()},
        "rest": {
            "readers": READERS,
            "answers": len(rest),
            "median_milliseconds": 1000.0 * median(rest),
            "p99_milliseconds": 1000.0 * quantiles(rest, n=100)[-1],
            "longest_milliseconds": 1000.0 * max(rest),
        },
    }


def _figures(looks: Sequence[tuple[float, int]]) -> dict[str, float]:
    """Of the requests of one page: their milliseconds, and the statements of most of them and of one at most."""
    milliseconds, statements = [1000.0 * seconds for seconds, _ in looks], [count for _, count in looks]
    return {
        "median_milliseconds": median(milliseconds),
        "p95_milliseconds": quantiles(milliseconds, n=20)[-1],
        "longest_milliseconds": max(milliseconds),
        "statements": median(statements),
        "most_statements": max(statements),
    }


def _database(url: str) -> str:
    """The name of the database with its version."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        version = ".".join(map(str, connection.dialect.server_version_info or ()))
    engine.dispose()
    return f"{'SQLite' if engine.dialect.name == 'sqlite' else 'PostgreSQL'} {version}"


def measure(
    url: str, *, groups: int
) -> tuple[Mapping[str, float], Mapping[str, Sequence[tuple[float, int]]], Sequence[float]]:
    """The seconds of what is written; of each page's requests, with their statements; and of the readers of REST."""
    store = SqlDecisionStore(url)
    known_groups = KnownGroups()
    (decided,) = decisions("orders", cycles=1, known_groups=known_groups)
    last = replace(decided, valid_until=DECIDED_AT + VALID_FOR)
    now = DECIDED_AT
    metrics = Metrics(store, clock=lambda: now, version="bench")
    middle, written = _fill(store, metrics, last, groups=groups)
    keep_little_of_what_is_freed(for_readers=True)
    while gc.get_freeze_count() == 0:
        time.sleep(1.0)
    bound = listen("127.0.0.1", 0, search=False)
    app = create_app(store, clock=lambda: now, version="bench", metrics=metrics, known_groups=known_groups)
    with (
        serving(app, bound),
        httpx2.Client(base_url=url_of(bound), headers={"accept": "text/html"}, timeout=60) as client,
    ):
        looks: dict[str, list[tuple[float, int]]] = {}
        for name, path in (
            *zip(OF_ALL, ("/", f"/?cursor={middle}", "/?group_id=orders", "/quality", "/metrics"), strict=True),
            ("group", f"/groups/{group_key(CLUSTER, 'orders')}"),
            ("group, its pictures", f"/groups/{group_key(CLUSTER, 'orders')}/pictures"),
            ("decision", f"/recommendations/{last.recommendation_id}"),
            ("settings", "/settings"),
        ):
            for _ in range(ASKED):
                now += APART
                with _statements() as asked_for:
                    seconds = _seconds(client, path)
                looks.setdefault(name, []).append((seconds, len(asked_for)))
        command = [sys.executable, "-m", "benchmarks.speed.pages", "--read", url_of(bound), "--groups", str(groups)]
        reading = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # this program
    store.close()
    return written, looks, json.loads(reading.stdout)


@contextmanager
def _statements() -> Iterator[list[str]]:
    """The SQL statements of all stores of this process within the block, but for those that begin a transaction."""
    found: list[str] = []

    def before(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            found.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", before)


def _fill(
    store: SqlDecisionStore, metrics: Metrics, last: Recommendation, *, groups: int
) -> tuple[str, Mapping[str, float]]:
    """Keep and publish two cycles, of which no decision stays in memory, and the day of the one group.

    Returns the cursor of the middle of the fleet, and the seconds that the second cycle took to be written.
    """
    fleet = [_differing(named(last, f"shop-{number:05}"), number) for number in range(groups - 1)]
    for before in (tuple(_day_of(last)), [_earlier(decision) for decision in fleet]):
        _save(store, before)
    begun = time.perf_counter()
    _save(store, fleet)
    written = {"decisions and accounts": time.perf_counter() - begun}
    begun = time.perf_counter()
    for decision in fleet:
        store.keep_outcomes([replace(MOVE, cluster=decision.cluster, group=decision.group)])
    written["a move of each group"] = time.perf_counter() - begun
    for decision in (last, *fleet):
        metrics.publish(decision)
    return cursor_of_place(sorted(map(place_of, fleet))[groups // 2]), written


def _save(store: SqlDecisionStore, decisions: Sequence[Decision]) -> None:
    """Keep them in transactions as the loop's, each with a quarter of an hour of its group's account."""
    kept = [(each, (AccountPart(each.cluster, each.group, DECIDED_AT, ACCOUNT),)) for each in decisions]
    for first in range(0, len(kept), STORED_AT_ONCE):
        store.save_all(kept[first : first + STORED_AT_ONCE])


async def _read(url: str, *, groups: int) -> list[float]:
    """The seconds of each answer to the readers, who ask one after the other within each second.

    Each has a connection of its own. These are made before anybody asks: one takes 20 ms, in which nobody can ask, and
    those who had to wait would ask all at once.
    """
    took: list[float] = []

    async def ask(client: httpx2.AsyncClient, number: int, begin: float) -> None:
        for second in range(READER_SECONDS):
            await asyncio.sleep(begin + second + number / READERS - time.perf_counter())
            asked = number + second
            key = group_key(CLUSTER, f"shop-{asked * 7919 % (groups - 1):05}")
            begun = time.perf_counter()
            answer = await client.get(REST[asked % len(REST)].format(key=key))
            took.append(time.perf_counter() - begun)
            if answer.status_code not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):  # a tenth is refused
                answer.raise_for_status()

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=60)) for _ in range(READERS)
        ]
        begin = time.perf_counter()
        await asyncio.gather(*(ask(client, number, begin) for number, client in enumerate(clients)))
    return took


def _differing(decision: Recommendation, number: int) -> Decision:
    """A tenth is refused, a tenth misses its promise, three tenths would save, each another amount."""
    kind, amount = number % 10, float(number % 997)
    if kind == 0:
        return Refusal(
            cluster=decision.cluster,
            group=decision.group,
            reason="history_stale",
            sentence="The newest row is too old.",
            evidence=(),
            remedy="Check that samples are collected.",
            refused_at=decision.issued_at,
        )
    if kind == 1:
        return replace(decision, observed=replace(decision.observed, lag_seconds=60.0 + amount))
    if kind in (2, 3, 4):
        dear = replace(decision.stay, late=decision.chosen.total + amount)
        return replace(decision, desired_replicas=decision.current_replicas + 1, action="scale_out", stay=dear)
    return decision


def _earlier(decision: Decision) -> Decision:
    """The decision of the cycle before."""
    before = issued_at(decision) - timedelta(seconds=15)
    if isinstance(decision, Refusal):
        return replace(decision, refused_at=before)
    return replace(decision, recommendation_id=f"{decision.recommendation_id}-before", issued_at=before)


def _day_of(last: Recommendation) -> Iterator[Recommendation]:
    """A day of decisions that ends with this one; now and then another count was advised."""
    for number in reversed(range(DECISIONS_OF_A_DAY)):
        if number == 0:
            yield last
            continue
        yield replace(
            last,
            recommendation_id=f"{last.recommendation_id}-{number}",
            issued_at=last.issued_at - number * timedelta(seconds=15),
            desired_replicas=last.current_replicas + number // 240 % 3,
        )


def _seconds(client: httpx2.Client, path: str) -> float:
    """The seconds from the request to the last byte."""
    begun = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
