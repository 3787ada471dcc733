"""The compiled arithmetic of a fluid backlog, one formula for the quick loops and for everything else."""

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


@compiled
def share_late(wait_before: float, wait_after: float, max_lag: float) -> float:
    """Share of a step's messages that wait longer than `max_lag`, the wait going evenly from one value to the other."""
    shorter, longer = min(wait_before, wait_after), max(wait_before, wait_after)
    if longer <= max_lag:
        return 0.0
    if shorter >= max_lag:
        return 1.0
    return (longer - max_lag) / (longer - shorter)


@compiled
def lag_after(lag: float, produce: float, capacity: float, seconds: float, unprocessed: float) -> float:
    """Backlog after some time, `unprocessed` being what a pause kept from being consumed; never below 0."""
    return max(0.0, lag + (produce - capacity) * seconds + unprocessed)
