"""Deployments that autoscalers scale in live tests, and their counts and pods."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kubernetes import client

from recommender.adapters.kubernetes_client import connect
from tests.live.harness.control_plane import ControlPlane

CPU_REQUEST_MILLICORES = 1_000


class Workload:
    """A Deployment of `namespace`, whose pods become ready, or, as `gated`, wait for ever: a count needs no more."""

    def __init__(self, name: str, namespace: str, cluster: ControlPlane, *, gated: bool) -> None:
        self.name, self._namespace, self._gated = name, namespace, gated
        connection = connect(cluster.kubeconfig)
        # What the client's types call optional is there in everything that the API server answers.
        self._apps: Any = client.AppsV1Api(connection)
        self._core: Any = client.CoreV1Api(connection)

    def manifest(self, *, replicas: int, start_delay: str = "0s") -> dict[str, Any]:
        """The workload as an object; pods become ready after the delay. It names a node, so no scheduler is needed."""
        container = {"name": "consumer", "image": "none:1"}
        requests = {"requests": {"cpu": f"{CPU_REQUEST_MILLICORES}m"}}
        waits = {"schedulingGates": [{"name": "test/never"}], "containers": [container]}
        runs = {"nodeName": "node-1", "containers": [container | {"resources": requests}]}
        labels = {"app": self.name}
        pod = {
            "metadata": {"labels": labels, "annotations": {"test/start-delay": start_delay}},
            "spec": waits if self._gated else runs,
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
        return self.document("apps/v1", "Deployment", spec)

    def document(self, version: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object beside it, of the same name."""
        metadata = {"name": self.name, "namespace": self._namespace}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    def counts(self) -> tuple[int, int]:
        """The wanted and the actual count of replicas, as autoscalers read them."""
        scale = self._apps.read_namespaced_deployment_scale(self.name, self._namespace)
        return scale.spec.replicas or 0, scale.status.replicas or 0

    def set(self, replicas: int) -> None:
        """Scale it by hand."""
        scale = self._apps.read_namespaced_deployment_scale(self.name, self._namespace)
        scale.spec.replicas = replicas
        self._apps.replace_namespaced_deployment_scale(self.name, self._namespace, scale)

    def pods(self) -> dict[str, bool]:
        """The pods that are not being deleted, in the order of their names, and whether each is running."""
        found = self._core.list_namespaced_pod(self._namespace, label_selector=f"app={self.name}").items
        there = {
            pod.metadata.name: pod.status.phase == "Running" for pod in found if not pod.metadata.deletion_timestamp
        }
        return dict(sorted(there.items()))


def _is_ready(pod: Any) -> bool:  # noqa: ANN401  # as above
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or [])


def documents(found: Iterable[Mapping[str, Any]]) -> str:
    """All of them in one, for kubectl."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(found)})
