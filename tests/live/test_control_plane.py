"""C32: the control plane is a real one: pods become ready, and the executor has only the rights of its role."""

from datetime import UTC, datetime

import pytest

from api.schemas import Target
from executor.errors import ScaleConflictError, ScaleError
from executor.kubernetes_client import connect
from executor.kubernetes_scale import KubernetesScales
from executor.plan import Act, DueMove, Scale
from recommender.adapters import kubernetes_client
from recommender.adapters.kubernetes_client import connect as connect_to
from recommender.adapters.kubernetes_workloads import pods_in
from recommender.cluster.discovery import Found, NotFound, Workload, discover
from recommender.ports import RejectedError
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, ControlPlaneError
from tests.live.harness.executors import executor_in
from tests.live.harness.scalers import shop_in

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    return shop_in(control_plane)


def test_pods_become_ready(control_plane: ControlPlane, namespace: str) -> None:
    """Controllers create the pods of a Deployment, the scheduler gives them a node, and they become Ready there."""
    field = "jsonpath={.status.readyReplicas}"
    wait_until(lambda: control_plane.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field) == "3")


def test_members_are_traced_to_their_deployment(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From addresses over pods and ReplicaSets to the Deployment, in pages of two, past a pod of another owner.

    Without the right to list pods, the sentence names it.
    """
    control_plane.kubectl("-n", namespace, "run", "bare", "--image=none:1")
    api = connect_to(control_plane.kubeconfig)
    monkeypatch.setattr(kubernetes_client, "_PAGE", 2)
    wait_until(lambda: len(pods_in(api, [namespace])) == 4)
    pods = pods_in(api, [namespace])
    hosts = {
        name: [address for pod in pods for address in pod.addresses if pod.name.startswith(name)]
        for name in ("orders", "bare")
    }
    answers = discover(hosts, pods)
    workload = Workload(namespace=namespace, kind="Deployment", name="orders", api_version="apps/v1", has_scale=True)
    assert answers["orders"] == Found(workload=workload, members=3, pods=3, replicas=3)
    assert isinstance(answers["bare"], NotFound)
    token = control_plane.kubectl("-n", namespace, "create", "token", "default").strip()
    with pytest.raises(RejectedError, match="403 Forbidden; grant list on pods"):
        pods_in(connect_to(control_plane.kubeconfig_for(token)), [namespace])


def test_the_executor_has_the_rights_that_it_needs_and_no_others(control_plane: ControlPlane, namespace: str) -> None:
    """With the role of the manifests it scales; a count that was changed meanwhile is a conflict, and not overwritten.

    In a namespace without the role it is refused, with the grant that is missing.
    """
    kubeconfig = executor_in(control_plane, namespace)
    scales = KubernetesScales(connect(kubeconfig))
    target = Target(api_version="apps/v1", kind="Deployment", name="orders")

    # While it settles each of its steps is another version, and a patch of the one before is refused.
    control_plane.kubectl("-n", namespace, "rollout", "status", "deployment/orders", "--timeout=55s")
    seen = scales.read(namespace, target)
    scales.apply(act(namespace, target, seen))
    assert (seen.replicas, scales.read(namespace, target).replicas) == (3, 5)
    assert scales.writers(namespace) == {}  # KEDA is not installed here
    scales.record_event(act(namespace, target, seen), now=datetime(2026, 1, 5, 12, tzinfo=UTC))
    described = control_plane.kubectl("-n", namespace, "describe", "deployment", "orders")
    assert "ScaledOnAdvice" in described
    assert "3 -> 5 replicas by lagcast's r-1" in described
    with pytest.raises(ScaleConflictError):
        scales.apply(act(namespace, target, seen))
    with pytest.raises(ScaleError, match=r"403 Forbidden; apply deploy/manifests/executor/target-role\.yaml"):
        scales.read("default", target)
    mine = f"--kubeconfig={kubeconfig}"
    rules = control_plane.kubectl(mine, "auth", "can-i", "--list", "--namespace", namespace)
    assert "deployments.apps/scale" in rules
    for verb, resource in (("patch", "deployments"), ("update", "deployments"), ("list", "deployments")):
        with pytest.raises(ControlPlaneError):
            control_plane.kubectl(mine, "auth", "can-i", verb, resource, "--namespace", namespace)
    assert [word for word in ("*.*", "pods", "secrets") if word in rules] == []


def act(namespace: str, target: Target, seen: Scale) -> Act:
    """The act from the observed scale to five replicas."""
    move = DueMove(
        recommendation_id="r-1",
        group_id="orders",
        mode="apply",
        namespace=namespace,
        target=target,
        seen_replicas=seen.replicas,
        seen_at=datetime(2026, 1, 5, 12, tzinfo=UTC),
        desired_replicas=5,
        through_zero=False,
    )
    return Act(move=move, scale=seen)
