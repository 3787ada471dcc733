"""C31: KEDA, fed over gRPC or through a real Prometheus: the real HPA moves a Deployment to the advised count."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from api.access.certificates import Certificate
from api.app import create_app
from api.keda.server import serving_keda
from cli.instants import read_clock
from cli.main import main
from cli.server import listen, serving
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import Recommendation
from tests.api.access_files import Authority
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, built_control_plane
from tests.live.harness.exporters import running_prometheus
from tests.live.harness.keda_processes import Keda, built_keda
from tests.live.harness.scalers import shop_in

pytestmark = pytest.mark.kubernetes

# KEDA polls every 15 s as exported, and here often enough to show quickly that the count does not move; the HPA
# controller of these tests looks every second.
POLLED_EVERY_SECONDS = 1
LIMIT_SECONDS = 60.0
METRIC_OF_THE_HPA = "jsonpath={.spec.metrics[0].external.metric.name}"
SOME_LOOKS_SECONDS = 4.0 * POLLED_EVERY_SECONDS
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: NAMESPACE, name: orders}}}\n"
TO_ZERO = CONFIG.replace("max_replicas: 24", "max_replicas: 24, scale_to_zero: {enabled: true}")

Program = Callable[[str], Path]
# The options of `lagcast export keda` for the source that KEDA polls.
Words = list[str]


@pytest.fixture(scope="module")
def cluster(tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own."""
    del tools_for_kubernetes
    cluster = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module", autouse=True)
def keda(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keda]:
    """KEDA in that cluster, which owns the API for external metrics there."""
    keda = Keda(built_keda(), cluster, tmp_path_factory.mktemp("keda"))
    try:
        keda.start()
        yield keda
    finally:
        keda.stop()


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
def polled_directly(store: SqlDecisionStore, *_: object) -> Iterator[Words]:
    """The external scaler over that store."""
    with serving_keda(store, clock=read_clock, host="127.0.0.1", port=0) as port:
        yield ["--scaler", f"127.0.0.1:{port}"]


def trusted_by_keda(authority: Authority, namespace: str) -> str:
    """A TriggerAuthentication and its Secret: the scaler's authority, and KEDA's certificate."""
    certificate, key = authority.sign("keda")
    files = {"caCert": authority.certificate, "tlsClientCert": certificate, "tlsClientKey": key}
    metadata = {"name": "lagcast", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    secret |= {"stringData": {name: file.read_text() for name, file in files.items()}}
    authentication = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": metadata}
    authentication |= {
        "spec": {"secretTargetRef": [{"parameter": name, "name": "lagcast", "key": name} for name in files]}
    }
    return yaml.safe_dump_all([secret, authentication])


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


def exported(
    namespace: str, folder: Path, source: Words, capsys: pytest.CaptureFixture[str], *, settings: str = CONFIG
) -> str:
    """Output of `lagcast export keda` for the Deployment `orders` of that namespace, with a short polling interval."""
    config = folder / "lagcast.yaml"
    config.write_text(settings.replace("NAMESPACE", namespace))
    assert main(["export", "keda", "orders", "--config", str(config), "--cluster", "prod-eu", *source]) == 0
    scaled = yaml.safe_load(capsys.readouterr().out)
    # Times that are counted in polls become shorter in proportion.
    faster = POLLED_EVERY_SECONDS / scaled["spec"]["pollingInterval"]
    for period in ("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"):
        if period in scaled["spec"]:
            scaled["spec"][period] = round(scaled["spec"][period] * faster)
    return yaml.safe_dump(scaled)


def due(advice: Callable[..., Recommendation], execute_at: datetime, **changes: int) -> Recommendation:
    """Advice for `orders` that is carried out then, and stays valid for longer than a test takes."""
    return advice(
        recommendation_id=f"r-{read_clock().timestamp()}",
        issued_at=read_clock(),
        not_before=read_clock(),
        execute_at=execute_at,
        latest_safe=execute_at + timedelta(minutes=5),
        valid_until=execute_at + timedelta(minutes=10),
        **changes,
    )


def is_active(cluster: ControlPlane, namespace: str) -> bool:
    """True if KEDA has requested the count and received replicas."""
    field = 'jsonpath={.status.conditions[?(@.type=="Active")].status}'
    return cluster.kubectl("-n", namespace, "get", "scaledobject", "orders", "-o", field) == "True"


def replicas_in(cluster: ControlPlane, namespace: str) -> int:
    """The count of replicas in the spec of the Deployment `orders`."""
    field = "jsonpath={.spec.replicas}"
    return int(cluster.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field))


@pytest.mark.parametrize("way", [polled_directly, scraped])
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
    """Up, down, a refusal (no move) and up again are each made by the real KEDA through the real HPA."""

    def replicas() -> int:
        return replicas_in(cluster, namespace)

    def advise(desired: int) -> None:
        store.save(due(advice, read_clock(), current_replicas=replicas(), desired_replicas=desired))

    with way(store, program, tmp_path) as source:
        advise(7)
        cluster.apply(exported(namespace, tmp_path, source, capsys))
        wait_until(lambda: replicas() == 7, seconds=LIMIT_SECONDS)
        advise(4)
        wait_until(lambda: replicas() == 4, seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=read_clock()))
        time.sleep(SOME_LOOKS_SECONDS)
        assert replicas() == 4
        advise(9)
        wait_until(lambda: replicas() == 9, seconds=LIMIT_SECONDS)
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 9  # lagcast has stopped: neither 0 nor the most


@pytest.mark.parametrize("way", [polled_directly, scraped])
def test_keda_goes_to_zero_when_none_is_due_and_stays_until_advice_changes(
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
    """As exported for a group with `scale_to_zero`: refused at three it keeps them, at 0 it stays, and is started.

    Without an answer for nine polls a group at 0 gets one replica, since nobody sees whether messages wait for it.
    """

    def replicas() -> int:
        return replicas_in(cluster, namespace)

    with way(store, program, tmp_path) as source:
        store.save(due(advice, read_clock(), current_replicas=3, desired_replicas=3))
        cluster.apply(exported(namespace, tmp_path, source, capsys, settings=TO_ZERO))
        wait_until(lambda: is_active(cluster, namespace), seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=read_clock()))
        time.sleep(SOME_LOOKS_SECONDS)
        assert replicas() == 3
        store.save(due(advice, read_clock(), current_replicas=3, desired_replicas=0))
        wait_until(lambda: replicas() == 0, seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=read_clock()))
        time.sleep(SOME_LOOKS_SECONDS)
        assert replicas() == 0
        store.save(due(advice, read_clock(), current_replicas=0, desired_replicas=2))
        wait_until(lambda: replicas() == 2, seconds=LIMIT_SECONDS)
        store.save(due(advice, read_clock(), current_replicas=2, desired_replicas=0))
        wait_until(lambda: replicas() == 0, seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=read_clock()))
        wait_until(lambda: replicas() == 1, seconds=LIMIT_SECONDS)


@pytest.mark.parametrize("way", [polled_directly, scraped])
def test_a_refusal_takes_no_replicas_whoever_else_asks_keda(
    *,
    way: Callable[..., AbstractContextManager[Words]],
    cluster: ControlPlane,
    keda: Keda,
    namespace: str,
    store: SqlDecisionStore,
    program: Program,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """Each failed request clears KEDA's cache of scalers; a poll that runs meanwhile is inactive, without an error.

    With `cooldownPeriod: 0` such a poll scaled the group to 0, in both ways within these 15 s.
    """
    metrics = "/apis/external.metrics.k8s.io/v1beta1/namespaces"
    selected = "labelSelector=scaledobject.keda.sh%2Fname%3Dorders"

    def ask(path: str) -> int:
        asked, until = 0, time.monotonic() + 15.0
        while time.monotonic() < until:
            keda.read(path)
            asked += 1
        return asked

    with way(store, program, tmp_path) as source:
        store.save(due(advice, read_clock(), current_replicas=3, desired_replicas=3))
        cluster.apply(exported(namespace, tmp_path, source, capsys, settings=TO_ZERO))
        wait_until(lambda: is_active(cluster, namespace), seconds=LIMIT_SECONDS)
        hpa = cluster.kubectl("-n", namespace, "get", "hpa", "keda-hpa-orders", "-o", METRIC_OF_THE_HPA)
        store.save(refusal(refused_at=read_clock()))
        with ThreadPoolExecutor(4) as pool:
            asked = sum(pool.map(ask, [f"{metrics}/{namespace}/{hpa}?{selected}"] * 4))
        assert asked > 100
        assert replicas_in(cluster, namespace) == 3


def test_a_group_that_stands_at_zero_is_woken_by_a_push_over_tls(
    *,
    cluster: ControlPlane,
    namespace: str,
    store: SqlDecisionStore,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    advice: Callable[..., Recommendation],
) -> None:
    """KEDA gets the push in the second in which replicas are due, although its next poll is an hour later.

    It shows a certificate: without one it is not answered.
    """
    cluster.kubectl("-n", namespace, "scale", "deployment", "orders", "--replicas=0")
    execute_at = read_clock() + timedelta(seconds=20)
    store.save(due(advice, execute_at, current_replicas=0, desired_replicas=5))
    authority = Authority(tmp_path / "authority")
    certificate = Certificate(*authority.sign("server"), authority.certificate)
    cluster.apply(trusted_by_keda(authority, namespace))
    with serving_keda(store, clock=read_clock, host="127.0.0.1", port=0, certificate=certificate) as port:
        source = ["--scaler", f"127.0.0.1:{port}", "--authentication", "lagcast"]
        scaled_to_zero = yaml.safe_load(exported(namespace, tmp_path, source, capsys))
        scaled_to_zero["spec"] |= {"pollingInterval": 3600, "minReplicaCount": 0}
        (trigger,) = scaled_to_zero["spec"]["triggers"]
        assert trigger["type"] == "external"
        trigger |= {"type": "external-push"}
        cluster.apply(yaml.safe_dump(scaled_to_zero))
        while True:
            replicas = replicas_in(cluster, namespace)
            if read_clock() >= execute_at:
                break
            assert replicas == 0
            time.sleep(1.0)
        wait_until(lambda: replicas_in(cluster, namespace) == 5, seconds=LIMIT_SECONDS)
