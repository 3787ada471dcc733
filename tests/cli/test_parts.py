"""Parts of a command: each is started again when it fails, and all end when the command does."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from structlog.testing import capture_logs

from cli import parts
from cli.parts import parts_until
from recommender.borders import Borders, Unit


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LONGEST_REST_SECONDS", 0.01)


def failing(times: int, done: threading.Event) -> Callable[[threading.Event], object]:
    """Work that fails so many times, each time in another way, and then works until it is stopped."""
    errors = [OSError(f"no space left, {number}") for number in range(times)]

    def work(stop: threading.Event) -> None:
        if errors:
            raise errors.pop()
        done.set()
        stop.wait()

    return work


def test_a_part_that_fails_is_started_again_and_each_failure_is_counted() -> None:
    """A full disk under the collector ended REST and advice too."""
    counted: list[Unit] = []
    stop, works_again = threading.Event(), threading.Event()
    with parts_until(stop, Borders(counted.append)) as running:
        running.start("collector", failing(3, works_again))
        assert works_again.wait(timeout=10)
        running.raise_failure()
    assert counted == ["part"] * 3


def test_a_part_that_works_again_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failure was told, and its end only at the next one."""
    monkeypatch.setattr(parts, "WORKS_AFTER_SECONDS", 0.05)
    works_again, until = threading.Event(), time.monotonic() + 10
    with capture_logs() as lines, parts_until(threading.Event(), Borders()) as running:
        running.start("collector", failing(1, works_again))
        while "part_works_again" not in [line["event"] for line in lines] and time.monotonic() < until:
            time.sleep(0.01)
    assert [line["event"] for line in lines] == ["part_failed", "part_works_again"]


def test_an_error_before_a_part_was_settled_ends_the_command() -> None:
    """An address or a password that is wrong is not tried for ever."""
    stop = threading.Event()
    with parts_until(stop, Borders()) as running:
        running.start("collector", failing(1, threading.Event()), is_settled=lambda: False)
        assert stop.wait(timeout=10)
        with pytest.raises(OSError, match="no space left"):
            running.raise_failure()


def test_a_part_whose_settlement_cannot_be_told_had_been_settled() -> None:
    """The table that showed it is away, for instance."""
    table: dict[str, bool] = {}
    works_again = threading.Event()
    with parts_until(threading.Event(), Borders()) as running:
        running.start("features", failing(1, works_again), is_settled=lambda: table["manifest"])
        assert works_again.wait(timeout=10)


def test_parts_are_stopped_however_the_block_ends() -> None:
    """An error in the loop does not leave the collector running."""
    stop, message = threading.Event(), "the loop failed"
    working: list[Future[None]] = []

    def loop() -> None:
        with parts_until(stop, Borders()) as running:
            working.append(running.start("collector", lambda stop: stop.wait()))
            raise LookupError(message)

    with pytest.raises(LookupError, match=message):
        loop()
    assert working[0].result(timeout=5) is None


def test_a_part_that_fails_because_it_is_stopped_has_not_failed() -> None:
    """A request that is cut off by Ctrl-C is no error of the command."""

    def work(stop: threading.Event) -> None:
        stop.wait()
        message = "the collector's process was stopped during a request"
        raise OSError(message)

    stop = threading.Event()
    with parts_until(stop, Borders()) as running:
        part = running.start("collector", work)
        stop.set()
        assert part.result(timeout=5) is None
        running.raise_failure()
