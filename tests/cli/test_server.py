"""The REST service inside a command: which address it takes, and that it answers while the block lasts."""

import socket
from contextlib import closing

import httpx2
import pytest
from fastapi import FastAPI

from cli.errors import InputError, UnreachableError
from cli.server import listen, serving, url_of


def test_a_taken_port_is_passed_over_when_searching() -> None:
    """The next free port is taken, and its address is the one that is told."""
    with closing(listen("127.0.0.1", 0, search=False)) as taken:
        port = taken.getsockname()[1]
        with closing(listen("127.0.0.1", port, search=True)) as found:
            assert found.getsockname()[1] > port
            assert url_of(found) == f"http://127.0.0.1:{found.getsockname()[1]}"


def test_a_taken_port_is_named_when_it_was_asked_for() -> None:
    """A user who requests one port gets that port or a sentence, never another port."""
    with closing(listen("127.0.0.1", 0, search=False)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnreachableError, match=rf"^cannot listen on 127.0.0.1, ports {port} to {port}: .*--port$"):
            listen("127.0.0.1", port, search=False)


def test_a_host_that_is_none_is_the_users_error() -> None:
    """A name that does not resolve is told with an address that works."""
    with pytest.raises(InputError, match=r"'no\.such\.host\.invalid'.*127\.0\.0\.1"):
        listen("no.such.host.invalid", 8686, search=True)


def test_the_service_answers_while_the_block_lasts() -> None:
    """Inside the block a request is answered; after it nobody listens there."""
    app = FastAPI()
    app.add_api_route("/", lambda: {"hello": "you"})
    bound = listen("127.0.0.1", 0, search=False)
    address = bound.getsockname()
    with serving(app, bound):
        assert httpx2.get(url_of(bound), timeout=5).json() == {"hello": "you"}
    with closing(socket.socket()) as caller:
        assert caller.connect_ex(address) != 0
