"""Pods and autoscalers of a real API server, read with the recommender's role and no more."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cost_model.physics.detected import ObservedWorkload
from cost_model.physics.pods import start_up_of
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_pods import KubernetesPods
from recommender.cluster.workloads import Workloads
from recommender.configuring.settings import TargetSettings
from tests.collector.memory_prometheus import exposition
from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import read_clock
from tests.live.harness.exporters import running_prometheus, serving_text
from tests.live.harness.scalers import autoscaled_in, orders_in, scaler
from tests.live.harness.serving import serving_objects

pytestmark = pytest.mark.kubernetes


def pods(cluster: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    """The pods of the namespace that have not been deleted."""
    found = json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def slowly_started(cluster: ControlPlane, namespace: str, *, grace_seconds: int = 75) -> None:
    """The Deployment `orders`, whose two pods had a node after 2 s, ran after 97 s and were ready after 150 s.

    No kubelet runs here: the instants of their statuses are patched as one would have written them.
    """
    orders_in(cluster, namespace, replicas=2)
    grace = json.dumps({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": grace_seconds}}}})
    cluster.kubectl("-n", namespace, "patch", "deployment", "orders", "-p", grace)
    wait_until(lambda: [_is_of_now(pod, grace_seconds) for pod in pods(cluster, namespace)] == [True, True])
    for pod in pods(cluster, namespace):
        name, created_at = pod["metadata"]["name"], datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        scheduled, started, ready = (
            (created_at + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ") for seconds in (2, 97, 150)
        )
        (container,) = pod["status"]["containerStatuses"]
        conditions = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled},
            {"type": "Ready", "status": "True", "lastTransitionTime": ready},
        ]
        running = container | {"state": {"running": {"startedAt": started}}}
        status = {"status": {"conditions": conditions, "containerStatuses": [running]}}
        words = ("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))
        cluster.kubectl("-n", namespace, *words)


def _is_of_now(pod: Mapping[str, Any], grace_seconds: int) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
    return ready and pod["spec"]["terminationGracePeriodSeconds"] == grace_seconds


def seen_in(kubeconfig: Path, namespace: str) -> ObservedWorkload | None:
    """What one reading of the namespace shows of `orders`."""
    reader = KubernetesPods(connect(kubeconfig), [namespace], clock=read_clock)
    with reader.following():
        return Workloads(reader).of(TargetSettings(namespace=namespace, name="orders"))


def test_start_up_grace_period_and_bounds_are_read_with_the_role(
    installed: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    """Two pods of 150 s, 95 of them for image and containers; 75 s to leave; the HPA's bounds of 8 to 20."""
    slowly_started(installed, namespace)
    autoscaled_in(installed, namespace)
    found = seen_in(kubeconfig, namespace)
    assert found is not None
    assert found.termination_grace_seconds == 75.0
    assert (found.bounds_of, found.min_replicas, found.max_replicas) == ("HorizontalPodAutoscaler orders", 8, 20)
    start_up = start_up_of(
        [start for start in found.starts if start.ready_at - start.created_at > timedelta(seconds=99)]
    )
    assert start_up is not None
    assert (start_up.start_up_seconds, start_up.pods, start_up.container_start_seconds) == (150.0, 2, 95.0)


def test_without_the_rights_nothing_is_known_and_the_log_names_them(
    installed: ControlPlane, kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The role of an earlier release had no rule for pods and autoscalers: one line for each, and no failure."""
    role = json.loads(installed.kubectl("-n", namespace, "get", "role", "lagcast-recommender", "-o", "json"))
    role["rules"] = [rule for rule in role["rules"] if rule["apiGroups"][0] in ("lagcast.io", "events.k8s.io")]
    installed.kubectl("-n", namespace, "replace", "-f", "-", given=json.dumps(role))
    wait_until(lambda: not installed.may(kubeconfig, namespace, "list", "pods"))
    orders_in(installed, namespace)
    found = seen_in(kubeconfig, namespace)
    assert found is not None
    assert (found.starts, found.termination_grace_seconds, found.max_replicas) == ((), None, None)
    logged = capsys.readouterr().out
    for right in ("pods", "horizontalpodautoscalers.autoscaling", "scaledobjects.keda.sh"):
        assert logged.count(f"grant list on {right}") == 1


def test_serve_publishes_what_the_cluster_shows_and_plans_with_it(
    installed: ControlPlane, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    """Only the target and a capacity are set: plans have the start-up time of the pods and the bounds of the HPA."""
    slowly_started(installed, namespace)
    autoscaled_in(installed, namespace)
    group = {"capacityMessagesPerSecondPerReplica": 1000}
    installed.apply(json.dumps(scaler(namespace, target={"name": "orders"}, group=group)))
    table = steady_hour(tmp_path / "features", ("orders",), end_at=read_clock())
    with serving_objects(namespace, kubeconfig=kubeconfig, table=table, folder=tmp_path) as address:
        wait_until(lambda: _advice(address))
        advice = _advice(address)
    learned = advice["learned"]
    assert (learned["start_up_source"], learned["start_up_seconds"]) == ("detected", 150.0)
    assert learned["pod_start_up"]["container_start_seconds"] == 95.0
    assert learned["pod_start_up"]["pods"] >= 2
    figures = {figure["name"]: figure for figure in advice["profile"]}
    expected = {"start_up_seconds": 150.0, "termination_grace_seconds": 75.0, "min_replicas": 8.0, "max_replicas": 20.0}
    for name, value in expected.items():
        assert (figures[name]["value"], figures[name]["source"]) == (value, "detected")
        assert datetime.fromisoformat(figures[name]["seen_at"]).tzinfo is not None


def _advice(address: str) -> dict[str, Any]:
    """The recommendation of the only group; empty while there is none."""
    groups = httpx2.get(f"{address}/api/v1/groups", timeout=10).json()["groups"]
    if not groups or groups[0]["kind"] != "Recommendation":
        return {}
    path = f"{address}/api/v1/groups/{groups[0]['group_key']}/recommendation"
    return dict(httpx2.get(path, timeout=10).json())


def test_serve_prices_replicas_by_what_a_real_prometheus_has_of_their_node(
    installed: ControlPlane, kubeconfig: Path, namespace: str, tmp_path: Path, program: Callable[[str], Path]
) -> None:
    """Half a core at 0.032 and 2 GiB at 0.004 are 0.024 USD; the role reads no node, and needs no new right."""
    orders_in(installed, namespace, replicas=2)
    installed.kubectl("-n", namespace, "set", "resources", "deployment", "orders", "--requests=cpu=500m,memory=2Gi")
    wait_until(lambda: [_requests_of(pod) for pod in pods(installed, namespace)] == [("500m", "2Gi", "running")] * 2)
    (node,) = {pod["spec"]["nodeName"] for pod in pods(installed, namespace)}
    assert not installed.may(kubeconfig, namespace, "list", "nodes")
    group = {"capacityMessagesPerSecondPerReplica": 1000}
    installed.apply(json.dumps(scaler(namespace, target={"name": "orders"}, group=group)))
    table = steady_hour(tmp_path / "features", ("orders",), end_at=read_clock())
    with (
        serving_text(lambda: exposition("opencost").replace("node-0", node)) as port,
        running_prometheus(program("prometheus"), tmp_path / "prometheus", jobs={"opencost": [port]}) as url,
    ):
        query = {"query": f'node_cpu_hourly_cost{{node="{node}"}}'}
        wait_until(lambda: httpx2.get(f"{url}/api/v1/query", params=query).json()["data"]["result"])
        options = ("--node-prices", url)
        with serving_objects(
            namespace, kubeconfig=kubeconfig, table=table, folder=tmp_path, options=options
        ) as address:
            wait_until(lambda: _advice(address))
            advice = _advice(address)
    (figure,) = [figure for figure in advice["profile"] if figure["name"] == "price_per_replica_hour"]
    assert (figure["source"], figure["value"]) == ("detected", pytest.approx(0.5 * 0.032 + 2 * 0.004))
    assert datetime.fromisoformat(figure["seen_at"]).tzinfo is not None
    assert advice["cost"]["currency"] == "USD"
    assert advice["policy"]["price_per_replica_hour"] == figure["value"]
    assert "price_detected" in (tmp_path / "log").read_text(encoding="utf-8")


def _requests_of(pod: Mapping[str, Any]) -> tuple[str | None, str | None, str]:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return requests.get("cpu"), requests.get("memory"), "running" if pod["spec"].get("nodeName") else "waiting"
