"""Limits on the connections of the REST service: how many there are, and how long one may keep the service waiting.

uvicorn counts requests whose head has arrived; connections that send half of one cost it a file each, for ever.
"""

import asyncio
import resource
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

# Connections at once: Prometheus, KEDA and an executor need ten, and an open page two, one of them for its stream. Each
# is an open file of the process. At 128 a hundred readers with a stream each threw each other out, and had an answer to
# 1 of 19 requests.
MOST_CONNECTIONS = 256
# Seconds for the caller's part: TLS, a request with its body, and taking the answer. A slow caller needs one.
PATIENCE_SECONDS = 10.0


class Limits:
    """The open connections of one server, the oldest first; for one too many the oldest that waits for its caller ends.

    If none does, the oldest of all. So a caller that sends its request at once is answered, whatever others keep open.
    They are at most `most_connections`, and half of the files that the process may open: the store needs some too.
    `tls_context` gives the TLS context of the next connection, None without TLS.
    """

    def __init__(
        self,
        *,
        most_connections: int = MOST_CONNECTIONS,
        patience_seconds: float = PATIENCE_SECONDS,
        tls_context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self.patience_seconds = patience_seconds
        self.tls_context = tls_context
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = most_connections if files == resource.RLIM_INFINITY else min(most_connections, files // 2)
        self._open: dict[LimitedProtocol, None] = {}

    def protocol(self, **words: Any) -> "LimitedProtocol":  # noqa: ANN401  # uvicorn's own arguments
        """A protocol within these limits, for uvicorn's option `http`."""
        return LimitedProtocol(self, **words)

    def opened(self, protocol: "LimitedProtocol") -> None:
        """Count this connection, and end another one if it is one too many."""
        if len(self._open) >= self._most:
            next((each for each in self._open if each.waits), next(iter(self._open))).end()
        self._open[protocol] = None

    def closed(self, protocol: "LimitedProtocol") -> None:
        """Count this connection no more."""
        self._open.pop(protocol, None)


class LimitedProtocol(H11Protocol):
    """A connection within `limits`, with TLS if they have a context.

    The handshake is made here and not by the server, because a renewed certificate counts from the next connection on,
    and because a connection counts before its handshake.
    """

    def __init__(self, limits: Limits, **words: Any) -> None:  # noqa: ANN401  # uvicorn's own arguments
        super().__init__(**words)
        self._limits = limits
        self._raw: asyncio.Transport | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        # Bytes of a caller that are there before the end of the handshake is known here.
        self._early: list[bytes] | None = None

    @property
    def waits(self) -> bool:
        """True if the next step is the caller's: it has a request to send, or the answer to take."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            return True
        return self.flow.write_paused

    def end(self) -> None:
        """Close the connection at once."""
        self._forget()
        if self._raw is not None:
            self._raw.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Count the connection, and begin with TLS or with the first request."""
        self._raw = transport
        self._watch()
        if self._limits.tls_context is None:
            super().connection_made(transport)
        else:
            self._early = []
            transport.pause_reading()  # what comes now belongs to the handshake
            self._handshake = self.loop.create_task(self._secure(transport, self._limits.tls_context))
        self._limits.opened(self)

    async def _secure(self, transport: asyncio.Transport, tls_context: Callable[[], ssl.SSLContext]) -> None:
        try:
            secured = await self.loop.start_tls(
                transport,
                self,
                tls_context(),
                server_side=True,
                ssl_handshake_timeout=self._limits.patience_seconds,
            )
        except OSError:  # not TLS, another version of it, or too slow: the caller's business, and no line in the log
            self.end()
            return
        early, self._early = self._early or [], None
        if secured is None or secured.is_closing():
            self.end()
            return
        super().connection_made(secured)
        for data in early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._early is not None:
            self._early.append(data)
            return
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """Wait for the caller, which does not take the answer."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Go on: the caller takes the answer."""
        super().resume_writing()
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no more."""
        self._forget()
        if self.transport is not None:  # else the handshake has not come to an end
            super().connection_lost(exc)

    def _watch(self) -> None:
        """Give the caller its seconds where it is its turn; they run on until it has done all of its part."""
        if not self.waits:
            self._calm()
        elif self._patience is None:
            self._patience = self.loop.call_later(self._limits.patience_seconds, self._run_out)

    def _run_out(self) -> None:
        self._patience = None
        if self.waits:
            self.end()

    def _calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _forget(self) -> None:
        self._calm()
        self._limits.closed(self)
