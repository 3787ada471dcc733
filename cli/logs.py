# ruff: noqa: PLC0415 - structlog is imported by commands that log, so that `--help` answers in 0.2 s
"""Logging to stderr, as text on a terminal and as JSON elsewhere."""

import logging
import sys


def log_to_stderr(level: int = logging.INFO) -> None:
    """Structured log lines of `level` and above on stderr; stdout is for data."""
    import structlog

    plain = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
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
