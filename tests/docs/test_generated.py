"""Pages that are made from the code are what it says now; `make docs` rewrites them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["commands", "metrics"])
def test_a_page_is_what_the_code_says_of_itself(name: str) -> None:
    """Each command with its options and defaults, and each metric with its labels."""
    script = f"scripts/{name}_page.py"
    made = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == made.stdout
