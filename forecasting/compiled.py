"""Loops that cannot be vectors, as machine code."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, kept on disk between runs where there is a directory to keep it in.

    Without one (a read-only file system, no home directory) numba refuses to cache; then it compiles at each start.
    """
    try:
        return cast("Callable[Arguments, Result]", njit(cache=True)(function))
    except RuntimeError:
        return cast("Callable[Arguments, Result]", njit(function))
