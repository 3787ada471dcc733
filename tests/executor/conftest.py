"""A scale endpoint that records its requests, and a real API that serves advice."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
import yaml
from kubernetes import client

from api.app import create_app
from api.schemas import Mode
from executor.advice import AdviceClient
from executor.carry_out import Executor
from executor.kubernetes_claims import KubernetesClaims
from executor.kubernetes_records import KubernetesRecords
from executor.kubernetes_scale import KubernetesScales
from executor.plan import Bounds
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings import Settings, load_settings
from recommender.deciding.recommendation import Recommendation

APPS = "/apis/apps/v1"
WORKLOAD = "/apis/apps/v1/namespaces/{namespace}/{kind}/{name}"
# Workloads that a hostile answer may name; all of them show the one count.
PLACES = (("shop", "orders-consumer"), ("shop", "billing"), ("bank", "orders-consumer"))
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects"
SCALERS = "/apis/lagcast.io/v1alpha1/namespaces/shop/consumergroupscalers"
EVENTS = "/api/v1/namespaces/shop/events"
# Kinds of apps/v1, and whether they have a /scale.
KINDS = {"Deployment": True, "StatefulSet": True, "DaemonSet": False}


def handed_over(uid: str = "c95", name: str = "orders", **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """The ConsumerGroupScaler by which the owner of the group `orders` lets an executor set up to 24 replicas."""
    return {
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": uid,
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "cluster": "prod-eu",
            "groupId": "orders",
            "mode": "Apply",
            "maxReplicas": 24,
            "target": {"name": "orders-consumer"},
        }
        | spec,
    }


@dataclass
class Cluster:
    """One workload `shop/orders-consumer`, kept as the API server keeps it: each write makes a new version.

    `owners` are the managers that have the count, and `keda` the workloads that ScaledObjects claim, None where KEDA is
    not installed. `scalers` are ConsumerGroupScalers, None where the resource is not there: at first the one by which
    its owner hands the workload over. Of the writes to their status the first `refuses_writes` fail. `caps_at` is what
    an admission webhook lets through at most.
    """

    replicas: int = 6
    version: int = 41
    autoscaled: bool = False
    owners: tuple[str, ...] = ("kubectl",)
    marks: dict[str, dict[str, str]] = field(default_factory=dict)
    keda: list[str] | None = None
    scalers: list[dict[str, Any]] | None = field(default_factory=lambda: [handed_over()])
    refuses_writes: float = 0
    forbidden: bool = False
    mutes_events: bool = False
    caps_at: int | None = None
    reads: Counter[str] = field(default_factory=Counter)
    events: list[dict[str, Any]] = field(default_factory=list)
    before_patch: Callable[[], None] = lambda: None
    patches: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def write(self, replicas: int, manager: str = "kubectl") -> None:
        """Set the count as this manager, which has the field from then on."""
        self.replicas, self.version, self.owners = replicas, self.version + 1, (manager,)

    def workload(self) -> dict[str, Any]:
        """The workload with its managed fields; every manager wrote its count at noon."""
        notes = [
            {"manager": name, "time": "2026-01-05T12:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
            for name in self.owners
        ]
        scale = self.scale()
        return {
            "apiVersion": "apps/v1",
            "metadata": scale["metadata"] | {"managedFields": notes} | self.marks,
            "spec": {"replicas": self.replicas},
        }

    def add_scaler(self, uid: str = "c95", **status: Any) -> None:  # noqa: ANN401  # JSON
        """Put in the ConsumerGroupScaler of the group `orders`, in place of one that is there."""
        self.scalers = [handed_over(uid=uid) | {"status": status}]

    def owner_sets(self, **spec: Any) -> None:  # noqa: ANN401  # JSON
        """Change the spec of that object as its owner; a word that is None is removed from it."""
        assert self.scalers is not None
        (document,) = self.scalers
        document["metadata"]["generation"] += 1
        document["spec"] = {word: value for word, value in (document["spec"] | spec).items() if value is not None}

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
        """The list of autoscalers; `autoscaled` puts one on this workload, and another workload always has one."""
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
        path = urlsplit(self.path).path
        if self.cluster.forbidden:
            self._answer(403, {"kind": "Status", "reason": "Forbidden"})
        elif path in self._known():
            self._answer(200, self._known()[path])
        else:
            self._answer(404, {"kind": "Status", "reason": "NotFound"})

    def _known(self) -> dict[str, dict[str, Any]]:
        plurals = {kind: f"{kind.lower()}s" for kind in KINDS}
        scaled = [{"name": f"{plurals[kind]}/scale", "kind": "Scale"} for kind in KINDS if KINDS[kind]]
        kinds = [{"name": plurals[kind], "kind": kind} for kind in KINDS]
        known = {
            WORKLOAD.format(namespace=namespace, kind=plural, name=name): self.cluster.workload()
            for plural in plurals.values()
            for namespace, name in PLACES
        }
        known[APPS] = {
            "groupVersion": "apps/v1",
            "resources": [each | {"namespaced": True, "singularName": "", "verbs": []} for each in (*kinds, *scaled)],
        }
        known[AUTOSCALERS] = self.cluster.autoscalers()
        if self.cluster.keda is not None:
            claims = [{"metadata": {"name": n}, "spec": {"scaleTargetRef": {"name": n}}} for n in self.cluster.keda]
            known[SCALED_OBJECTS] = {"kind": "ScaledObjectList", "items": claims}
        if self.cluster.scalers is not None:
            known[SCALERS] = {"kind": "ConsumerGroupScalerList", "items": self.cluster.scalers}
            known |= {f"{SCALERS}/{each['metadata']['name']}": each for each in self.cluster.scalers}
        return known

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.cluster.mutes_events or self.path != EVENTS:
            self._answer(403, {"kind": "Status", "reason": "Forbidden"})
            return
        self.cluster.events.append(body)
        self._answer(201, body)

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path.startswith(SCALERS):
            self._keep(body)
            return
        self.cluster.before_patch()
        self.cluster.patches.append({"path": path, "type": self.headers["Content-Type"], "body": body})
        if body["metadata"]["resourceVersion"] != str(self.cluster.version):
            self._answer(409, {"kind": "Status", "reason": "Conflict"})
            return
        requested = body["spec"]["replicas"]
        made = requested if self.cluster.caps_at is None else min(requested, self.cluster.caps_at)
        self.cluster.write(made, *query["fieldManager"])
        self._answer(200, self.cluster.scale())

    def _keep(self, body: dict[str, Any]) -> None:
        """Replace the status wholly by what the executor applies, as its only other writer."""
        if self.cluster.refuses_writes or self.cluster.scalers is None:
            self.cluster.refuses_writes -= 1
            self._answer(403, {"kind": "Status", "reason": "Forbidden"})
            return
        if body["metadata"]["uid"] != self.cluster.scalers[0]["metadata"]["uid"]:
            self._answer(409, {"kind": "Status", "reason": "Conflict"})
            return
        self.cluster.scalers[0]["status"] = body["status"]
        self._answer(200, self.cluster.scalers[0])

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Log nothing, as pytest shows enough."""


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
    """A running API, the store behind it, and what its owner may set for the group `orders` while it runs."""

    url: str
    store: SqlDecisionStore
    settings: Settings

    def set(self, **changes: object) -> None:
        """Change the group's settings as its owner."""
        groups = self.settings.groups
        groups["orders"] = groups["orders"].model_copy(update=changes)


def wall_clock() -> datetime:
    """The real time, which these tests need because the API stamps its answers with it."""
    return datetime.now(UTC)  # noqa: TID251  # see above


@pytest.fixture(name="wall_clock")
def wall_clock_fixture() -> Callable[[], datetime]:
    """The real time."""
    return wall_clock


@pytest.fixture(params=["Deployment"])
def service(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[Service]:
    """The real application on a real server; `orders` may be scaled, and its workload is of the kind `param`."""
    cluster.owner_sets(target={"name": "orders-consumer", "kind": request.param})
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
    yield Service(f"http://127.0.0.1:{port}", store, settings)
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


@pytest.fixture(name="executor")
def executor_fixture(
    service: Service, cluster: Cluster, wall_clock: Callable[[], datetime]
) -> Iterator[Callable[..., Executor]]:
    """`executor(mode="apply", bounds=Bounds(), dry_run=False)`, a new process each, between `service` and `cluster`."""
    advice = AdviceClient(service.url)
    api = client.ApiClient(client.Configuration(host=cluster.url))

    def make(*, mode: Mode = "apply", bounds: Bounds | None = None, dry_run: bool = False) -> Executor:
        return Executor(
            advice=advice,
            scales=KubernetesScales(api),
            owners=KubernetesClaims(api),
            records=KubernetesRecords(api),
            clock=wall_clock,
            mode=mode,
            bounds=bounds or Bounds(),
            dry_run=dry_run,
            show_patch=lambda _: None,
        )

    yield make
    advice.close()
