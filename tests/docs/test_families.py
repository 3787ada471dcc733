"""docs/families.md has the figures of the runs beside it."""

import json
from pathlib import Path

from benchmarks.decisions.families_page import families_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_its_runs() -> None:
    """No figure on the page is written by hand; `python -m benchmarks.decisions.families --page` writes it."""
    document = json.loads((DOCS / "families.json").read_text(encoding="utf-8"))
    assert families_page(document) == (DOCS / "families.md").read_text(encoding="utf-8")
