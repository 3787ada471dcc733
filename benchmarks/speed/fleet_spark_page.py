"""The line and the bars of a fleet on Spark, their page and its picture, from the JSON documents alone."""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import Bar, aged, bar_table, table
from benchmarks.drawing import drawn

Document = Mapping[str, Any]

# 10,000 groups in ten minutes, and ten times as many in ten times as long.
MOST_SECONDS, OF_GROUPS = 600.0, 10_000
FAR_GROUPS = 100_000
# The sizes lie on a line where none is further from it than this share of its seconds.
MOST_OFF_SHARE = 0.15

INTRODUCTION = """# How long a fleet takes on Spark

`lagcast recommend --on-spark` decides generated groups on a Spark cluster ([Ten thousand groups](fleet-on-spark.md)).
The page and its picture are made from the JSON document that the first command writes, and of the weeks ahead from that
of the second:

    make bench-fleet-spark GROUPS={groups} WORKERS={workers} HOURS={hours:g} OUT=FILE
    make bench-fleet-spark FORECASTS={forecasts} WORKERS={workers} OUT=WEEKS
    python -m benchmarks.speed.fleet_spark --page FILE WEEKS > docs/fleet-on-spark-bench.md

- **Where and when.** {measured_at}, commit {commit}, Spark {spark}, a machine with {processors} processors (mean load
  {mean_load:.1f}, the runs themselves included): a master and {workers} workers of one core each, all on it.
- **Groups** have 24 partitions, a day's wave with noise, and {rows:,} rows of {row_seconds} s. Nothing is set of them.
- **Seconds** are those of the command as a user starts it, in a new process with new executors, until it has ended.
- **Documents** of {compared} groups of the largest run, chosen by a seed, are compared with those that `lagcast
  recommend` makes of these groups in one process, after the measured time.
"""

WEEKS = """\
`lagcast forecast` on such a cluster ({measured_at}, commit {commit}, Spark {spark}, {workers} workers on {processors}
processors; `FORECASTS={groups}`).

{sentence}
"""

LINE = """\
The line through the runs: {start:.0f} s, and {each:.1f} ms for each group. Beyond the largest run it is an estimate.
"""


class Line(NamedTuple):
    """The line through the runs: seconds of none, of each group, and how far the furthest run is from it."""

    start_seconds: float
    seconds_a_group: float
    most_off_share: float

    def seconds(self, groups: float) -> float:
        """The seconds of so many groups; infinite on a line that does not rise, where noise hid what groups take."""
        return self.start_seconds + self.seconds_a_group * groups if self.seconds_a_group > 0.0 else inf


def line_of(document: Document) -> Line:
    """The line with the least squares through the runs.

    >>> line = line_of({"runs": [{"groups": 100, "seconds": 30.0}, {"groups": 300, "seconds": 50.0}]})
    >>> line.start_seconds, line.seconds_a_group, line.seconds(1000)
    (20.0, 0.1, 120.0)
    """
    groups, seconds = (np.array([run[name] for run in document["runs"]]) for name in ("groups", "seconds"))
    each, start = (float(value) for value in np.polyfit(groups, seconds, 1))
    return Line(start, each, float(np.max(np.abs(seconds - (start + each * groups)) / seconds)))


def bars_of(document: Document) -> list[Bar]:
    """All bars. Seconds of a size that was not run are those of the line."""
    line = line_of(document)
    seconds = next((run["seconds"] for run in document["runs"] if run["groups"] == OF_GROUPS), line.seconds(OF_GROUPS))
    return [
        Bar(what=f"{OF_GROUPS:,} groups, s", figure=seconds, most=MOST_SECONDS),
        Bar(
            what=f"{FAR_GROUPS:,} groups by the line, s",
            figure=line.seconds(FAR_GROUPS),
            most=MOST_SECONDS * FAR_GROUPS / OF_GROUPS,
        ),
        Bar(what="furthest run from the line, share of its seconds", figure=line.most_off_share, most=MOST_OFF_SHARE),
        Bar(
            what=f"documents that differ from those of one process, of {document['compared_groups']:,}",
            figure=document["differing_documents"],
            most=0,
        ),
    ]


def weeks_sentence(weeks: Document) -> str:
    """How long the weeks ahead took."""
    each = 1000.0 * weeks["seconds"] / weeks["groups"]
    return (
        f"{weeks['forecast']:,} of {weeks['groups']:,} groups were forecast for a week, from {weeks['days']} days of "
        f"minutes, in {weeks['seconds']:,.0f} s: {each:,.0f} ms a group."
    )


def page_of(document: Document, weeks: Document | None = None, *, picture: Path) -> str:
    """The page of a run, and of one of weeks ahead where there is one; its picture is drawn into the file."""
    draw(document, picture)
    line, parts = line_of(document), document["part_of_a_group"]
    runs = [
        (f"{run['groups']:,}", f"{run['decided']:,}", f"{run['advised']:,}", f"{run['seconds']:,.0f}")
        for run in document["runs"]
    ]
    of_a_group = [
        ("open: make rows, grade moves", f"{parts['open_milliseconds']:.0f} ms"),
        ("decide: forecast, plans, guards", f"{parts['decide_milliseconds']:.0f} ms"),
        ("an opened group", f"{parts['opened_kilobytes']:.0f} kB"),
    ]
    text = [
        _introduction(document, forecasts=10_000 if weeks is None else weeks["groups"]),
        "## The bars\n",
        bar_table(bars_of(document)),
        LINE.format(start=line.start_seconds, each=1000.0 * line.seconds_a_group),
        f"![Seconds by groups, with the line through them and the bars]({picture.name})\n",
        "## Runs\n",
        table(("groups", "decided", "of them advised", "seconds"), runs, words=0),
        *([] if weeks is None else ["## The week ahead\n", WEEKS.format(**weeks, sentence=weeks_sentence(weeks))]),
        "## Processor time of one group\n",
        "Medians in a warm process, outside of Spark.\n",
        table(("part", "median"), of_a_group),
    ]
    return aged("\n".join(text), document)


def draw(document: Document, path: Path) -> None:
    """Seconds by groups as SVG, both logarithmic: the runs, the line through them as far as the bars, and the bars."""
    line, runs = line_of(document), document["runs"]
    with drawn(path, size=(6.0, 3.6)) as figure:
        axis = figure.subplots()
        groups = np.geomspace(min(run["groups"] for run in runs), FAR_GROUPS, 100)
        axis.plot(groups, [line.seconds(each) for each in groups], "-", color="tab:blue", label="line through the runs")
        axis.plot([run["groups"] for run in runs], [run["seconds"] for run in runs], "o", color="tab:blue", label="run")
        bars = [MOST_SECONDS, MOST_SECONDS * FAR_GROUPS / OF_GROUPS]
        axis.plot([OF_GROUPS, FAR_GROUPS], bars, "v", color="grey", label="bar")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("groups")
        axis.set_ylabel("seconds")
        axis.legend()


def _introduction(document: Document, *, forecasts: int) -> str:
    return INTRODUCTION.format(
        **{name: document[name] for name in ("measured_at", "commit", "processors", "mean_load", "workers", "spark")},
        groups=max(run["groups"] for run in document["runs"]),
        hours=document["rows_a_group"] * document["row_seconds"] / 3600.0,
        rows=document["rows_a_group"],
        row_seconds=document["row_seconds"],
        compared=document["compared_groups"],
        forecasts=forecasts,
    )
