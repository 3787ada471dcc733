"""C33: `lagcast discover` between a real broker and a real cluster: from members to the workload that runs them."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.discover import missing_objects, see_members
from collector.kafka_admin import KafkaAdminCollector
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.cluster.creating import create_forever
from recommender.cluster.scaler import Document
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from tests.live.harness.clients import fresh_name, has_members, member, read_until, wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.scalers import MANIFESTS, orders_in, recommender_in, scaler

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

Lagcast = Callable[..., tuple[int, str, str]]
# Where the broker sees the members of these tests. Pods run nowhere here; some are given this address.
HERE = "127.0.0.1"


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of two replicas, all of them up."""
    name = fresh_name("shop")
    control_plane.kubectl("create", "namespace", name)
    orders_in(control_plane, name, replicas=2)
    wait_until(lambda: len(pods(control_plane, name)) == 2 and all(pods(control_plane, name).values()))
    return name


def pods(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    """Address of each pod by its name, empty while it has none."""
    found = json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod["status"].get("podIP", "") for pod in found}


def move_here(cluster: ControlPlane, namespace: str, *names: str) -> None:
    """Give these pods the address of the tests' own consumers."""
    status = json.dumps({"status": {"podIP": HERE, "podIPs": [{"ip": HERE}]}})
    for name in names:
        cluster.kubectl("-n", namespace, "patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)


@pytest.fixture
def words(control_plane: ControlPlane, namespace: str, bootstrap: str) -> list[str]:
    """The options that name the places for `lagcast discover` to look in."""
    cluster = ["--kubernetes", namespace, "--kubeconfig", str(control_plane.kubeconfig)]
    return ["--bootstrap", bootstrap, *cluster]


def test_the_workload_of_a_group_is_found_and_doubt_is_reported(
    *,
    control_plane: ControlPlane,
    namespace: str,
    bootstrap: str,
    collector: KafkaAdminCollector,
    topic: str,
    words: list[str],
    lagcast: Lagcast,
) -> None:
    """No pod at the member's address; then pods of two ReplicaSets of one Deployment; then also a pod without owner."""
    group = fresh_name("group")

    def discovered() -> dict[str, object]:
        code, out, err = lagcast("discover", *words, "--group", group, "--output", "json")
        assert code == 0, err
        (found,) = json.loads(out)
        return dict(found)

    with member(bootstrap, group, topic):
        read_until(collector, group, has_members(1))
        unmatched = discovered()
        assert (unmatched["members"], unmatched["reason"]) == (1, "NoTarget")
        assert HERE in str(unmatched["note"])

        # A rollout that does not come to its end: the new pod is not ready for an hour.
        orders_in(control_plane, namespace, replicas=2, start_delay_seconds=3600)
        wait_until(lambda: len(pods(control_plane, namespace)) == 3)
        move_here(control_plane, namespace, *pods(control_plane, namespace))
        found = discovered()
        assert (found["kind"], found["name"], found["namespace"]) == ("Deployment", "orders", namespace)
        assert (found["members"], found["pods"], found["replicas"], found["reason"]) == (1, 3, 3, None)

        control_plane.kubectl("-n", namespace, "run", "bare", "--image=none:1")
        wait_until(lambda: pods(control_plane, namespace).get("bare"))
        move_here(control_plane, namespace, "bare")
        doubtful = discovered()
        assert (doubtful["name"], doubtful["reason"]) == (None, "AmbiguousTarget")


def test_the_printed_objects_are_accepted(
    *,
    installed: ControlPlane,
    namespace: str,
    bootstrap: str,
    collector: KafkaAdminCollector,
    topic: str,
    words: list[str],
    lagcast: Lagcast,
) -> None:
    """The real API server accepts the output of `--objects` for a real group, and nothing acts on it yet."""
    group = fresh_name("group")
    move_here(installed, namespace, *pods(installed, namespace))
    with member(bootstrap, group, topic):
        read_until(collector, group, has_members(1))
        code, out, err = lagcast("discover", *words, "--group", group, "--cluster", "live", "--objects")
    assert code == 0, err
    installed.apply(out)
    spec = json.loads(installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", "json"))["spec"]
    assert spec == {
        "cluster": "live",
        "groupId": group,
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"},
        "mode": "Recommend",
    }


def test_a_group_without_an_object_gets_one_with_the_rights_of_the_manifests(
    *, installed: ControlPlane, namespace: str, bootstrap: str, collector: KafkaAdminCollector, topic: str
) -> None:
    """As the recommender's account and for advice only; the next round finds nothing that is missing."""
    group = fresh_name("group")
    installed.kubectl("-n", namespace, "apply", "-f", str(MANIFESTS / "scalers" / "discovery" / "target-role.yaml"))
    kubeconfig = recommender_in(installed, namespace)
    wait_until(lambda: installed.may(kubeconfig, namespace, "create", "consumergroupscalers.lagcast.io"))
    move_here(installed, namespace, *pods(installed, namespace))
    api = connect(kubeconfig)
    objects = KubernetesScalers(api, [namespace])
    settings = Settings(state_dir=Path("nowhere"))
    scalers = Scalers(objects=objects, settings=settings, tenants=Tenants(followed=(namespace,)))
    found: list[int] = []

    def missing() -> Sequence[Document]:
        made = missing_objects(bootstrap, {}, api, [namespace], scalers, cluster="live", groups=[group])
        found.append(len(made))
        return made

    with objects.following(), member(bootstrap, group, topic):
        read_until(collector, group, has_members(1))
        create_forever(missing, objects, wait=lambda _: len(found) == 2)
    assert found == [1, 0]
    spec = json.loads(installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", "json"))["spec"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
    assert spec == {"cluster": "live", "groupId": group, "target": target, "mode": "Recommend"}
    assert not objects.create({**objects.documents()[0], "metadata": {"namespace": namespace, "name": "orders"}})


def test_an_object_of_another_namespace_takes_no_group(
    *, installed: ControlPlane, namespace: str, bootstrap: str, collector: KafkaAdminCollector, topic: str
) -> None:
    """The older object switches the group off and is told why it is not followed; that beside the members is followed.

    The recommender's own account has its role in both namespaces, and no more.
    """
    group, other = fresh_name("group"), fresh_name("bank")
    installed.kubectl("create", "namespace", other)
    claimed: dict[str, Any] = {"cluster": "live", "groupId": group, "target": {"name": "orders"}}
    installed.apply(json.dumps(scaler(other, **claimed, mode="Off")))
    orders_in(installed, other, replicas=1)
    wait_until(lambda: all(pods(installed, other).values()) and len(pods(installed, other)) == 1)
    installed.apply(json.dumps(scaler(namespace, **claimed, maxReplicas=5)))
    move_here(installed, namespace, *pods(installed, namespace))
    api = connect(recommender_in(installed, namespace, other))
    objects = KubernetesScalers(api, [other, namespace])
    tenants = Tenants(followed=(other, namespace))
    scalers = Scalers(objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=tenants)
    key, now = ("live", group), datetime(2026, 1, 5, 12, tzinfo=UTC)

    def ready(place: str) -> tuple[str, str]:
        found = json.loads(installed.kubectl("-n", place, "get", "cgs", "orders", "-o", "json"))
        (condition,) = [each for each in found["status"]["conditions"] if each["type"] == "Ready"]
        return condition["status"], condition["reason"]

    with objects.following():
        scalers.look([key], now=now)
        assert (scalers.of(*key).mode, scalers.of(*key).max_replicas) == ("recommend", None)
        with member(bootstrap, group, topic):
            read_until(collector, group, has_members(1))
            see_members(bootstrap, {}, api, tenants, cluster="live", groups=[group])
        scalers.look([key], now=now)
        assert scalers.report([], now=now) == 2
    assert (scalers.of(*key).mode, scalers.of(*key).max_replicas) == ("recommend", 5)
    assert scalers.namespace_of(*key) == namespace
    assert ready(other) == ("False", "NotGranted")
    assert ready(namespace) == ("Unknown", "NoDecision")
    installed.kubectl("delete", "namespace", other, "--wait=false")
