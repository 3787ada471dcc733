"""One cycle over a thousand groups of 24 partitions, of which nothing is set; prints what it took as JSON.

    python -m tests.recommender.fleet_cycle FOLDER

A process of its own, so that its memory is that of the loop.
"""

import json
import logging
import resource
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

import structlog

from forecasting.history import GroupInterval
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.run import Recommender
from tests.recommender.loop import ReadInTurn

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
GROUPS, PARTITIONS, MEMBERS, MINUTES = 1000, 24, 8, 60


class Fleet(ReadInTurn):
    """A feature table of groups with rates of their own, an hour old."""

    def groups(self, *, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """A thousand names."""
        return [("c", str(index)) for index in range(GROUPS)]

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """A minute a row: between 3,000/s and 5,000/s, up and down by a tenth."""
        del since, until
        level = 3000.0 + 2.0 * int(group)
        swings = (1.0 + 0.1 * ((7919 * minute + int(group)) % 13 - 6) / 6 for minute in range(MINUTES))
        return [
            replace(_row(cluster, group, level * swing), interval_end_at=NOW - timedelta(minutes=MINUTES - 1 - minute))
            for minute, swing in enumerate(swings)
        ]


def _row(cluster: str, group: str, rate: float) -> GroupInterval:
    return GroupInterval(
        cluster=cluster,
        group=group,
        topics="orders",
        interval_end_at=NOW,
        interval_seconds=60,
        produce_messages_per_second=rate,
        consume_messages_per_second=rate,
        lag_messages=2.5 * rate,
        lag_seconds=2.5,
        partitions=PARTITIONS,
        sampled_partitions=PARTITIONS,
        members=MEMBERS,
    )


def main() -> None:
    """Decide once on all of them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    nothing_set = GroupSettings()
    loop = Recommender(
        histories=Fleet(),
        profile_of=nothing_set.profile,
        settings=DecisionSettings(),
        store=SqlDecisionStore(sqlite_url(Path(sys.argv[1]) / "decisions.sqlite")),
        timer=perf_counter,
        publishers=[],
    )
    begun = process_time()
    decisions = loop.run_once(now=NOW)
    took = {
        "cpu_seconds": process_time() - begun,
        "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "kinds": Counter(type(decision).__name__ for decision in decisions),
    }
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main()
