"""KEDA itself, fed by lagcast's external scaler: a Deployment goes where the advice says, through the real HPA."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.keda.server import serving_keda
from cli.main import main
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.recommendation import Recommendation
from tests.live.clients import wait_until
from tests.live.control_plane import ControlPlane, built_control_plane
from tests.live.keda_processes import Keda, built_keda

pytestmark = pytest.mark.kubernetes

# KEDA asks every 15 s as exported, the HPA controller of these tests looks every second.
LIMIT_SECONDS = 60.0
SOME_LOOKS_SECONDS = 20.0
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: consumer, image: "none:1"}]}
"""
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: default, name: orders}}}\n"


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


def test_keda_has_as_many_replicas_as_are_due_and_keeps_them_while_nothing_is(
    *,
    cluster: ControlPlane,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """Up, down, a refusal (nobody moves), up again: each by the real KEDA through the real HPA."""
    cluster.apply(DEPLOYMENT)
    config = tmp_path / "lagcast.yaml"
    config.write_text(CONFIG)
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))

    def replicas() -> int:
        return int(cluster.kubectl("get", "deployment", "orders", "-o", "jsonpath={.spec.replicas}"))

    def advise(desired: int) -> None:
        now = datetime.now(UTC)  # noqa: TID251  # KEDA lives in the real time
        given = advice(
            recommendation_id=f"r-{now.timestamp()}",
            issued_at=now,
            not_before=now,
            execute_at=now,
            latest_safe=now + timedelta(minutes=5),
            valid_until=now + timedelta(minutes=10),
            current_replicas=replicas(),
            desired_replicas=desired,
        )
        store.save(given)

    with serving_keda(
        store,
        clock=lambda: datetime.now(UTC),  # noqa: TID251  # as above
        host="127.0.0.1",
        port=0,
    ) as port:
        advise(7)
        words = ["export", "keda", "orders", "--config", str(config), "--cluster", "prod-eu"]
        assert main([*words, "--scaler", f"127.0.0.1:{port}"]) == 0
        cluster.apply(capsys.readouterr().out)
        wait_until(lambda: replicas() == 7, seconds=LIMIT_SECONDS)
        advise(4)
        wait_until(lambda: replicas() == 4, seconds=LIMIT_SECONDS)
        store.save(refusal(refused_at=datetime.now(UTC)))  # noqa: TID251  # as above
        time.sleep(SOME_LOOKS_SECONDS)
        assert replicas() == 4
        advise(9)
        wait_until(lambda: replicas() == 9, seconds=LIMIT_SECONDS)
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 9  # lagcast is gone: neither 0 nor the most
    store.close()
