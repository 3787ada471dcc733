"""Measures how long the server takes for each page: `python -m benchmarks.speed.pages --groups 15000`.

A store of so many groups, with advice of the loop as the latest decision of each and a dozen decisions of one, is read
by the service that `lagcast serve` runs, on loopback, by one caller that waits for each answer. Prints the median and
longest time of each page beside its limit; the exit code is 1 where a median is above it.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import httpx2
import structlog

from api.app import create_app
from api.keys import group_key
from cli.server import listen, serving, url_of
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from tests.live.harness.decided import CLUSTER, DECIDED_AT, decisions, named

# The fleet of 15,000 groups is the page that other tools answer in half a minute; people take a tenth for at once, and
# three tenths for quick.
LIMIT_SECONDS = 0.3
DECISIONS = 12
ASKED = 30


def main() -> int:
    """Read the arguments, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=15_000)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        took = measure(sqlite_url(Path(folder) / "decisions.sqlite"), groups=arguments.groups)
    print(f"{arguments.groups:,} groups, each page {ASKED} times, milliseconds\n")
    print("| page | median | longest | limit |")
    print("|---|---:|---:|---:|")
    for page, seconds in took.items():
        print(f"| {page} | {1000 * median(seconds):.0f} | {1000 * max(seconds):.0f} | {1000 * LIMIT_SECONDS:.0f} |")
    return int(any(median(seconds) > LIMIT_SECONDS for seconds in took.values()))


def measure(url: str, *, groups: int) -> Mapping[str, Sequence[float]]:
    """The seconds of each page, by its name."""
    store = SqlDecisionStore(url)
    *earlier, last = decisions("orders", cycles=DECISIONS)
    for decision in (*earlier, last, *(named(last, f"shop-{number:05}") for number in range(groups - 1))):
        store.save(decision)
    bound = listen("127.0.0.1", 0, search=False)
    with (
        serving(create_app(store, clock=lambda: DECIDED_AT, version="bench"), bound),
        httpx2.Client(base_url=url_of(bound), headers={"accept": "text/html"}, timeout=60) as client,
    ):
        middle = group_key(CLUSTER, f"shop-{groups // 2:05}")
        took = {
            name: [_seconds(client, path) for _ in range(ASKED)]
            for name, path in (
                ("fleet, first", "/"),
                ("fleet, middle", f"/?cursor={middle}"),
                ("fleet, one name", "/?group_id=orders"),
                ("group", f"/groups/{group_key(CLUSTER, 'orders')}"),
                ("decision", f"/recommendations/{last.recommendation_id}"),
            )
        }
    store.close()
    return took


def _seconds(client: httpx2.Client, path: str) -> float:
    """The seconds from the request to the last byte."""
    begun = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
