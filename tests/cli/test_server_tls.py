"""TLS of the REST service over real sockets: a certificate that is renewed, and callers that do not go on."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from api.access.certificates import Certificate
from api.access.connections import MOST_CONNECTIONS, Limits
from api.access.files import AccessError
from cli.server import listen, serving, url_of
from tests.api.access_files import Authority
from tests.live.harness.clients import wait_until


@contextmanager
def server(certificate: Certificate, *, patience_seconds: float = 10.0) -> Iterator[str]:
    """The URL of a service over TLS."""
    app = FastAPI()
    app.add_api_route("/livez", lambda: {"hello": "you"})
    app.add_api_route("/echo", lambda given: {"given": len(given)})
    bound = listen("127.0.0.1", 0, search=False)
    with serving(app, bound, Limits(tls_context=certificate.context, patience_seconds=patience_seconds)):
        yield url_of(bound, tls=True)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.certificate)


def serial_of(url: str, authority: Authority) -> int:
    """The serial number of the certificate that a new connection is shown."""
    address = url.removeprefix("https://").rpartition(":")
    with (
        socket.create_connection((address[0], int(address[2])), timeout=10) as raw,
        trusting(authority).wrap_socket(raw, server_hostname="127.0.0.1") as caller,
    ):
        shown = caller.getpeercert()
        assert shown is not None
        return int(str(shown["serialNumber"]), 16)


def test_requests_are_answered_over_tls(tmp_path: Path) -> None:
    """Several on one connection, one that is larger than a record, and none from who trusts another authority."""
    authority = Authority(tmp_path / "ours")
    with server(Certificate(*authority.sign("server"))) as url:
        with httpx2.Client(verify=trusting(authority), timeout=10) as client:
            for _ in range(3):
                assert client.get(f"{url}/livez").json() == {"hello": "you"}
            assert client.get(f"{url}/echo?given={'x' * 30_000}").json() == {"given": 30_000}
        other = trusting(Authority(tmp_path / "others"))
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            httpx2.get(f"{url}/livez", verify=other, timeout=10)
        assert httpx2.get(f"{url}/livez", verify=trusting(authority), timeout=10).status_code == 200


def test_a_request_sent_with_the_handshakes_last_words_is_answered(tmp_path: Path) -> None:
    """A caller need not wait for the server's word after its own last one."""
    authority = Authority(tmp_path / "ours")
    with server(Certificate(*authority.sign("server"))) as url:
        address = url.removeprefix("https://").rpartition(":")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        caller = trusting(authority).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with socket.create_connection((address[0], int(address[2])), timeout=10) as raw:
            while True:
                try:
                    caller.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
            caller.write(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            raw.sendall(outgoing.read())  # the end of the handshake, and the request
            answer = b""
            with suppress(ssl.SSLZeroReturnError):
                while b"you" not in answer:
                    with suppress(ssl.SSLWantReadError):
                        answer += caller.read(65536)
                        continue
                    incoming.write(raw.recv(65536))
    assert b'{"hello":"you"}' in answer


def test_a_renewed_certificate_counts_without_a_restart(tmp_path: Path) -> None:
    """The next connection is shown it; an open one goes on. Files that do not fit together leave what there was."""
    authority = Authority(tmp_path / "ours")
    files = authority.sign("server", serial=1)
    with server(Certificate(*files)) as url, httpx2.Client(verify=trusting(authority), timeout=10) as client:
        assert client.get(f"{url}/livez").status_code == 200
        assert serial_of(url, authority) == 1
        authority.sign("server", serial=2)
        assert serial_of(url, authority) == 2
        assert client.get(f"{url}/livez").status_code == 200
        another_key = authority.sign("another")[1]
        files[1].write_bytes(another_key.read_bytes())
        assert serial_of(url, authority) == 2
        authority.sign("server", serial=3)
        assert serial_of(url, authority) == 3


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET /livez HTTP/1.1\r\n\r\n"])
def test_a_caller_without_tls_is_closed(tmp_path: Path, capfd: pytest.CaptureFixture[str], sent: bytes) -> None:
    """Whether it says nothing, half of its greeting or something else; the log has no line of it."""
    authority = Authority(tmp_path / "ours")
    with server(Certificate(*authority.sign("server")), patience_seconds=0.3) as url:
        address = url.removeprefix("https://").rpartition(":")
        with socket.create_connection((address[0], int(address[2])), timeout=10) as caller:
            caller.sendall(sent)
            with suppress(ConnectionResetError):
                while caller.recv(65536):
                    pass
        assert httpx2.get(f"{url}/livez", verify=trusting(authority), timeout=10).status_code == 200
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.alone
def test_unfinished_handshakes_leave_livez_answered(tmp_path: Path) -> None:
    """More of them than there may be connections, which count before they are secure."""
    authority = Authority(tmp_path / "ours")
    with (
        server(Certificate(*authority.sign("server")), patience_seconds=60.0) as url,
        httpx2.Client(verify=trusting(authority), timeout=10) as client,
        ExitStack() as open_now,
    ):
        address = url.removeprefix("https://").rpartition(":")
        callers = [
            open_now.enter_context(socket.create_connection((address[0], int(address[2])), timeout=10))
            for _ in range(MOST_CONNECTIONS + 50)
        ]
        began = time.monotonic()
        assert client.get(f"{url}/livez").status_code == 200
        assert time.monotonic() - began < 1.0
        wait_until(lambda: _is_closed(callers[0]))


def _is_closed(caller: socket.socket) -> bool:
    caller.settimeout(0.1)
    try:
        return caller.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_files_that_cannot_be_served_are_refused_at_the_start(tmp_path: Path) -> None:
    """One sentence with the file and the reason: missing, of another key, no PEM, readable for all."""
    authority = Authority(tmp_path / "ours")
    certificate, key = authority.sign("server")
    other_key = authority.sign("other")[1]
    text = tmp_path / "text"
    text.write_text("no certificate")
    text.chmod(0o600)
    for files, reason in (
        ((tmp_path / "missing", key), "No such file"),
        ((certificate, other_key), "KEY_VALUES_MISMATCH"),
        ((text, key), "give PEM files that fit together"),
        ((certificate, key, text), "TLS cannot be served"),
    ):
        with pytest.raises(AccessError, match=reason):
            Certificate(*files)
    key.chmod(0o604)
    with pytest.raises(AccessError, match=r"the key file .* has mode 0604, so every user may read it; chmod o-rwx"):
        Certificate(certificate, key)
