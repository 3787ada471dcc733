"""Reads and patches `/scale` of a workload, and nothing else of it, through the official Kubernetes client."""

from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from api.schemas import Target
from executor.errors import ScaleConflictError, ScaleError
from executor.plan import Act, Scale

TIMEOUT_SECONDS = 10
_MERGE_PATCH = "application/merge-patch+json"
_FORBIDDEN, _CONFLICT = 403, 409


def connect(kubeconfig: Path | None) -> client.ApiClient:
    """A client for the cluster of `kubeconfig`, or, without one, for the cluster that this process runs in.

    Errors: ScaleError.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is not None:
            config.load_kube_config(config_file=str(kubeconfig), client_configuration=settings)  # type: ignore[no-untyped-call]  # untyped there
        else:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]  # untyped there
    except (ConfigException, OSError) as error:
        message = f"no cluster to connect to: {error}; run inside one, or give --kubeconfig FILE"
        raise ScaleError(message) from error
    return client.ApiClient(settings)


class KubernetesScales:
    """The `/scale` of Deployments and StatefulSets in one cluster."""

    def __init__(self, api: client.ApiClient) -> None:
        self._apps = client.AppsV1Api(api)
        self._autoscaling = client.AutoscalingV2Api(api)

    def read(self, namespace: str, target: Target) -> Scale:
        """The workload's count and version, and the autoscalers that claim it. Errors: ScaleError."""
        try:
            found = self._call("read", target, namespace=namespace)
            claims = self._autoscaling.list_namespaced_horizontal_pod_autoscaler(
                namespace, _request_timeout=TIMEOUT_SECONDS
            )
        except (ApiException, HTTPError) as error:
            raise _told(error, f"read the scale of {_name(namespace, target)}") from error
        return Scale(
            replicas=int(found.spec.replicas or 0),  # the API leaves a zero out
            resource_version=str(found.metadata.resource_version),
            other_writers=tuple(
                f"HorizontalPodAutoscaler {namespace}/{claim.metadata.name}"
                for claim in claims.items
                if claim.metadata is not None
                and (claim.spec.scale_target_ref.kind, claim.spec.scale_target_ref.name) == (target.kind, target.name)
            ),
        )

    def apply(self, act: Act) -> None:
        """Send the patch of `act`. Errors: ScaleConflictError if the workload has changed since, else ScaleError."""
        move = act.move
        try:
            self._call("patch", move.target, namespace=move.namespace, body=act.patch, _content_type=_MERGE_PATCH)
        except (ApiException, HTTPError) as error:
            raise _told(error, f"set the scale of {_name(move.namespace, move.target)}") from error

    def _call(self, verb: str, target: Target, **arguments: Any) -> Any:  # noqa: ANN401  # two kinds, one shape
        match target.kind:
            case "Deployment" | "StatefulSet" if target.api_version == "apps/v1":
                call = getattr(self._apps, f"{verb}_namespaced_{_SNAKE[target.kind]}_scale")
            case _:
                message = f"{target.api_version} {target.kind} cannot be scaled; apps/v1 Deployment and StatefulSet can"
                raise ScaleError(message)
        return call(target.name, **arguments, _request_timeout=TIMEOUT_SECONDS)


_SNAKE = {"Deployment": "deployment", "StatefulSet": "stateful_set"}


def _name(namespace: str, target: Target) -> str:
    return f"{target.kind} {namespace}/{target.name}"


def _told(error: ApiException | HTTPError, asked: str) -> ScaleError:
    if not isinstance(error, ApiException):
        return ScaleError(f"could not {asked}: {error}; is the cluster reachable?")
    if error.status == _CONFLICT:
        return ScaleConflictError(f"could not {asked}: somebody changed it at the same time")
    remedy = "; grant get and patch on it, and list on horizontalpodautoscalers" if error.status == _FORBIDDEN else ""
    return ScaleError(f"could not {asked}: the API server answered {error.status} {error.reason}{remedy}")
