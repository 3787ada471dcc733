"""The page of the time of decisions: made from its document alone, with a curve of each of what is varied."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.decision_time import BASE_PARTITIONS, cycles_of, decided_of, main, sizes
from benchmarks.speed.decision_time_page import page_of, tables_of, varied

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def document() -> dict[str, Any]:
    """A run in which a decision takes its partitions in milliseconds, and a cycle 20 ms for each group."""
    return {
        "measured_at": "2026-01-05",
        "commit": "0123456789ab",
        "processors": 2,
        "mean_load": 1.2,
        "base": {"partitions": BASE_PARTITIONS, "horizon_seconds": 3600, "scenarios": 64},
        "decisions": [
            {
                "partitions": partitions,
                "horizon_seconds": horizon_seconds,
                "scenarios": scenarios,
                "useful_counts": 9,
                "decisions": 359,
                "median_milliseconds": float(partitions),
                "p95_milliseconds": 3.0 * partitions,
            }
            for partitions, horizon_seconds, scenarios in sizes()
        ],
        "partitions_of_a_fleet": 24,
        "cycles": [
            {
                "groups": groups,
                "first_seconds": 10.0 + 0.03 * groups,
                "cycles": 6,
                "median_seconds": 0.02 * groups,
                "longest_seconds": 0.025 * groups,
                "resident_mebibytes": 200.0 + groups,
            }
            for groups in (250, 500, 1000)
        ],
    }


def test_the_page_is_made_from_its_run(tmp_path: Path) -> None:
    """No figure on the page is written by hand; page, picture and document are checked in together or not at all."""
    file, page, picture = (DOCS / f"decision-time.{kind}" for kind in ("json", "md", "svg"))
    made = page_of(json.loads(file.read_text()), picture=tmp_path / picture.name) if file.exists() else None
    assert made == (page.read_text() if page.exists() else None)
    assert picture.exists() == page.exists()
    for linking in (DOCS / "results.md", ROOT / "mkdocs.yml"):
        assert ("decision-time.md" in linking.read_text()) == page.exists()
    target = (ROOT / "Makefile").read_text().split("\nbench-decision-time: $(READY)")[1].split("\n\n")[0]
    assert 'python -m benchmarks.speed.decision_time --groups $(GROUPS) --out "$(OUT)"' in target


def test_each_curve_goes_through_the_base() -> None:
    """Partitions, horizon and scenarios are varied alone: each curve has the base and, beside it, others of its own."""
    found = {name: varied(document(), name) for name in ("partitions", "horizon_seconds", "scenarios")}
    assert [each["partitions"] for each in found["partitions"]] == [8, 24, 40, 120, 1000]
    assert [each["horizon_seconds"] for each in found["horizon_seconds"]] == [900, 3600, 7200]
    assert [each["scenarios"] for each in found["scenarios"]] == [16, 64, 256]
    assert sum(map(len, found.values())) == len(document()["decisions"]) + 2


def test_the_page_has_a_table_of_each_curve_and_one_picture(tmp_path: Path) -> None:
    """The same figures give the same page and the same bytes of the picture."""
    pages, pictures = [], []
    for _ in range(2):
        pages.append(page_of(document(), picture=tmp_path / "a.svg"))
        pictures.append((tmp_path / "a.svg").read_bytes())
    assert pages[0] == pages[1]
    assert pictures[0] == pictures[1]
    assert "(a.svg)" in pages[0]
    assert "make bench-decision-time GROUPS=1000 OUT=FILE\n" in pages[0]
    assert "the others are 24 partitions, 3,600 s\n  and 64 scenarios" in pages[0]
    assert pages[0].endswith(tables_of(document()))
    assert "| 1,000 | 9 | 359 | 1000.0 | 3000.0 |" in pages[0]
    assert "| 1,000 | 40.0 | 6 | 20.0 | 25.0 | 20.0 | 1,200 |" in pages[0]


def test_what_has_changed_since_the_run_stands_under_the_title(tmp_path: Path) -> None:
    """Where the document notes it."""
    noted = document() | {"changed_since": "Plans are fewer now."}
    assert "**Older than the code.** Plans are fewer now." in page_of(noted, picture=tmp_path / "a.svg")


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json"), "--picture", str(tmp_path / "a.svg")])
    assert ended.value.code == 2
    assert "no document of the time of decisions" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_measured_has_the_fields_of_the_document() -> None:
    """Of decisions, and of cycles over three groups, which all have advice in each of them."""
    decided, cycles = decided_of(8, 900, 16), cycles_of(3)
    assert decided.keys() == document()["decisions"][0].keys()
    assert cycles.keys() == document()["cycles"][0].keys()
    assert 0.0 < decided["median_milliseconds"] <= decided["p95_milliseconds"]
    assert 0.0 < cycles["median_seconds"] <= cycles["longest_seconds"] < cycles["first_seconds"]
