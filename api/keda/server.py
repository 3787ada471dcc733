"""The external scaler on a port, in a thread of its own, until a block ends."""

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
    """The port that is served; 0 leaves the choice to the system. Errors: UnavailableError where it is taken.

    While it does not lead, nobody listens there: KEDA keeps a connection for as long as it is answered, and one that is
    refused is tried again, by way of a Service on another replica.
    """
    ready, stop_now = threading.Event(), threading.Event()
    # gRPC takes what stands before the last colon for the host, so an IPv6 address needs its brackets.
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
            # The first time it listens in any case: a port that is taken is said before anything is decided.
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
