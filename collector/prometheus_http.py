"""Prometheus' HTTP API with bounded load: few requests at once, retries after a pause where useful, and a counter."""

import base64
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NoReturn, Self

import httpx2
import numpy as np

from collector.client_config import ClientConfigError, without_secrets
from collector.errors import AdapterError, MalformedError, RejectedError, UnavailableError
from forecasting.units import FloatArray, IntArray

# Requests that wait for an answer at the same time.
PARALLEL_QUERIES = 4
# Most points that Prometheus returns for one series (`exceeded maximum resolution of 11,000 points per timeseries`).
MAX_POINTS_PER_SERIES = 11_000
TIMEOUT_SECONDS = 120.0
# Pauses before retries: 7 s in all.
PAUSES_SECONDS = (1.0, 2.0, 4.0)
_BUSY = frozenset({429, 502, 503, 504})
_LIMITS = re.compile(r"too many|limit|exceed|maximum|would load|timed? ?out", re.IGNORECASE)
SETTINGS = frozenset(
    {
        "bearer.token",
        "basic.username",
        "basic.password",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
    }
)
HEADER = "header."


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One time series: its labels without the name, instants in whole seconds since 1970, values; NaN are left out."""

    labels: Mapping[str, str]
    at_seconds: IntArray
    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """A PromQL expression, at every `step_seconds` from `first_seconds` to `last_seconds` since 1970, both included."""

    expression: str
    first_seconds: int
    last_seconds: int
    step_seconds: int


class PrometheusRequests:
    """One server with Prometheus' API: Prometheus, Thanos, Mimir, VictoriaMetrics, Cloud Monitoring.

    `url` is the part before `/api/v1`. `settings` are those of `SETTINGS`, and `header.NAME` for headers of every
    request. A context manager. Errors: ClientConfigError for an address or settings that cannot be used; it names the
    `option` that gave the address.
    """

    def __init__(
        self,
        url: str,
        *,
        settings: Mapping[str, str],
        timeout_seconds: float = TIMEOUT_SECONDS,
        wait: Callable[[float], object] = time.sleep,
        option: str = "--prometheus",
    ) -> None:
        self.where = url.rstrip("/")
        self._settings, self._wait, self._has_answered = dict(settings), wait, False
        self.requests, self._counting = 0, threading.Lock()
        self.answered_at: datetime | None = None  # of the newest answer, by the server's clock, in whole seconds
        require_usable(self.where, self._settings, option=option)
        self._http = httpx2.Client(
            base_url=f"{self.where}/api/v1/",
            headers=_headers(self._settings),
            verify=_tls(self._settings),
            timeout=timeout_seconds,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def metric_names(self, *, first_seconds: int, last_seconds: int) -> frozenset[str]:
        """The name of every metric that had a sample in that time."""
        span = {"start": str(first_seconds), "end": str(last_seconds)}
        names = self._request("GET", "label/__name__/values", span, "the names of its metrics")
        if not isinstance(names, list):
            self._malformed("the names of its metrics")
        return frozenset(names)

    def label_sets(self, selector: str, *, first_seconds: int, last_seconds: int) -> tuple[Mapping[str, str], ...]:
        """The labels of every series that the selector matches and that had a sample in that time."""
        words = {"match[]": selector, "start": str(first_seconds), "end": str(last_seconds)}
        found = self._request("POST", "series", words, f"the series {selector}")
        if not isinstance(found, list):
            self._malformed(f"the series {selector}")
        return tuple(found)

    def now(self, expression: str, *, at_seconds: int) -> float | None:
        """The value of an expression that has at most one value, None if it has none."""
        answer = self._request("POST", "query", {"query": expression, "time": str(at_seconds)}, expression)
        try:
            return next((float(entry["value"][1]) for entry in answer["result"]), None)
        except (KeyError, TypeError, IndexError, ValueError):
            self._malformed(expression)

    def instant(self, expression: str, *, at: datetime) -> tuple[Series, ...]:
        """The series of an expression at one instant, with a value each; stale series and NaN are left out."""
        words = {"query": expression, "time": f"{at.timestamp():.3f}"}
        answer = self._request("POST", "query", words, expression)
        try:
            series = [_series(entry["metric"], [entry["value"]]) for entry in answer["result"]]
        except (KeyError, TypeError, ValueError):
            self._malformed(expression)
        return tuple(one for one in series if one.values.size)

    def ranges(self, queries: Sequence[RangeQuery]) -> list[tuple[Series, ...]]:
        """The series of each of the queries, in their order; at most `PARALLEL_QUERIES` run at once."""
        with ThreadPoolExecutor(PARALLEL_QUERIES, thread_name_prefix="prometheus") as threads:
            return list(threads.map(self._range, queries))

    def _range(self, query: RangeQuery) -> tuple[Series, ...]:
        words = {
            "query": query.expression,
            "start": str(query.first_seconds),
            "end": str(query.last_seconds),
            "step": str(query.step_seconds),
        }
        answer = self._request("POST", "query_range", words, query.expression)
        try:
            return tuple(_series(entry["metric"], entry["values"]) for entry in answer["result"])
        except (KeyError, TypeError, ValueError):
            self._malformed(query.expression)

    def _request(self, method: str, path: str, words: Mapping[str, str], what: str) -> Any:  # noqa: ANN401  # JSON
        """The `data` of the answer."""
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                return self._once(method, path, words, what)
            except UnavailableError:
                # If a server has never answered, the address is probably wrong, and waiting is useless.
                if pause_seconds is None or not self._has_answered:
                    raise
                self._wait(pause_seconds)
        raise AssertionError  # the last pause is None

    def _once(self, method: str, path: str, words: Mapping[str, str], what: str) -> Any:  # noqa: ANN401  # JSON
        with self._counting:
            self.requests += 1
        try:
            carried = {"params": words} if method == "GET" else {"data": words}
            answer = self._http.request(method, path, **carried)  # type: ignore[arg-type]  # both take such a mapping
        except httpx2.HTTPError as error:
            step = (
                "set ssl.ca.location in the file of --client-config to the CA that signed its certificate"
                if "CERTIFICATE" in str(error)
                else "check the address, and that the server runs"
            )
            message = self._words(what, f"{type(error).__name__}: {error}", step)
            raise UnavailableError(message) from error
        self._has_answered = True
        with suppress(KeyError, ValueError):
            self.answered_at = parsedate_to_datetime(answer.headers["Date"])
        if answer.status_code in _BUSY:
            raise UnavailableError(self._words(what, _status(answer), "retry later, or request less with --group"))
        if answer.is_error or answer.is_redirect:
            raise self._refusal(answer, what)
        try:
            return answer.json()["data"]
        except (ValueError, KeyError, TypeError) as error:
            step = "give the address before /api/v1 of a server with Prometheus' API"
            message = self._words(what, "an answer that is no JSON with `data`", step)
            raise MalformedError(message) from error

    def _refusal(self, answer: httpx2.Response, what: str) -> AdapterError:
        try:
            said = str(answer.json()["error"])
        except (ValueError, KeyError, TypeError):
            said = ""
        detail = f"{_status(answer)}{f', {said}' if said else ''}"
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            step = "put bearer.token, or basic.username and basic.password, into the file of --client-config"
        elif answer.status_code == httpx2.codes.FORBIDDEN:
            step = "allow this user to query the server"
        elif answer.status_code == httpx2.codes.NOT_FOUND or answer.is_redirect:
            step = "give the address before /api/v1"
        elif _LIMITS.search(said):
            step = "request less: name groups with --group, or give fewer --days; or raise the server's limit"
        else:
            step = "the server does not support this request: is it Prometheus 2.26 or newer?"
        return RejectedError(self._words(what, detail, step))

    def _words(self, what: str, came_back: str, step: str) -> str:
        answer = without_secrets(came_back.replace("\n", " "), self._settings)
        return f"request to {self.where} for {what} failed: {answer}; {step}"

    def _malformed(self, what: str) -> NoReturn:
        raise MalformedError(self._words(what, "an answer of another shape", "is it a server of Prometheus' API?"))


def require_usable(url: str, settings: Mapping[str, str], *, option: str) -> None:
    """Refuse an address or settings that no request can be made with. Errors: ClientConfigError."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        message = f"{option} {url}: {error}; write it as http://prometheus:9090"
        raise ClientConfigError(message) from error
    if parsed.userinfo:
        message = (
            f"{option} has a user or password in its address; put basic.username and basic.password into the file of "
            "--client-config"
        )
        raise ClientConfigError(message)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        message = f"{option} {url} is no address; write it as http://prometheus:9090"
        raise ClientConfigError(message)
    unknown = sorted(key for key in settings if key not in SETTINGS and not key.startswith(HEADER))
    if unknown:
        known = f"{', '.join(sorted(SETTINGS))} and {HEADER}NAME"
        message = f"--client-config: {unknown[0]} is no setting for Prometheus; there are {known}"
        raise ClientConfigError(message)
    if "bearer.token" in settings and "basic.username" in settings:
        message = "--client-config has bearer.token and basic.username; a server takes one of them, leave out the other"
        raise ClientConfigError(message)


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    headers = {key.removeprefix(HEADER): value for key, value in settings.items() if key.startswith(HEADER)}
    if "bearer.token" in settings:
        headers["Authorization"] = f"Bearer {settings['bearer.token']}"
    elif "basic.username" in settings:
        word = f"{settings['basic.username']}:{settings.get('basic.password', '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(word.encode()).decode()}"
    return headers


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
        if "ssl.certificate.location" in settings:
            context.load_cert_chain(settings["ssl.certificate.location"], settings.get("ssl.key.location"))
    except OSError as error:  # ssl.SSLError is one
        message = f"--client-config: a file of ssl.*.location cannot be used ({error}); correct its path or its content"
        raise ClientConfigError(message) from error
    return context


def _status(answer: httpx2.Response) -> str:
    return f"{answer.status_code} {answer.reason_phrase}"


def _series(labels: Mapping[str, str], points: Sequence[Sequence[Any]]) -> Series:
    values = np.array([float(value) for _, value in points], dtype=np.float64)
    at_seconds = np.array([round(float(at)) for at, _ in points], dtype=np.int64)
    known = np.isfinite(values)
    return Series(labels=labels, at_seconds=at_seconds[known], values=values[known])
