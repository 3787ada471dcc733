"""The page about operations explains every conflict by which an executor may be held."""

from pathlib import Path
from typing import get_args

from executor.plan import ConflictReason

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_reason_of_a_conflict_is_explained() -> None:
    """The table names every reason of a conflict."""
    assert [reason for reason in get_args(ConflictReason) if f"| `{reason}` |" not in PAGE] == []
