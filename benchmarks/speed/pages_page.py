"""The bars of the server's pages and their page in the documentation, from the JSON documents alone."""

from collections.abc import Mapping
from typing import Any

from benchmarks.command import Bar, aged, table

Document = Mapping[str, Any]

# Pages over all groups.
OF_ALL = ("fleet, first", "fleet, middle", "fleet, one name", "data", "/metrics")
MOST_STATEMENTS = 1
# The fleet of 15,000 groups is the page that other tools answer in half a minute; people take a tenth for at once, and
# three tenths for quick.
MOST_MILLISECONDS = 300.0
# Prometheus gives up on a scrape after 10 s by default, and scrapes each 15 s.
MOST_METRICS_MILLISECONDS = 1000.0
MOST_REST_MILLISECONDS = 100.0

INTRODUCTION = """# How long a page takes

The pages of the service and `/metrics`, each made anew, beside their bars. The page is made from JSON documents, one of
each database, which one command writes:

    make bench-pages GROUPS={groups} OUT=FILE [STORE=URL]
    python -m benchmarks.speed.pages --page FILE [FILE ...] > docs/pages-bench.md

- **The store** has two decisions of each group with a part of its account, and of one group a day of decisions, one
  each 15 s. A tenth of the groups is refused, a tenth misses its promise, and three tenths would save.
- **The service** is that of the process which has published the decisions, as in `lagcast up`, on loopback. One caller
  asks {asked} times for each page; a page that is kept is never given.
- **Seconds** are from the request to the last byte. The bar is one of the 95th percentile.
- **Statements** of SQL are those of most requests, and in brackets those of one at most: the first `/metrics` reads
  besides when the refused groups had their last advice. Pages over all groups have a bar of one, so that a database
  elsewhere is waited for once. The pages of a group and of a decision have none: their statements do not grow with the
  fleet. What a group's page shows is in several tables, and each of its parts reads the last decision anew.
- **REST** has {readers} readers in a process of their own, each with a request a second for one route after the other.

A process that has not published what it shows, as `lagcast serve`, needs more statements for `/metrics`: it asks which
decisions are new, and then for these, one by one or, where they are more than a hundred, for all in one. Asking for all
documents each time would be one statement, and a second of work at 15,000 groups.
"""


def bars_of(document: Document) -> list[Bar]:
    """All bars: the time of each page, the statements of those over all groups, and REST."""
    pages = document["pages"]
    times = [
        Bar(what=f"{name}, 95th percentile, ms", figure=each["p95_milliseconds"], most=_most_milliseconds(name))
        for name, each in pages.items()
    ]
    statements = [
        Bar(what=f"{name}, statements", figure=pages[name]["statements"], most=MOST_STATEMENTS) for name in OF_ALL
    ]
    rest = Bar(
        what="REST, 99th percentile, ms", figure=document["rest"]["p99_milliseconds"], most=MOST_REST_MILLISECONDS
    )
    return [*times, *statements, rest]


def page_of(*documents: Document) -> str:
    """The page of runs over several databases, in the order of their names."""
    ordered = sorted(documents, key=lambda document: str(document["database"]))
    first = ordered[0]
    introduction = INTRODUCTION.format(groups=first["groups"], asked=first["asked"], readers=first["rest"]["readers"])
    page = "\n".join([introduction, *(_section(document) for document in ordered)])
    return aged(page, next((each for each in ordered if "changed_since" in each), {}))


def tables_of(document: Document) -> str:
    """What a run has measured, beside its bars; what is missed is bold."""
    rest, written = document["rest"], document["written_seconds"]
    answers = [
        f"{rest['answers']:,}",
        f"{rest['median_milliseconds']:.0f}",
        _beside(rest["p99_milliseconds"], MOST_REST_MILLISECONDS),
        f"{rest['longest_milliseconds']:.0f}",
    ]
    return "\n".join(
        [
            table(
                ("page", "median, ms", "95th percentile, ms", "bar", "longest, ms", "statements", "bar of statements"),
                (_row(name, each) for name, each in document["pages"].items()),
            ),
            table(("answers to REST", "median, ms", "99th percentile, ms", "longest, ms"), [answers], words=0),
            table(
                ("written", "seconds"),
                ((what, f"{seconds:.1f}") for what, seconds in written.items()),
            ),
        ]
    )


def _section(document: Document) -> str:
    where = "{measured_at}, commit {commit}, {groups:,} groups, a machine with {processors} processors (mean load"
    load = f" {document['mean_load']:.1f}).\n"
    return "\n".join([f"## {document['database']}\n", where.format(**document) + load, tables_of(document)])


def _row(name: str, page: Document) -> tuple[str, ...]:
    statements, most = page["statements"], page["most_statements"]
    is_judged = name in OF_ALL
    shown = _beside(statements, MOST_STATEMENTS) if is_judged else f"{statements:g}"
    return (
        name,
        f"{page['median_milliseconds']:.0f}",
        _beside(page["p95_milliseconds"], _most_milliseconds(name)),
        f"<= {_most_milliseconds(name):.0f}",
        f"{page['longest_milliseconds']:.0f}",
        shown if most == statements else f"{shown} ({most:g})",
        f"<= {MOST_STATEMENTS}" if is_judged else "none",
    )


def _beside(figure: float, most: float) -> str:
    return f"{figure:.0f}" if figure <= most else f"**{figure:.0f}**"


def _most_milliseconds(name: str) -> float:
    return MOST_METRICS_MILLISECONDS if name == "/metrics" else MOST_MILLISECONDS
