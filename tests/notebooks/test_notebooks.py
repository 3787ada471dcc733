"""Notebooks run from top to bottom, and stay small."""

from pathlib import Path

import jupytext  # type: ignore[import-untyped]  # ships no types
import nbclient
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))
PICTURES = {"forecasts": 3, "tuning": 2}
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
    assert sum("image/png" in output.get("data", {}) for output in outputs) == PICTURES[path.stem]
