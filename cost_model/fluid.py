"""The compiled arithmetic of a fluid backlog, one formula for the quick loops and for everything else."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, kept on disk between runs where there is a directory to keep it in.

    Without one (a read-only file system, no home directory) numba refuses to cache; then it compiles at each start.
    What is kept goes stale when the function's own file changes, not when a file does whose functions it calls.
    """
    try:
        return cast("Callable[Arguments, Result]", njit(cache=True)(function))
    except RuntimeError:
        return cast("Callable[Arguments, Result]", njit(function))


@compiled
def share_late(before: float, after: float, limit: float) -> float:
    """Share of a step's messages above a limit, in waits or in backlogs, which change evenly within the step."""
    shorter, longer = min(before, after), max(before, after)
    if longer <= limit:
        return 0.0
    if shorter >= limit:
        return 1.0
    return (longer - limit) / (longer - shorter)
