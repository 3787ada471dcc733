"""The page on sessions has a program that runs."""

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "session.md"


@pytest.mark.slow
def test_the_example_steers_its_group(tmp_path: Path) -> None:
    """The program on the page runs as it stands, and moves its group in both directions as its load comes and goes."""
    program = tmp_path / "steer.py"
    program.write_text(PAGE.read_text().split("```python\n")[1].split("```")[0])
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    moves = [line.split("  ")[1].split(",")[0].split(" -> ") for line in done.stdout.splitlines()]
    directions = {int(after) > int(before) for before, after in moves}
    assert directions == {True, False}
