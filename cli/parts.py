"""The parts of a command that work side by side, each in a thread, and each started again when it fails."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Timer
from typing import TYPE_CHECKING

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

if TYPE_CHECKING:
    from recommender.borders import Borders

# A part that fails is started again after 0 to 1 s, then 0 to 2 s, and so on; never later than this, so that the rows
# of a source that is back are not waited for.
LONGEST_REST_SECONDS = 10.0
# A part that has worked for so long works again, which is logged; its next error is, too, even if it is the same.
WORKS_AFTER_SECONDS = 60.0
_MOST_PARTS = 5


class Parts:
    """Threads of one command, which end when `stop` is set."""

    def __init__(self, threads: ThreadPoolExecutor, stop: Event, borders: "Borders") -> None:
        self._threads = threads
        self._stop = stop
        self._borders = borders
        self._working: list[Future[None]] = []

    def start(
        self, name: str, work: Callable[[Event], object], *, is_settled: Callable[[], bool] = lambda: True
    ) -> Future[None]:
        """Call `work(stop)` in a thread, again after each error, until `stop` is set.

        An error before `is_settled()` is usually one of the settings: it is the future's, and sets `stop`.
        """
        part = self._threads.submit(self._keep_at_work, name, work, is_settled)
        self._working.append(part)
        return part

    def raise_failure(self) -> None:
        """Raise the error of a part that has failed before it was settled, if there is one."""
        for part in self._working:
            if part.done():
                part.result()

    def _keep_at_work(self, name: str, work: Callable[[Event], object], is_settled: Callable[[], bool]) -> None:
        def begin() -> None:
            works = Timer(WORKS_AFTER_SECONDS, self._borders.passed, ("part", name))
            works.daemon = True
            works.start()
            try:
                work(self._stop)
            finally:
                works.cancel()

        def note(attempt: RetryCallState) -> None:
            error = None if attempt.outcome is None else attempt.outcome.exception()
            if isinstance(error, Exception):
                self._borders.failed("part", name, error)

        again = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, Exception) and _is_true(is_settled)),
            stop=stop_when_event_set(self._stop),
            sleep=sleep_using_event(self._stop),
            wait=wait_random_exponential(max=LONGEST_REST_SECONDS),
            after=note,
            reraise=True,
        )
        try:
            again(begin)
        except Exception:
            if self._stop.is_set():
                return  # it was to end anyway
            self._stop.set()
            raise


def _is_true(condition: Callable[[], bool]) -> bool:
    """True also where the condition cannot be told, which needs something that was there before."""
    try:
        return condition()
    except Exception:  # noqa: BLE001  # as above
        return True


@contextmanager
def parts_until(stop: Event, borders: "Borders") -> Iterator[Parts]:
    """The parts of a command, which are stopped when the block ends, also after an error."""
    with ThreadPoolExecutor(_MOST_PARTS, thread_name_prefix="part") as threads:
        try:
            yield Parts(threads, stop, borders)
        finally:
            stop.set()
