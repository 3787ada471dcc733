"""A time limit for calls of code that may hang."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread

from recommender.following.careful import Answer, ForecasterFailure, call

# Fitting four weeks of minutes takes 0.08 s: 10 s is a hang, and leaves a cycle of 60 s to the other groups.
TIME_LIMIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A `Caller` that waits so many seconds for each answer.

    The function runs in a thread of its own, 0.05 ms more than a plain call: a thread that hangs is left behind, and
    does not keep the process from ending.

    >>> TimeLimit(1.0)(lambda: 6 * 7)
    42
    """

    seconds: float = TIME_LIMIT_SECONDS

    def __call__(self, question: Callable[[], Answer], /) -> Answer | ForecasterFailure:
        """The result, or the failure; exceeding the time limit is a failure."""
        answers: list[Answer | ForecasterFailure] = []
        thread = Thread(target=lambda: answers.append(call(question)), name="forecaster", daemon=True)
        thread.start()
        thread.join(self.seconds)
        return answers[0] if answers else ForecasterFailure(f"it did not answer within {self.seconds:g} s")
