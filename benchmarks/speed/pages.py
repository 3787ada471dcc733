"""Measures how long the server takes for each page: `python -m benchmarks.speed.pages --groups 15000`.

A store of so many groups, with advice of the loop as the latest decision of each and a whole day of decisions on one,
is read by the service that `lagcast serve` runs, on loopback, by one caller that waits for each answer. Between two of
them more time goes by than a page is kept, so that each is made anew. Prints the median and longest time of each page
beside its limit; the exit code is 1 where a median is above it.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median

import httpx2
import structlog

from api.app import create_app
from api.convert import cursor_of_place
from api.keys import group_key
from cli.server import listen, serving, url_of
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.known_groups import KnownGroups
from recommender.ports import place_of
from tests.live.harness.decided import CLUSTER, DECIDED_AT, decisions, named

# The fleet of 15,000 groups is the page that other tools answer in half a minute; people take a tenth for at once, and
# three tenths for quick.
LIMIT_SECONDS = 0.3
# A decision each 15 s.
DECISIONS_OF_A_DAY = 5760
ASKED = 30
# A page is kept for 4 s at most.
APART = timedelta(seconds=5)


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
    known_groups = KnownGroups()
    (last,) = decisions("orders", cycles=1, known_groups=known_groups)
    fleet = [_differing(named(last, f"shop-{number:05}"), number) for number in range(groups - 1)]
    for decision in (*_day_of(last), *fleet):
        store.save(decision)
    middle = cursor_of_place(sorted(map(place_of, fleet))[groups // 2])
    asked = count()
    bound = listen("127.0.0.1", 0, search=False)
    with (
        serving(
            create_app(
                store, clock=lambda: DECIDED_AT + next(asked) * APART, version="bench", known_groups=known_groups
            ),
            bound,
        ),
        httpx2.Client(base_url=url_of(bound), headers={"accept": "text/html"}, timeout=60) as client,
    ):
        took = {
            name: [_seconds(client, path) for _ in range(ASKED)]
            for name, path in (
                ("fleet, first", "/"),
                ("fleet, middle", f"/?cursor={middle}"),
                ("fleet, one name", "/?group_id=orders"),
                ("group", f"/groups/{group_key(CLUSTER, 'orders')}"),
                ("group, its pictures", f"/groups/{group_key(CLUSTER, 'orders')}/pictures"),
                ("data", "/quality"),
                ("settings", "/settings"),
                ("decision", f"/recommendations/{last.recommendation_id}"),
            )
        }
    store.close()
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
