"""Log lines: those of libraries are spared, one of each kind a minute; and what a crash leaves."""

import logging
import signal
import subprocess
import sys

from cli.logs import SPARED_SECONDS, Sparing


class Clock:
    """A clock that a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        """Return its seconds."""
        return self.seconds


def line(text: str, error: Exception | None = None) -> logging.LogRecord:
    """A record of that message, with an error if there is one."""
    raised = None if error is None else (type(error), error, None)
    return logging.LogRecord("asyncio", logging.ERROR, __file__, 1, text, (), raised)


def test_a_line_of_each_kind_is_written_once_a_minute_and_counts_the_others() -> None:
    """Another message, and another error of the same message, are other kinds; what was left out is counted."""
    clock = Clock()
    sparing = Sparing(clock)
    assert sparing.filter(line("Invalid HTTP request received."))
    assert [sparing.filter(line("Invalid HTTP request received.")) for _ in range(3)] == [False] * 3
    assert sparing.filter(line("Exception in ASGI application\n", KeyError("a")))
    assert sparing.filter(line("Exception in ASGI application\n", ValueError("a")))
    assert not sparing.filter(line("Exception in ASGI application\n", KeyError("b")))
    assert [sparing.filter(line(f"accept failed\nfile {number}")) for number in (7, 8)] == [True, False]
    clock.seconds = SPARED_SECONDS
    written = line("Invalid HTTP request received.")
    assert sparing.filter(written)
    assert written.getMessage() == "Invalid HTTP request received. (3 more of these lines were left out)"
    assert not sparing.filter(line("Invalid HTTP request received."))


def test_a_logger_is_spared_once() -> None:
    """However often a service is started in a process."""
    logger = logging.getLogger("of-this-test")
    for _ in range(2):
        Sparing.of(logger)
    assert len(logger.filters) == 1


def test_a_crash_in_machine_code_tells_where_each_thread_was() -> None:
    """Without it a service would end without a word."""
    program = "import ctypes; from cli.logs import trace_crashes; trace_crashes(); ctypes.string_at(0)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in ended.stderr
    assert 'File "<string>", line 1 in <module>' in ended.stderr
