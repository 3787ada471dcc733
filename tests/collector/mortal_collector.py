"""A collector for a child process that dies or fails as the name of the group requests."""

import os
import signal
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import structlog

from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import Collected


class MortalCollector:
    """Returns its process number in an error, unless the group's name makes it die or fail."""

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """Die, fail or return the process number."""
        if groups == ["dies"]:
            os.abort()
        if groups and groups[0].startswith("dies until "):
            deaths = Path(groups[0].removeprefix("dies until "))
            if len(deaths.read_text()) < int(groups[1]):
                deaths.write_text(deaths.read_text() + ".")
                os.abort()
        if groups == ["killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if groups == ["away"]:
            raise UnavailableError("no answer", group="away")  # noqa: EM101, TRY003
        if groups == ["denied"]:
            raise RejectedError("denied", group="denied")  # noqa: EM101
        if groups == ["logs"]:
            structlog.get_logger().info("round")
        if groups == ["bug"]:
            raise KeyError(now)
        return Collected(samples=(), errors=(RejectedError(str(os.getpid()), group="process"),))


class Unmakeable(MortalCollector):
    """Refuses its settings."""

    def __init__(self) -> None:
        raise RejectedError("does not accept its settings")  # noqa: EM101, TRY003
