"""What every request passes before a route sees it: the name that it was sent to, the caller's token and rights."""

from asyncio import Semaphore
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.reviews import Reviews, Verdict
from api.access.tokens import Tokens
from api.problems import problem
from recommender.ports import AdapterError

# Open to everyone, whatever name they use: a kubelet has no token. They tell no more than that the service works.
OPEN = frozenset({"/livez", "/readyz"})
# Reviews at a time. They wait for another server, and must not take all threads with which requests are answered.
_REVIEWS_AT_ONCE = 4
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who is let in: callers that use one of these names, and have one of the tokens or the right by a review.

    Loopback and addresses in figures are always right names: a page of another site that has its name resolve to this
    machine (DNS rebinding) sends its name. Without `tokens` and `reviews` nobody is asked who they are.
    """

    hosts: Sequence[str] = ()
    tokens: Tokens | None = None
    reviews: Reviews[Any] | None = None

    @property
    def asks(self) -> bool:
        """True if a caller has to say who it is."""
        return self.tokens is not None or self.reviews is not None


class Guard:
    """The service `app` for those whom `access` lets in; every route but `OPEN`, those that do not exist too."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(_without_dot(host.lower()) for host in (*access.hosts, "localhost"))
        self._turns = Semaphore(_REVIEWS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or say why not."""
        refused = None if scope["type"] == "lifespan" or scope["path"] in OPEN else await self._refused(scope)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_name_of_this(headers.get("host", "")):
            sentence = "the service is not known by the name in `Host`; --allowed-host adds a name"
            return problem(HTTPStatus.MISDIRECTED_REQUEST, sentence)
        if not self._access.asks:
            return None
        token, challenge = _token_of(headers.get("authorization", "")), _challenge_for(headers.get("accept", ""))
        if not token:
            sentence = (
                "a bearer token is needed; send it as `Authorization: Bearer TOKEN`, or as the password of a browser"
            )
            return _unknown(sentence, challenge)
        if self._access.tokens is not None and self._access.tokens.accept(token):
            return None
        if self._access.reviews is None:
            sentence = "the bearer token is none of those in force; ask the operator of lagcast for one"
            return _unknown(sentence, challenge)
        return await self._reviewed(self._access.reviews, token, scope, challenge)

    async def _reviewed(self, reviews: Reviews[Any], token: str, scope: Scope, challenge: str) -> Response | None:
        verb, path = str(scope.get("method", "get")).lower(), str(scope["path"])
        try:
            async with self._turns:
                verdict = await run_in_threadpool(reviews.verdict, token, verb, path)
        except AdapterError as error:
            _log.warning("review_failed", error=str(error))
            sentence = "whether you may read this cannot be found out now, as Kubernetes does not tell; retry later"
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        if verdict is Verdict.UNKNOWN:
            return _unknown("the bearer token is none of this cluster, or has expired; take a new one", challenge)
        if verdict is Verdict.DENIED:
            sentence = f"your user may not `{verb}` this; a ClusterRole with it among its nonResourceURLs grants that"
            return problem(HTTPStatus.FORBIDDEN, sentence)
        return None

    def _is_name_of_this(self, host: str) -> bool:
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        name = _without_dot(name.lower())
        if name in self._hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _token_of(authorization: str) -> str:
    """The bearer token; or the password, under any name, that a browser has asked its user for. Empty without either.

    >>> _token_of("Bearer abc"), _token_of("Basic bWU6YWJj"), _token_of("Basic bWU="), _token_of("Digest x")
    ('abc', 'abc', '', '')
    """
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, or no text in it
        return ""


def _challenge_for(accept: str) -> str:
    """How to say who one is: a browser asks its user for name and password, which it cannot for a bearer token."""
    return 'Basic realm="lagcast", charset="UTF-8"' if "text/html" in accept else 'Bearer realm="lagcast"'


def _unknown(sentence: str, challenge: str) -> Response:
    return problem(HTTPStatus.UNAUTHORIZED, sentence, headers={"WWW-Authenticate": challenge})


def _without_dot(name: str) -> str:
    """A name without the dot at its end, which makes it absolute and is no part of it."""
    return name.removesuffix(".")
