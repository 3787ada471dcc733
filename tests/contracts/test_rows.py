"""Each system that lagcast has to work with, B1 to B26, and each promise, P1 to P25, has a test of its name."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = (*(f"b{number}" for number in range(1, 27)), *(f"p{number}" for number in range(1, 26)))
# A row of which nothing can be proven here, and why.
NOT_PROVEN: dict[str, str] = {}


def by_row(sources: dict[str, str]) -> dict[str, list[str]]:
    """The tests of each row, by the names of functions in the text of test files."""
    found: dict[str, list[str]] = {}
    for file, text in sources.items():
        for name, row in re.findall(r"^ *(?:async )?def (test_([bp]\d+)_\w+)\(", text, flags=re.MULTILINE):
            found.setdefault(row, []).append(f"{file}::{name}")
    return found


def of_the_project() -> dict[str, list[str]]:
    return by_row(
        {str(file.relative_to(TESTS)): file.read_text(encoding="utf-8") for file in sorted(TESTS.rglob("test_*.py"))}
    )


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_test_of_its_name(row: str) -> None:
    """`def test_b6_...` for B6; what cannot be proven here is named with its reason, and nothing else is."""
    assert (row in of_the_project()) is (row not in NOT_PROVEN)


def test_no_test_has_the_name_of_a_row_that_is_not_there() -> None:
    """B27 and P0 are slips."""
    assert of_the_project().keys() | NOT_PROVEN.keys() == set(ROWS)


def test_names_are_read_from_functions_alone() -> None:
    """Neither a longer number, nor a comment, nor a helper counts."""
    lines = (
        "def test_b6_loops() -> None:",
        "# def test_b7_no()",
        "def b8_helper() -> None:",
        "    def test_p14_in() -> None:",
    )
    assert by_row({"a.py": "\n".join(lines)}) == {"b6": ["a.py::test_b6_loops"], "p14": ["a.py::test_p14_in"]}
    assert "b2" not in by_row({"a.py": "def test_b26_published() -> None:"})
