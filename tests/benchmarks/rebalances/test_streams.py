"""The comparison of Kafka Streams applications: what is found in their log, and the page that is made of it."""

import json
from pathlib import Path

import pytest

from benchmarks.rebalances.measure import batches_of
from benchmarks.rebalances.page import INTRODUCTION
from benchmarks.rebalances.streams import full_share_after
from benchmarks.rebalances.streams_page import APPLICATIONS, page_of, section_of

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_made_from_its_run() -> None:
    """No figure on the page is written by hand."""
    document = json.loads((DOCS / "rebalances-streams.json").read_text())
    page = (DOCS / "rebalances-streams.md").read_text()
    assert page_of(document) == page
    assert all(application.words in page for application in APPLICATIONS)


def test_the_page_of_all_rebalances_ends_with_those_of_the_same_run() -> None:
    """Formula beside measurement for each application and change, and an introduction that names both documents."""
    document = json.loads((DOCS / "rebalances-streams.json").read_text())
    page = (DOCS / "rebalances.md").read_text()
    section = section_of(document)
    assert page.endswith(section)
    assert all(section.count(f"| {application.words} |") == 3 for application in APPLICATIONS)
    assert page.startswith(INTRODUCTION.split("{", maxsplit=1)[0].rpartition("\n")[0])


def test_a_newcomer_has_its_share_with_its_last_task() -> None:
    """Four of twelve tasks, the fourth of them 9 s after the command; three of them are not a share."""
    lines = [
        f"lost-2 lost {at} {at} {partition}:0:0:0\n"
        for partition, at in ((0, 21_000), (0, 22_000), (1, 22_000), (2, 23_000), (3, 29_000))
    ]
    batches = batches_of(lines)
    assert full_share_after(batches, "lost-2", 20.0, 40.0) == pytest.approx(9.0)
    assert full_share_after(batches, "lost-2", 20.0, 28.0) is None
    assert full_share_after(batches, "lost-1", 20.0, 40.0) is None
