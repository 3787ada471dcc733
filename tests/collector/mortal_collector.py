"""A collector that dies or fails as the group's name says; it lives in another process than its test."""

import os
import signal
from collections.abc import Sequence
from datetime import datetime

from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import Collected


class MortalCollector:
    """Answers with its process number in an error, unless it is asked for its end."""

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """Die, fail or answer."""
        if groups == ["dies"]:
            os.abort()
        if groups == ["killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if groups == ["away"]:
            raise UnavailableError("no answer", group="away")  # noqa: EM101, TRY003
        if groups == ["denied"]:
            raise RejectedError("denied", group="denied")  # noqa: EM101
        if groups == ["bug"]:
            raise KeyError(now)
        return Collected(samples=(), errors=(RejectedError(str(os.getpid()), group="process"),))


class Unmakeable(MortalCollector):
    """Refuses its settings."""

    def __init__(self) -> None:
        raise RejectedError("does not take its settings")  # noqa: EM101, TRY003
