"""docs/forecasts.md says what the figures beside it say."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_its_figures_come_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No figure on the page is written by hand; `benchmarks/forecasts.py --page` writes it."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = importlib.import_module("forecasts_page")
    page.write_page(json.loads((ROOT / "docs" / "forecasts.json").read_text(encoding="utf-8")))
    assert capsys.readouterr().out == (ROOT / "docs" / "forecasts.md").read_text(encoding="utf-8")
