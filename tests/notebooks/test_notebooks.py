"""Notebooks run from top to bottom, and stay small."""

from pathlib import Path

import jupytext  # type: ignore[import-untyped]  # ships no types
import nbclient
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))
# Of matplotlib, and those that the page has too.
PICTURES = {
    "decision": (0, 2),
    "features": (0, 2),
    "forecasts": (1, 3),
    "ledger": (0, 1),
    "policies": (0, 1),
    "tuning": (2, 1),
}
# A notebook that takes longer than this is a benchmark.
LIMIT_SECONDS = 300


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    """Every cell runs, and every figure is drawn."""
    notebook = jupytext.read(path)
    nbclient.NotebookClient(notebook, timeout=LIMIT_SECONDS, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}) for output in outputs]
    drawn = sum("data-shown=" in data.get("text/html", "") for data in shown)
    assert (sum("image/png" in data for data in shown), drawn) == PICTURES[path.stem]
    assert sum("window.lagcastDraw = draw" in data.get("text/html", "") for data in shown) == 1  # the engine, once
