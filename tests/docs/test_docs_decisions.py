"""docs/decisions-bench.md says what the runs beside it say."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "decisions-bench.json"


def test_the_page_is_what_its_runs_come_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No figure on the page is written by hand; `benchmarks/decisions.py --page` writes it."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = importlib.import_module("decisions_page")
    page.write_page(json.loads(DOCUMENT.read_text(encoding="utf-8")), tmp_path / "decisions-bench.svg")
    assert capsys.readouterr().out == (ROOT / "docs" / "decisions-bench.md").read_text(encoding="utf-8")
