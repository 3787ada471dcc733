"""The page of the lab of ten groups: made from its document alone, with its command, each bar and what was missed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.discovery.__main__ import group_of, main
from benchmarks.discovery.groups import GROUPS
from benchmarks.discovery.judge import Reading, Told
from benchmarks.discovery.page import bars, page_of, sooner
from benchmarks.discovery.stage import Seen

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def test_the_page_is_made_from_its_run() -> None:
    """No figure on the page is written by hand, and the command on it is a target of make."""
    document = json.loads((DOCS / "lab-discovery.json").read_text())
    page = (DOCS / "lab-discovery.md").read_text()
    assert page_of(document) == page
    assert f"make lab-discovery OUT=FILE MINUTES={document['minutes']:g}\n" in page
    assert document["commit"] in page
    assert all(f"| {name} |" in page for name in GROUPS)
    target = (ROOT / "Makefile").read_text().split("\nlab-discovery: $(READY)")[1].split("\n\n")[0]
    assert 'python -m benchmarks.discovery --out "$(OUT)" --minutes $(MINUTES)' in target


def right(name: str, minute: float) -> Reading:
    """Advice that tells the whole truth as detected."""
    figures = {figure: Told(value=value, source="detected") for figure, value in GROUPS[name].truth.items()}
    return Reading(minute=minute, reason="AtTarget", is_advice=True, figures=figures)


def document_of(*seen: tuple[str, list[Reading]]) -> dict[str, Any]:
    """A document of groups with these readings."""
    groups = [group_of(GROUPS[name], Seen(readings=readings)) for name, readings in seen]
    return {
        "measured_at": "2026-01-05",
        "commit": "0123abc",
        "minutes": 20.0,
        "day_minutes": 10.0,
        "past_minutes": 45,
        "deploy_seconds": 120.0,
        "processors": 2,
        "mean_load": 1.0,
        "kafka": "4.3.0",
        "groups": groups,
    }


def test_every_bar_holds_where_all_was_found_in_time() -> None:
    """And the page has nothing that was missed."""
    document = document_of(("mail", [right("mail", 4.0)]), ("routes", [right("routes", 5.0)]))
    assert "**no**" not in bars(document)
    assert "2 of 2" in bars(document)
    page = page_of(document)
    assert "What was missed" not in page
    assert "Nothing.\n" in page


def test_a_missed_bar_is_told_with_its_reason() -> None:
    """Advice came late, one protocol was told wrongly, and a capacity is a bound: three bars are missed."""
    refused = Reading(minute=5.5, reason="CapacityUnknown", is_advice=False, figures={})
    late = right("mail", 6.0)
    wrong = {"protocol": Told(value="kip848", source="detected"), "capacity": Told(value=9.0, source="lower_bound")}
    late = replace(late, figures={**late.figures, **wrong})
    document = document_of(("mail", [refused, late]))
    lines = bars(document).splitlines()
    assert "| 0 of 1 | **no** |" in lines[2]
    assert "| 0 of 1 | **no** |" in lines[3]
    assert lines[-1] == "| figures wrong and not marked as assumed | 0 | 1 | **no** |"
    page = page_of(document)
    assert "**mail** was refused: CapacityUnknown until minute 5.5." in page
    assert "**mail**'s capacity was not found within the lab: its load never asked for all" in page
    assert "| mail | `protocol` | kip848 (detected) | eager | **wrong**, at minute 6.0 |" in page
    assert "not reached" in sooner(document["groups"])


def test_a_capacity_that_was_off_for_a_while_is_told() -> None:
    """Its verdict is that of the end."""
    late = right("mail", 6.0)
    early = replace(late, minute=4.0, figures={**late.figures, "capacity": Told(value=23.0, source="measured")})
    page = page_of(document_of(("mail", [early, late])))
    assert "**mail**'s capacity was told as measured and was off from minute 4.0 on" in page
    assert "| figures wrong and not marked as assumed | 0 | 0 | yes |" in page


def test_a_document_of_something_else_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As are minutes in which nothing can be found."""
    other = tmp_path / "other.json"
    other.write_text("{}")
    for arguments, message in (
        (["--page", str(other)], "no document of the lab"),
        (["--minutes", "0.5"], "--minutes 0.5: give from 2 to 1440"),
        (["--groups", "mail,none"], "there is no 'none'"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
