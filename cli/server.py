"""The REST service inside a command: one uvicorn in a thread, on a free address."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

import uvicorn

from api.access.connections import Limits
from cli.errors import InputError, UnreachableError
from cli.logs import Sparing

if TYPE_CHECKING:
    from fastapi import FastAPI

# Ports that are tried in a row: enough for several demos on one machine.
PORTS_TRIED = 20
START_LIMIT_SECONDS = 15.0
# Connections that are accepted before those of them that are too many are closed: what a flood may cost in open files.
ACCEPTED_AT_ONCE = 16
# Connections that the system keeps waiting meanwhile.
QUEUE = 1024


def listen(host: str, port: int, *, search: bool) -> socket.socket:
    """A socket bound to `host:port`, or to the next free port if `search` is set; for 0 the system chooses one.

    Errors: UnreachableError when the port is taken, InputError when the host is no address of this machine.
    """
    last = min(port + PORTS_TRIED, 65535) if search and port else port
    for candidate in range(port, last + 1):
        try:
            return _bound(host, candidate)
        except socket.gaierror as error:
            raise _no_address(host, error) from error
        except OSError as error:
            reason = error.strerror
    message = f"cannot listen on {host}, ports {port} to {last}: {reason}; give a free one with --port"
    raise UnreachableError(message)


def is_loopback(host: str) -> bool:
    """True if no other machine reaches what listens on `host`. Errors: InputError when the host is no address."""
    try:
        address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]
    except socket.gaierror as error:
        raise _no_address(host, error) from error
    return ip_address(str(address).partition("%")[0]).is_loopback


def _no_address(host: str, error: socket.gaierror) -> InputError:
    return InputError(f"--host {host!r} is no address of this machine ({error.strerror}); 127.0.0.1 always is")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        # A port with connections in TIME_WAIT counts as free; a port on which a process listens does not.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError:
        bound.close()
        raise
    return bound


def url_of(bound: socket.socket, *, tls: bool = False) -> str:
    """The bound address as a URL for a browser; an IPv6 address is in brackets."""
    host, port = bound.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@contextmanager
def serving(app: "FastAPI", bound: socket.socket, limits: Limits | None = None) -> Iterator[None]:
    """Serve the app on `bound` during this block, within `limits`; the socket is closed at its end.

    Errors: UnreachableError if the service does not come up in time.
    """
    config = uvicorn.Config(
        app,
        http=(limits or Limits()).protocol,  # type: ignore[arg-type]  # a class is called, nothing else
        backlog=ACCEPTED_AT_ONCE,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
    )
    for logger in ("asyncio", "uvicorn.error"):  # they have a line for each bad request, and for each one too many
        Sparing.of(logging.getLogger(logger))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="rest", daemon=True)
    thread.start()
    try:
        _wait_until_up(server, thread)
        bound.listen(QUEUE)  # the server has set it to what it accepts at once
        yield
    finally:
        events = getattr(app.state, "events", None)
        if events is not None:
            events.close()
        server.should_exit = True
        thread.join(timeout=START_LIMIT_SECONDS)
        bound.close()


def _wait_until_up(server: uvicorn.Server, thread: threading.Thread) -> None:
    waited, pause = 0.0, 0.02
    while not server.started:
        if not thread.is_alive() or waited > START_LIMIT_SECONDS:
            message = "the REST service did not start; the reason is above"
            raise UnreachableError(message)
        thread.join(pause)
        waited += pause
