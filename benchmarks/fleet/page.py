"""The bars of a fleet and their page, from the JSON documents alone."""

from collections.abc import Mapping
from typing import Any

from benchmarks.command import Bar, aged, bar_table, table

Document = Mapping[str, Any]

INTRODUCTION = """# A fleet beside one recommender

{groups:,} consumer groups of {partitions} partitions, each read every 15 s, and one recommender that decides on all of
them after each reading. The page is made from one JSON document, which one command writes:

    make bench-fleet GROUPS={groups} OUT=FILE
    python -m benchmarks.fleet --page FILE > docs/fleet.md

- **Where and when.** {measured_at}, commit {commit}, one Kafka broker on loopback, a machine with {processors}
  processors (mean load {mean_load:.1f}: broker, Spark and the sender of samples are on it too).
- **What runs.** `lagcast up` and `lagcast land` as users start them, with the store of a user who sets none (SQLite),
  and Kafka as the place of publication. The samples come on a topic, as from a collector elsewhere; `land` writes them
  to files, and Spark makes rows of them.
- **Load.** A day's wave with {noise:.0%} of noise in each reading, so that every group has changed in every cycle. The
  capacity of a replica is set. Each group does what it is advised, when it is. Then, all at once, half as much again
  comes in every group.
- **Measured** over {minutes:g} minutes, from two minutes after each group had its first advice.
"""

WORDS = """\
- Each group begins with half an hour of past. The minutes of four weeks take 0.39 MB more of each group, which is in no
  figure of this page.
- *Recommender* is the process that reads the rows, decides, stores, publishes and serves; Spark and the reading of
  Kafka are processes of their own.
- *Reading to advice* is from a reading of a group to the first advice on Kafka that uses it, of {samples:,} readings.
- *All changed at once* is from the first reading of the higher load to the last group's advice that uses it.
"""


def bars_of(document: Document) -> list[Bar]:
    """The figures that have a bar."""
    return [
        Bar(what="recommender, processor cores on average", figure=document["recommender_cores"], most=1.0),
        Bar(what="recommender, resident MiB", figure=document["recommender_resident_mebibytes"], most=1024.0),
        Bar(what="reading to advice, 95th percentile, s", figure=document["age_seconds"]["p95"], most=20.0),
        Bar(what="all changed at once, s", figure=document["surge_seconds"], most=30.0),
    ]


def page_of(document: Document) -> str:
    """The page of a run."""
    age = document["age_seconds"]
    others = [
        ("reading to advice, median, s", f"{age['median']:.1f}"),
        ("reading to advice, longest, s", f"{age['longest']:.1f}"),
        ("Spark and the reading of Kafka, processor cores on average", f"{document['below_cores']:.2f}"),
        ("first advice for every group, s from the start of `up`", f"{document['first_advice_seconds']:.0f}"),
    ]
    page = [
        INTRODUCTION.format(**document),
        "## The bars\n",
        bar_table(bars_of(document)),
        WORDS.format(**document),
        "## Beside them\n",
        table(("figure", "measured"), others),
    ]
    return aged("\n".join(page), document)
