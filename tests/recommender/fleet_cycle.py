"""Cycles over a thousand groups of 24 partitions, of which nothing is set; prints what they took as JSON.

    python -m tests.recommender.fleet_cycle FOLDER [--groups 1000] [--cycles 1]

A process of its own, so that its memory is that of the loop. Cycles are a minute apart, each with a new row of every
group; the first one opens all groups and compiles.
"""

import argparse
import json
import logging
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

import structlog

from forecasting.history import GroupInterval
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import ReadInTurn

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
PARTITIONS, MEMBERS, MINUTES = 24, 8, 60
MINUTE = timedelta(minutes=1)
FIRST_ROW_AT = NOW - (MINUTES - 1) * MINUTE


@dataclass(frozen=True, slots=True)
class Fleet(ReadInTurn):
    """A feature table of groups with rates of their own, an hour old at `NOW`."""

    size: int

    def groups(self, *, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """So many names."""
        return [("c", str(index)) for index in range(self.size)]

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """A minute a row: between 3,000/s and 5,000/s, up and down by a tenth."""
        level = 3000.0 + 2.0 * int(group)
        first = 0 if since is None else max(0, (since - FIRST_ROW_AT) // MINUTE + 1)
        last = MINUTES - 1 if until is None else (until - FIRST_ROW_AT) // MINUTE
        return [
            replace(
                _row(cluster, group, level * (1.0 + 0.1 * ((7919 * minute + int(group)) % 13 - 6) / 6)),
                interval_end_at=FIRST_ROW_AT + minute * MINUTE,
            )
            for minute in range(first, last + 1)
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


def _most_resident_bytes() -> int:
    """The most that this process has held; `getrusage` counts what its parent held when it was started, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return 1024 * int(kilobytes)


def main() -> None:
    """Decide on all of them, cycle by cycle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the store goes")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--cycles", type=int, default=1)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    nothing_set = GroupSettings()
    loop = Recommender(
        watched=WatchedGroups(
            histories=Fleet(arguments.groups),
            profile_of=nothing_set.profile,
            settings=DecisionSettings(),
            store=SqlDecisionStore(sqlite_url(arguments.folder / "decisions.sqlite")),
            timer=perf_counter,
        ),
        publishers=[],
    )
    cpu_seconds, kinds = [], Counter[str]()
    for cycle in range(arguments.cycles):
        begun = process_time()
        decisions = loop.run_once(now=NOW + cycle * MINUTE)
        cpu_seconds.append(process_time() - begun)
        kinds.update(type(decision).__name__ for decision in decisions)
    took = {
        "cpu_seconds": cpu_seconds,
        "resident_bytes": _most_resident_bytes(),
        "kinds": kinds,
    }
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main()
