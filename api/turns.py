"""Work for readers: one piece after the other, little while decisions are made, a page of the fleet once for all."""

import time
from asyncio import wrap_future
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from recommender.ports import UnavailableError

Answer = TypeVar("Answer")

# Of the time in which decisions are made, readers take this share at most. Both are of one process, where only one
# thread at a time runs Python: forty readers at their own pace took 40 of 41 parts of it.
READERS_SHARE = 0.1
# The next one never waits longer than this for what those before it took: KEDA and Prometheus wait 3 s and 10 s.
MOST_REST_SECONDS = 1.0
# What is owed beyond that is given back by those that come later; of more than this nothing is.
MOST_OWED_SECONDS = 5.0
# A page of the whole fleet is kept for ten times as long as it took to make, and never longer than this: a standby
# leads 5 s after a leader has stopped at the earliest, and both must not show advice.
MOST_KEPT_SECONDS = 4.0
# Requests that wait: twice as many as there are connections, whose callers may be gone by then.
MOST_WAITING = 512
# Pages of different parts of the fleet that are kept; each is 1 MB at 1,000 groups.
_MOST_PAGES = 32


class _Page(NamedTuple):
    until_seconds: float
    until: datetime
    answer: object


class Turns:
    """The turns of readers, in one thread; `is_deciding` is true while the loop of this process decides.

    What the server's thread does for them, which reads requests and sends answers, counts as theirs. A page is of one
    instant of `clock`: it is not kept beyond its time by that clock either.
    """

    def __init__(self, *, clock: Callable[[], datetime], is_deciding: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._is_deciding = is_deciding
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readers")
        self._waiting = 0
        self._owed_seconds = 0.0
        # CPU seconds of the server's thread, at the last request and when they were last counted.
        self._server_seconds: float | None = None
        self._counted_server_seconds = 0.0
        self._pages: dict[object, _Page] = {}

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """The result of `work` when it is its turn. Errors: its own; UnavailableError where too many wait."""
        return await self._turn(lambda: self._timed(work)[0])

    async def page(self, key: object, make: Callable[[], Answer]) -> Answer:
        """The page of that key: made, or as it was made a moment ago. Errors: as above."""

        def kept_or_made() -> Answer:
            self._drop_old_pages()
            kept = self._pages.pop(key, None)
            if kept is None:
                answer, cpu_seconds = self._timed(make)
                seconds = min(MOST_KEPT_SECONDS, cpu_seconds / READERS_SHARE)
                kept = _Page(time.monotonic() + seconds, self._clock() + timedelta(seconds=seconds), answer)
            self._pages[key] = kept
            if len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            return kept.answer  # type: ignore[return-value]  # a key has one type of page

        return await self._turn(kept_or_made)

    def _drop_old_pages(self) -> None:
        # A page of a group with its pictures is 3 MB, and has another key after each decision.
        seconds, now = time.monotonic(), self._clock()
        for key, page in list(self._pages.items()):
            if seconds >= page.until_seconds or now >= page.until:
                del self._pages[key]

    async def _turn(self, work: Callable[[], Answer]) -> Answer:
        if self._waiting >= MOST_WAITING:
            message = f"{MOST_WAITING} requests wait for their turn; ask again later, or less often"
            raise UnavailableError(message)
        self._waiting += 1
        self._note_server_time()
        try:
            return await wrap_future(self._thread.submit(work))
        finally:
            self._waiting -= 1

    def _note_server_time(self) -> None:
        """Note the CPU time of this thread, which is the server's."""
        now = time.thread_time()
        if self._server_seconds is None:
            self._counted_server_seconds = now
        self._server_seconds = now

    def _timed(self, work: Callable[[], Answer]) -> tuple[Answer, float]:
        """The result and its CPU seconds; while decisions are made, what readers took is given back first."""
        if self._is_deciding():
            rest_seconds = min(MOST_REST_SECONDS, self._owed_seconds)
            time.sleep(rest_seconds)
            self._owed_seconds -= rest_seconds
        else:
            self._owed_seconds = 0.0
        begun = time.thread_time()
        try:
            answer = work()
        finally:
            cpu_seconds = time.thread_time() - begun
            self._owe(cpu_seconds)
        return answer, cpu_seconds

    def _owe(self, cpu_seconds: float) -> None:
        server_seconds = self._server_seconds or 0.0
        cpu_seconds += server_seconds - self._counted_server_seconds
        self._counted_server_seconds = server_seconds
        owed_seconds = self._owed_seconds + cpu_seconds * (1.0 / READERS_SHARE - 1.0)
        self._owed_seconds = min(MOST_OWED_SECONDS, owed_seconds)
