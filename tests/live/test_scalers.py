"""C46: ConsumerGroupScalers on a real API server: refused in one sentence, followed as they change, written on news."""

import gc
import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.cluster.scaler import API_GROUP, API_VERSION, PLURAL
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from recommender.deciding.recommendation import Recommendation
from recommender.ports import RejectedError
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, ControlPlaneError, built_control_plane
from tests.live.harness.scalers import MANIFESTS, names, scaler, served, wait_until_served

pytestmark = pytest.mark.kubernetes

MANY = 1000


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"minReplicas": 5, "maxReplicas": 3}, "minReplicas is above maxReplicas; lower one or raise the other"),
        ({"minReplicas": 0}, "minReplicas is 0 and scaleToZero.enabled is not true; set 1 or more"),
        ({"hold": {"until": "2026-01-05T12:00:00Z"}}, "hold names no replicas; give hold.replicas, or remove hold"),
        ({"maxReplicas": 0}, "should be greater than or equal to 1"),
        ({"mode": "apply"}, 'supported values: "Off", "Recommend", "Apply"'),
        ({"prices": {"pricePerReplicaHour": "cheap"}}, "prices.pricePerReplicaHour in body should match"),
        ({"objective": {"maxLagSeconds": 2.5}}, "maxLagSeconds in body must be of type"),
        ({"target": {"kind": "Deployment"}}, "spec.target.name: Required value"),
        ({"maxReplica": 5}, 'unknown field "spec.maxReplica"'),
        ({"cluster": ""}, "spec.cluster in body should be at least 1 chars long"),
    ],
)
def test_a_bad_object_is_refused_by_the_server(
    installed: ControlPlane, namespace: str, spec: dict[str, Any], sentence: str
) -> None:
    """It is refused before any reader, with the sentence of the rule that it breaks."""
    with pytest.raises(ControlPlaneError) as refused:
        installed.apply(json.dumps(scaler(namespace, **spec)))
    assert sentence in str(refused.value)


def test_every_field_may_be_set(installed: ControlPlane, namespace: str) -> None:
    """An object with many fields is accepted as it stands; a maximum of null is none, not 1."""
    fields: dict[str, Any] = {
        "minReplicas": 0,
        "maxReplicas": None,
        "scaleToZero": {"enabled": True},
        "target": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders"},
        "objective": {"maxLagSeconds": 10},
        "prices": {"currency": "EUR", "pricePerReplicaHour": "0.05", "pricePerLateMessage": "1e-5"},
        "group": {"protocol": "Cooperative", "streams": {"tasks": 8, "stateful": False}},
        "hold": {"replicas": 3, "until": "2026-01-05T12:00:00Z"},
        "windows": [{"schedule": "0 22 * * 5", "durationSeconds": 14400, "effect": "NoScaleIn"}],
    }
    installed.apply(json.dumps(scaler(namespace, **fields)))
    found = json.loads(installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", "json"))["spec"]
    assert found == {"cluster": "c", "groupId": "orders"} | {
        name: value for name, value in fields.items() if value is not None
    }


def definition_before(crd: Path) -> str | None:
    """The resource's definition before its last change; None where the checkout does not have that commit."""
    changes = ["git", "log", "--format=%h", "-2", "--", str(crd)]
    changed = subprocess.run(changes, cwd=crd.parent, capture_output=True, text=True, check=False).stdout.split()
    if len(changed) < 2:
        return None
    shown = ["git", "show", f"{changed[1]}:./{crd.name}"]
    return subprocess.run(shown, cwd=crd.parent, capture_output=True, text=True, check=True).stdout


def test_p24_objects_of_the_definition_before_live_on_after_an_upgrade(
    installed: ControlPlane, namespace: str, objects: KubernetesScalers, advice: Callable[..., Recommendation]
) -> None:
    """An object that had advice under the definition of before the last change keeps its fields and its status."""
    crd = MANIFESTS / "scalers" / "crd.yaml"
    before = definition_before(crd)
    if before is None:
        pytest.skip("this checkout has no history of the definition: it is no clone, or a shallow one")
    fields: dict[str, Any] = {
        "cluster": "prod-eu",
        "maxReplicas": 9,
        "target": {"name": "orders"},
        "objective": {"maxLagSeconds": 10},
        "prices": {"currency": "EUR", "pricePerReplicaHour": "0.05"},
        "group": {"protocol": "Cooperative", "sessionTimeoutSeconds": 30},
        "windows": [{"schedule": "0 22 * * 5", "durationSeconds": 14400, "effect": "NoScaleIn"}],
    }
    settings, now = Settings(state_dir=Path("nowhere")), datetime.now(UTC)  # noqa: TID251  # the server's clock
    scalers = Scalers(objects=objects, settings=settings, tenants=Tenants(followed=(namespace,)))
    installed.apply(before)
    try:
        wait_until_served(installed)
        installed.apply(json.dumps(scaler(namespace, **fields)))
        wait_until(lambda: names(objects) == ["orders"])
        scalers.look({("prod-eu", "orders")}, now=now)
        assert scalers.report([advice(issued_at=now, valid_until=now + timedelta(seconds=300))], now=now) == 1
        read_before = scalers.of("prod-eu", "orders"), scalers.decision_of("prod-eu", "orders")
        seen_before = one_object(installed, namespace)
    finally:
        installed.apply(crd.read_text(encoding="utf-8"))
    wait_until_served(installed)
    seen = one_object(installed, namespace)
    assert seen["spec"].items() >= seen_before["spec"].items()
    assert seen["status"] == seen_before["status"]
    scalers.look({("prod-eu", "orders")}, now=now)
    assert (scalers.of("prod-eu", "orders"), scalers.decision_of("prod-eu", "orders")) == read_before
    moved = advice(recommendation_id="r-2", desired_replicas=9, issued_at=now, valid_until=now + timedelta(seconds=300))
    assert scalers.report([moved], now=now) == 1


def one_object(cluster: ControlPlane, namespace: str) -> dict[str, Any]:
    """The object `orders`, as the server has it."""
    found: dict[str, Any] = json.loads(cluster.kubectl("-n", namespace, "get", "cgs", "orders", "-o", "json"))
    return found


def test_the_example_of_the_page_is_accepted(installed: ControlPlane, namespace: str) -> None:
    """It is accepted as it stands there, except for the namespace."""
    page = (MANIFESTS.parents[1] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0].replace("namespace: shop", f"namespace: {namespace}")
    assert installed.apply(example) == "consumergroupscaler.lagcast.io/orders created\n"


def test_objects_are_known_as_they_come_change_and_go(
    installed: ControlPlane, namespace: str, objects: KubernetesScalers
) -> None:
    """They are known by the watch, without another list."""
    installed.apply(json.dumps(scaler(namespace)))
    wait_until(lambda: names(objects) == ["orders"])
    installed.apply(json.dumps(scaler(namespace, maxReplicas=7)))
    wait_until(lambda: objects.documents()[0]["spec"].get("maxReplicas") == 7)
    installed.kubectl("-n", namespace, "delete", "cgs", "orders")
    wait_until(lambda: names(objects) == [])


def test_a_version_that_the_cluster_no_longer_has_does_not_end_the_watch(
    installed: ControlPlane, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch from version 1 is answered 410: the list begins again, and changes made meanwhile are known."""
    objects = KubernetesScalers(connect(kubeconfig), [namespace])
    real, lists = objects._list, []

    def forgetful(path: str) -> str:
        lists.append(path)
        version = real(path)
        return "1" if len(lists) == 1 else version

    monkeypatch.setattr(objects, "_list", forgetful)
    with objects.following():
        wait_until(lambda: len(lists) > 1)
        installed.apply(json.dumps(scaler(namespace)))
        wait_until(lambda: names(objects) == ["orders"])
    assert len(lists) == 2


# Where a server dies between a connection and its handshake, Python's ssl leaves the socket to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_an_api_server_that_crashes_is_outlived(
    tmp_path: Path, installed: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """Known objects stay known, no cycle is delayed, and changes made meanwhile are read after it is back.

    Begin and end are logged once. The cluster is the test's own, so the other tests go on.
    """
    own = ControlPlane(built_control_plane(), tmp_path / "own")
    try:
        own.start()
        own.kubectl("apply", "-f", str(MANIFESTS / "scalers" / "crd.yaml"))
        wait_until_served(own)
        own.apply(json.dumps(scaler("default")))
        objects = KubernetesScalers(connect(own.kubeconfig), ["default"])
        scalers = Scalers(
            objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=("default",))
        )
        now = datetime(2026, 1, 5, 12, tzinfo=UTC)

        def while_it_is_away() -> None:
            assert [names(objects), scalers.report([], now=now), scalers.report([], now=now)] == [["orders"], 0, 0]
            wait_until(lambda: "watching_failed" in seen(capsys, logs))

        logs: list[str] = []
        with objects.following():
            scalers.look([], now=now)
            own.restart_api_server(after=while_it_is_away)
            own.apply(json.dumps(scaler("default", "billing")))
            wait_until(lambda: names(objects) == ["billing", "orders"])
            scalers.look([], now=now)
            wait_until(lambda: scalers.report([], now=now) == 0 and "reporting_resumed" in seen(capsys, logs))
        logged = "".join(logs)
        for event in ("watching_failed", "watching_resumed", "reporting_failed", "reporting_resumed"):
            assert logged.count(event) == 1, event
    finally:
        own.stop()
        gc.collect()
    assert served(installed)


def seen(capsys: pytest.CaptureFixture[str], logs: list[str]) -> str:
    """All that was logged so far."""
    logs.append(capsys.readouterr().out)
    return "".join(logs)


def test_a_missing_grant_is_named(kubeconfig: Path) -> None:
    """In a namespace without the role the error comes before the first decision and names the grant."""
    objects = KubernetesScalers(connect(kubeconfig), ["default"])
    with (
        pytest.raises(RejectedError, match=r"grant list and watch on consumergroupscalers\.lagcast\.io"),
        objects.following(),
    ):
        pass


def test_the_role_has_no_more_rights_than_needed(installed: ControlPlane, kubeconfig: Path, namespace: str) -> None:
    """It may list pods and autoscalers, and neither write a spec nor see a secret or a workload."""
    rules = installed.kubectl(f"--kubeconfig={kubeconfig}", "auth", "can-i", "--list", "--namespace", namespace)
    assert f"{PLURAL}.{API_GROUP}/status" in rules
    assert [word for word in ("*.*", "secrets", "deployments") if word in rules] == []
    listed = ("pods", "horizontalpodautoscalers.autoscaling", "scaledobjects.keda.sh")
    verbs = {line.split()[0]: line.split()[-1] for line in rules.splitlines() if line.split()[0] in listed}
    assert verbs == dict.fromkeys(listed, "[list]")


def test_advice_is_in_the_columns_and_its_changes_are_events(
    installed: ControlPlane, namespace: str, objects: KubernetesScalers, advice: Callable[..., Recommendation]
) -> None:
    """`kubectl get cgs` shows the move and its instant; another count is another Event."""
    installed.apply(json.dumps(scaler(namespace, cluster="prod-eu", target={"name": "consumer"})))
    wait_until(lambda: names(objects) == ["orders"])
    scalers = Scalers(
        objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=(namespace,))
    )
    now = datetime.now(UTC)  # noqa: TID251  # the server's clock is the same
    for replicas in (8, 9):
        move = advice(
            desired_replicas=replicas, issued_at=now, valid_until=now + timedelta(seconds=300), confidence=0.9
        )
        scalers.look({("prod-eu", "orders")}, now=now)
        assert [scalers.report([move], now=now) for _ in range(2)] == [1, 0]
    heads, line = installed.kubectl("-n", namespace, "get", "cgs").splitlines()
    assert heads.split() == ["NAME", "TARGET", "MODE", "CURRENT", "DESIRED", "AT", "CONFIDENCE", "READY", "AGE"]
    assert line.split()[:-1] == ["orders", "consumer", "Recommend", "6", "9", "2026-01-05T12:02:00Z", "High", "True"]
    events = json.loads(installed.kubectl("-n", namespace, "get", "events", "-o", "json"))["items"]
    assert [(event["reason"], event["involvedObject"]["name"]) for event in events] == [
        ("RecommendationChanged", "orders")
    ] * 2
    assert "6 -> 9 replicas at" in {event["message"][:18] for event in events}
    (manager,) = {
        entry["manager"]
        for entry in json.loads(
            installed.kubectl("-n", namespace, "get", "cgs", "-o", "json", "--show-managed-fields")
        )["items"][0]["metadata"]["managedFields"]
        if entry.get("subresource") == "status"
    }
    assert manager == "lagcast"


def test_a_thousand_unchanged_objects_cost_no_write(
    installed: ControlPlane, namespace: str, objects: KubernetesScalers, advice: Callable[..., Recommendation]
) -> None:
    """The first cycle writes each; in the next three, with new but equal advice, the server gets no request."""
    custom = client.CustomObjectsApi(connect(installed.kubeconfig))
    groups = [f"group-{number}" for number in range(MANY)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: create(custom, scaler(namespace, name, cluster="prod-eu")), groups))
    wait_until(lambda: len(objects.documents()) == MANY)
    scalers = Scalers(
        objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=(namespace,))
    )
    start = datetime(2026, 1, 5, 12, tzinfo=UTC)
    written, versions = [], []
    for cycle in range(4):
        now = start + timedelta(minutes=cycle)
        template = advice(
            recommendation_id=f"r-{cycle}", issued_at=now, valid_until=now + timedelta(seconds=300), execute_at=now
        )
        scalers.look([("prod-eu", name) for name in groups], now=now)
        written.append(scalers.report([replace(template, group=name) for name in groups], now=now))
        found: Any = custom.list_namespaced_custom_object(API_GROUP, API_VERSION, namespace, PLURAL)
        versions.append({each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found["items"]})
    assert written == [MANY, 0, 0, 0]
    # An instant without a fraction of a second is one that Events may have.
    events: Any = custom.list_namespaced_custom_object("events.k8s.io", "v1", namespace, "events")
    assert len(events["items"]) == MANY
    assert all(version == versions[0] for version in versions)


def create(custom: client.CustomObjectsApi, document: dict[str, Any]) -> None:
    """Make one object."""
    custom.create_namespaced_custom_object(API_GROUP, API_VERSION, document["metadata"]["namespace"], PLURAL, document)
