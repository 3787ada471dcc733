"""The page of the server's pages: made from its documents alone, with each bar, kept or missed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.pages import main
from benchmarks.speed.pages_page import OF_ALL, bars_of, page_of, tables_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
KEPT = {"median_milliseconds": 20.0, "p95_milliseconds": 30.0, "longest_milliseconds": 400.0}


def document(worse: Mapping[str, dict[str, float]] | None = None, *, database: str = "SQLite 3.40.1") -> dict[str, Any]:
    """A run that keeps all bars, though each page took longer once, but for the given figures of pages and of REST."""
    worse = worse or {}
    pages = {name: KEPT | {"statements": 1, "most_statements": 1} | worse.get(name, {}) for name in OF_ALL}
    pages["group"] = KEPT | {"statements": 14, "most_statements": 14} | worse.get("group", {})
    rest = {"median_milliseconds": 5.0, "p99_milliseconds": 13.0, "longest_milliseconds": 150.0}
    return {
        "measured_at": "2026-01-05",
        "commit": "0123456789ab",
        "processors": 2,
        "mean_load": 1.2,
        "database": database,
        "groups": 15_000,
        "asked": 60,
        "written_seconds": {"decisions and accounts": 9.5, "a move of each group": 14.25},
        "pages": pages,
        "rest": {"readers": 50, "answers": 1_500} | rest | worse.get("REST", {}),
    }


def test_the_page_is_made_from_its_runs() -> None:
    """No figure on the page is written by hand; the page is there, in the menu and linked, if a document is."""
    documents = [json.loads(file.read_text()) for file in DOCS.glob("pages-bench*.json")]
    page = DOCS / "pages-bench.md"
    assert (page_of(*documents) if documents else None) == (page.read_text() if page.exists() else None)
    for linking in (DOCS / "api.md", ROOT / "mkdocs.yml"):
        assert ("pages-bench.md" in linking.read_text()) == page.exists()
    target = (ROOT / "Makefile").read_text().split("\nbench-pages: $(READY)")[1].split("\n\n")[0]
    options = '--groups $(GROUPS) $(if $(STORE),--store "$(STORE)") --out "$(OUT)"'
    assert f"python -m benchmarks.speed.pages {options}" in target


@pytest.mark.parametrize(
    ("worse", "missed"),
    [
        ({}, []),
        ({"fleet, first": {"p95_milliseconds": 301.0}}, ["fleet, first, 95th percentile, ms"]),
        ({"/metrics": {"p95_milliseconds": 999.0}}, []),
        ({"/metrics": {"p95_milliseconds": 1_001.0}}, ["/metrics, 95th percentile, ms"]),
        ({"group": {"p95_milliseconds": 301.0, "statements": 99}}, ["group, 95th percentile, ms"]),
        ({"fleet, middle": {"statements": 2, "most_statements": 2}}, ["fleet, middle, statements"]),
        ({"/metrics": {"most_statements": 2}}, []),
        ({"REST": {"p99_milliseconds": 101.0}}, ["REST, 99th percentile, ms"]),
    ],
)
def test_each_bar_may_be_missed(worse: dict[str, dict[str, float]], missed: list[str]) -> None:
    """Times are judged by a percentile and not by the median, statements by what most requests have."""
    given = document(worse)
    assert [bar.what for bar in bars_of(given) if not bar.is_kept] == missed
    # What is missed is bold in the tables; so are words of the introduction.
    assert tables_of(given).count("**") == 2 * len(missed)


def test_the_page_shows_each_database_with_the_longest_beside_the_median() -> None:
    """In the order of their names, however they are given; a statement of the first request is in brackets."""
    documents = [document({"/metrics": {"most_statements": 2}}), document(database="PostgreSQL 15.8")]
    page = page_of(*documents)
    assert page == page_of(*documents[::-1])
    assert page.index("## PostgreSQL 15.8") < page.index("## SQLite 3.40.1")
    assert "| /metrics | 20 | 30 | <= 1000 | 400 | 1 (2) | <= 1 |" in page
    assert "| group | 20 | 30 | <= 300 | 400 | 14 | none |" in page
    assert "| 1,500 | 5 | 13 | 150 |" in page
    assert "make bench-pages GROUPS=15000 OUT=FILE [STORE=URL]\n" in page


def test_what_has_changed_since_a_run_stands_under_the_title() -> None:
    """Where a document notes it."""
    assert "**Older than the code.** Pages are longer now." in page_of(
        document() | {"changed_since": "Pages are longer now."}
    )


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json")])
    assert ended.value.code == 2
    assert "no document of pages" in capsys.readouterr().err
