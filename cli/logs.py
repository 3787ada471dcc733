# ruff: noqa: PLC0415 - structlog is imported by commands that log, so that `--help` answers in 0.2 s
"""Logging to stderr, as text on a terminal and as JSON elsewhere."""

import logging
import sys
import time
from collections.abc import Callable

# Seconds in which a line of a library is written once.
SPARED_SECONDS = 60.0


def log_to_stderr(level: int = logging.INFO) -> None:
    """Structured log lines of `level` and above on stderr; stdout is for data."""
    import structlog

    plain = (
        structlog.dev.ConsoleRenderer(repr_native_str=True)
        if sys.stderr.isatty()
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            plain,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up for each line: an earlier stderr may be closed by now.
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
    )


def trace_crashes() -> None:
    """Have a crash in machine code, such as of Kafka's client, print where each thread was, instead of nothing."""
    import faulthandler

    # The real stderr, which has a file descriptor, unlike one that somebody has put in its place.
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


class Sparing(logging.Filter):
    """Lets one line of each kind through per minute, with the number of those before it that were left out.

    The kind is the message without its figures, and the type of the error: a log does not grow with the number of bad
    requests. `clock` counts seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[object, object], tuple[float, int]] = {}

    @classmethod
    def of(cls, logger: logging.Logger) -> None:
        """Have `logger` spare its lines, once."""
        if not any(isinstance(each, cls) for each in logger.filters):
            logger.addFilter(cls())

    def filter(self, record: logging.LogRecord) -> bool:
        """True for a line that is written; it says how many were not."""
        kind = str(record.msg).partition("\n")[0], record.exc_info[0] if record.exc_info else None
        now = self._clock()
        until, left_out = self._kinds.get(kind, (now, 0))
        if now < until:
            self._kinds[kind] = until, left_out + 1
            return False
        self._kinds[kind] = now + SPARED_SECONDS, 0
        if left_out:
            record.msg = f"{record.msg} ({left_out} more of these lines were left out)"
        return True
