"""The page of a fleet on Spark: made from its document alone, with each bar, kept or missed."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.fleet_spark import main
from benchmarks.speed.fleet_spark_page import bars_of, page_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def document(*, differing: int = 0, **seconds: float) -> dict[str, Any]:
    """A document of three sizes, each of which takes 40 s and 50 ms for a group, but for the given ones."""
    sizes = {"small": 1_000, "middle": 3_000, "large": 10_000}
    return {
        "measured_at": "2026-01-05",
        "commit": "0123456789ab",
        "processors": 2,
        "mean_load": 2.5,
        "spark": "4.3.0",
        "workers": 3,
        "rows_a_group": 60,
        "row_seconds": 60,
        "runs": [
            {
                "groups": groups,
                "decided": groups,
                "advised": groups,
                "seconds": seconds.get(name, 40.0 + 0.05 * groups),
            }
            for name, groups in sizes.items()
        ],
        "part_of_a_group": {"open_milliseconds": 2.0, "decide_milliseconds": 21.0, "opened_kilobytes": 8.0},
        "compared_groups": 300,
        "differing_documents": differing,
    }


def test_the_page_is_made_from_its_run(tmp_path: Path) -> None:
    """No figure on the page is written by hand; page, picture and document are checked in together or not at all."""
    page, picture = (DOCS / f"fleet-on-spark-bench.{kind}" for kind in ("md", "svg"))
    files = [DOCS / f"fleet-on-spark-{kind}.json" for kind in ("bench", "weeks")]
    found = [json.loads(file.read_text()) for file in files if file.exists()]
    made = page_of(*found, picture=tmp_path / picture.name) if found else None
    assert made == (page.read_text() if page.exists() else None)
    assert picture.exists() == page.exists()
    target = (ROOT / "Makefile").read_text().split("\nbench-fleet-spark: $(READY)")[1].split("\n\n")[0]
    options = '--groups $(GROUPS) --workers $(WORKERS) --hours $(HOURS) --out "$(OUT)" --forecasts $(FORECASTS)'
    assert f"python -m benchmarks.speed.fleet_spark {options}" in target


@pytest.mark.parametrize(
    ("worse", "missed"),
    [
        ({}, []),
        ({"large": 601.0}, ["10,000 groups, s"]),
        ({"small": 250.0}, ["furthest run from the line, share of its seconds"]),
        (
            {"small": 100.0, "middle": 230.0, "large": 700.0},
            ["10,000 groups, s", "100,000 groups by the line, s"],
        ),
        ({"differing": 1}, ["documents that differ from those of one process, of 300"]),
    ],
)
def test_each_bar_may_be_missed(worse: dict[str, Any], missed: list[str], tmp_path: Path) -> None:
    """The size of a bar is judged by its run, a size that was not run by the line through all of them."""
    given = document(**worse)
    assert [bar.what for bar in bars_of(given) if not bar.is_kept] == missed
    assert page_of(given, picture=tmp_path / "a.svg").count("| **no** |") == len(missed)


def test_the_line_goes_on_beyond_the_runs(tmp_path: Path) -> None:
    """40 s and 50 ms for each of 100,000 groups; the page has the command, and the same picture each time."""
    pages, pictures = [], []
    for _ in range(2):
        pages.append(page_of(document(), picture=tmp_path / "a.svg"))
        pictures.append((tmp_path / "a.svg").read_bytes())
    assert pages[0] == pages[1]
    assert pictures[0] == pictures[1]
    assert "| 100,000 groups by the line, s | 5,040.00 | <= 6000 | yes |" in pages[0]
    assert "The line through the runs: 40 s, and 50.0 ms for each group." in pages[0]
    assert "make bench-fleet-spark GROUPS=10000 WORKERS=3 HOURS=1 OUT=FILE\n" in pages[0]
    assert "(a.svg)" in pages[0]


def test_a_line_that_falls_keeps_no_bar(tmp_path: Path) -> None:
    """Where the least runs took longest, as on a busy machine, nothing is known of more groups."""
    given = document(small=157.0, middle=110.0, large=95.0)
    assert [bar.is_kept for bar in bars_of(given)] == [True, False, False, True]
    assert "| 100,000 groups by the line, s | inf | <= 6000 | **no** |" in page_of(given, picture=tmp_path / "a.svg")


def test_weeks_ahead_stand_on_the_page_where_they_were_made(tmp_path: Path) -> None:
    """Groups, days and seconds of `lagcast forecast` on the same cluster; without them the page is silent on it."""
    without = page_of(document(), picture=tmp_path / "a.svg")
    place = {name: document()[name] for name in ("measured_at", "commit", "processors", "spark", "workers")}
    weeks = place | {"groups": 10_000, "forecast": 9_998, "days": 28, "seconds": 5_432.1}
    page = page_of(document(), weeks, picture=tmp_path / "a.svg")
    assert (
        "9,998 of 10,000 groups were forecast for a week, from 28 days of minutes, in 5,432 s: 543 ms a group." in page
    )
    assert "(2026-01-05, commit 0123456789ab, Spark 4.3.0, 3 workers on 2\nprocessors; `FORECASTS=10000`)" in page
    assert "forecast" not in without.replace("decide: forecast", "")


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json"), "--picture", str(tmp_path / "a.svg")])
    assert ended.value.code == 2
    assert "no document of a fleet on Spark" in capsys.readouterr().err
