"""A scale endpoint that remembers what was asked of it, and a real API that serves advice."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.recommendation import Recommendation
from recommender.settings import load_settings

SCALE = "/apis/apps/v1/namespaces/shop/{kind}/orders-consumer/scale"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects"
EVENTS = "/api/v1/namespaces/shop/events"


@dataclass
class Cluster:
    """One workload `shop/orders-consumer`, kept as the API server keeps it: each write makes a new version.

    `keda` are the workloads that ScaledObjects claim, None where KEDA is not installed. `caps_at` is what an admission
    webhook lets through at most.
    """

    replicas: int = 6
    version: int = 41
    autoscaled: bool = False
    keda: list[str] | None = None
    forbidden: bool = False
    mutes_events: bool = False
    caps_at: int | None = None
    reads: Counter[str] = field(default_factory=Counter)
    events: list[dict[str, Any]] = field(default_factory=list)
    before_patch: Callable[[], None] = lambda: None
    patches: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def write(self, replicas: int) -> None:
        """Somebody sets the count."""
        self.replicas, self.version = replicas, self.version + 1

    def scale(self) -> dict[str, Any]:
        """The Scale object."""
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": "orders-consumer",
                "namespace": "shop",
                "uid": "0b1e",
                "resourceVersion": str(self.version),
            },
            "spec": {"replicas": self.replicas} if self.replicas else {},
            "status": {"replicas": self.replicas, "selector": "app=orders"},
        }

    def autoscalers(self) -> dict[str, Any]:
        """The list of autoscalers; `autoscaled` puts one on our workload, another workload always has one."""
        claimed = ["somebody-else", *(["orders-consumer"] if self.autoscaled else [])]
        return {
            "kind": "HorizontalPodAutoscalerList",
            "apiVersion": "autoscaling/v2",
            "metadata": {"resourceVersion": "1"},
            "items": [
                {
                    "metadata": {"name": f"keda-hpa-{name}", "namespace": "shop"},
                    "spec": {
                        "maxReplicas": 10,
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                    },
                }
                for name in claimed
            ],
        }


class _Handler(BaseHTTPRequestHandler):
    cluster: Cluster

    def do_GET(self) -> None:
        self.cluster.reads[self.path] += 1
        if self.cluster.forbidden:
            self._answer(403, {"kind": "Status", "reason": "Forbidden"})
        elif self.path in (SCALE.format(kind="deployments"), SCALE.format(kind="statefulsets")):
            self._answer(200, self.cluster.scale())
        elif self.path == AUTOSCALERS:
            self._answer(200, self.cluster.autoscalers())
        elif self.path == SCALED_OBJECTS and self.cluster.keda is not None:
            claims = [{"metadata": {"name": n}, "spec": {"scaleTargetRef": {"name": n}}} for n in self.cluster.keda]
            self._answer(200, {"kind": "ScaledObjectList", "items": claims})
        else:
            self._answer(404, {"kind": "Status", "reason": "NotFound"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.cluster.mutes_events or self.path != EVENTS:
            self._answer(403, {"kind": "Status", "reason": "Forbidden"})
            return
        self.cluster.events.append(body)
        self._answer(201, body)

    def do_PATCH(self) -> None:
        self.cluster.before_patch()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.cluster.patches.append({"path": self.path, "type": self.headers["Content-Type"], "body": body})
        if body["metadata"]["resourceVersion"] != str(self.cluster.version):
            self._answer(409, {"kind": "Status", "reason": "Conflict"})
            return
        asked = body["spec"]["replicas"]
        self.cluster.write(asked if self.cluster.caps_at is None else min(asked, self.cluster.caps_at))
        self._answer(200, self.cluster.scale())

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Nothing: pytest shows enough."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A workload of six replicas behind an HTTP server on this machine."""
    cluster = Cluster()
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield cluster
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Path:
    """A kubeconfig file that leads to `cluster`."""
    path = tmp_path / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": cluster.url}}],
        "users": [{"name": "test", "user": {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@dataclass
class Service:
    """A running API and the store behind it."""

    url: str
    store: SqlDecisionStore


def wall_clock() -> datetime:
    """The API stamps its answers with the real time, so these tests live in it."""
    return datetime.now(UTC)  # noqa: TID251  # see above


@pytest.fixture(name="wall_clock")
def wall_clock_fixture() -> Callable[[], datetime]:
    """The real time."""
    return wall_clock


@pytest.fixture(params=["Deployment"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """The real application on a real server; `orders` may be acted on, its workload is of the kind `param`."""
    settings_file = tmp_path / "lagcast.yaml"
    target = {"namespace": "shop", "name": "orders-consumer", "kind": request.param}
    settings_file.write_text(yaml.safe_dump({"groups": {"orders": {"mode": "apply", "target": target}}}))
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    settings = load_settings(settings_file, {"LAGCAST_STATE_DIR": str(tmp_path)})
    app = create_app(store, clock=wall_clock, version="0.1.0", settings=settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Service(f"http://127.0.0.1:{port}", store)
    server.should_exit = True
    thread.join()
    store.close()


@pytest.fixture(name="due_advice")
def due_advice_fixture(advice: Callable[..., Recommendation]) -> Callable[..., Recommendation]:
    """`due_advice(**changes)`: 6 to 8 replicas, issued ten seconds ago, due since five; `age` shifts it back."""

    def make(*, age: timedelta = timedelta(0), **changes: object) -> Recommendation:
        now = wall_clock() - age
        instants = {
            "issued_at": now - timedelta(seconds=10),
            "not_before": now - timedelta(seconds=8),
            "execute_at": now - timedelta(seconds=5),
            "latest_safe": now + timedelta(seconds=120),
            "valid_until": now + timedelta(seconds=290),
        }
        return advice(**(instants | changes))

    return make
