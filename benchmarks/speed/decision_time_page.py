"""The page of the time of decisions and its picture, from the JSON document alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from benchmarks.command import aged, table
from benchmarks.drawing import drawn

Document = Mapping[str, Any]

# What is varied alone, with its name on the page.
VARIED = {"partitions": "partitions", "horizon_seconds": "horizon, s", "scenarios": "scenarios"}

INTRODUCTION = """# How long a decision takes

Processor time of one decision, and of a cycle over many groups. The page and its picture are made from one JSON
document, which one command writes:

    make bench-decision-time GROUPS={groups} OUT=FILE
    python -m benchmarks.speed.decision_time --page FILE > docs/decision-time.md

- **Where and when.** {measured_at}, commit {commit}, a machine with {processors} processors (mean load {mean_load:.1f},
  the run itself included).
- **A decision** has all of its parts: forecast, scenarios, every candidate plan, guards, sentences, and what would
  reverse it. One is made each minute of a morning of the generated load, after two weeks of it. The forecaster is
  fitted again each hour, which counts: one decision in sixty. The first one, which compiles, does not.
- **Varied alone** are partitions, horizon and scenarios; the others are {partitions} partitions, {horizon_seconds:,} s
  and {scenarios} scenarios.
- **A cycle** is one of the loop over groups of {of_a_fleet} partitions with an hour of rows of a minute, of which
  nothing is set, in a process of its own: new rows are read, all groups are decided, and the decisions are stored in
  SQLite; nothing is published. Each group has a new row in each cycle. The first cycle opens all groups and compiles.
"""

COUNTS = """\
*Counts that differ* are the replica counts of which each has another largest share of partitions: plans move between
these alone.
"""


def page_of(document: Document, *, picture: Path) -> str:
    """The page of a run; its picture is drawn into the file."""
    draw(document, picture)
    names = {name: document[name] for name in ("measured_at", "commit", "processors", "mean_load")}
    introduction = INTRODUCTION.format(
        **names,
        **document["base"],
        groups=max(cycle["groups"] for cycle in document["cycles"]),
        of_a_fleet=document["partitions_of_a_fleet"],
    )
    alternative = "Milliseconds of a decision by partitions, horizon and scenarios, and seconds of a cycle by groups"
    return aged(f"{introduction}\n![{alternative}]({picture.name})\n\n{tables_of(document)}", document)


def tables_of(document: Document) -> str:
    """A table for each of what is varied."""
    parts = []
    for name, shown in VARIED.items():
        parts += [f"## By {shown.partition(',')[0]}\n", _decisions(varied(document, name), name, shown)]
        if name == "partitions":
            parts.append(COUNTS)
    return "\n".join([*parts, "## By groups\n", _cycles(document["cycles"])])


def varied(document: Document, name: str) -> list[Document]:
    """The decisions in which this alone differs from the base, in its order.

    >>> base = {"partitions": 24, "horizon_seconds": 3600, "scenarios": 64}
    >>> decisions = [base | {"partitions": 8}, base, base | {"scenarios": 16}]
    >>> [each["scenarios"] for each in varied({"base": base, "decisions": decisions}, "scenarios")]
    [16, 64]
    """
    others = [other for other in VARIED if other != name]
    base = document["base"]
    found = [each for each in document["decisions"] if all(each[other] == base[other] for other in others)]
    return sorted(found, key=lambda each: int(each[name]))


def draw(document: Document, path: Path) -> None:
    """Four panels as SVG: a decision by each of what is varied, and a cycle by groups."""
    with drawn(path, size=(8.0, 6.0)) as figure:
        *panels, of_groups = figure.subplots(2, 2).flat
        for axis, (name, shown) in zip(panels, VARIED.items(), strict=True):
            found = varied(document, name)
            curves = {"median": "median_milliseconds", "95th percentile": "p95_milliseconds"}
            _panel(axis, found, name, curves, label=shown, unit="ms of a decision")
            if name != "horizon_seconds":
                axis.set_xscale("log")
                axis.set_xticks([each[name] for each in found], [f"{each[name]:,}" for each in found])
                axis.minorticks_off()
        curves = {"first cycle": "first_seconds", "one after it, median": "median_seconds"}
        _panel(of_groups, document["cycles"], "groups", curves, label="groups", unit="s of a cycle")
        of_groups.set_xlim(left=0.0)


def _panel(
    axis: Axes, found: Sequence[Document], name: str, curves: Mapping[str, str], *, label: str, unit: str
) -> None:
    for (curve, field), style in zip(curves.items(), ("o-", "o--"), strict=True):
        axis.plot([each[name] for each in found], [each[field] for each in found], style, markersize=4, label=curve)
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel(label)
    axis.set_ylabel(unit)
    axis.legend()


def _decisions(found: Sequence[Document], name: str, shown: str) -> str:
    rows = [
        (
            f"{each[name]:,}",
            f"{each['useful_counts']:,}",
            f"{each['decisions']:,}",
            f"{each['median_milliseconds']:.1f}",
            f"{each['p95_milliseconds']:.1f}",
        )
        for each in found
    ]
    return table((shown, "counts that differ", "decisions", "median, ms", "95th percentile, ms"), rows, words=0)


def _cycles(cycles: Sequence[Document]) -> str:
    rows = [
        (
            f"{each['groups']:,}",
            f"{each['first_seconds']:.1f}",
            f"{each['cycles']}",
            f"{each['median_seconds']:.1f}",
            f"{each['longest_seconds']:.1f}",
            f"{1000.0 * each['median_seconds'] / each['groups']:.1f}",
            f"{each['resident_mebibytes']:,.0f}",
        )
        for each in cycles
    ]
    head = (
        "groups",
        "first cycle, s",
        "cycles after it",
        "their median, s",
        "longest, s",
        "a group, ms",
        "memory, MiB",
    )
    return table(head, rows, words=0)
