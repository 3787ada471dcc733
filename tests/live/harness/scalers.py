"""Workloads and ConsumerGroupScalers in a cluster, as the tests create and read them."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.cluster.scaler import API_GROUP, API_VERSION, KIND, PLURAL
from tests.live.harness.clients import fresh_name, wait_until
from tests.live.harness.control_plane import ControlPlane, ControlPlaneError

MANIFESTS = Path(__file__).parents[3] / "deploy" / "manifests"
_ORDERS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: NAMESPACE}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}, annotations: {test/start-delay: DELAYs}}
    spec: {containers: [{name: consumer, image: "none:1"}]}
"""
_HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: orders}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}
  minReplicas: 8
  maxReplicas: 20
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""


def shop_in(cluster: ControlPlane, *, replicas: int = 3, start_delay_seconds: int = 0) -> str:
    """A fresh namespace with a Deployment `orders`, of three replicas that are ready at once unless set otherwise."""
    namespace = fresh_name("shop")
    cluster.kubectl("create", "namespace", namespace)
    orders_in(cluster, namespace, replicas=replicas, start_delay_seconds=start_delay_seconds)
    return namespace


def orders_in(
    cluster: ControlPlane, namespace: str, *, replicas: int = 3, start_delay_seconds: int = 0, name: str = "orders"
) -> None:
    """The Deployment `orders`, applied as an owner does: applied again, it has so many replicas again."""
    manifest = _ORDERS.replace("orders", name).replace("NAMESPACE", namespace).replace("REPLICAS", str(replicas))
    cluster.apply(manifest.replace("DELAY", str(start_delay_seconds)))


def install(cluster: ControlPlane, folder: Path) -> None:
    """Everything that the manifests create, with the scalers' component; `folder` takes a copy of them."""
    manifests = folder / "manifests"
    shutil.copytree(MANIFESTS, manifests)
    whole = manifests / "kustomization.yaml"
    whole.write_text(f"{whole.read_text(encoding='utf-8')}components:\n  - scalers\n", encoding="utf-8")
    cluster.kubectl("apply", "--validate=strict", "-k", str(manifests))
    wait_until_served(cluster)


def recommender_in(cluster: ControlPlane, *namespaces: str) -> Path:
    """The kubeconfig of the recommender's own service account, with its role in these namespaces."""
    for namespace in namespaces:
        cluster.kubectl("-n", namespace, "apply", "-f", str(MANIFESTS / "scalers" / "target-role.yaml"))
    kubeconfig = cluster.kubeconfig_for(
        cluster.kubectl("-n", "lagcast", "create", "token", "lagcast-recommender").strip()
    )
    for namespace in namespaces:
        wait_until(partial(cluster.may, kubeconfig, namespace, "list", f"{PLURAL}.{API_GROUP}"))
    return kubeconfig


def autoscaled_in(cluster: ControlPlane, namespace: str) -> None:
    """A HorizontalPodAutoscaler on that Deployment, which wants eight replicas or more."""
    cluster.kubectl("-n", namespace, "apply", "-f", "-", given=_HPA)


def scaler(namespace: str, name: str = "orders", **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """An object for the group of its own name in cluster `c`."""
    metadata = {"namespace": namespace, "name": name}
    whole = {"cluster": "c", "groupId": name} | spec
    return {"apiVersion": f"{API_GROUP}/{API_VERSION}", "kind": KIND, "metadata": metadata, "spec": whole}


def names(objects: KubernetesScalers) -> list[str]:
    """Names of the objects that are known."""
    return [document["metadata"]["name"] for document in objects.documents()]


def wait_until_served(cluster: ControlPlane) -> None:
    """The definition is established a moment before objects of it can be listed."""
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{PLURAL}.{API_GROUP}", "--timeout=30s")
    wait_until(lambda: served(cluster))


def served(cluster: ControlPlane) -> bool:
    """True if the objects can be listed."""
    try:
        cluster.kubectl("get", PLURAL)
    except ControlPlaneError:
        return False
    return True
