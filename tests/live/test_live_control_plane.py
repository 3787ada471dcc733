"""The control plane of these tests is a real one: pods come up, and the executor has the rights that it is given."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from api.schemas import Target
from executor.errors import ScaleConflictError, ScaleError
from executor.kubernetes_scale import KubernetesScales, connect
from executor.plan import Act, Move, Scale
from tests.live.clients import fresh_name
from tests.live.control_plane import ControlPlane

pytestmark = pytest.mark.kubernetes

EXECUTOR = Path(__file__).parents[2] / "deploy" / "manifests" / "executor"
LIMIT_SECONDS = 30.0
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: NAMESPACE}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: consumer, image: "none:1"}]}
"""


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    name = fresh_name("shop")
    control_plane.kubectl("create", "namespace", name)
    control_plane.apply(DEPLOYMENT.replace("NAMESPACE", name))
    return name


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again and again; a sentence instead of a hang."""
    until = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < until, f"still not so after {LIMIT_SECONDS:.0f} s"
        time.sleep(0.1)


def test_pods_become_ready(control_plane: ControlPlane, namespace: str) -> None:
    """Controllers make pods of a Deployment, the scheduler gives them a node, and there they become Ready."""
    field = "jsonpath={.status.readyReplicas}"
    wait_until(lambda: control_plane.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field) == "3")


def test_the_executor_has_the_rights_that_it_needs_and_no_others(control_plane: ControlPlane, namespace: str) -> None:
    """With the role of the manifests it scales; a count that somebody changed meanwhile is a conflict, not overwritten.

    In a namespace without the role it is refused, with the grant that is missing.
    """
    control_plane.apply((EXECUTOR / "namespace.yaml").read_text(encoding="utf-8"))
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: lagcast-executor, namespace: lagcast-executor}\n"
    control_plane.apply(account)
    control_plane.kubectl("-n", namespace, "apply", "-f", str(EXECUTOR / "target-role.yaml"))
    token = control_plane.kubectl("-n", "lagcast-executor", "create", "token", "lagcast-executor").strip()
    scales = KubernetesScales(connect(control_plane.kubeconfig_for(token)))
    target = Target(api_version="apps/v1", kind="Deployment", name="orders")

    seen = scales.read(namespace, target)
    scales.apply(act(namespace, target, seen))
    assert (seen.replicas, scales.read(namespace, target).replicas) == (3, 5)
    with pytest.raises(ScaleConflictError):
        scales.apply(act(namespace, target, seen))
    with pytest.raises(ScaleError, match="403 Forbidden; grant get and patch on it"):
        scales.read("default", target)
    mine = f"--kubeconfig={control_plane.kubeconfig_for(token)}"
    rules = control_plane.kubectl(mine, "auth", "can-i", "--list", "--namespace", namespace)
    assert "deployments.apps/scale" in rules
    assert [word for word in ("*.*", "pods", "secrets") if word in rules] == []


def act(namespace: str, target: Target, seen: Scale) -> Act:
    """From what was seen to five replicas."""
    move = Move(
        recommendation_id="r-1",
        mode="apply",
        namespace=namespace,
        target=target,
        seen_replicas=seen.replicas,
        desired_replicas=5,
    )
    return Act(move=move, scale=seen)
