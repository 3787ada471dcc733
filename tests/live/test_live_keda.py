"""KEDA itself, fed over gRPC or through a real Prometheus: a Deployment goes where the advice says, by the real HPA."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from api.app import create_app
from api.keda.server import serving_keda
from cli.instants import read_clock
from cli.main import main
from cli.server import listen, serving
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.recommendation import Recommendation
from tests.live.clients import wait_until
from tests.live.control_plane import ControlPlane, built_control_plane
from tests.live.exporters import running_prometheus
from tests.live.keda_processes import Keda, built_keda
from tests.live.scalers import shop_in

pytestmark = pytest.mark.kubernetes

# KEDA asks every 15 s as exported, the HPA controller of these tests looks every second.
LIMIT_SECONDS = 60.0
SOME_LOOKS_SECONDS = 20.0
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: NAMESPACE, name: orders}}}\n"

Program = Callable[[str], Path]
# The words with which `lagcast export keda` is told whom KEDA asks.
Words = list[str]


@pytest.fixture(scope="module")
def cluster(tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own with KEDA in it, which owns the API for external metrics."""
    del tools_for_kubernetes
    cluster = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("cluster"))
    keda = Keda(built_keda(), cluster, tmp_path_factory.mktemp("keda"))
    try:
        cluster.start()
        keda.start()
        yield cluster
    finally:
        keda.stop()
        cluster.stop()


@pytest.fixture
def namespace(cluster: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    return shop_in(cluster)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlDecisionStore]:
    """An empty store."""
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    yield store
    store.close()


@contextmanager
def asked_itself(store: SqlDecisionStore, *_: object) -> Iterator[Words]:
    """The external scaler over that store."""
    with serving_keda(store, clock=read_clock, host="127.0.0.1", port=0) as port:
        yield ["--scaler", f"127.0.0.1:{port}"]


@contextmanager
def scraped(store: SqlDecisionStore, program: Program, folder: Path) -> Iterator[Words]:
    """A real Prometheus that scrapes the service over that store every second."""
    bound = listen("127.0.0.1", 0, search=False)
    jobs = {"lagcast": [bound.getsockname()[1]]}
    with (
        serving(create_app(store, clock=read_clock, version="live"), bound),
        running_prometheus(program("prometheus"), folder / "prometheus", jobs=jobs) as url,
    ):
        yield ["--prometheus", url]


@pytest.mark.parametrize("way", [asked_itself, scraped])
def test_keda_has_as_many_replicas_as_are_due_and_keeps_them_while_nothing_is(
    *,
    way: Callable[..., AbstractContextManager[Words]],
    cluster: ControlPlane,
    namespace: str,
    store: SqlDecisionStore,
    program: Program,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """Up, down, a refusal (nobody moves), up again: each by the real KEDA through the real HPA."""
    config = tmp_path / "lagcast.yaml"
    config.write_text(CONFIG.replace("NAMESPACE", namespace))

    def replicas() -> int:
        field = "jsonpath={.spec.replicas}"
        return int(cluster.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field))

    def advise(desired: int) -> None:
        given = advice(
            recommendation_id=f"r-{read_clock().timestamp()}",
            issued_at=read_clock(),
            not_before=read_clock(),
            execute_at=read_clock(),
            latest_safe=read_clock() + timedelta(minutes=5),
            valid_until=read_clock() + timedelta(minutes=10),
            current_replicas=replicas(),
            desired_replicas=desired,
        )
        store.save(given)

    with way(store, program, tmp_path) as asked_by:
        advise(7)
        words = ["export", "keda", "orders", "--config", str(config), "--cluster", "prod-eu"]
        assert main([*words, *asked_by]) == 0
        cluster.apply(capsys.readouterr().out)
        wait_until(lambda: replicas() == 7, seconds=LIMIT_SECONDS)
        advise(4)
        wait_until(lambda: replicas() == 4, seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=read_clock()))
        time.sleep(SOME_LOOKS_SECONDS)
        assert replicas() == 4
        advise(9)
        wait_until(lambda: replicas() == 9, seconds=LIMIT_SECONDS)
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 9  # lagcast is gone: neither 0 nor the most
