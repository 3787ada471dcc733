"""docs/forecasts.md has the figures that are kept beside it."""

import json
from pathlib import Path

import pytest

from benchmarks.forecasts.page import write_page

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """No figure on the page is written by hand; `python -m benchmarks.forecasts --page` writes it."""
    write_page(json.loads((ROOT / "docs" / "forecasts.json").read_text(encoding="utf-8")))
    assert capsys.readouterr().out == (ROOT / "docs" / "forecasts.md").read_text(encoding="utf-8")
