"""Server-sent events: a browser that shows a group, or the fleet, is told when something new was decided."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from fastapi.sse import ServerSentEvent

from api.pages.work import Work
from api.reading import Reader
from api.turns import Turns
from recommender.ports import AdapterError, Group, decision_id

# What this process decides is looked up in memory.
LOOK_SECONDS = 0.5
# What another process decides is read from the store: by all browsers that show one group once in so long.
STORE_SECONDS = 5.0
# A fleet has something new in each cycle, and its page is 50 rows.
FLEET_SECONDS = 2.0
# A browser whose stream has ended asks again after this time.
RETRY_MILLISECONDS = 1000


class Events:
    """The streams of one service; `close` ends them, because a server waits for all its answers when it stops."""

    def __init__(self, reader: Reader, turns: Turns, work: Work) -> None:
        self._reader = reader
        self._work = work
        self._turns = turns
        self._is_closed = False

    def close(self) -> None:
        """End all streams at their next look."""
        self._is_closed = True

    @property
    def fleet_now(self) -> int:
        """What an event of the fleet would say now: it is another number after each cycle and each step of the work."""
        return self._reader.known_groups.cycles + self._work.changes

    def of_fleet(self) -> AsyncIterator[ServerSentEvent]:
        """An event when this process has decided on all groups, or when its work has come further."""

        async def newest() -> object:
            return self.fleet_now

        return self._changes(newest, every_seconds=FLEET_SECONDS)

    def of_group(self, group: Group) -> AsyncIterator[ServerSentEvent]:
        """An event with the id of each new decision on the group."""
        read = partial(self._turns.page, ("newest", group), partial(self._stored, *group))
        looked_at_seconds = -STORE_SECONDS
        stored: str | None = None

        async def newest() -> object:
            nonlocal looked_at_seconds, stored
            known = self._reader.known_groups.of(group)
            if known is not None:
                return known.decision_id
            now_seconds = asyncio.get_running_loop().time()
            if now_seconds >= looked_at_seconds + STORE_SECONDS:
                looked_at_seconds, stored = now_seconds, await read()
            return stored

        return self._changes(newest, every_seconds=LOOK_SECONDS)

    def _stored(self, cluster: str, group: str) -> str | None:
        try:
            decision = self._reader.store.latest(cluster, group)
        except AdapterError:  # the page says so when it is asked for
            return None
        return None if decision is None else decision_id(decision)

    async def _changes(
        self, newest: Callable[[], Awaitable[object]], *, every_seconds: float
    ) -> AsyncIterator[ServerSentEvent]:
        """An event for what is there at the beginning, and for each change of it."""
        before: object = object()
        while not self._is_closed:
            now = await newest()
            if now != before:
                yield ServerSentEvent(event="decided", raw_data=str(now), retry=RETRY_MILLISECONDS)
                before = now
            await asyncio.sleep(every_seconds)
