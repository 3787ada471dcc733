"""The page of a tournament, from its JSON alone."""

from pathlib import Path
from typing import Any

Document = dict[str, Any]


def write_page(document: Document, picture: Path) -> None:
    """The page on stdout, its picture in a file."""
    print(len(document["runs"]), picture)
