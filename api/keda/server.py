"""The external scaler on a port, in a separate thread, until a block ends."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import grpc  # type: ignore[import-untyped]  # ships no types

from api.keda.scaler import LOOK_SECONDS, ExternalScaler, handlers
from recommender.ports import DecisionStore, UnavailableError

# KEDA's streams end with the server: there is nothing to wait for.
GRACE_SECONDS = 0.5


@contextmanager
def serving_keda(
    store: DecisionStore,
    *,
    clock: Callable[[], datetime],
    host: str,
    port: int,
    leads: Callable[[], bool] = lambda: True,
) -> Iterator[int]:
    """Serve on `port` and yield the port; for 0 the system chooses one. Errors: UnavailableError if it is taken.

    While the recommender does not lead, the port is closed: KEDA keeps a connection as long as it is answered, and
    retries a refused one, which a Service then routes to another replica.
    """
    ready, stop_now = threading.Event(), threading.Event()
    # gRPC reads the text before the last colon as the host, so an IPv6 address needs its brackets.
    name = f"[{host}]" if ":" in host else host
    found: list[int] = []

    async def serve_while_leading() -> None:
        # By default two servers may share a port, each answering some of the calls.
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        server.add_generic_rpc_handlers((handlers(ExternalScaler(store, clock=clock, leads=leads)),))
        found[:] = [server.add_insecure_port(f"{name}:{found[0] if found else port}")]
        await server.start()
        ready.set()
        while leads() and not await asyncio.to_thread(stop_now.wait, LOOK_SECONDS):
            pass
        await server.stop(GRACE_SECONDS)

    async def serve() -> None:
        while not stop_now.is_set():
            # The first time it always listens: a port that is taken is reported before the first decision.
            if leads() or not found:
                try:
                    await serve_while_leading()
                except RuntimeError:
                    if not found:
                        ready.set()
                        return
            await asyncio.to_thread(stop_now.wait, LOOK_SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="keda")
    thread.start()
    ready.wait()
    try:
        if not found:
            message = f"cannot listen on {host}:{port} for KEDA; give a free one with --keda-port"
            raise UnavailableError(message)
        yield found[0]
    finally:
        stop_now.set()
        thread.join()
