"""`lagcast doctor` on a real API server: its findings on rights are what the server lets the service accounts do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.harness.clients import fresh_name
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import executor_in
from tests.live.harness.scalers import autoscaled_in, orders_in, scaler

pytestmark = pytest.mark.kubernetes

Lagcast = Callable[..., tuple[int, str, str]]


def findings(lagcast: Lagcast, cluster: ControlPlane, *words: object, code: int = 0) -> dict[str, list[str]]:
    """The findings by state, each as check, place and sentence."""
    given = ("--kubeconfig", cluster.kubeconfig, "-o", "json", *words)
    result = lagcast("doctor", *given)
    assert result[0] == code, result
    found: dict[str, list[str]] = {"ok": [], "note": [], "problem": [], "unknown": []}
    for each in json.loads(result[1]):
        found[each["state"]].append(f"{each['check']} {each['where']}: {each['sentence']}")
    return found


def test_a_complete_setup_is_ok_and_each_fault_is_reported(
    installed: ControlPlane, namespace: str, lagcast: Lagcast
) -> None:
    """First the executor has no role, the workload is missing, and an HPA waits for it; then all is mended."""
    installed.apply(json.dumps(scaler(namespace, mode="Apply", target={"name": "orders"}, group={"partitions": 24})))
    autoscaled_in(installed, namespace)
    found = findings(lagcast, installed, "--kubernetes", namespace, "--strict", code=3)
    place = f"{namespace}/orders"
    missing = (
        "list horizontalpodautoscalers.autoscaling, list scaledobjects.keda.sh, get consumergroupscalers.lagcast.io, "
        "list consumergroupscalers.lagcast.io, "
        "patch consumergroupscalers/status.lagcast.io, create events, get deployments.apps, "
        "patch deployments/scale.apps"
    )
    autoscaled = f"HorizontalPodAutoscaler {place} scales the same workload; the executor does not change it."
    assert found["problem"] == [
        f"target {place}: Deployment orders is not in namespace {namespace}.",
        f"autoscalers {place}: {autoscaled}",
        f"rights {namespace}: The executor may not {missing}.",
    ]
    assert f"rights {namespace}: The recommender has every right that it needs." in found["ok"]

    orders_in(installed, namespace)
    executor_in(installed, namespace)
    installed.kubectl("-n", namespace, "delete", "hpa", "orders")
    found = findings(lagcast, installed, "--kubernetes", namespace, "--strict")
    assert (found["problem"], found["unknown"]) == ([], [])
    assert "definition -: consumergroupscalers.lagcast.io v1alpha1 is installed." in found["ok"]
    assert f"target {place}: Deployment orders is there, and has a /scale." in found["ok"]
    assert f"rights {namespace}: The executor has every right that it needs." in found["ok"]


def test_a_user_without_the_right_to_query_gets_the_grant(kubeconfig: Path, namespace: str, lagcast: Lagcast) -> None:
    """The recommender may list its objects but not query the rights of others: unknown, with the missing grant."""
    code, out, _ = lagcast("doctor", "--kubeconfig", kubeconfig, "--kubernetes", namespace, "-o", "json")
    assert code == 0
    unknown = [each for each in json.loads(out) if each["state"] == "unknown"]
    assert {"definition", "rights", "metrics API", "lease"} <= {each["check"] for each in unknown}
    assert any("grant create on subjectaccessreviews.authorization.k8s.io" in each["sentence"] for each in unknown)
    assert all(each["remedy"] for each in unknown)


def test_a_cluster_without_the_definition_is_reported(
    control_plane: ControlPlane, lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a version that is not served the finding names what to install; the lack of objects is no problem."""
    monkeypatch.setattr("recommender.adapters.kubernetes_doctor.API_VERSION", "v9")
    name = fresh_name("bare")
    control_plane.kubectl("create", "namespace", name)
    found = findings(lagcast, control_plane, "--kubernetes", name)
    assert found["problem"][0] == "definition -: consumergroupscalers.lagcast.io v1alpha1 is not installed."
    assert [line for line in found["problem"][1:] if not line.startswith("rights")] == []
    assert f"objects {name}: No ConsumerGroupScaler here." in found["note"]


def test_a_server_that_is_away_is_exit_code_four(tmp_path: Path, control_plane: ControlPlane, lagcast: Lagcast) -> None:
    """The error is one sentence, with the next step."""
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(control_plane.kubeconfig.read_text().replace(control_plane.url, "https://127.0.0.1:1"))
    code, out, err = lagcast("doctor", "--kubeconfig", nowhere, "--kubernetes", "shop")
    assert (code, out) == (4, "")
    assert "is the cluster reachable?" in err
