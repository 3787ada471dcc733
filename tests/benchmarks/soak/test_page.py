"""The page of the soak: made from its document alone, with its command and each bar, kept or missed."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak.__main__ import main
from benchmarks.soak.faults import FAULTS
from benchmarks.soak.page import bars_of, page_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


@pytest.fixture
def document() -> dict[str, Any]:
    """The document of the page."""
    found: dict[str, Any] = json.loads((DOCS / "soak.json").read_text())
    return found


def test_the_page_is_made_from_its_run(document: dict[str, Any]) -> None:
    """No figure on the page is written by hand, and the command on it is a target of make."""
    page = (DOCS / "soak.md").read_text()
    assert page_of(document) == page
    given = f"MINUTES={document['minutes']:g} SEED={document['seed']} GROUPS={document['groups']}"
    assert f"make soak OUT=FILE {given}\n" in page
    assert document["commit"] in page
    assert all(fault.words in page for fault in FAULTS)
    target = (ROOT / "Makefile").read_text().split("\nsoak: $(READY)")[1].split("\n\n")[0]
    options = '--out "$(OUT)" --minutes $(MINUTES) --seed $(SEED) --groups $(GROUPS)'
    assert f"python -m benchmarks.soak {options}" in target


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"ends": {"up": -9}}, "ends"),
        ({"livez": {"livez ReadTimeout": 2}}, "ends"),
        ({"least_decisions": 0}, "decisions of a cycle"),
        ({"published_not_kept": 1}, "lost decisions"),
        ({"kept_not_published": 1}, "lost decisions"),
        ({"refusals_without_reason": 1}, "refusals without a reason"),
        ({"unexpected_answers": {"500": 1}}, "unexpected answers"),
        ({"not_over": ["step_failed store: away"]}, "failures not over"),
        ({"tracebacks": ["Traceback"]}, "tracebacks"),
        ({"growth": {"service": 1.11}}, "memory, service"),
    ],
)
def test_each_bar_may_be_missed(document: dict[str, Any], changed: dict[str, Any], missed: str) -> None:
    """With one figure worse than its bar, that bar alone is missed, and the page says so."""
    clean: dict[str, Any] = {
        "ends": {},
        "livez": {},
        "unexpected_answers": {},
        "not_over": [],
        "tracebacks": [],
        "growth": {},
    }
    clean |= dict.fromkeys(("published_not_kept", "kept_not_published", "answered_not_kept", "undelivered"), 0)
    clean |= {"refusals_without_reason": 0, "least_decisions": document["groups"], "faults": []}
    assert all(bar.is_kept for bar in bars_of(document | clean))
    assert [bar.what for bar in bars_of(document | clean | changed) if not bar.is_kept] == [missed]
    assert page_of(document | clean | changed).count("| **no** |") == 1


def test_advice_that_comes_late_or_never_misses_its_bar(document: dict[str, Any]) -> None:
    """The slowest fault is told."""
    found = []
    for cycles in (2, 3, None):
        faults = [{"name": "spark_killed", "cycles": each, "seconds": 1.0} for each in (1, cycles)]
        (bar,) = [bar for bar in bars_of(document | {"faults": faults}) if bar.what == "cycles to advice"]
        found.append((bar.figure, bar.is_kept))
    assert found == [("2", True), ("3", False), ("never", False)]


def test_a_file_that_is_no_document_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and the code of a wrong option."""
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["--page", str(tmp_path / "no.json")])
    assert ended.value.code == 2
    assert "no document of the soak" in capsys.readouterr().err
