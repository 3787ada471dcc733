"""docs/decisions-bench.md has the figures of the runs beside it."""

import json
from pathlib import Path

import pytest

from benchmarks.decisions.page import write_page

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "decisions-bench.json"


def test_the_page_is_made_from_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No figure on the page is written by hand; `python -m benchmarks.decisions --page` writes it."""
    write_page(json.loads(DOCUMENT.read_text(encoding="utf-8")), tmp_path / "decisions-bench.svg")
    assert capsys.readouterr().out == (ROOT / "docs" / "decisions-bench.md").read_text(encoding="utf-8")
