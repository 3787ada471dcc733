"""The bars of the first minutes and their page, from the JSON document alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.command import aged, table
from benchmarks.discovery.groups import GROUPS

Document = Mapping[str, Any]

INTRODUCTION = """# The first five minutes

From an empty folder to a priced recommendation on the page of a group, beside a Kafka and a Prometheus that are
somebody else's. The page is made from one JSON document, which one command writes:

    make first-five-minutes OUT=FILE
    python -m benchmarks.first_minutes --page FILE > docs/first-minutes.md

- **Where and when.** {measured_at}, commit {commit}, Kafka {kafka}, one broker on loopback, a machine with {processors}
  processors (mean load {load:.1f}, the lab's own consumers and other work included). Chromium draws the pages.
- **What is there before.** A broker with two topics whose messages reach back 45 minutes; klag-exporter and a
  Prometheus, which read each 15 s and are {minutes:.0f} minutes old; two groups of librdkafka with a daily load.
  `stock` has {replicas} replicas, each of which does {capacity:g} messages/s at most. All of them were replaced
  {since:.0f} minutes before the newcomer comes, none ran for {deploy:.0f} s, and they worked off what had piled up.
  `search` was never asked for all that its replicas do.
- **What the newcomer has.** An empty folder with empty caches, no Java on the PATH, the address of the Prometheus or of
  the broker. Nothing else is told to lagcast: no settings file, no capacity, no price.
- **Installed** means a new virtual environment, and pip with the wheel of the checkout and all that it needs from the
  index that pip is configured with{size}.
"""

WORDS = """\
- *Empty folder to advice* is installation, `lagcast doctor` and `lagcast up`, until the headline has a replica
  count and the waterfall of prices is drawn.
- *First picture* begins with the navigation, with nothing in the browser's cache.
- *Decision to page* begins when the cycle has stored and published the decision.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure beside its bar, both in seconds."""

    what: str
    seconds: float
    most_seconds: float

    @property
    def is_kept(self) -> bool:
        """True unless the figure is above the bar."""
        return self.seconds <= self.most_seconds


def total_seconds(document: Document, source: str) -> float:
    """From the empty folder to the priced recommendation on the page: installation, doctor and up."""
    found = document["sources"][source]
    return float((document["install_seconds"] or 0.0) + found["doctor_seconds"] + found["advice_seconds"])


def bars_of(document: Document) -> list[Bar]:
    """All bars. Of several measurements of the same the slowest counts, but for `--help`, where their median does."""
    sources = document["sources"]
    bars = [
        Bar(what=f"empty folder to advice, {source}", seconds=total_seconds(document, source), most_seconds=300.0)
        for source in sources
    ]
    pictures = [seconds for found in sources.values() for seconds in found["first_picture_seconds"]]
    updates = [each["after_publication_seconds"] for found in sources.values() for each in found["updates"]]
    return [
        *bars,
        Bar(what="demo to advice", seconds=document["demo"]["advice_seconds"], most_seconds=30.0),
        Bar(what="--help", seconds=median(document["help_seconds"]), most_seconds=0.3),
        Bar(what="--help, at most", seconds=max(document["help_seconds"]), most_seconds=0.45),
        Bar(what="first picture of a group's page", seconds=max(pictures), most_seconds=1.5),
        Bar(what="decision to page", seconds=max(updates), most_seconds=2.0),
    ]


def page_of(document: Document) -> str:
    """The page."""
    parts = [
        _introduction(document),
        "## The bars\n",
        _bars(document),
        WORDS,
        "## Stages\n",
        _stages(document),
        "## What the page said meanwhile\n",
        _said(document),
        "## What was advised\n",
        _advised(document),
        "## What the doctor found\n",
        _findings(document),
    ]
    return aged("\n".join(parts), document)


def _introduction(document: Document) -> str:
    until, deploy, after = document["before_seconds"]
    size, stock = document["installed_bytes"], GROUPS["stock"]
    return INTRODUCTION.format(
        **{name: document[name] for name in ("measured_at", "commit", "kafka", "processors")},
        load=document["mean_load"],
        minutes=(until + deploy + after) / 60.0,
        replicas=stock.replicas,
        capacity=stock.capacity,
        since=after / 60.0,
        deploy=deploy,
        size="" if size is None else f"; {size / 1e9:.1f} GB are then in the folder",
    )


def _bars(document: Document) -> str:
    rows = [
        (bar.what, f"{bar.seconds:.2f}", f"{bar.most_seconds:g}", "yes" if bar.is_kept else "**no**")
        for bar in bars_of(document)
    ]
    return table(("bar", "seconds", "at most", "kept"), rows)


def _stages(document: Document) -> str:
    rows = []
    if document["install_seconds"] is not None:
        rows.append(("virtual environment and `pip install`", f"{document['install_seconds']:.1f}"))
    for source, found in document["sources"].items():
        option = "--bootstrap HOST:PORT" if source == "kafka" else "--prometheus URL"
        rows += [
            (f"`lagcast doctor {option}`", f"{found['doctor_seconds']:.1f}"),
            (f"`lagcast up {option}`, until it says its address", f"{found['address_seconds']:.1f}"),
            (f"`lagcast up {option}`, until the page has a priced recommendation", f"{found['advice_seconds']:.1f}"),
            ("from the beginning of a cycle until the page shows its decision", _each(found, "after_begin_seconds")),
            ("of it, after the decision was published", _each(found, "after_publication_seconds")),
        ]
    csv = document["csv"]
    rows.append(("`lagcast replay --trace FILE --html FILE`, two days, to its end", f"{csv['seconds']:.1f}"))
    demo = document["demo"]
    rows += [
        ("`lagcast demo`, until it says its address", f"{demo['address_seconds']:.1f}"),
        ("`lagcast demo`, until its page has a priced recommendation", f"{demo['advice_seconds']:.1f}"),
    ]
    return table(("stage", "seconds"), rows)


def _each(found: Document, name: str) -> str:
    """The figures of the updates that were measured, in their order."""
    return ", ".join(f"{update[name]:.1f}" for update in found["updates"])


def _said(document: Document) -> str:
    rows = [
        (source, words, f"{seconds:.1f}")
        for source, found in document["sources"].items()
        for seconds, words in found["said"]
    ]
    return table(("source", "headline of `stock`", "from second"), rows, words=2)


def _advised(document: Document) -> str:
    rows = []
    for source, found in document["sources"].items():
        for name, told in found["groups"].items():
            if told["kind"] != "Recommendation":
                rows.append((source, name, told["reason"] or "not seen yet", "-", "-", f"{GROUPS[name].capacity:g}"))
                continue
            counts = f"{told['current']} -> {told['desired']}"
            capacity = f"{told['capacity']:.1f}", told["capacity_source"]
            rows.append((source, name, counts, *capacity, f"{GROUPS[name].capacity:g}"))
    head = ("source", "group", "replicas, or why not", "capacity told", "as", "true")
    return table(head, rows, words=3)


def _findings(document: Document) -> str:
    rows = []
    for source, found in document["sources"].items():
        for each in found["doctor"]:
            rest = "" if each["remedy"] is None else f" -> {each['remedy']}"
            rows.append((source, each["state"], each["check"], f"{each['sentence']}{rest}".replace("|", "\\|")))
    return table(("source", "state", "check", "diagnosis"), rows, words=4)
