"""The external scaler on a port, in a thread of its own, until a block ends."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import grpc  # type: ignore[import-untyped]  # ships no types

from api.keda.scaler import ExternalScaler, handlers
from recommender.ports import DecisionStore, UnavailableError

# KEDA's streams end with the server: there is nothing to wait for.
GRACE_SECONDS = 0.5


@contextmanager
def serving_keda(store: DecisionStore, *, clock: Callable[[], datetime], host: str, port: int) -> Iterator[int]:
    """The port that is served; 0 leaves the choice to the system. Errors: UnavailableError where it is taken."""
    ready, stop_now = threading.Event(), threading.Event()
    # gRPC takes what stands before the last colon for the host, so an IPv6 address needs its brackets.
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    found: list[int] = []

    async def serve() -> None:
        # By default two servers may share a port, each answering some of the calls.
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        server.add_generic_rpc_handlers((handlers(ExternalScaler(store, clock=clock)),))
        try:
            found.append(server.add_insecure_port(address))
        except RuntimeError:
            ready.set()
            return
        await server.start()
        ready.set()
        await asyncio.to_thread(stop_now.wait)
        await server.stop(GRACE_SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="keda")
    thread.start()
    ready.wait()
    try:
        if not found:
            message = f"cannot listen on {address} for KEDA; give a free one with --keda-port"
            raise UnavailableError(message)
        yield found[0]
    finally:
        stop_now.set()
        thread.join()
