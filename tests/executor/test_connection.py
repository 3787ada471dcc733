"""The way to the API: whom the executor believes, to whom it shows its token, and how much and how long it listens."""

import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from executor.advice import AdviceClient
from executor.connection import ANSWER_LIMIT_BYTES, AddressError, Connection, Credentials
from executor.errors import AdviceError

PROGRAM = "from executor.run import main; main()"
Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(reply: Reply, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server on this machine that answers each GET by `reply`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Log nothing, as pytest shows enough."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not believe the server ends the handshake: that is what is tested."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def says(body: bytes, status: int = 200, **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def error_of(url: str, credentials: Credentials | None = None, *, seconds: float = 10.0) -> str:
    connection = Connection(url, credentials, timeout=timedelta(seconds=seconds))
    with pytest.raises(AdviceError) as raised:
        connection.get("api/v1/groups", {})
    connection.close()
    return str(raised.value)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate authority, and a server's and a client's certificate by it: NAME.pem, NAME.key."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    for authority in ("ca", "other"):
        made = ("-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        extensions = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        openssl(*new, "-x509", "-subj", f"/CN={authority}", "-days", "1", *extensions, *made)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n", encoding="ascii")
    for name in ("server", "client"):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "names")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return folder


@pytest.fixture
def tls(certificates: Path) -> ssl.SSLContext:
    """TLS of a server with a certificate by the authority `ca`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    return context


def test_a_server_is_believed_by_its_certificate_alone(certificates: Path, tls: ssl.SSLContext) -> None:
    """With the authority that has signed it there is an answer; with the system's, or another, there is none."""
    with answering(says(b"{}"), tls) as url:
        trusting = Connection(url, Credentials(ca=certificates / "ca.pem"))
        assert trusting.get("api/v1/groups", {}).body == b"{}"
        trusting.close()
        for ca in (None, certificates / "other.pem"):
            assert "CERTIFICATE_VERIFY_FAILED" in error_of(url, Credentials(ca=ca))


def test_the_client_shows_its_certificate(certificates: Path, tls: ssl.SSLContext) -> None:
    """A server that asks for one answers those who have it, and nobody else."""
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificates / "ca.pem")
    ca, own = certificates / "ca.pem", {"certificate": certificates / "client.pem", "key": certificates / "client.key"}
    with answering(says(b"{}"), tls) as url:
        known = Connection(url, Credentials(ca=ca, **own))
        assert known.get("api/v1/groups", {}).body == b"{}"
        known.close()
        assert "does not answer" in error_of(url, Credentials(ca=ca))


def test_certificates_that_are_replaced_are_used_at_the_next_request(
    certificates: Path, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    """A wrong authority is one sentence at each request, and none any more once the file has the right one."""
    ca = tmp_path / "ca.pem"
    ca.write_bytes((certificates / "other.pem").read_bytes())
    with answering(says(b"{}"), tls) as url:
        connection = Connection(url, Credentials(ca=ca))
        with pytest.raises(AdviceError, match="CERTIFICATE_VERIFY_FAILED"):
            connection.get("api/v1/groups", {})
        (tmp_path / "new.pem").write_bytes((certificates / "ca.pem").read_bytes())
        (tmp_path / "new.pem").rename(ca)
        assert connection.get("api/v1/groups", {}).body == b"{}"
        connection.close()


def test_the_token_is_read_for_each_request(tmp_path: Path) -> None:
    """What was written last is sent, and nothing is asked for without it."""
    shown: list[str | None] = []

    def reply(handler: BaseHTTPRequestHandler) -> None:
        shown.append(handler.headers["Authorization"])
        says(b"{}")(handler)

    token = tmp_path / "token"
    with answering(reply) as url:
        connection = Connection(url, Credentials(token=token))
        for word in ("first", "second"):
            token.write_text(f"{word}\n", encoding="ascii")
            connection.get("api/v1/groups", {})
        for bad, reason in ((b"", "is empty"), (b"two words", "more than one word"), (b"\xff", "not ASCII")):
            token.write_bytes(bad)
            with pytest.raises(AdviceError, match=reason):
                connection.get("api/v1/groups", {})
        token.unlink()
        with pytest.raises(AdviceError, match="the token cannot be read"):
            connection.get("api/v1/groups", {})
        connection.close()
    assert shown == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--api", "http://lagcast.lagcast.svc:8686", "--advice-token-file", "token"], "a token is sent only to this"),
        (["--api", "http://10.0.0.1", "--advice-token-file", "token"], "a token is sent only to this machine"),
        (["--api", "http://127.0.0.1:1", "--advice-ca-file", "ca.pem"], "without TLS"),
        (["--api", "https://lagcast", "--advice-cert-file", "c.pem"], "--advice-key-file go together"),
        (["--api", "ftp://lagcast"], "give a URL of http or https"),
        (["--api", "https://user:word@lagcast"], "has a password"),
        (["--api", "lagcast:8686"], "give a URL of http or https"),
    ],
)
def test_an_address_that_does_not_go_with_its_credentials_is_one_sentence(words: list[str], sentence: str) -> None:
    """The process ends with the code of wrong usage before anything is asked."""
    command = [sys.executable, "-c", PROGRAM, *words, "--all", "--once"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"COLUMNS": "400", "NO_COLOR": "1"}
    )
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("url", ["http://lagcast.lagcast.svc:8686", "http://127.0.0.1:8686", "https://lagcast"])
def test_plain_http_is_enough_where_nothing_secret_is_sent(url: str) -> None:
    """Without a token any address will do."""
    AdviceClient(url).close()


def test_a_token_goes_over_plain_http_to_this_machine_alone() -> None:
    """Loopback in its three spellings; an address that only begins like one is another machine."""
    token = Credentials(token=Path("token"))
    for url in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://lagcast"):
        Connection(url, token).close()
    for url in ("http://127.0.0.1.example.org", "http://localhost.example.org", "http://0.0.0.0:1"):
        with pytest.raises(AddressError):
            Connection(url, token)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """Neither request nor token goes to another address than the one that was given."""
    (tmp_path / "token").write_text("secret", encoding="ascii")
    asked: list[str] = []

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        says(b"{}")(handler)

    with answering(elsewhere) as other, answering(says(b"", 307, Location=f"{other}/stolen")) as url:
        assert "answered 307, a redirect" in error_of(url, Credentials(token=tmp_path / "token"))
    assert asked == []


def test_an_answer_that_is_too_long_is_cut_off() -> None:
    """It ends at four megabytes, also where its end is not announced."""
    sent = 0

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        try:
            while sent < 20 * ANSWER_LIMIT_BYTES:
                sent += handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    with answering(endless) as url:
        assert "answered more than 4,194,304 bytes" in error_of(url)
    assert sent < 20 * ANSWER_LIMIT_BYTES


def test_an_answer_that_is_too_slow_ends_in_time() -> None:
    """A byte now and then does not keep the executor beyond its limit: the time is that of the whole answer."""
    stop = threading.Event()

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not stop.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    with answering(dripping) as url:
        began = time.monotonic()
        assert "has not answered within 1 s" in error_of(url, seconds=1.0)
        assert time.monotonic() - began < 5.0
        stop.set()


def test_what_an_api_says_of_its_error_is_short_and_harmless() -> None:
    """A page of an error is cut, and nothing of it can move a cursor."""
    with answering(says(b"\x1b[2Jno\r\n" + b"x" * 10_000, 503)) as url:
        error = error_of(url)
    assert "answered 503: \\x1b[2Jno\\r\\n" in error
    assert len(error) < 400
    assert error.isprintable()
