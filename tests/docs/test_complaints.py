"""docs/complaints.md names tests and pages that exist, for each complaint at least one, or says what is missing."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "complaints.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")][1:]
NAMED = re.findall(r"`(tests/[^`]*)`", PAGE)


@cache
def _tests_of(file: str) -> frozenset[str]:
    """The tests of a file by the last part of pytest's ids: `test_x`, or `TestY::test_x` within a class."""
    found = set()
    for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(each, ast.FunctionDef):
            found.add(each.name)
        elif isinstance(each, ast.ClassDef):
            found |= {f"{each.name}::{inner.name}" for inner in each.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def test_every_complaint_is_answered() -> None:
    """Each of the 24 has its reports, an answer, and what holds it or what is missing."""
    assert len(ROWS) == 24
    assert [row for row in ROWS if len(row) != 4 or not all(row)] == []
    assert [row[0] for row in ROWS if "`tests/" not in row[3] and "*Not yet:*" not in row[3]] == []


@pytest.mark.parametrize("named", NAMED)
def test_every_named_test_exists(named: str) -> None:
    """In the file that is named, under this name."""
    file, _, test = named.partition("::")
    assert test in _tests_of(file)
