"""The page of the features job beside DuckDB: made from its documents alone, with each bar, kept or missed."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.features import main
from benchmarks.speed.features_page import bars_of, page_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def document(rows: int, **spark: float) -> dict[str, Any]:
    """A run of so many rows that keeps all bars, but for the given figures of Spark."""
    duckdb = {"cold_seconds": rows / 1e6, "warm_seconds": rows / 1e6, "peak_megabytes": 9_000.0}
    took = {"cold_seconds": 3.0 * rows / 1e6, "warm_seconds": 2.0 * rows / 1e6, "peak_megabytes": 1_900.0}
    written = {"files": 8, "written_megabytes": 90.0}
    return {
        "measured_at": "2026-01-05",
        "commit": "0123456789ab",
        "processors": 2,
        "mean_load": 1.5,
        "versions": {"spark": "4.3.0", "duckdb": "1.4.0"},
        "rows": rows,
        "spark": took | written | spark,
        "duckdb": duckdb | written,
    }


SIZES = {"ten": 9_953_280, "fifty": 50_042_880, "two hundred": 199_895_040}


def test_the_page_is_made_from_its_runs(tmp_path: Path) -> None:
    """No figure on the page is written by hand; page, picture and documents are checked in together or not at all."""
    documents = [json.loads(file.read_text()) for file in DOCS.glob("features-bench*.json")]
    page, picture = DOCS / "features-bench.md", DOCS / "features-bench.svg"
    made = page_of(*documents, picture=tmp_path / picture.name) if documents else None
    assert made == (page.read_text() if page.exists() else None)
    assert picture.exists() == page.exists()
    target = (ROOT / "Makefile").read_text().split("\nbench-features: $(READY)")[1].split("\n\n")[0]
    assert 'python -m benchmarks.speed.features --rows $(ROWS) --out "$(OUT)"' in target


@pytest.mark.parametrize(
    ("of", "worse", "missed"),
    [
        ("fifty", {"cold_seconds": 201.0}, ["cold, times as long as DuckDB"]),
        ("fifty", {"warm_seconds": 126.0}, ["warm, times as long as DuckDB"]),
        ("ten", {"peak_megabytes": 2_001.0}, ["memory at most, MB"]),
        ("two hundred", {"peak_megabytes": 2_001.0}, ["memory at most, MB"]),
        ("two hundred", {"warm_seconds": 461.0}, ["warm, a row of the largest run, times"]),
        ("ten", {"cold_seconds": 90.0, "warm_seconds": 90.0}, []),
    ],
)
def test_each_bar_may_be_missed(of: str, worse: dict[str, float], missed: list[str], tmp_path: Path) -> None:
    """Ratios are those of 50 million rows, memory that of each run, and growth that from there to the largest."""
    documents = [document(rows, **(worse if name == of else {})) for name, rows in SIZES.items()]
    bars = bars_of(documents)
    assert len(bars) == 4
    assert [bar.what for bar in bars if not bar.is_kept] == missed
    assert page_of(*documents, picture=tmp_path / "a.svg").count("| **no** |") == len(missed)


def test_the_order_of_the_documents_does_not_matter(tmp_path: Path) -> None:
    """The same page and the same bytes of the picture, which the page names."""
    documents = [document(rows) for rows in SIZES.values()]
    pages, pictures = [], []
    for given in (documents, documents[::-1]):
        pages.append(page_of(*given, picture=tmp_path / "a.svg"))
        pictures.append((tmp_path / "a.svg").read_bytes())
    assert pages[0] == pages[1]
    assert pictures[0] == pictures[1]
    assert "![Seconds by rows, of both engines, cold and warm](a.svg)" in pages[0]
    assert "make bench-features ROWS=50042880 OUT=FILE\n" in pages[0]
    assert "| 50.0 | 150.1 | 50.0 | 3.00 | 100.1 | 50.0 | 2.00 | 2.00 |" in pages[0]


def test_a_run_without_duckdb_counts_for_growth_and_memory_alone(tmp_path: Path) -> None:
    """Its ratios are not told; a page without any run of DuckDB has nothing to compare."""
    ten, large = document(SIZES["ten"]), document(SIZES["two hundred"], warm_seconds=600.0)
    del large["duckdb"]
    assert [bar.what for bar in bars_of([ten, large]) if not bar.is_kept] == ["warm, a row of the largest run, times"]
    assert "| 199.9 | 599.7 | not run | not run | 600.0 | not run | not run | 3.00 |" in page_of(
        ten, large, picture=tmp_path / "a.svg"
    )
    assert [bar.what for bar in bars_of([large])] == ["memory at most, MB"]


def test_what_has_changed_since_a_run_stands_under_the_title(tmp_path: Path) -> None:
    """Where a document notes it."""
    documents = [document(SIZES["ten"]), document(SIZES["fifty"]) | {"changed_since": "Rows are wider now."}]
    assert "**Older than the code.** Rows are wider now." in page_of(*documents, picture=tmp_path / "a.svg")


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json"), "--picture", str(tmp_path / "a.svg")])
    assert ended.value.code == 2
    assert "no document of the features job" in capsys.readouterr().err
