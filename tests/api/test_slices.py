"""Long answers go out in slices: whole, in order, and no faster than their caller takes them."""

import asyncio
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message

from api.slices import SLICE_BYTES, Slices

SCOPE = {"type": "http"}


def answered(parts: Sequence[bytes]) -> Slices:
    """An app that answers with these parts."""

    async def app(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]  # ASGI's
        for place, part in enumerate(parts):
            more = place < len(parts) - 1
            await send({"type": "http.response.body", "body": part, "more_body": more})  # type: ignore[operator]  # as above

    return Slices(app)


async def nothing() -> Message:
    """What a caller sends who sends no more."""
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    "sizes",
    [[0], [1], [SLICE_BYTES], [SLICE_BYTES + 1], [2 * SLICE_BYTES], [5, 3 * SLICE_BYTES + 7, 0], [SLICE_BYTES * 2, 5]],
)
def test_a_body_of_any_length_arrives_whole(sizes: list[int]) -> None:
    """In order, in slices of 64 kB at most, of which the last one alone is told to be the last."""
    parts = [bytes([65 + place]) * size for place, size in enumerate(sizes)]
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(answered(parts)(SCOPE, nothing, send))
    bodies = [message for message in sent if message["type"] == "http.response.body"]
    assert b"".join(message["body"] for message in bodies) == b"".join(parts)
    assert max(len(message["body"]) for message in bodies) <= SLICE_BYTES
    assert [message["more_body"] for message in bodies] == [True] * (len(bodies) - 1) + [False]


def test_the_next_slice_waits_until_the_caller_has_taken_those_before() -> None:
    """Of a page of 5 MB for somebody who takes nothing, one slice waits in memory."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # as a server does whose caller takes nothing

    async def asked() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answered([b"x" * 5_000_000])(SCOPE, nothing, send), timeout=0.1)

    asyncio.run(asked())
    assert [len(message.get("body", b"")) for message in sent] == [0, SLICE_BYTES]


def test_a_page_of_the_service_arrives_whole(service: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices of a thousand bytes the description of the API has 65 of them."""
    whole = service.get("/openapi.json")
    monkeypatch.setattr("api.slices.SLICE_BYTES", 1000)
    sliced = service.get("/openapi.json")
    assert len(sliced.content) == int(sliced.headers["content-length"]) > 50_000
    assert sliced.content == whole.content
