"""The page of the first minutes: made from its document alone, with its command and each bar, kept or missed."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_minutes.__main__ import main
from benchmarks.first_minutes.page import bars_of, page_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
UPDATE = {"after_publication_seconds": 0.3, "after_begin_seconds": 12.0}


@pytest.fixture
def document() -> dict[str, Any]:
    """The document of the page."""
    found: dict[str, Any] = json.loads((DOCS / "first-minutes.json").read_text())
    return found


def test_the_page_is_made_from_its_run(document: dict[str, Any]) -> None:
    """No figure on the page is written by hand, and the command on it is a target of make."""
    page = (DOCS / "first-minutes.md").read_text()
    assert page_of(document) == page
    assert "make first-five-minutes OUT=FILE\n" in page
    assert document["commit"] in page
    assert all(bar.what in page for bar in bars_of(document))
    target = (ROOT / "Makefile").read_text().split("\nfirst-five-minutes: $(READY)")[1].split("\n\n")[0]
    assert 'python -m benchmarks.first_minutes --out "$(OUT)"' in target


def test_the_run_on_the_page_had_a_newcomer(document: dict[str, Any]) -> None:
    """It was installed, from the code of a commit, on the packaged Java; both sources led to priced advice."""
    assert document["install_seconds"] > 0.0
    assert not document["commit"].endswith("-dirty")
    assert document["sources"].keys() == {"prometheus", "kafka"}
    for found in document["sources"].values():
        assert "(packaged)" in found["doctor"][0]["sentence"]
        assert found["groups"]["stock"]["kind"] == "Recommendation"


@pytest.mark.parametrize(
    ("place", "worse", "missed"),
    [
        (("install_seconds",), 301.0, {"empty folder to advice, prometheus", "empty folder to advice, kafka"}),
        (("sources", "kafka", "advice_seconds"), 301.0, {"empty folder to advice, kafka"}),
        (("sources", "kafka", "doctor_seconds"), 301.0, {"empty folder to advice, kafka"}),
        (
            ("sources", "prometheus", "updates"),
            [UPDATE, {**UPDATE, "after_publication_seconds": 2.1}],
            {"decision to page"},
        ),
        (("sources", "prometheus", "first_picture_seconds"), [0.1, 1.6], {"first picture of a group's page"}),
        (("help_seconds",), [0.2, 0.2, 0.5], {"--help, at most"}),
        (("help_seconds",), [0.2, 0.31, 0.31], {"--help"}),
        (("demo", "advice_seconds"), 31.0, {"demo to advice"}),
    ],
)
def test_each_bar_may_be_missed(
    document: dict[str, Any], place: tuple[str, ...], worse: object, missed: set[str]
) -> None:
    """With one figure worse than its bar that bar is missed and no other, and the page says so."""
    kept: dict[str, Any] = {
        "address_seconds": 1.0,
        "advice_seconds": 20.0,
        "doctor_seconds": 5.0,
        "updates": [UPDATE],
        "first_picture_seconds": [0.5],
    }
    changed = document | {"install_seconds": 60.0, "help_seconds": [0.2], "demo": dict(kept)}
    changed["sources"] = {name: found | kept for name, found in document["sources"].items()}
    assert [bar.what for bar in bars_of(changed) if not bar.is_kept] == []
    *way, last = place
    at = changed
    for name in way:
        at = at[name]
    at[last] = worse
    assert {bar.what for bar in bars_of(changed) if not bar.is_kept} == missed
    assert page_of(changed).count("**no**") == len(missed)


def test_a_file_that_is_no_document_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the option and the file."""
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(SystemExit):
        main(["--page", str(tmp_path / "x.json")])
    assert "no document of the first minutes" in capsys.readouterr().err
