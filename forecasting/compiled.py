"""Loops that cannot be vectors, as machine code."""

import re
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import njit

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_CONFIG: Any = numba.config  # its names are set at run time
# A check before each division took half of the time: 44 ns for a step of a plan, 20 ns without, and the same sums.
_machine_code = partial(njit, error_model="numpy")


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, kept on disk between runs where there is a folder to keep it in.

    Where there is none (a read-only file system, no home directory) it is compiled at each start. `NUMBA_CACHE_DIR`
    names the folder; by default it is `__pycache__` beside the function, else `.cache/numba` in the home directory.
    A division by zero gives inf or nan, as in numpy, instead of ZeroDivisionError.
    """
    # numba itself checks the function's own file only: the machine code of `run`, which contains `flow`, would outlive
    # any change to flow.py, because a caller's file stays the same. So each state of the sources has a folder, those of
    # this module too, whose options numba does not check.
    file = Path(getfile(function))
    sources = _sources(file, file.parents[function.__module__.count(".")], function.__module__.partition(".")[0])
    sources |= {Path(__file__)}
    stamp = sha256(b"".join(source.read_bytes() for source in sorted(sources))).hexdigest()[:12]
    folder = _writable(_CONFIG.CACHE_DIR, file.parent, f"compiled-{stamp}")
    if folder is None:
        return cast("Callable[Arguments, Result]", _machine_code(function))
    before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, str(folder)
    try:
        return cast("Callable[Arguments, Result]", _machine_code(function, cache=True))
    finally:
        _CONFIG.CACHE_DIR = before


@cache
def _sources(file: Path, root: Path, package: str) -> frozenset[Path]:
    """The file and every file of its package that it imports, directly or not."""
    found, following = {file}, [file]
    while following:
        text = following.pop().read_text(encoding="utf-8")
        for name in re.findall(rf"^from ({package}(?:\.\w+)*) import ", text, flags=re.MULTILINE):
            imported = root.joinpath(*name.split(".")).with_suffix(".py")
            if imported.is_file() and imported not in found:
                found.add(imported)
                following.append(imported)
    return frozenset(found)


@cache
def _writable(chosen: str, beside: Path, name: str) -> Path | None:
    """The folder `name` in the first place that can be written to."""
    places: list[Callable[[], Path]] = [lambda: Path(chosen)]
    if not chosen:
        places = [lambda: beside / "__pycache__", lambda: Path.home() / ".cache" / "numba"]
    for place in places:
        try:
            folder = place() / name
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except (OSError, RuntimeError):  # RuntimeError: no home directory
            continue
        return folder
    return None
