"""The readers of `benchmarks.speed.readers`, in a process of their own: `python -m benchmarks.speed.asking`.

The first line of standard input is a `Service` as JSON. A line is printed when each reader has had an answer. When
standard input is closed the readers end, and their answers by route and status are printed as JSON.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx2

from api.keys import group_key

# A picture of each page that has some, by the beginning of its path.
PICTURES = {"/pictures": "fleet-0", "/groups": "replicas", "/recommendations": "waterfall", "/replay": "league"}
WHAT_IF = {"max_replicas": 9}
TIMEOUT_SECONDS = 60.0


class Ask(NamedTuple):
    """One request of the readers' round; `path` has its parameters in braces."""

    method: str
    path: str
    accept: str = "*/*"

    @property
    def name(self) -> str:
        """The route, as the table of answers has it."""
        form = " as a page" if self.accept == "text/html" else ""
        return f"{'' if self.method == 'GET' else f'{self.method} '}{self.path}{form}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is read: groups of cluster `c` named by their numbers, a replay, and every route of it."""

    url: str
    groups: int
    replay_id: str
    asks: Sequence[Ask]
    streams: Sequence[str]


@dataclass(slots=True)
class Readers:
    """So many readers of a service, and their answers by route and status."""

    service: Service
    number: int
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    _over: bool = False
    _decided: list[str] = field(default_factory=list)
    _waiting: set[int] = field(default_factory=set)

    async def read(self) -> None:
        """Ask until standard input is closed."""
        async with self._client() as client:
            groups = (await client.get("/api/v1/groups")).json()["groups"]
        self._decided = [group["recommendation_id"] for group in groups]
        self._waiting = set(range(self.number))
        following = [asyncio.ensure_future(self._follow(number)) for number in range(self.number)]
        asking = [asyncio.ensure_future(self._ask(number)) for number in range(self.number)]
        await asyncio.to_thread(sys.stdin.read)
        self._over = True
        await asyncio.gather(*asking)
        for each in following:
            each.cancel()
            with suppress(asyncio.CancelledError, httpx2.HTTPError):
                await each

    async def _ask(self, number: int) -> None:
        """One reader: each route in turn, of one group after the other."""
        asked = number
        async with self._client() as client:
            while not self._over:
                each = self.service.asks[asked % len(self.service.asks)]
                self._count(each.name, await self._answer(client, each, asked))
                asked += 1
                self._has_begun(number)

    async def _answer(self, client: httpx2.AsyncClient, each: Ask, asked: int) -> str:
        """The status of an answer, or the name of what came in its place."""
        body = WHAT_IF if each.method == "POST" else None
        try:
            path, headers = self._filled(each.path, asked), {"accept": each.accept}
            return str((await client.request(each.method, path, headers=headers, json=body)).status_code)
        except httpx2.HTTPError as error:
            return type(error).__name__

    async def _follow(self, number: int) -> None:
        """One open page: each event of its stream is an answer."""
        path = self.service.streams[number % len(self.service.streams)]
        async with self._client() as client, client.stream("GET", self._filled(path, number)) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    self._count(path, str(answer.status_code))

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.service.url, timeout=TIMEOUT_SECONDS)

    def _filled(self, path: str, number: int) -> str:
        """The path with values for its parameters. Errors: KeyError for a parameter that is new."""
        return path.format_map(
            {
                "group_key": group_key("c", str(number * 7919 % self.service.groups)),
                "recommendation_id": self._decided[number % len(self._decided)],
                "replay_id": self.service.replay_id,
                "name": next((name for begin, name in PICTURES.items() if path.startswith(begin)), ""),
            }
        )

    def _count(self, route: str, answer: str) -> None:
        self.answers.setdefault(route, Counter())[answer] += 1

    def _has_begun(self, number: int) -> None:
        if number in self._waiting:
            self._waiting.remove(number)
            if not self._waiting:
                print(flush=True)


def main() -> int:
    """Read as the first line asks, and print the answers."""
    given = json.loads(sys.stdin.readline())
    number = given.pop("readers")
    service = Service(**given | {"asks": [Ask(*each) for each in given["asks"]]})
    readers = Readers(service, number)
    asyncio.run(readers.read())
    json.dump({route: dict(found) for route, found in sorted(readers.answers.items())}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
