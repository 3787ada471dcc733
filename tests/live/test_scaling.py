"""`lagcast serve --kubernetes` as a process: owners' objects in the cluster are followed and carried out."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import executor_in
from tests.live.harness.scalers import scaler
from tests.live.harness.serving import serving_objects

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def server(namespace: str, kubeconfig: Path, tmp_path: Path) -> Iterator[str]:
    """A running `lagcast serve --kubernetes` that decides each second on rows of the last hour; its address."""
    now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251  # rows have to be fresh
    table = steady_hour(tmp_path / "features", ["orders"], end_at=now - timedelta(seconds=now.second % 15))
    with serving_objects(namespace, kubeconfig=kubeconfig, table=table, folder=tmp_path) as url:
        yield url


def test_serve_follows_the_objects_of_owners(installed: ControlPlane, namespace: str, server: str) -> None:
    """Within a cycle a group of unknown capacity is advised once its owner sets the capacity of a pod.

    Mode and target are on REST, a hold ends the advice, a maximum is kept, and without the object the settings apply.
    """

    def ready() -> str:
        path = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'
        return installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", path)

    def advised() -> dict[str, Any]:
        answer = httpx2.get(f"{server}/api/v1/groups", timeout=10).json()["groups"][0]
        full = httpx2.get(f"{server}/api/v1/groups/{answer['group_key']}/recommendation", timeout=10)
        return dict(full.json())

    spec: dict[str, Any] = {
        "maxReplicas": 7,
        "prices": {"currency": "EUR", "pricePerReplicaHour": "0.05"},
        "group": {"capacityMessagesPerSecondPerReplica": 1000},
    }
    installed.apply(json.dumps(scaler(namespace, mode="Apply", target={"name": "consumer"}, **spec)))
    wait_until(lambda: ready() == "Advised")
    advice = advised()
    assert (advice["namespace"], advice["target"]["name"], advice["mode"]) == (namespace, "consumer", "apply")
    # Of 12 partitions the busiest of 7 replicas has two, as of 6.
    assert (advice["useful_replicas"], advice["cost"]["currency"]) == ([1, 2, 3, 4, 6], "EUR")
    installed.apply(json.dumps(scaler(namespace, hold={"replicas": 7}, **spec)))
    wait_until(lambda: advised().get("hold_replicas") == 7)
    wait_until(lambda: ready() == "Paused")
    assert (advised()["reason"]["code"], "target" in advised()) == ("Paused", False)
    installed.kubectl("-n", namespace, "delete", "cgs", "orders")
    wait_until(lambda: "capacity_messages_per_second_per_replica" in advised())
    assert advised()["capacity_messages_per_second_per_replica"]["source"] == "lower_bound"


def test_an_owner_has_a_deployment_scaled(installed: ControlPlane, namespace: str, server: str) -> None:
    """From the object over the advice to /scale: twelve replicas become six, because the object has mode Apply.

    Recommender and executor each with the service account and the role that the manifests give them, and no more.
    """
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "consumer", "namespace": namespace},
        "spec": {
            "replicas": 12,
            "selector": {"matchLabels": {"app": "consumer"}},
            "template": {
                "metadata": {"labels": {"app": "consumer"}},
                "spec": {"containers": [{"name": "consumer", "image": "none:1"}]},
            },
        },
    }
    command = [str(Path(sys.executable).with_name("lagcast-executor")), "--api", server, "--all", "--once"]
    command += ["--mode", "apply", "--kubeconfig", str(executor_in(installed, namespace))]

    def replicas() -> str:
        return installed.kubectl(
            "-n", namespace, "get", "deployment", "consumer", "-o", "jsonpath={.spec.replicas} {.status.readyReplicas}"
        )

    installed.apply(json.dumps(deployment))
    wait_until(lambda: replicas() == "12 12")
    request = scaler(
        namespace, maxReplicas=24, target={"name": "consumer"}, group={"capacityMessagesPerSecondPerReplica": 1000}
    )
    installed.apply(json.dumps(request))
    path = "jsonpath={.status.recommendation.desiredReplicas} {.status.mode}"
    wait_until(lambda: installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", path) == "6 Recommend")
    stderr = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert ("the group's recommend: both have to be apply" in stderr, replicas()) == (True, "12 12")
    installed.apply(json.dumps({**request, "spec": {**request["spec"], "mode": "Apply"}}))
    wait_until(lambda: installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", path) == "6 Apply")
    subprocess.run(command, capture_output=True, check=True)
    wait_until(lambda: replicas() == "6 6")
