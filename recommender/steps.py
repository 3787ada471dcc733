"""Durations of the steps of a cycle, by a timer that is passed in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

Step = Literal["read", "forecast", "decide", "store", "publish", "catch_up"]
STEPS: tuple[Step, ...] = get_args(Step)

# Seconds since an arbitrary instant, never decreasing.
Timer = Callable[[], float]


@dataclass(slots=True)
class StepTimes:
    """The seconds that each step of one cycle has taken, of all groups together; a step that fails counts as well."""

    timer: Timer
    seconds: dict[Step, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))

    @contextmanager
    def timing(self, step: Step) -> Iterator[None]:
        """Add the time of the block to `step`.

        >>> times = StepTimes(iter([10.0, 10.25, 20.0, 20.5]).__next__)
        >>> for _ in range(2):
        ...     with times.timing("store"):
        ...         pass
        >>> times.seconds["store"], times.seconds["publish"]
        (0.75, 0.0)
        """
        began = self.timer()
        try:
            yield
        finally:
            self.seconds[step] += self.timer() - began

    def log_fields(self) -> dict[str, float]:
        """The seconds of each step, to the microsecond, as fields of a log line."""
        return {f"{step}_seconds": round(taken, 6) for step, taken in self.seconds.items()}
