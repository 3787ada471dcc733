"""The external scaler on a port, in a separate thread, until a block ends."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import grpc  # type: ignore[import-untyped]  # ships no types

from api.access.certificates import Certificate
from api.keda.scaler import LOOK_SECONDS, MOST_STREAMS, ExternalScaler, handlers
from recommender.borders import Borders
from recommender.ports import DecisionStore, UnavailableError

# KEDA's streams end with the server: there is nothing to wait for.
GRACE_SECONDS = 0.5
# Calls at once, streams included; one more is RESOURCE_EXHAUSTED. Those that are no streams take milliseconds.
MOST_CALLS = MOST_STREAMS + 128
# KEDA has one connection for each address and set of certificates.
MOST_CONNECTIONS = 64
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # by default two servers may share a port, each answering some of the calls
    ("grpc.max_concurrent_streams", MOST_CALLS),
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 65_536),
)


def _credentials(certificate: Certificate) -> grpc.ServerCredentials:
    """Those of the files as they are at each handshake."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        pem = certificate.pem()
        return grpc.ssl_server_certificate_configuration([(pem.key, pem.certificate)], pem.client_authority or None)

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=certificate.asks_clients
    )


@contextmanager
def serving_keda(
    store: DecisionStore,
    *,
    clock: Callable[[], datetime],
    host: str,
    port: int,
    certificate: Certificate | None = None,
    leads: Callable[[], bool] = lambda: True,
    borders: Borders | None = None,
) -> Iterator[int]:
    """Serve on `port` and yield the port; for 0 the system chooses one. Errors: UnavailableError if it is taken.

    A port that is taken later, when this process leads again, is tried again each second: a failure of a part, which
    `borders` count and report.

    With a `certificate` over TLS, and where it asks callers for theirs, to callers who have one of its authority alone.

    While the recommender does not lead, the port is closed: KEDA keeps a connection as long as it is answered, and
    retries a refused one, which a Service then routes to another replica.
    """
    ready, stop_now = threading.Event(), threading.Event()
    borders = borders or Borders()
    failures: list[Exception] = []
    # gRPC reads the text before the last colon as the host, so an IPv6 address needs its brackets.
    name = f"[{host}]" if ":" in host else host
    found: list[int] = []

    async def serve_while_leading() -> None:
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        server.add_generic_rpc_handlers((handlers(ExternalScaler(store, clock=clock, leads=leads)),))
        address = f"{name}:{found[0] if found else port}"
        if certificate is None:
            found[:] = [server.add_insecure_port(address)]
        else:
            found[:] = [server.add_secure_port(address, _credentials(certificate))]
        await server.start()
        ready.set()
        borders.passed("part", "keda")
        while leads() and not await asyncio.to_thread(stop_now.wait, LOOK_SECONDS):
            pass
        await server.stop(GRACE_SECONDS)

    async def serve() -> None:
        while not stop_now.is_set():
            # The first time it always listens: a port that is taken is reported before the first decision.
            if leads() or not found:
                try:
                    await serve_while_leading()
                except Exception as error:  # noqa: BLE001  # a thread that ends would be silence to KEDA
                    if not found:
                        failures.append(error)
                        ready.set()
                        return
                    borders.failed("part", "keda", error, is_expected=isinstance(error, RuntimeError))
            await asyncio.to_thread(stop_now.wait, LOOK_SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="keda")
    thread.start()
    ready.wait()
    try:
        if not found:
            message = f"cannot listen on {host}:{port} for KEDA; give a free one with --keda-port"
            raise UnavailableError(message) from failures[0]
        yield found[0]
    finally:
        stop_now.set()
        thread.join()
