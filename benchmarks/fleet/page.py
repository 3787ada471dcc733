"""The bars of a fleet, their page and its picture, from the JSON documents alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.command import Bar, aged, bar_table, table
from benchmarks.drawing import drawn

Document = Mapping[str, Any]

MOST_CORES, MOST_MEBIBYTES, MOST_AGE_SECONDS = 1.0, 1024.0, 20.0

INTRODUCTION = """# A fleet beside one recommender

{groups:,} consumer groups of {partitions} partitions, each read every 15 s, and one recommender that decides on all of
them after each reading. The page is made from one JSON document, which one command writes:

    make bench-fleet GROUPS={groups} MINUTES={minutes:g} WEEKS={weeks} OUT=FILE
    python -m benchmarks.fleet --page FILE > docs/fleet.md

- **Where and when.** {measured_at}, commit {commit}, one Kafka broker on loopback, a machine with {processors}
  processors (mean load {mean_load:.1f} in the measured minutes: broker, Spark and the sender of samples are on it too).
- **What runs.** `lagcast up` and `lagcast land` as users start them, with the store of a user who sets none (SQLite),
  and Kafka as the place of publication. The samples come on a topic, as from a collector elsewhere; `land` writes them
  to files, and Spark makes rows of them.
- **Load.** A day's wave with {noise:.0%} of noise in each reading, so that every group has changed in every cycle. The
  capacity of a replica is set. Each group does what it is advised, when it is. Then, all at once, half as much again
  comes in every group.
{past}
"""

# Of a run without weeks, and of one with them.
YOUNG = """\
- **The past** is half an hour of samples. The minutes of four weeks take 0.1 MB more of each group, which is in no
  figure of this page.
- **Measured** over {minutes:g} minutes, from two minutes after each group had its first advice."""
OLD = """\
- **The past.** Once each group has its first advice, from half an hour of samples, `up` is stopped, rows of {weeks}
  weeks are put into its table for each group, and it is started again, as a service that has run for so long. Each
  forecaster is proven with the weeks then, which a service that had them before has kept.
- **Measured** over {minutes:g} minutes, once the weeks of all groups are read, and an hour has passed since that start:
  those that were fitted first are then fitted again."""

WORDS = """\
- *Recommender* is the process that reads the rows, decides, stores, publishes and serves; Spark and the reading of
  Kafka are processes of their own.
- *Reading to advice* is from a reading of a group to the first advice on Kafka that uses it, of {samples:,} readings.
- *All changed at once* is from the first reading of the higher load to the last group's advice that uses it.
"""

STARTS = """\
Other work on the machine makes starts longer, and is not in the mean load: [Run it](operations.md#decide) has seconds
of starts with and without such work.
"""


def bars_of(document: Document) -> list[Bar]:
    """The figures that have a bar."""
    resident, age = document["recommender_resident_mebibytes"], document["age_seconds"]["p95"]
    return [
        Bar(what="recommender, processor cores on average", figure=document["recommender_cores"], most=MOST_CORES),
        Bar(what="recommender, resident MiB", figure=resident, most=MOST_MEBIBYTES),
        Bar(what="reading to advice, 95th percentile, s", figure=age, most=MOST_AGE_SECONDS),
        Bar(what="all changed at once, s", figure=document["surge_seconds"], most=30.0),
    ]


def page_of(document: Document, *, picture: Path) -> str:
    """The page of a run; its picture is drawn into the file, where the document has what it shows."""
    age = document["age_seconds"]
    others = [
        ("reading to advice, median, s", f"{age['median']:.1f}"),
        ("reading to advice, longest, s", f"{age['longest']:.1f}"),
        ("Spark and the reading of Kafka, processor cores on average", f"{document['below_cores']:.2f}"),
        ("first advice for every group, s from the start of `up`", f"{document['first_advice_seconds']:.0f}"),
    ]
    weeks = document.get("weeks", 0)  # none before there were any
    if weeks:
        others.append(("the same from the second start, with the weeks", f"{document['restart_seconds']:.0f}"))
        others.append(("until their weeks were read, s from the second start", f"{document['past_read_seconds']:.0f}"))
    past = (OLD if weeks else YOUNG).format(weeks=weeks, minutes=document["minutes"])
    page = [
        INTRODUCTION.format(**{**document, "weeks": weeks}, past=past),
        "## The bars\n",
        bar_table(bars_of(document)),
        WORDS.format(**document),
        *_pictured(document, picture),
        "## Beside them\n",
        table(("figure", "measured"), others),
        STARTS,
    ]
    return aged("\n".join(page), document)


def has_picture(document: Document) -> bool:
    """True unless the run is from before distributions and single looks were noted."""
    return "recommender_looks" in document and "age_seconds_by_percent" in document


def draw(document: Document, path: Path) -> None:
    """Three panels as SVG: ages of advice, and the processor time and memory of the recommender, each with its bar."""
    looks, by_percent = document["recommender_looks"], document["age_seconds_by_percent"]
    minutes = [look["seconds"] / 60.0 for look in looks]
    with drawn(path, size=(9.0, 3.2)) as figure:
        ages, cores, memory = figure.subplots(1, 3)
        for name, label in (("readings", "readings"), ("groups", "groups, by their longest")):
            ages.plot(by_percent[name], range(len(by_percent[name])), label=label)
        ages.axvline(MOST_AGE_SECONDS, linestyle="--", color="grey", label="bar of 95 % of readings")
        ages.axhline(95.0, linestyle=":", color="grey")
        ages.set_xlim(left=0.0)
        ages.set_xlabel("seconds from reading to advice, at most")
        ages.set_ylabel("% of them")
        ages.legend()
        cores.plot(minutes, [look["cores"] for look in looks], linewidth=0.8, label="between two looks")
        cores.axhline(document["recommender_cores"], color="tab:orange", label="mean")
        cores.axhline(MOST_CORES, linestyle="--", color="grey", label="bar of the mean")
        memory.plot(minutes, [look["resident_mebibytes"] for look in looks], label="resident")
        memory.axhline(MOST_MEBIBYTES, linestyle="--", color="grey", label="bar")
        for axis, unit in ((cores, "processor cores of the recommender"), (memory, "MiB of the recommender")):
            axis.set_ylim(bottom=0.0)
            axis.set_xlabel("minutes")
            axis.set_ylabel(unit)
            axis.legend()


def _pictured(document: Document, picture: Path) -> list[str]:
    if not has_picture(document):
        return []
    draw(document, picture)
    shown = "How many readings and groups had their advice within how long; cores and memory of the recommender"
    return [f"![{shown}, by the minute]({picture.name})\n"]
