"""One HTTP server that is asked repeatedly: who it is, who asks, and how much and how long an answer may be.

The time is limited as a whole, and not only from one byte to the next; so requests run in an event loop of their own,
in which each can be ended at any moment.
"""

import asyncio
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import httpx2

from executor.errors import AdviceError

# A hundred times what advice takes: 500 groups on a page are some 300 kB.
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
TIMEOUT = timedelta(seconds=10)
_SHOWN = 200


class AddressError(ValueError):
    """Address and credentials do not go together; the sentence names what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How server and client know each other: files, each of which may be replaced while the process runs.

    `ca` are the certificates to trust in place of the system's; `token` is sent with each request; `certificate` and
    `key` are the client's own.
    """

    ca: Path | None = None
    token: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def of_tls(self) -> tuple[Path, ...]:
        """Files that a connection by TLS is made with."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)


class Answer(NamedTuple):
    """The body of an answer of 200, and its headers."""

    body: bytes
    headers: httpx2.Headers


class Connection:
    """A server by its URL; any thread may ask. Errors of the constructor: AddressError."""

    def __init__(self, url: str, credentials: Credentials | None = None, *, timeout: timedelta = TIMEOUT) -> None:
        self._url, self._credentials = _checked(url, credentials or Credentials()), credentials or Credentials()
        self._seconds = timeout.total_seconds()
        self._client: httpx2.AsyncClient | None = None
        self._made_of: object = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="advice", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the connection; it is not used any more."""
        asyncio.run_coroutine_threadsafe(self._closed(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def get(self, path: str, arguments: Mapping[str, str]) -> Answer:
        """What the server answers to this request. Errors: AdviceError for whatever is no answer of 200 in time."""
        return asyncio.run_coroutine_threadsafe(self._get(path, arguments), self._loop).result()

    async def _get(self, path: str, arguments: Mapping[str, str]) -> Answer:
        where = f"{self._url}{path}"
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read(where, arguments)
        except TimeoutError as error:
            message = f"{where} has not answered within {self._seconds:.0f} s"
            raise AdviceError(message) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:  # a server that ends TLS late, for the last
            message = (
                f"{self._url} does not answer: {shown(str(error)) or type(error).__name__}; start `lagcast serve`, or "
                "give its address with --api"
            )
            raise AdviceError(message) from error

    async def _read(self, where: str, arguments: Mapping[str, str]) -> Answer:
        client = await self._current_client()
        async with client.stream("GET", where, params=arguments, headers=self._headers()) as response:
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > ANSWER_LIMIT_BYTES:
                    message = f"{where} answered more than {ANSWER_LIMIT_BYTES:,} bytes; is it a lagcast API?"
                    raise AdviceError(message)
            if response.is_redirect:
                message = (
                    f"{where} answered {response.status_code}, a redirect, which is not followed; give --api as it is"
                )
                raise AdviceError(message)
            if response.status_code != httpx2.codes.OK:
                said = shown(body[:_SHOWN].decode(errors="replace").strip())
                message = f"{where} answered {response.status_code}: {said}{_remedy(response.status_code)}"
                raise AdviceError(message)
            return Answer(bytes(body), response.headers)

    def _headers(self) -> dict[str, str]:
        # Compressed, a small answer could become a large one.
        headers = {"Accept-Encoding": "identity"}
        if self._credentials.token is not None:
            headers["Authorization"] = f"Bearer {_token(self._credentials.token)}"
        return headers

    async def _current_client(self) -> httpx2.AsyncClient:
        """The client made of the files as they are now."""
        try:
            made_of = [(path, path.stat().st_mtime_ns) for path in self._credentials.of_tls]
            if self._client is None or made_of != self._made_of:
                # The environment is not read: a proxy that it names would be sent the token.
                anew = httpx2.AsyncClient(
                    verify=_tls(self._credentials), timeout=self._seconds, follow_redirects=False, trust_env=False
                )
                before, self._client, self._made_of = self._client, anew, made_of
                if before is not None:
                    await before.aclose()
                return anew
        except OSError as error:  # ssl.SSLError is one
            names = ", ".join(map(str, self._credentials.of_tls))
            message = f"{names} cannot be used for TLS: {error.strerror or error}; give files in PEM"
            raise AdviceError(message) from error
        return self._client

    async def _closed(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def shown(text: str) -> str:
    r"""Text of another's, short and without anything that a terminal would obey.

    >>> shown("no\x1b[2J such group")
    'no\\x1b[2J such group'
    """
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)


def _checked(url: str, credentials: Credentials) -> str:
    """The root of the server with a slash behind it. Errors: AddressError."""
    try:
        address = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError) as error:
        message = f"--api is {url!r}, no URL ({error}); give one such as https://lagcast:8686"
        raise AddressError(message) from error
    if address.scheme not in {"http", "https"} or not address.host:
        message = f"--api is {url!r}; give a URL of http or https, such as https://lagcast:8686"
        raise AddressError(message)
    if address.userinfo or address.query or address.fragment:
        message = "--api has a password, a query or a fragment; give scheme, host, port and path alone"
        raise AddressError(message)
    if (credentials.certificate is None) != (credentials.key is None):
        message = "--advice-cert-file and --advice-key-file go together; give both"
        raise AddressError(message)
    if address.scheme == "http" and credentials.of_tls:
        message = f"--api is {url!r}, without TLS, so that certificates prove nothing; give an address of https"
        raise AddressError(message)
    if address.scheme == "http" and credentials.token is not None and not _is_loopback(address.host):
        message = f"--api is {url!r}, and over plain http a token is sent only to this machine; give one of https"
        raise AddressError(message)
    return url.rstrip("/") + "/"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if credentials.ca is None else str(credentials.ca))
    if credentials.certificate is not None and credentials.key is not None:
        context.load_cert_chain(credentials.certificate, credentials.key)
    return context


def _token(path: Path) -> str:
    """The token in a file, as it is now. Errors: AdviceError."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not ASCII"
        message = f"{path}: the token cannot be read ({reason}); give a file that holds nothing else"
        raise AdviceError(message) from error
    if not token or not token.isprintable() or " " in token:
        message = f"{path}: is empty, or is more than one word; give a file that holds the token and nothing else"
        raise AdviceError(message)
    return token


def _remedy(status: int) -> str:
    if status in {httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN}:
        return "; give --advice-token-file, or a client certificate, that the API accepts"
    return ""
