"""Ten consumer groups on a real Kafka, and lagcast with nothing but its address: what it finds out, and how soon.

    make lab-discovery OUT=FILE MINUTES=60
    python -m benchmarks.discovery --page FILE > docs/lab-discovery.md

The first form starts everything on loopback, and takes two minutes more than MINUTES. FILE is a JSON document. The
second form prints the page of such a document, and runs nothing.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.command import commit, names_among, print_page, swap_in
from benchmarks.discovery.groups import DEPLOY_SECONDS, GROUPS, LabGroup
from benchmarks.discovery.judge import judged
from benchmarks.discovery.page import page_of
from benchmarks.discovery.stage import PAST_MINUTES, Seen, experiment_of, played
from benchmarks.rebalances.run import kafka_version

# A run has two days of the load, so that the second one shows what the first one taught.
DAYS = 2
LEAST_MINUTES, MOST_MINUTES = 2.0, 24 * 60.0


def main(words: Sequence[str] | None = None) -> int:
    """Run the lab and write its document, or print the page of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/lab-discovery.json"), help="where the JSON goes")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long lagcast runs (default 60)")
    parser.add_argument("--groups", type=names_among(tuple(GROUPS)), default=tuple(GROUPS), help="which of the groups")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], page_of, of="the lab")
        return 0
    if not LEAST_MINUTES <= arguments.minutes <= MOST_MINUTES:
        parser.error(f"--minutes {arguments.minutes:g}: give from {LEAST_MINUTES:g} to {MOST_MINUTES:g}")
    document = document_of([GROUPS[name] for name in arguments.groups], minutes=arguments.minutes)
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    print(page_of(document), end="")
    return 0


def document_of(groups: Sequence[LabGroup], *, minutes: float) -> dict[str, Any]:
    """Run the lab: all that was found, beside the truth."""
    loads: list[float] = []
    begun_at = commit()  # what runs is the code of the start, whatever is committed meanwhile
    with tempfile.TemporaryDirectory() as name:
        seen = played(groups, Path(name), minutes=minutes, day_minutes=minutes / DAYS, loads=loads)
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "minutes": minutes,
        "day_minutes": minutes / DAYS,
        "past_minutes": PAST_MINUTES,
        "deploy_seconds": DEPLOY_SECONDS,
        "processors": os.cpu_count(),
        "mean_load": sum(loads) / len(loads),
        "kafka": kafka_version(),
        "groups": [group_of(group, seen[group.name]) for group in groups],
    }


def group_of(group: LabGroup, seen: Seen) -> dict[str, Any]:
    """One group of the document."""
    truth = dict(group.truth)
    if seen.state_bytes is not None:
        truth["restore_bytes"] = seen.state_bytes
    experiment = experiment_of(seen.looks, group)
    return {
        "name": group.name,
        "words": group.words,
        "client": group.client,
        "day": group.day,
        "replicas": group.replicas,
        "capacity": group.capacity,
        "deployed_at_minute": seen.deployed_at_minute,
        "experiment": None if experiment is None else asdict(experiment),
        "found": asdict(judged(seen.readings, truth)),
    }


if __name__ == "__main__":
    sys.exit(main())
