"""The REST service while others keep connections open: over real sockets, in a process with few files."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from api.access.connections import MOST_CONNECTIONS
from tests.live.harness.clients import wait_until

HALF = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
SERVER = """
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import sys
from fastapi import Body, FastAPI
from api.access.connections import Limits
from cli.server import listen, serving, url_of
app = FastAPI()
app.add_api_route("/livez", lambda: "ok")
def body(given: dict = Body()): return given
app.add_api_route("/body", body, methods=["POST"])
async def slow(): await asyncio.sleep(600)
app.add_api_route("/slow", slow)
bound = listen("127.0.0.1", 0, search=False)
with serving(app, bound, Limits(patience_seconds=float(sys.argv[1]))):
    print(url_of(bound), flush=True)
    sys.stdin.read()
"""


@contextmanager
def server(log: Path, *, patience_seconds: float) -> Iterator[tuple[str, tuple[str, int]]]:
    """The URL and the address of a service in a process of its own, whose stderr is `log`."""
    command = [sys.executable, "-c", SERVER, str(patience_seconds)]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=Path(__file__).parents[2]
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            port = re.search(r":(\d+)$", url)
            assert port is not None
            yield url, ("127.0.0.1", int(port[1]))
        finally:
            process.kill()


def answered_seconds(url: str) -> float:
    """How long a new caller waits for /livez."""
    began = time.monotonic()
    assert httpx2.get(f"{url}/livez", timeout=10).status_code == 200
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("sent", [HALF, b""])
def test_320_half_sent_requests_leave_livez_answered_and_the_log_short(tmp_path: Path, sent: bytes) -> None:
    """Also where nothing at all is sent; the process may open 256 files, fewer than there are callers."""
    log = tmp_path / "log"
    with server(log, patience_seconds=60.0) as (url, address), ExitStack() as open_now:
        answered_seconds(url)  # the first request makes the routes ready
        for number in range(320):
            caller = open_now.enter_context(socket.create_connection(address, timeout=10))
            caller.sendall(sent)
            if number % 80 == 79:
                assert answered_seconds(url) < 1.0
        for _ in range(5):
            assert answered_seconds(url) < 1.0
    assert log.stat().st_size < 10_000


@pytest.mark.slow
@pytest.mark.alone
def test_callers_that_come_again_at_once_leave_livez_answered(tmp_path: Path) -> None:
    """Each connection that is closed is replaced by a new one, 320 at a time."""
    log = tmp_path / "log"
    with server(log, patience_seconds=60.0) as (url, address), ExitStack() as open_now:
        answered_seconds(url)
        callers = [open_now.enter_context(socket.socket()) for _ in range(320)]
        for _ in range(4):
            for number, caller in enumerate(callers):
                caller.close()
                callers[number] = open_now.enter_context(socket.create_connection(address, timeout=10))
                callers[number].sendall(HALF)
            assert answered_seconds(url) < 1.0
    assert log.stat().st_size < 10_000


@pytest.mark.slow
@pytest.mark.alone
def test_requests_that_take_long_leave_livez_answered(tmp_path: Path) -> None:
    """More of them than there may be connections: the oldest of them ends, and not the newcomer."""
    with server(tmp_path / "log", patience_seconds=60.0) as (url, address), ExitStack() as open_now:
        answered_seconds(url)
        for _ in range(MOST_CONNECTIONS + 20):
            caller = open_now.enter_context(socket.create_connection(address, timeout=10))
            caller.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answered_seconds(url) < 1.0


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HALF,
        b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" + HALF,
    ],
)
def test_a_caller_that_does_not_go_on_is_closed(tmp_path: Path, sent: bytes) -> None:
    """Whether it is the head that is missing, the body, or the head of a second request."""
    with (
        server(tmp_path / "log", patience_seconds=0.3) as (_, address),
        socket.create_connection(address, timeout=10) as caller,
    ):
        caller.sendall(sent)
        with suppress(ConnectionResetError):
            while caller.recv(65536):
                pass


def test_bad_requests_are_one_line_of_the_log(tmp_path: Path) -> None:
    """However many there are."""
    log = tmp_path / "log"
    with server(log, patience_seconds=10.0) as (_, address):
        for _ in range(50):
            with socket.create_connection(address, timeout=10) as caller:
                caller.sendall(b"no request\r\n\r\n")
                assert b" 400 " in caller.recv(100)
        wait_until(lambda: b"Invalid HTTP request" in log.read_bytes())
    assert log.read_bytes().count(b"Invalid HTTP request") == 1
