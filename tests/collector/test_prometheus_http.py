"""Requests to the server, and the error where it does not answer: one sentence, with the next step."""

import json
import threading
from collections.abc import Iterator

import pytest

from collector.client_config import ClientConfigError, Secret
from collector.errors import AdapterError, MalformedError, RejectedError, UnavailableError
from collector.prometheus_http import PARALLEL_QUERIES, PrometheusRequests, RangeQuery
from tests.collector.memory_prometheus import MemoryPrometheus, serving

SESAME = "open-sesame"


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    with serving(MemoryPrometheus()) as server:
        server.scrape("up 1\n", at=100)
        yield server


def names(memory: MemoryPrometheus, **settings: str) -> frozenset[str]:
    pauses: list[float] = []
    spelt = {key.replace("_", "."): value for key, value in settings.items()}
    with PrometheusRequests(memory.url, settings=spelt, wait=pauses.append) as prometheus:
        return prometheus.metric_names(first_seconds=0, last_seconds=200)


def refused(error: str) -> str:
    return json.dumps({"status": "error", "errorType": "execution", "error": error})


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (
            401,
            "Unauthorized",
            RejectedError,
            "401 Unauthorized; put bearer.token, or basic.username and basic.password",
        ),
        (403, "", RejectedError, "403 Forbidden; allow this user to query the server"),
        (404, "<html>", RejectedError, "404 Not Found; give the address before /api/v1"),
        (
            422,
            refused("query processing would load too many samples into memory"),
            RejectedError,
            "too many samples into memory; request less: name groups with --group, or give fewer --days",
        ),
        (
            400,
            refused("exceeded maximum resolution of 11,000 points per timeseries"),
            RejectedError,
            "points per timeseries; request less",
        ),
        (400, refused('unknown function with name "last_over_time"'), RejectedError, "is it Prometheus 2.26 or newer?"),
        (429, "", UnavailableError, "429 Too Many Requests; retry later, or request less with --group"),
        (200, "<html>welcome</html>", MalformedError, "no JSON with `data`; give the address before"),
        (200, '{"data": {"result": 7}}', MalformedError, "an answer of another shape"),
    ],
)
def test_every_refusal_is_one_sentence(
    memory: MemoryPrometheus, status: int, body: str, kind: type[AdapterError], message: str
) -> None:
    """The error has the server, the request, the answer, and the next step, in one sentence."""
    memory.refusals = [(status, body)] * 4  # the request is repeated where the server is busy
    with pytest.raises(kind) as caught:
        names(memory)
    sentence = str(caught.value)
    assert sentence.startswith(f"request to {memory.url} for the names of its metrics failed: ")
    assert message in sentence
    assert "\n" not in sentence


def test_an_unreachable_server_is_not_tried_again() -> None:
    """A server that has never answered is an error at once, as its address is probably wrong."""
    pauses: list[float] = []
    with (
        PrometheusRequests("http://127.0.0.1:1", settings={}, wait=pauses.append) as prometheus,
        pytest.raises(UnavailableError, match=r"ConnectError: .*; check the address, and that the server runs"),
    ):
        prometheus.metric_names(first_seconds=0, last_seconds=1)
    assert pauses == []


def test_p15_a_busy_server_is_requested_again_after_growing_pauses(memory: MemoryPrometheus) -> None:
    """P15: a request is repeated three times, after 1, 2 and 4 s, before it is an error; each one is counted."""
    pauses: list[float] = []
    with PrometheusRequests(memory.url, settings={}, wait=pauses.append) as prometheus:
        prometheus.metric_names(first_seconds=0, last_seconds=200)
        memory.refusals = [(503, ""), (429, "")]
        assert prometheus.metric_names(first_seconds=0, last_seconds=200) == {"up"}
        memory.refusals = [(503, "")] * 4
        with pytest.raises(UnavailableError, match="503 Service Unavailable"):
            prometheus.metric_names(first_seconds=0, last_seconds=200)
        assert prometheus.requests == 1 + 3 + 4
    assert pauses == [1.0, 2.0, 1.0, 2.0, 4.0]


def test_p15_at_most_four_queries_run_at_once(memory: MemoryPrometheus) -> None:
    """P15: of twenty range queries never more than four are at the server at once."""
    lock, inside, most = threading.Lock(), [0], [0]
    answer = memory.answer

    def slowly(path: str, parameters: dict[str, str]) -> object:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.01)
        with lock:
            inside[0] -= 1
        return answer(path, parameters)

    memory.answer = slowly  # type: ignore[method-assign,assignment]  # it stands where the method stands
    query = RangeQuery(expression="up{}", first_seconds=60, last_seconds=180, step_seconds=60)
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        answers = prometheus.ranges([query] * 20)
    assert most[0] == PARALLEL_QUERIES
    assert {answer[0].values.tolist() == [1.0, 1.0] for answer in answers} == {True}


@pytest.mark.parametrize(
    ("settings", "header", "value"),
    [
        ({"bearer_token": SESAME}, "Authorization", f"Bearer {SESAME}"),
        # base64 of "me:open-sesame"
        ({"basic_username": "me", "basic_password": SESAME}, "Authorization", "Basic bWU6b3Blbi1zZXNhbWU="),
        ({"header_X-Scope-OrgID": "team"}, "X-Scope-OrgID", "team"),
    ],
)
def test_every_kind_of_authentication(
    memory: MemoryPrometheus, settings: dict[str, str], header: str, value: str
) -> None:
    """A token, a user with a password, and headers such as Mimir's tenant go along with every request."""
    assert names(memory, **settings) == {"up"}
    assert {key.lower(): given for key, given in memory.headers[-1].items()}[header.lower()] == value


def test_secrets_are_in_no_error(memory: MemoryPrometheus) -> None:
    """An error shows no secret, also where the server repeats it and where it comes from a reference."""
    for token in (SESAME, Secret(SESAME)):
        memory.refusals = [(400, refused(f"bad token {SESAME}"))]
        with pytest.raises(RejectedError, match=r"bad token \*\*\*") as caught:
            names(memory, bearer_token=token)
        assert SESAME not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("prometheus:9090", {}, "is no address; write it as http://prometheus:9090"),
        ("http://me:word@host", {}, "put basic.username and basic.password into the file of --client-config"),
        ("http://host", {"sasl.password": "x"}, "sasl.password is no setting for Prometheus; there are basic.password"),
        ("http://host", {"bearer.token": "x", "basic.username": "y"}, "a server takes one of them"),
        ("https://host", {"ssl.ca.location": "/no/such/file"}, "a file of ssl.*.location cannot be used"),
    ],
)
def test_settings_that_cannot_be_used(url: str, settings: dict[str, str], message: str) -> None:
    """Wrong settings are refused before the first request, and the error shows no password."""
    with pytest.raises(ClientConfigError) as caught:
        PrometheusRequests(url, settings=settings)
    assert message in str(caught.value)
    assert "me:word" not in str(caught.value)
