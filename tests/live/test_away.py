"""A cluster whose API server is down for a minute, and the executor's behavior when it is up again.

The cluster is the test's own: after a minute without API server its controllers wait for up to another before they
send requests again, and the next tests would wait for them.
"""

import gc
from collections.abc import Iterator
from datetime import timedelta
from time import sleep

import pytest

from executor.errors import OutsideError
from executor.plan import Act, Held
from tests.live.harness.control_plane import ControlPlane, built_control_plane
from tests.live.harness.executors import read_clock
from tests.live.harness.scalers import install
from tests.live.harness.shop import Shop

pytestmark = pytest.mark.kubernetes

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def installed(tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with everything that the manifests create."""
    del tools_for_kubernetes
    cluster = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("away"))
    try:
        cluster.start()
        install(cluster, tmp_path_factory.mktemp("deploy"))
        yield cluster
    finally:
        cluster.stop()


# Where a server dies between a connection and its handshake, Python's ssl leaves the socket to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_a_cluster_that_is_away_is_not_caught_up_with(shop: Shop) -> None:
    """Looks for a minute without API server fail in a sentence; the move is too late when it is back, and not made."""
    executor = shop.executor()
    left = shop.workload()
    shop.advise(1, latest_safe=read_clock() + 30 * SECOND)
    found: list[object] = []

    def look() -> None:
        until = read_clock() + 60 * SECOND
        while read_clock() < until:
            found.extend(executor.run_once(None))
            sleep(1.0)

    shop.cluster.restart_api_server(after=look)
    assert found
    failed = [each for each in found if isinstance(each, OutsideError)]
    assert failed
    assert all("\n" not in str(each) for each in failed)
    assert not [each for each in found if isinstance(each, Act)]
    (later,) = executor.run_once(None)
    assert isinstance(later, Held)
    assert later.reason == "too_late"
    assert shop.workload() == left
    gc.collect()
