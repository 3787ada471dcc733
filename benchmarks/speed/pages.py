"""Measures how long the server takes for each page: `python -m benchmarks.speed.pages --groups 15000`.

A store of so many groups, with advice of the loop as the latest decision of each and a whole day of decisions on one,
is read by the service that `lagcast serve` runs, on loopback, by one caller that waits for each answer. It is a SQLite
of its own, or the empty database of `--store`. Between two requests more time goes by than a page is kept, so that each
is made anew. The service has tidied up its memory once by then, as it does each minute. Then another process is 50
readers of REST, each of whom asks once a second for one route after the other, of one group after the other.

Prints how long a cycle of the loop takes to be written, a move of each group among that, of which a cycle has few; the
median and longest time of each page with its number of queries, and the 99th percentile of REST, beside their limits.
The exit code is 1 where one is above it.
"""

import argparse
import asyncio
import gc
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from itertools import count
from pathlib import Path
from statistics import median, quantiles

import httpx2
import sqlalchemy as sa
import structlog

from api.app import create_app
from api.convert import cursor_of_place
from api.keys import group_key
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

# The fleet of 15,000 groups is the page that other tools answer in half a minute; people take a tenth for at once, and
# three tenths for quick.
LIMIT_SECONDS = 0.3
# Prometheus gives up on a scrape after 10 s by default, and scrapes each 15 s.
METRICS_LIMIT_SECONDS = 1.0
READERS, READER_SECONDS, REST_LIMIT_SECONDS = 50, 30, 0.1
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
ASKED = 30
# A quarter of an hour of the loop's account is 0.6 to 1.2 kB, of rows of a minute.
ACCOUNT = "a" * 1000
# A page is kept for 4 s at most.
APART = timedelta(seconds=5)


def main() -> int:
    """Read the arguments, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=15_000)
    parser.add_argument("--store", metavar="URL", help="an empty database in place of SQLite")
    parser.add_argument("--read", metavar="URL", help="be the readers of this service")
    arguments = parser.parse_args()
    if arguments.read:
        sys.stdout.write(json.dumps(asyncio.run(_read(arguments.read, groups=arguments.groups))))
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        url = arguments.store or sqlite_url(Path(folder) / "decisions.sqlite")
        written, took, queries, rest = measure(url, groups=arguments.groups)
    print(f"{arguments.groups:,} groups; a cycle is written in", end=" ")
    print(", ".join(f"{seconds:.1f} s ({what})" for what, seconds in written.items()))
    print(f"\nEach page {ASKED} times, milliseconds\n")
    print("| page | median | longest | limit | queries |")
    print("|---|---:|---:|---:|---:|")
    for page, seconds in took.items():
        limit, asked = 1000 * _limit(page), queries[page]
        print(f"| {page} | {1000 * median(seconds):.0f} | {1000 * max(seconds):.0f} | {limit:.0f} | {asked:g} |")
    p99 = quantiles(rest, n=100)[-1]
    print(f"\n{READERS} readers of REST, {len(rest):,} answers: 99th percentile {1000 * p99:.0f} ms, median", end=" ")
    print(f"{1000 * median(rest):.0f} ms, longest {1000 * max(rest):.0f} ms; limit {1000 * REST_LIMIT_SECONDS:.0f} ms")
    return int(p99 > REST_LIMIT_SECONDS or any(median(seconds) > _limit(page) for page, seconds in took.items()))


def _limit(page: str) -> float:
    return METRICS_LIMIT_SECONDS if page == "/metrics" else LIMIT_SECONDS


def measure(
    url: str, *, groups: int
) -> tuple[Mapping[str, float], Mapping[str, Sequence[float]], Mapping[str, float], Sequence[float]]:
    """The seconds of what is written; of each page, and its queries, by its name; and of the readers of REST."""
    store = SqlDecisionStore(url)
    known_groups = KnownGroups()
    (last,) = decisions("orders", cycles=1, known_groups=known_groups)
    metrics = Metrics(store, clock=lambda: DECIDED_AT, version="bench")
    middle, written = _fill(store, metrics, last, groups=groups)
    keep_little_of_what_is_freed(for_readers=True)
    while gc.get_freeze_count() == 0:
        time.sleep(1.0)
    asked = count()
    bound = listen("127.0.0.1", 0, search=False)
    with (
        serving(
            create_app(
                store,
                clock=lambda: DECIDED_AT + next(asked) * APART,
                version="bench",
                metrics=metrics,
                known_groups=known_groups,
            ),
            bound,
        ),
        httpx2.Client(base_url=url_of(bound), headers={"accept": "text/html"}, timeout=60) as client,
    ):
        took: dict[str, list[float]] = {}
        queries: dict[str, float] = {}
        for name, path in (
            ("fleet, first", "/"),
            ("fleet, middle", f"/?cursor={middle}"),
            ("fleet, one name", "/?group_id=orders"),
            ("group", f"/groups/{group_key(CLUSTER, 'orders')}"),
            ("group, its pictures", f"/groups/{group_key(CLUSTER, 'orders')}/pictures"),
            ("data", "/quality"),
            ("settings", "/settings"),
            ("/metrics", "/metrics"),
            ("decision", f"/recommendations/{last.recommendation_id}"),
        ):
            with _queries() as asked_for:
                took[name] = [_seconds(client, path) for _ in range(ASKED)]
            queries[name] = len(asked_for) / ASKED
        command = [sys.executable, "-m", "benchmarks.speed.pages", "--read", url_of(bound), "--groups", str(groups)]
        reading = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # this program
    store.close()
    return written, took, queries, json.loads(reading.stdout)


@contextmanager
def _queries() -> Iterator[list[str]]:
    """The queries of all stores of this process within the block."""
    found: list[str] = []

    def before(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
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
