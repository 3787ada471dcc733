"""Loops that cannot be vectors, as machine code."""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from numba import njit
from numba.core.caching import IndexDataCacheFile

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, kept on disk between runs where there is a directory to keep it in.

    Without one (a read-only file system, no home directory) numba refuses to cache; then it compiles at each start.
    """
    try:
        dispatcher = njit(cache=True)(function)
    except RuntimeError:
        return cast("Callable[Arguments, Result]", njit(function))
    # By itself numba looks at the function's own file only: the machine code of `run`, which has `flow` inside, would
    # outlive any change to flow.py, for a caller's file stays the same. Here all files of the directory count, and each
    # state of them has cache files of its own: reading those of another one fails where a module has since gone.
    stamp = _digest_of_directory(Path(getfile(function)).parent)
    file = dispatcher._cache._cache_file  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    dispatcher._cache._cache_file = IndexDataCacheFile(  # type: ignore[attr-defined, no-untyped-call]  # noqa: SLF001 - as above
        cache_path=file._cache_path,  # noqa: SLF001 - as above
        filename_base=f"{file._index_name.removesuffix('.nbi')}-{stamp.hex()[:12]}",  # noqa: SLF001 - as above
        source_stamp=stamp,
    )
    return cast("Callable[Arguments, Result]", dispatcher)


@cache
def _digest_of_directory(directory: Path) -> bytes:
    digest = sha256()
    for path in sorted(directory.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
