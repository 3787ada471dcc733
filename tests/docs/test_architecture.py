"""The page on the architecture names existing files and every decision on paper."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: list[str] = PROJECT["tool"]["importlinter"]["root_packages"]
# A path of this repository, or a dotted module of one of its packages, and no other text in backticks.
PATH = re.compile(r"`([a-z][a-zA-Z0-9_.-]*(?:/[a-zA-Z0-9_.-]+)+|[a-z_]+\.(?:py|toml|md))`")
MODULE = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.[a-z_]+)*)`")


def test_every_path_on_the_page_exists() -> None:
    """Files and folders in backticks exist."""
    named = set(PATH.findall(PAGE))
    assert len(named) > 60
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_every_module_on_the_page_exists() -> None:
    """Each `package.room.module` in backticks is a file or a folder."""
    named = {module.replace(".", "/") for module in MODULE.findall(PAGE)}
    assert named
    assert sorted(path for path in named if not any((ROOT / f"{path}{end}").exists() for end in ("", ".py"))) == []


def test_every_package_and_room_is_on_the_page() -> None:
    """A package of the import contracts has its row, as has each of its folders that a contract makes a layer."""
    rooms = [
        f"{contract['containers'][0]}/{name}"
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        for layer in contract.get("layers", ())
        for name in layer.split(" | ")
        if contract.get("containers") and (ROOT / contract["containers"][0] / name).is_dir()
    ]
    assert rooms
    assert [name for name in (*PACKAGES, *rooms) if f"`{name}`" not in PAGE] == []


def test_every_type_of_the_walk_is_in_its_files() -> None:
    """In the table of stops, each name in the last column is written in a file of the same row."""
    stops = re.findall(r"^\| \d+ \| [^|]* \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert len(stops) > 12
    for files, types in stops:
        text = "".join((ROOT / path).read_text() for path in PATH.findall(files))
        assert [name for name in re.findall(r"`([A-Z]\w+)`", types) if name not in text] == []


def test_every_decision_on_paper_is_linked() -> None:
    """The list names each file of docs/decisions."""
    files = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name for name in files if f"(decisions/{name})" not in PAGE] == []
