"""Readers take turns: little of the time while decisions are made, and a page of the fleet is made once for all."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from api.turns import MOST_KEPT_SECONDS, READERS_SHARE, Turns
from recommender.ports import UnavailableError


def clock() -> datetime:
    """The present instant."""
    return datetime.now(UTC)  # noqa: TID251  # what a process entry point hands over


def working(cpu_seconds: float, calls: list[float]) -> Callable[[], int]:
    """Work that takes so many seconds of CPU, and notes when it ended."""

    def work() -> int:
        begun = time.thread_time()
        while time.thread_time() - begun < cpu_seconds:
            pass
        calls.append(time.monotonic())
        return len(calls)

    return work


def test_forty_readers_of_a_page_have_it_made_once() -> None:
    """Each of them made it: 40 scrapes of 3,000 groups at once took 660 MB, and the loop's time."""
    calls: list[float] = []

    async def scrape() -> list[int]:
        turns = Turns(clock=clock)
        return await asyncio.gather(*(turns.page("metrics", working(0.02, calls)) for _ in range(40)))

    assert asyncio.run(scrape()) == [1] * 40


def test_a_page_is_made_again_once_it_has_been_kept_for_ten_times_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And another part of the fleet is another page."""
    calls, now, at = list[float](), [0.0], clock()
    stand_in = SimpleNamespace(monotonic=lambda: now[0], thread_time=time.thread_time, sleep=time.sleep)
    monkeypatch.setattr("api.turns.time", stand_in)

    async def scrape() -> list[int]:
        turns, seen = Turns(clock=lambda: at), []
        for later in (0.0, 0.09, MOST_KEPT_SECONDS):
            now[0] += later
            seen += [await turns.page(key, working(0.01, calls)) for key in ("metrics", "ledger", "metrics")]
        return seen

    assert asyncio.run(scrape()) == [1, 2, 1, 1, 2, 1, 3, 4, 3]


def test_pages_that_are_no_longer_shown_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a group has another key after each decision: thirty of them were 100 MB."""
    calls, now = list[float](), [clock()]
    stand_in = SimpleNamespace(monotonic=lambda: 0.0, thread_time=time.thread_time, sleep=time.sleep)
    monkeypatch.setattr("api.turns.time", stand_in)

    async def ask() -> tuple[int, int]:
        turns = Turns(clock=lambda: now[0])
        for number in range(5):
            await turns.page(("group", number), working(0.001, calls))
        before = len(turns._pages)
        now[0] += timedelta(seconds=MOST_KEPT_SECONDS)
        await turns.page("metrics", working(0.001, calls))
        return before, len(turns._pages)

    assert asyncio.run(ask()) == (5, 1)


def test_while_decisions_are_made_readers_have_a_tenth_of_the_time() -> None:
    """Both are threads of one process, where one at a time runs Python."""
    deciding, calls = threading.Event(), list[float]()

    async def read() -> None:
        turns = Turns(clock=clock, is_deciding=deciding.is_set)
        await asyncio.gather(*(turns.run(working(0.01, calls)) for _ in range(5)))

    deciding.set()
    asyncio.run(read())
    assert calls[-1] - calls[0] >= 4 * 0.01 / READERS_SHARE


def test_what_the_servers_thread_does_for_readers_counts_as_their_time() -> None:
    """It reads requests and sends answers: with its time not counted 100 readers made a cycle longer by a third."""
    calls: list[float] = []

    async def read() -> None:
        turns = Turns(clock=clock, is_deciding=lambda: True)
        for _ in range(4):
            working(0.01, [])()
            await turns.run(working(0.0, calls))

    asyncio.run(read())
    # What was done before the first request is not known, and what the last one owes is not given back here.
    assert calls[-1] - calls[0] >= 2 * 0.01 / READERS_SHARE


def test_what_is_owed_beyond_one_rest_is_given_back_by_the_next_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a page of a quarter of a second has a fifth of the time."""
    monkeypatch.setattr("api.turns.MOST_REST_SECONDS", 0.03)
    calls: list[float] = []

    async def read() -> None:
        turns = Turns(clock=clock, is_deciding=lambda: True)
        await turns.run(working(0.01, calls))
        for _ in range(3):
            await turns.run(working(0.0, calls))

    asyncio.run(read())
    assert calls[-1] - calls[0] >= 9 * 0.01


def test_nothing_is_owed_for_the_time_between_two_cycles() -> None:
    """There is nobody to give it back to."""
    deciding, calls = threading.Event(), list[float]()

    async def read() -> None:
        turns = Turns(clock=clock, is_deciding=deciding.is_set)
        deciding.set()
        await turns.run(working(0.2, calls))
        deciding.clear()
        await turns.run(working(0.0, calls))
        deciding.set()
        await turns.run(working(0.0, calls))

    asyncio.run(read())
    assert calls[-1] - calls[0] < 0.2


def test_a_page_that_took_long_does_not_keep_the_next_reader_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger of 3,000 groups takes seconds, and KEDA waits three."""
    monkeypatch.setattr("api.turns.MOST_REST_SECONDS", 0.05)
    calls: list[float] = []

    async def read() -> None:
        turns = Turns(clock=clock, is_deciding=lambda: True)
        await turns.run(working(0.2, calls))
        await turns.run(working(0.0, calls))

    asyncio.run(read())
    assert calls[1] - calls[0] < 9 * 0.2


def test_more_requests_than_connections_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their callers may be gone: they cost the memory of the process otherwise."""
    monkeypatch.setattr("api.turns.MOST_WAITING", 3)
    go_on = threading.Event()

    async def read() -> list[object]:
        turns = Turns(clock=clock)
        first = [asyncio.ensure_future(turns.run(go_on.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="3 requests wait for their turn"):
            await turns.run(go_on.wait)
        go_on.set()
        return [*await asyncio.gather(*first), await turns.run(go_on.wait)]

    assert asyncio.run(read()) == [True] * 4


def test_an_error_is_its_own_callers_and_the_next_turn_comes() -> None:
    """For instance of a store that does not answer."""

    def fail() -> int:
        message = "the store is away"
        raise LookupError(message)

    async def read() -> int:
        turns = Turns(clock=clock)
        for call in (turns.run, lambda work: turns.page("metrics", work)):
            with pytest.raises(LookupError, match="the store is away"):
                await call(fail)
        return await turns.run(lambda: 1)

    assert asyncio.run(read()) == 1
