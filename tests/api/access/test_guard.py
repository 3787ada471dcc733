"""Who is let in, on every route: by the name that was called, by tokens, and by Kubernetes' reviews."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.access.guard import OPEN, Access
from api.access.reviews import Reviews
from api.access.tokens import Tokens
from api.app import create_app
from api.keys import group_key
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from recommender.ports import UnavailableError
from tests.api import every_route
from tests.api.access_files import token_file
from tests.api.conftest import Clock

KEY = group_key("prod-eu", "orders")
TOKEN = "a-token-of-a-dashboard"  # noqa: S105  # of a test
# What a path's parameters stand for.
PARAMETERS = {"group_key": KEY, "recommendation_id": "r-1", "replay_id": "r-1", "name": "waterfall"}
MakeService = Callable[[Access | None], TestClient]


class Cluster:
    """A cluster that knows one token, and the rights of its user; each question is kept."""

    def __init__(self, rights: set[tuple[str, str]]) -> None:
        self.rights = rights
        self.asked: list[str] = []
        self.is_away = False

    def user_of(self, token: str) -> str | None:
        """The one user."""
        self.asked.append(token)
        if self.is_away:
            message = "could not review a bearer token: no route to 10.0.0.1"
            raise UnavailableError(message)
        return "prometheus" if token == TOKEN else None

    def may(self, user: str, verb: str, path: str) -> bool:
        """True for the rights."""
        self.asked.append(f"{user} {verb} {path}")
        return (verb, path) in self.rights


@pytest.fixture
def make_service(store: SqlDecisionStore, clock: Clock, advice: Callable[..., Recommendation]) -> MakeService:
    """`make_service(access)`: a client of a service with advice on one group, called by a name of loopback."""
    store.save(advice())

    def made(access: Access | None) -> TestClient:
        app = create_app(store, clock=clock, version="0.1.0", access=access)
        app.state.events.close()  # else a stream of events would have no end
        return TestClient(app, raise_server_exceptions=False, base_url="http://127.0.0.1:8686")

    return made


def requests_of(app: FastAPI) -> list[tuple[str, str]]:
    """Method and address of each route, those that the framework adds too."""
    return [(method, path.format_map(PARAMETERS)) for method, path in every_route.requests_of(app)]


def status_of(service: TestClient, method: str, path: str, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = {"max_replicas": 9} if method == "POST" else None
    return service.request(method, path, headers=headers, json=body).status_code


def test_every_route_but_two_wants_a_token(make_service: MakeService, tmp_path: Path) -> None:
    """A route that is added is protected without further ado; with a token each is what it is for everyone."""
    protected = make_service(Access(tokens=Tokens([token_file(tmp_path / "tokens", TOKEN)])))
    unprotected = make_service(None)
    assert isinstance(protected.app, FastAPI)
    requests = requests_of(protected.app)
    assert len(requests) >= 16
    assert {path for _, path in requests} >= OPEN
    for method, path in requests:
        expected = status_of(unprotected, method, path, None)
        assert status_of(protected, method, path, TOKEN) == expected, path
        refused = expected if path in OPEN else 401
        assert status_of(protected, method, path, None) == refused, path
        assert status_of(protected, method, path, "another") == refused, path


def test_every_route_but_two_wants_a_right(make_service: MakeService) -> None:
    """By a review: 401 for a token that the cluster does not know, 403 without the right, else what it is."""
    app = make_service(None).app
    assert isinstance(app, FastAPI)
    requests = requests_of(app)
    cluster = Cluster({(method.lower(), path) for method, path in requests})
    all_rights = make_service(Access(reviews=Reviews(cluster, clock=lambda: 0.0)))
    no_rights = make_service(Access(reviews=Reviews(Cluster(set()), clock=lambda: 0.0)))
    for method, path in requests:
        expected = status_of(make_service(None), method, path, None)
        assert status_of(all_rights, method, path, TOKEN) == expected, path
        assert status_of(no_rights, method, path, TOKEN) == (expected if path in OPEN else 403), path
        assert status_of(no_rights, method, path, "another") == (expected if path in OPEN else 401), path


@pytest.mark.parametrize("path", ["/nothing", "/livez/", "/metrics/", "//livez", "/livez/../metrics", "/api/v1/x"])
def test_what_is_no_route_is_no_way_in(make_service: MakeService, tmp_path: Path, path: str) -> None:
    """Not even whether there is a route is told."""
    service = make_service(Access(tokens=Tokens([token_file(tmp_path / "tokens", TOKEN)])))
    assert (
        service.request("GET", httpx2.URL("http://127.0.0.1:8686").copy_with(raw_path=path.encode())).status_code == 401
    )


@pytest.mark.parametrize(
    "header",
    [f"Basic {TOKEN}", "Bearer", "Bearer ", TOKEN, f"Bearer {TOKEN} x", f"Bearer {TOKEN[:-1]}", f"Bearer{TOKEN}"],
)
def test_no_other_header_is_a_token(make_service: MakeService, tmp_path: Path, header: str) -> None:
    """The answer is a problem that names the next step, and says how to authenticate as RFC 6750 has it."""
    service = make_service(Access(tokens=Tokens([token_file(tmp_path / "tokens", TOKEN)])))
    answer = service.get("/metrics", headers={"Authorization": header})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"] == 'Bearer realm="lagcast"'
    assert "bearer token" in answer.json()["detail"]
    assert TOKEN not in answer.text


def test_the_scheme_is_written_in_any_case(make_service: MakeService, tmp_path: Path) -> None:
    """As RFC 9110 has it."""
    service = make_service(Access(tokens=Tokens([token_file(tmp_path / "tokens", TOKEN)])))
    assert service.get("/metrics", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200


def test_a_token_of_a_file_needs_no_review(make_service: MakeService, tmp_path: Path) -> None:
    """Where both are asked for, the file is looked at first, and the cluster for what is not in it."""
    cluster = Cluster({("get", "/metrics")})
    tokens = Tokens([token_file(tmp_path / "tokens", "of-a-file")])
    service = make_service(Access(tokens=tokens, reviews=Reviews(cluster, clock=lambda: 0.0)))
    assert status_of(service, "GET", "/", "of-a-file") == 200
    assert cluster.asked == []
    assert [status_of(service, "GET", path, TOKEN) for path in ("/metrics", "/")] == [200, 403]


def test_a_cluster_that_is_away_is_no_permission(make_service: MakeService) -> None:
    """The answer is 503, and does not say where the cluster is."""
    cluster = Cluster({("get", "/metrics")})
    cluster.is_away = True
    service = make_service(Access(reviews=Reviews(cluster, clock=lambda: 0.0)))
    answer = service.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, "10.0.0.1" in answer.text) == (503, False)
    assert service.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8686", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:8686", 200),
        ("[::1]:8686", 200),
        ("10.1.2.3:8686", 200),
        ("lagcast.lagcast.svc:8686", 200),
        ("lagcast.lagcast.svc.", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8686", 421),
        ("lagcast.lagcast.svc.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_a_page_of_another_name_reads_nothing(make_service: MakeService, host: str, status: int) -> None:
    """DNS rebinding: a browser that thinks it talks to another site sends that site's name."""
    service = make_service(Access(hosts=["lagcast.lagcast.svc"]))
    answer = service.get("/api/v1/groups", headers={"Host": host})
    assert answer.status_code == status
    assert service.get("/livez", headers={"Host": host}).status_code == 200
