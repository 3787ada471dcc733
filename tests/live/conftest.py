"""The real things, one of each for a session, on loopback.

Tests marked `kafka` get an Apache Kafka of jars from Maven Central, those marked `kubernetes` a control plane and
a Helm that are built from their Go modules, those marked `postgres` the PostgreSQL of this machine, those marked
`browser` the Chromium of this machine or of Debian's packages.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser

from collector.kafka_admin import KafkaAdminCollector
from executor.advice import AdviceClient
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import Recommendation
from tests.cli.conftest import feature_table, lagcast, lagcast_process
from tests.conftest import PARTS_AT_START
from tests.live.harness.broker import compiled, fetched_jars, running_brokers, running_java
from tests.live.harness.browser import BrowserError, Watched, fetched_browser, running_browser, tools_to_fetch
from tests.live.harness.clients import create_topic, fresh_name, produce, wait_until
from tests.live.harness.control_plane import ControlPlane, built_control_plane
from tests.live.harness.executors import executor_in, served
from tests.live.harness.exporters import fetched
from tests.live.harness.helm import Helm, built_helm
from tests.live.harness.images import Images, fetched_engine
from tests.live.harness.libraries import built_go_members
from tests.live.harness.scalers import MANIFESTS, install, orders_in, recommender_in, scaler
from tests.live.harness.secured import Secured, secured_broker
from tests.live.harness.shop import Shop

__all__ = ["feature_table", "lagcast", "lagcast_process"]

# The fixtures that stand for parts which are built, in the order in which scripts/build_parts.py gets them ready, and
# the names under which the cache holds what is finished, before its version.
_BUILT = {
    "tools_for_kubernetes": "control-plane",
    "program": "klag-exporter",
    "helm": "helm",
    "keda": "keda",
    "operator": "spark-operator",
    "due": "prometheus-adapter",
    "images": "engine",
}
# A worker takes one file after the other: what takes minutes must not be begun last, when the others have nothing left.
_LONG = frozenset(
    f"test_{name}.py"
    for name in (
        *("decisions", "demo", "discovery", "image", "lab", "lab_kubernetes", "land", "leading", "prometheus"),
        *("replay", "scaling", "soak", "stream", "streams_restoring", "streams_scaling"),
    )
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files last whose parts are ready last, which are built while the others run; the long ones go first.

    What is in the cache is waited for by nobody: with all parts there, the scrapes of three minutes go first, not last.
    """
    waits = {name: place for place, (name, part) in enumerate(_BUILT.items(), start=1) if not _is_cached(part)}
    needs: dict[Path, int] = {}
    for item in items:
        wanted = {place for name, place in waits.items() if name in getattr(item, "fixturenames", ())}
        needs[item.path] = max(wanted | {needs.get(item.path, 0)})
    items.sort(key=lambda item: (needs[item.path], item.path.name not in _LONG))


def _is_cached(part: str) -> bool:
    """True if the cache held a version of the part as the run began, and not only what it is built with or from."""
    names = map(Path, os.environ[PARTS_AT_START].split())
    return any(
        name.match(f"{part}-[0-9]*") and name.suffix != ".libraries" and ".unfinished" not in name.name
        for name in names
    )


@pytest.fixture(scope="session")
def jars() -> Path:
    """The folder of Kafka's jars; a skip with its reason where they cannot be had."""
    _need("mvn", "java", "javac", "keytool", because="Kafka comes from Maven Central")
    return fetched_jars()


@pytest.fixture(scope="session")
def tools_for_kubernetes() -> None:
    """Go and OpenSSL; a skip with its reason where they are missing."""
    _need("go", "openssl", because="Kubernetes is built from its Go modules")


@pytest.fixture(scope="session")
def tools_for_postgres() -> None:
    """A PostgreSQL server; a skip with its reason where it is missing."""
    _need("initdb", "postgres", "pg_isready", because="several recommenders share a PostgreSQL")


@pytest.fixture(scope="session")
def client_libraries() -> None:
    """The client libraries that lagcast does not depend on; a skip with its reason where they cannot be had."""
    _need("go", because="franz-go and Sarama are built from their Go modules")
    built_go_members()


@pytest.fixture(scope="session")
def control_plane(tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running Kubernetes control plane; a skip with its reason where it cannot be built."""
    del tools_for_kubernetes
    cluster = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("control-plane"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The cluster with everything that the manifests create, with the scalers' component."""
    install(control_plane, tmp_path_factory.mktemp("deploy"))
    return control_plane


@pytest.fixture
def namespace(installed: ControlPlane) -> str:
    """A fresh namespace in which the recommender has its role."""
    name = fresh_name("shop")
    installed.kubectl("create", "namespace", name)
    installed.kubectl("-n", name, "apply", "-f", str(MANIFESTS / "scalers" / "target-role.yaml"))
    return name


@pytest.fixture
def kubeconfig(installed: ControlPlane, namespace: str) -> Path:
    """The kubeconfig of the recommender's own service account, whose role in the namespace holds by now."""
    return recommender_in(installed, namespace)


@pytest.fixture
def objects(kubeconfig: Path, namespace: str) -> Iterator[KubernetesScalers]:
    """The objects of the namespace as the recommender follows them, with its role and no more."""
    known = KubernetesScalers(connect(kubeconfig), [namespace])
    with known.following():
        yield known


@pytest.fixture
def target() -> dict[str, str]:
    """The workload of the group."""
    return {"name": "orders"}


@pytest.fixture
def shop(
    installed: ControlPlane,
    namespace: str,
    tmp_path: Path,
    advice: Callable[..., Recommendation],
    target: dict[str, str],
) -> Iterator[Shop]:
    """A Deployment of three replicas, an object that hands it over, and nothing advised yet."""
    orders_in(installed, namespace)
    # While it settles each of its steps is another version, and a patch of the one before is refused.
    ready = ("-n", namespace, "get", "deployment", "orders", "-o", "jsonpath={.status.availableReplicas}")
    wait_until(lambda: installed.kubectl(*ready) == "3")
    handed_over = scaler(namespace, cluster="prod-eu", mode="Apply", maxReplicas=24, target=target)
    installed.apply(json.dumps(handed_over))
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    names = {"apiVersion": "api_version", "kind": "kind", "name": "name"}
    wire = {names[word]: value for word, value in target.items()} | {"namespace": namespace}
    with served(store, tmp_path, {"orders": {"mode": "apply", "target": wire}}) as url:
        served_by = AdviceClient(url)
        yield Shop(installed, namespace, executor_in(installed, namespace), store, served_by, advice)
        served_by.close()
    store.close()


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster; a skip with its reason where it cannot be built."""
    _need("go", because="Helm is built from its Go module")
    return Helm(built_helm(), tmp_path_factory.mktemp("helm"))


def _need(*tools: str, because: str) -> None:
    """Skip where a tool is missing, with its name; under continuous integration, fail."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        _miss(f"the live tests need {' and '.join(missing)} on the PATH: {because}")


def _miss(reason: str) -> NoReturn:
    """Skip for this reason; under continuous integration, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def bootstrap(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running broker without any security, `127.0.0.1:PORT`."""
    with running_brokers(jars, tmp_path_factory.mktemp("kafka")) as (broker,):
        yield broker.address


@pytest.fixture(scope="session")
def java_client(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AbstractContextManager[None]]:
    """Runs one of the programs in `java/` with its arguments, until the block ends."""
    return partial(running_java, jars, compiled(jars, tmp_path_factory.mktemp("java")))


@pytest.fixture(scope="session")
def program() -> Callable[[str], Path]:
    """`program(name)`: the path of `prometheus`, `klag-exporter` or `jmx-agent`; a skip where it cannot be had."""
    wanted = {
        "prometheus": () if shutil.which("prometheus") else ("apt-get", "dpkg-deb"),
        "klag-exporter": ("cargo", "cmake", "g++", "pkg-config", "apt-get", "dpkg-deb"),
        "jmx-agent": ("mvn", "java"),
    }

    def path(name: str) -> Path:
        missing = [tool for tool in wanted[name] if shutil.which(tool) is None]
        if missing:
            _miss(f"the live tests of Prometheus need {' and '.join(missing)} on the PATH, to fetch {name}")
        return fetched(name)

    return cache(path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that containers may be given parts of."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def images(shared: Path) -> Images:
    """Both images of deploy/Dockerfile, built; a skip with its reason where no engine can be made."""
    _need("apt-get", "dpkg-deb", "perl", "unshare", "flock", because="podman is made of Debian's packages")
    if os.geteuid():
        _miss("the live tests of the images need root: containers are made of mounts and name spaces")
    return Images(fetched_engine(), shared)


@pytest.fixture(scope="session")
def browser_program() -> Path:
    """The path of a Chromium; a skip with its reason where there is none and it cannot be had."""
    _need(*tools_to_fetch(), because="where no chromium is, it is made of Debian's packages")
    try:
        return fetched_browser()
    except BrowserError as error:  # such as a relative of Debian that packs it in another way
        return _miss(str(error))


@pytest.fixture(scope="module")
def browser(browser_program: Path) -> Iterator[Browser]:
    """One browser for the tests of a file; each has a context of its own in it, without what others have left."""
    with running_browser(browser_program) as browser:
        yield browser


@pytest.fixture
def watched(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """`watched(**options)`: a fresh page, in a context of its own of a laptop's width unless told otherwise."""
    with ExitStack() as closing:

        def opened(**options: Any) -> Watched:  # noqa: ANN401  # of the browser's context
            context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
            closing.callback(context.close)
            return Watched(context)

        yield opened


@pytest.fixture
def collector(bootstrap: str) -> KafkaAdminCollector:
    """A collector of that broker."""
    return KafkaAdminCollector(bootstrap, cluster="live")


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A fresh topic of three partitions that hold 100, 20 and no messages."""
    name = fresh_name("topic")
    create_topic(bootstrap, name, partitions=3)
    produce(bootstrap, name, {0: 100, 1: 20})
    return name


@pytest.fixture(scope="session")
def secured(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A running broker with authentication and authorization."""
    with secured_broker(jars, tmp_path_factory.mktemp("secured")) as broker:
        yield broker
