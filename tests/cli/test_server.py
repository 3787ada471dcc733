"""The REST service inside a command: which address it takes, and that it answers while the block lasts."""

import socket
from contextlib import closing

import httpx2
import pytest
from fastapi import FastAPI

from cli.errors import InputError, UnreachableError
from cli.server import listen, serving, url_of


def test_a_taken_port_is_skipped_when_searching() -> None:
    """The next free port is taken, and the printed address has that port."""
    with closing(listen("127.0.0.1", 0, search=False)) as taken:
        port = taken.getsockname()[1]
        with closing(listen("127.0.0.1", port, search=True)) as found:
            assert found.getsockname()[1] > port
            assert url_of(found) == f"http://127.0.0.1:{found.getsockname()[1]}"


def test_a_taken_port_is_named_when_it_was_given() -> None:
    """A user who gives one port gets that port or an error, never another port."""
    with closing(listen("127.0.0.1", 0, search=False)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnreachableError, match=rf"^cannot listen on 127.0.0.1, ports {port} to {port}: .*--port$"):
            listen("127.0.0.1", port, search=False)


def test_an_unknown_host_is_a_usage_error() -> None:
    """The error for a name that does not resolve names an address that works."""
    with pytest.raises(InputError, match=r"'no\.such\.host\.invalid'.*127\.0\.0\.1"):
        listen("no.such.host.invalid", 8686, search=True)


def test_the_service_answers_while_the_block_lasts() -> None:
    """Inside the block a request is answered, and after it the port is closed."""
    app = FastAPI()
    app.add_api_route("/", lambda: {"hello": "you"})
    bound = listen("127.0.0.1", 0, search=False)
    address = bound.getsockname()
    with serving(app, bound):
        assert httpx2.get(url_of(bound), timeout=5).json() == {"hello": "you"}
    with closing(socket.socket()) as caller:
        assert caller.connect_ex(address) != 0
