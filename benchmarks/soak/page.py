"""The bars of a soak and its page, from its JSON document alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.command import aged, table
from benchmarks.soak.faults import FAULTS
from benchmarks.soak.judge import MOST_CYCLES, MOST_GROWTH
from benchmarks.soak.stage import CYCLE_SECONDS

Document = Mapping[str, Any]

INTRODUCTION = """# The soak

{hours:.1f} simulated hours of {groups} consumer groups beside a real Kafka and a real PostgreSQL, with {count} faults
at random and readers throughout. The page is made from one JSON document, which one command writes:

    make soak OUT=FILE MINUTES={minutes:g} SEED={seed} GROUPS={groups}
    python -m benchmarks.soak --page FILE > docs/soak.md

- **Where and when.** {measured_at}, commit {commit}, Kafka {kafka}, one broker and one PostgreSQL on loopback, a
  machine with {processors} processors (mean load {load:.1f}, other work included).
- **What runs.** `lagcast up` and `lagcast land` as users start them. {real} of the groups have members on that Kafka,
  and `up` reads them itself. The samples of the others arrive each 15 s of the simulated time on a topic, as from
  collectors elsewhere; `land` writes them to files, and Spark makes rows of them. Those of the {past:g} hours before
  are there as files at the start. Decisions are stored in PostgreSQL and published on Kafka.
- **How a day fits into {minutes:g} minutes.** The clock of both processes runs {rate:g} times as fast: it is read in
  one place, which is replaced, as is the wait between two rounds of the collector. All other waits are as in life, so
  that a time-out or a restart of Spark costs {rate:g} times as much of the simulated time. A cycle over {groups} groups
  takes what it takes: {cycles:,} cycles in all, one each {cycle_minutes:.0f} simulated minutes, each with all rows
  since the one before. For that the settings have `cycle_seconds` {cycle} and `freshness_limit_seconds`
  {freshness:g}, and no other.
- **Not covered.** Weeks, in which decisions are thinned out and the history of a group grows to 28 days; a cluster.
"""

WORDS = """- *Ends*: processes that ended, or did not end within a minute of SIGTERM when all was over, and questions of
  `/livez` that were not answered with 200.
- *Decisions of a cycle*: each cycle has a decision, advice or a refusal, for each group; the figure is the least.
- *Lost*: advice that was published or answered by REST and is not in the store; decisions in the store that were not
  published, but for those that a line counts, as not delivered within 30 s while the broker was away, and one at each
  end of the database, which may have kept it without an answer. While the database is away all groups are refused, and
  these refusals cannot be stored.
- *Cycles to advice*: the cycle, counted from the end of a fault, in which all groups of the topic that had advice
  before have it again. A fault of Spark is over when there are new rows.
- *Memory*: proportional set size, the median of the last sixth of the time over that of the first sixth after the first
  hour, of one process: where faults end processes and others follow them, of the one that lived longest.
- *Not over*: failures whose end was never logged. *Tracebacks*: on stderr or in the log, but for those of a part of the
  process that was started again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure beside the bar for it."""

    what: str
    figure: str
    wanted: str
    is_kept: bool


def bars_of(document: Document) -> list[Bar]:
    """All bars."""
    faults, groups = document["faults"], document["groups"]
    slowest = max((fault["cycles"] or 999 for fault in faults), default=0)
    # What is not delivered within 30 s, while the broker is away, is given up, and a line has the count; a database
    # that ends may have kept a decision without an answer, which is then refused instead.
    unanswered = sum(fault["name"] == "postgres_restarted" for fault in faults)
    untold = max(0, document["kept_not_published"] - document["undelivered"] - unanswered)
    lost = document["published_not_kept"] + document["answered_not_kept"] + untold
    nothing = {
        "ends": len(document["ends"]) + sum(document["livez"].values()),
        "lost decisions": lost,
        "refusals without a reason": document["refusals_without_reason"],
        "unexpected answers": sum(document["unexpected_answers"].values()),
        "failures not over": len(document["not_over"]),
        "tracebacks": len(document["tracebacks"]),
    }
    bars = [Bar(what=what, figure=f"{count:,}", wanted="0", is_kept=count == 0) for what, count in nothing.items()]
    least = document["least_decisions"]
    bars.insert(1, Bar(what="decisions of a cycle", figure=f"{least:,}", wanted=f"{groups:,}", is_kept=least >= groups))
    shown = "never" if slowest == 999 else str(slowest)
    bars.insert(
        2, Bar(what="cycles to advice", figure=shown, wanted=f"<= {MOST_CYCLES}", is_kept=slowest <= MOST_CYCLES)
    )
    return bars + [
        Bar(what=f"memory, {role}", figure=f"{ratio:.2f}", wanted=f"<= {MOST_GROWTH:.2f}", is_kept=ratio <= MOST_GROWTH)
        for role, ratio in document["growth"].items()
    ]


def page_of(document: Document) -> str:
    """The page."""
    text = "\n".join(
        [
            _introduction(document),
            "## The bars\n",
            table(
                ("bar", "figure", "wanted", "kept"),
                ((bar.what, bar.figure, bar.wanted, "yes" if bar.is_kept else "**no**") for bar in bars_of(document)),
            ),
            WORDS,
            "## Faults\n",
            _faults(document),
            "## Decisions and answers\n",
            _decisions(document),
            "## Memory\n",
            _memory(document),
        ]
    )
    return aged(text, document)


def _introduction(document: Document) -> str:
    return INTRODUCTION.format(
        **{name: document[name] for name in ("groups", "minutes", "seed", "measured_at", "commit", "kafka")},
        processors=document["processors"],
        hours=document["simulated_hours"],
        count=len(document["faults"]),
        load=document["mean_load"],
        real=document["real_groups"],
        rate=document["rate"],
        past=document["past_hours"],
        cycles=document["cycles"],
        cycle_minutes=60.0 * document["simulated_hours"] / document["cycles"],
        cycle=CYCLE_SECONDS,
        freshness=document["freshness_limit_seconds"],
    )


def _faults(document: Document) -> str:
    struck = document["faults"]
    rows = []
    for fault in FAULTS:
        of_kind = [each for each in struck if each["name"] == fault.name]
        seconds = ", ".join(f"{each['seconds']:.0f}" for each in of_kind)
        cycles = ", ".join("never" if each["cycles"] is None else str(each["cycles"]) for each in of_kind)
        rows.append((fault.words, str(len(of_kind)), seconds, cycles))
    return table(("fault", "times", "real seconds", "cycles to advice"), rows)


def _decisions(document: Document) -> str:
    refusals = ", ".join(f"{reason} {count:,}" for reason, count in document["refusals"].items()) or "none"
    answers: dict[str, int] = document["answers"]
    by_status = ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.items()))
    return (
        f"- {document['decisions']:,} decisions in {document['cycles']:,} cycles; {document['kept']:,} are in the"
        f" store, of which refused: {refusals}.\n"
        f"- {document['published']:,} on the topic; {document['undelivered']:,} messages were not delivered while the"
        " broker was away.\n"
        f"- {sum(answers.values()):,} answers to readers by status: {by_status}; {document['answered']:,} different"
        " recommendations among them.\n"
    )


def _memory(document: Document) -> str:
    hours = list(range(0, int(document["simulated_hours"]) + 1, 4))
    rows = []
    for role, looks in document["resident"].items():
        near = [min(looks, key=lambda look, hour=hour: abs(look[0] - hour))[1] for hour in hours]  # type: ignore[misc]
        rows.append((role, *(f"{size:.0f}" for size in near)))
    service = document["resident"]["service"]
    sixth = (service[-1][0] - 1.0) / 6.0
    early = min(size for hour, size in service if 1.0 <= hour < 1.0 + sixth)
    late = min(size for hour, size in service if hour >= service[-1][0] - sixth)
    least = (
        f"\nThe least that the service had, between two cycles, was {early:.0f} MB in the first sixth after the first "
        f"hour, and {late:.0f} MB in the\nlast one.\n"
    )
    return table(("MB after so many hours", *map(str, hours)), rows) + least
