"""Machine code that is stored on disk, in a package of three modules: each calls the next."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUTER = """from forecasting.compiled import compiled
from loops.near.inner import inner


@compiled
def outer(value):
    return inner(value) + 1.0


print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""
INNER = """from forecasting.compiled import compiled
from loops.far.constants import FACTOR


@compiled
def inner(value):
    return FACTOR * value
"""


@pytest.fixture(name="package")
def package_fixture(tmp_path: Path) -> Path:
    """`loops.outer` calls `loops.near.inner`, which reads a constant of `loops.far.constants`."""
    package = tmp_path / "loops"
    for folder in (package, package / "near", package / "far"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    (package / "outer.py").write_text(OUTER)
    (package / "near" / "inner.py").write_text(INNER)
    (package / "far" / "constants.py").write_text("FACTOR = 10.0\n")
    return package


def _run(package: Path, **environment: str) -> str:
    """The outer function's result in a process of its own, and the count of reads of its machine code from disk."""
    command = [sys.executable, "-B", "-c", "import loops.outer"]
    paths = {"PYTHONPATH": f"{package.parent}:{ROOT}", "HOME": str(package.parent / "home")}
    done = subprocess.run(
        command, env={**paths, **environment}, cwd=package, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_machine_code_is_kept_until_a_source_of_it_changes(package: Path) -> None:
    """It is compiled once, then read; a change of a constant that a callee imports from a third folder renews it."""
    assert _run(package) == "11.0 0"
    assert _run(package) == "11.0 1"
    (package / "far" / "constants.py").write_text("FACTOR = 20.0\n")
    assert _run(package) == "21.0 0"


def test_the_folder_for_machine_code_can_be_named(package: Path, tmp_path: Path) -> None:
    """With a named folder nothing is written beside the sources."""
    _run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert list((tmp_path / "kept").rglob("*.nbi"))
    assert not list(package.rglob("*.nbi"))


@pytest.mark.slow
def test_without_a_folder_it_is_compiled_at_each_start(package: Path, tmp_path: Path) -> None:
    """If a file is in the folder's place, no user can write into it."""
    (tmp_path / "kept").write_text("in the way")
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert [_run(package, **named), _run(package, **named)] == ["11.0 0", "11.0 0"]
