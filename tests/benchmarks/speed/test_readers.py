"""What readers cost the loop: on every route that the service has, and a page made from the document alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.app import create_app
from benchmarks.speed.readers import BEGIN_AT, asked_of, main, measure
from benchmarks.speed.readers_page import bars_of, page_of
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
READERS = 60


def document(**beside: Any) -> dict[str, Any]:  # noqa: ANN401  # of several types
    """A run that keeps both bars, but for the given figures of the cycles with readers."""
    alone = {"wall_seconds": [10.0, 9.0, 11.0], "cpu_seconds": [8.0, 8.0, 9.0], "resident_megabytes": 900.0}
    return {
        "measured_at": "2026-01-05",
        "commit": "0123456789ab",
        "processors": 2,
        "mean_load": 2.5,
        "groups": 3000,
        "readers": 100,
        "alone": alone,
        "beside": alone | {"wall_seconds": [12.0, 11.0, 90.0], "resident_megabytes": 1_199.0} | beside,
        "answers": {"/api/v1/fleet": {"200": 1_200, "503": 31}, "/": {"200": 7}},
    }


def test_the_page_is_made_from_its_run() -> None:
    """No figure on the page is written by hand; page and document are checked in together or not at all."""
    file, page = DOCS / "readers-bench.json", DOCS / "readers-bench.md"
    made = page_of(json.loads(file.read_text())) if file.exists() else None
    assert made == (page.read_text() if page.exists() else None)
    target = (ROOT / "Makefile").read_text().split("\nbench-readers: $(READY)")[1].split("\n\n")[0]
    assert 'python -m benchmarks.speed.readers --groups $(GROUPS) --readers $(READERS) --out "$(OUT)"' in target


@pytest.mark.parametrize(
    ("worse", "missed"),
    [
        ({}, []),
        ({"wall_seconds": [12.1, 12.1, 12.1]}, ["a cycle, times as long as without readers"]),
        ({"resident_megabytes": 1_201.0}, ["more memory than without readers, MB"]),
    ],
)
def test_each_bar_may_be_missed(worse: dict[str, Any], missed: list[str]) -> None:
    """Medians of the cycles, a fifth longer at most; 300 MB more at most."""
    assert [bar.what for bar in bars_of(document(**worse)) if not bar.is_kept] == missed
    assert page_of(document(**worse)).count("| **no** |") == len(missed)


def test_the_page_has_the_answers_of_each_route() -> None:
    """By status, and what has changed since the run."""
    page = page_of(document() | {"changed_since": "Pages are smaller now."})
    assert "| route | 200 | 503 |\n|---|---:|---:|\n| `/` | 7 | 0 |\n| `/api/v1/fleet` | 1,200 | 31 |" in page
    assert "make bench-readers GROUPS=3000 READERS=100 OUT=FILE\n" in page
    assert "**Older than the code.** Pages are smaller now." in page


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json")])
    assert ended.value.code == 2
    assert "no document of readers" in capsys.readouterr().err


@pytest.mark.slow
def test_every_route_of_the_service_is_asked_and_answered(tmp_path: Path) -> None:
    """As many readers as to begin with each of them: REST, pages, pictures, what-ifs, files and streams."""
    store = SqlDecisionStore(sqlite_url(tmp_path / "empty.sqlite"))
    asks, streams = asked_of(create_app(store, clock=lambda: BEGIN_AT, version="0"))
    store.close()
    paths = {each.path for each in asks} | {*streams}
    page, api = "/groups/{group_key}", "/api/v1/groups/{group_key}"
    assert paths >= {"/quality", page, f"{page}/pictures", f"{page}/events", "/events", "/api/v1/fleet", f"{api}/day"}
    assert paths >= {f"{api}/partitions", f"{api}/what-if", "/api/v1/recommendations/{recommendation_id}/explanation"}
    assert len(asks) <= READERS
    *_, answers = measure(tmp_path, groups=3, readers=READERS)
    assert answers.keys() == {each.name for each in asks} | {*streams}
    assert {status for found in answers.values() for status in found} <= {"200", "404", "503"}
    assert sum("200" in found for found in answers.values()) > len(paths) - 5
