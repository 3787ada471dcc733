"""The bars of the features job beside DuckDB, their page and its picture, from the JSON documents alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import Bar, aged, bar_table, table
from benchmarks.drawing import drawn

Document = Mapping[str, Any]

# The bars of the ratios are those of the run nearest to so many rows; from there on seconds are to grow as rows do.
BAR_ROWS = 50_000_000
MOST_COLD, MOST_WARM, MOST_MEGABYTES = 4.0, 2.5, 2000.0
# Warm, a row of the largest run may take so many times what one of that run takes: 1 is linear, the rest is for noise.
MOST_GROWTH = 1.15
ENGINES = {"spark": "Spark", "duckdb": "DuckDB"}
NOT_RUN = "not run"

INTRODUCTION = """# The features job beside DuckDB

`lagcast features` makes the rows of the feature table from samples, on Spark. Beside it DuckDB does the same work on
the same files with the same cores. The page and its picture are made from JSON documents, one of each size, which one
command writes:

    make bench-features ROWS={rows} OUT=FILE
    python -m benchmarks.speed.features --page FILE [FILE ...] > docs/features-bench.md

- **Samples** are generated: groups of 24 partitions, each read every 15 s for two days.
- **Each engine** makes rows of 15 s and the three longer lengths from them, in a folder for each day, in a process of
  its own. The figures of all rows of both tables are compared before anything is told. DuckDB's SQL leaves out what
  the generated samples do not have: rebalances, offsets that go backwards, lost commits, partitions that come and go.
- **DuckDB is left out** (`--without-duckdb`) of sizes for which memory and disk do not suffice: it takes all rows in
  one query, 20 GB of memory for 50 million of them. Of such a run nothing is compared.
- **Cold** is the first time, with the start of the process; **warm** is the second time in the same process.
- **Memory** is the most that a process and its children held, as proportional set size.
"""

RATIOS = """\
The ratios are those of the run of {millions} million rows, beside which that of the largest run stands. Memory is the
most of all runs.
"""


def bars_of(documents: Sequence[Document]) -> list[Bar]:
    """All bars; that of growth needs a run with more rows than the one of the ratios. Errors: ValueError without any.

    >>> engine = {"warm_seconds": 10.0, "peak_megabytes": 900.0}
    >>> spark, duckdb = engine | {"cold_seconds": 20.0}, engine | {"cold_seconds": 10.0}
    >>> [(bar.what, bar.figure) for bar in bars_of([{"rows": 50_000_000, "spark": spark, "duckdb": duckdb}])]
    [('cold, times as long as DuckDB', 2.0), ('warm, times as long as DuckDB', 1.0), ('memory at most, MB', 900.0)]
    """
    at_bar = _at_bar(documents)
    largest = max(documents, key=_rows)
    ratios = (("cold", MOST_COLD), ("warm", MOST_WARM)) if "duckdb" in at_bar else ()
    bars = [
        *(
            Bar(what=f"{run}, times as long as DuckDB", figure=_times(at_bar, f"{run}_seconds"), most=most)
            for run, most in ratios
        ),
        Bar(
            what="memory at most, MB",
            figure=max(document["spark"]["peak_megabytes"] for document in documents),
            most=MOST_MEGABYTES,
        ),
    ]
    if _rows(largest) > _rows(at_bar):
        growth = _warm_of_a_row(largest) / _warm_of_a_row(at_bar)
        bars.append(Bar(what="warm, a row of the largest run, times", figure=growth, most=MOST_GROWTH))
    return bars


def page_of(*documents: Document, picture: Path) -> str:
    """The page of runs of several sizes; its picture is drawn into the file. Errors: ValueError without any."""
    ordered = sorted(documents, key=_rows)
    at_bar = _at_bar(ordered)
    draw(ordered, picture)
    parts = [
        INTRODUCTION.format(rows=at_bar["rows"]),
        "## The bars\n",
        bar_table(bars_of(ordered)),
        RATIOS.format(millions=_millions(at_bar)),
        f"![Seconds by rows, of both engines, cold and warm]({picture.name})\n",
        "## Seconds\n",
        _seconds(ordered),
        "## Memory and files\n",
        _tables_written(ordered),
        "## Where and when\n",
        _where(ordered),
    ]
    return aged("\n".join(parts), next((each for each in ordered if "changed_since" in each), {}))


def draw(documents: Sequence[Document], path: Path) -> None:
    """Seconds by rows as SVG: of each engine cold and warm, and the bars at the run that they are of."""
    at_bar = _at_bar(documents)
    with drawn(path, size=(6.0, 3.6)) as figure:
        axis = figure.subplots()
        for (engine, name), colour in zip(ENGINES.items(), ("tab:blue", "tab:orange"), strict=True):
            for run, style in (("cold", "o-"), ("warm", "o--")):
                of = [document for document in documents if engine in document]
                seconds = [document[engine][f"{run}_seconds"] for document in of]
                millions = [_rows(document) / 1e6 for document in of]
                axis.plot(millions, seconds, style, markersize=4, color=colour, label=f"{name}, {run}")
        for run, most, marker in (("cold", MOST_COLD, "v"), ("warm", MOST_WARM, "^")):
            bar = most * at_bar["duckdb"][f"{run}_seconds"]
            label = f"bar, {run}: {most:g} times DuckDB"
            axis.plot([_rows(at_bar) / 1e6], [bar], marker, markersize=6, color="grey", label=label)
        axis.set_xlim(left=0.0)
        axis.set_ylim(bottom=0.0)
        axis.set_xlabel("million samples")
        axis.set_ylabel("seconds")
        axis.legend()


def _at_bar(documents: Sequence[Document]) -> Document:
    """The run that the ratios are of; one without DuckDB only where there is no other."""
    return min(documents, key=lambda document: ("duckdb" not in document, abs(_rows(document) - BAR_ROWS)))


def _rows(document: Document) -> int:
    return int(document["rows"])


def _millions(document: Document) -> str:
    return f"{_rows(document) / 1e6:,.1f}"


def _times(document: Document, what: str) -> float:
    return float(document["spark"][what] / document["duckdb"][what])


def _warm_of_a_row(document: Document) -> float:
    return float(document["spark"]["warm_seconds"]) / _rows(document)


def _seconds(documents: Sequence[Document]) -> str:
    rows = []
    for document in documents:
        row = [_millions(document)]
        for run in ("cold", "warm"):
            row += [
                f"{document[engine][f'{run}_seconds']:,.1f}" if engine in document else NOT_RUN for engine in ENGINES
            ]
            row.append(f"{_times(document, f'{run}_seconds'):.2f}" if "duckdb" in document else NOT_RUN)
        rows.append((*row, f"{1e6 * _warm_of_a_row(document):.2f}"))
    head = [f"{run}, {name}" for run in ("cold", "warm") for name in (*ENGINES.values(), "times")]
    return table(("million rows", *head, "warm, Spark, a million rows"), rows, words=0)


def _tables_written(documents: Sequence[Document]) -> str:
    rows = [
        (
            _millions(document),
            name,
            f"{document[engine]['peak_megabytes']:,.0f}",
            f"{document[engine]['files']:,}",
            f"{document[engine]['written_megabytes']:,.0f}",
        )
        for document in documents
        for engine, name in ENGINES.items()
        if engine in document
    ]
    return table(("million rows", "engine", "memory at most, MB", "files of the table", "MB of them"), rows, words=2)


def _where(documents: Sequence[Document]) -> str:
    rows = [
        (
            _millions(document),
            document["measured_at"],
            document["commit"],
            ", ".join(f"{name} {document['versions'][engine]}" for engine, name in ENGINES.items()),
            f"{document['processors']}",
            f"{document['mean_load']:.1f}",
        )
        for document in documents
    ]
    return table(("million rows", "day", "commit", "versions", "processors", "mean load"), rows, words=4)
