"""The bars of what readers cost the loop, and their page, from the JSON document alone."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from api.turns import MOST_WAITING
from benchmarks.command import Bar, aged, bar_table, table

Document = Mapping[str, Any]

# Readers have a tenth of the time while decisions are made, and the rest of the fifth is for noise.
MOST_TIMES = 1.2
# Answers that are made, and pages that are kept for all who ask for them.
MOST_MEGABYTES = 300.0
RUNS = {"alone": "no readers", "beside": "readers"}

INTRODUCTION = """# What readers cost the loop

One process decides on {groups:,} groups in cycles and answers REST and pages, as `lagcast serve` does. Another one is
{readers:,} readers: each asks for every route in turn, without a pause, and keeps one stream of events open, as a
browser does that shows a page. The page is made from a JSON document, which one command writes:

    make bench-readers GROUPS={groups} READERS={readers} OUT=FILE
    python -m benchmarks.speed.readers --page FILE > docs/readers-bench.md

- **Cycles** decide on every group, with a new row of each. The first cycle, which reads the past, is not counted; then
  come {cycles} without readers, and in the same process {cycles} with them.
- **Routes** are those of the service itself; a route that is added is read too.
- **Readers take turns**: of more than {waiting} requests that wait the newest get 503, so that the loop decides.
"""

ANSWERS = """\
Answers while the cycles with readers ran, and until all that had been asked was answered. 404: there is nothing to show
here, such as figures by partition, which `lagcast up` alone reads. Of streams each event is one.
"""


def bars_of(document: Document) -> list[Bar]:
    """The longer cycle, and the more memory.

    >>> alone = {"wall_seconds": [9.0, 10.0, 11.0], "resident_megabytes": 400.0}
    >>> beside = {"wall_seconds": [11.0, 11.0, 30.0], "resident_megabytes": 500.0}
    >>> [(bar.what, bar.figure) for bar in bars_of({"alone": alone, "beside": beside})]
    [('a cycle, times as long as without readers', 1.1), ('more memory than without readers, MB', 100.0)]
    """
    alone, beside = (document[run] for run in RUNS)
    return [
        Bar(
            what="a cycle, times as long as without readers",
            figure=median(beside["wall_seconds"]) / median(alone["wall_seconds"]),
            most=MOST_TIMES,
        ),
        Bar(
            what="more memory than without readers, MB",
            figure=beside["resident_megabytes"] - alone["resident_megabytes"],
            most=MOST_MEGABYTES,
        ),
    ]


def page_of(document: Document) -> str:
    """The page of a run. Errors: LookupError where the document is none."""
    cycles = len(document["alone"]["wall_seconds"])
    parts = [
        INTRODUCTION.format(
            groups=document["groups"], readers=document["readers"], cycles=cycles, waiting=MOST_WAITING
        ),
        "## The bars\n",
        bar_table(bars_of(document)),
        "## A cycle\n",
        f"Medians of {cycles} cycles; memory is the most at any time during them.\n",
        cycles_table(document),
        "## Answers\n",
        ANSWERS,
        answers_table(document),
        "## Where and when\n",
        table(
            ("day", "commit", "processors", "mean load"),
            [
                (
                    document["measured_at"],
                    document["commit"],
                    f"{document['processors']}",
                    f"{document['mean_load']:.1f}",
                )
            ],
            words=2,
        ),
    ]
    return aged("\n".join(parts), document)


def cycles_table(document: Document) -> str:
    """The cycles with and without readers."""
    rows = [
        (
            name,
            f"{median(document[run]['wall_seconds']):.2f}",
            f"{median(document[run]['cpu_seconds']):.2f}",
            f"{document[run]['resident_megabytes']:,.0f}",
        )
        for run, name in RUNS.items()
    ]
    return table(("", "seconds of a cycle", "processor seconds of the loop", "resident MB"), rows)


def answers_table(document: Document) -> str:
    """The answers by route and status, most often 200."""
    statuses = sorted({status for found in document["answers"].values() for status in found})
    rows = [
        (f"`{route}`", *(f"{found.get(status, 0):,}" for status in statuses))
        for route, found in sorted(document["answers"].items())
    ]
    return table(("route", *statuses), rows)
