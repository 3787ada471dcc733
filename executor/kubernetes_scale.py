"""Reads and patches `/scale` of a workload, and nothing else of it, through the official Kubernetes client."""

from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from api.schemas import Target
from executor.carry_out import Writers
from executor.errors import ScaleConflictError, ScaleError
from executor.plan import Act, Scale

TIMEOUT_SECONDS = 10
_MERGE_PATCH = "application/merge-patch+json"
_FORBIDDEN, _NOT_FOUND, _CONFLICT = 403, 404, 409


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
        self._others = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)

    def read(self, namespace: str, target: Target) -> Scale:
        """The workload's count and the version that it belongs to. Errors: ScaleError."""
        try:
            found = self._call("read", target, namespace=namespace)
        except (ApiException, HTTPError) as error:
            raise _told(error, f"read the scale of {_name(namespace, target)}") from error
        return Scale(
            replicas=int(found.spec.replicas or 0),  # the API leaves a zero out
            resource_version=str(found.metadata.resource_version),
            uid=found.metadata.uid,
        )

    def writers(self, namespace: str) -> Writers:
        """The workloads that HorizontalPodAutoscalers claim, and ScaledObjects where KEDA is installed.

        Errors: ScaleError.
        """
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        try:
            claims = self._autoscaling.list_namespaced_horizontal_pod_autoscaler(
                namespace, _request_timeout=TIMEOUT_SECONDS
            )
            for claim in claims.items:
                if claim.metadata is not None and claim.spec is not None:
                    target = claim.spec.scale_target_ref
                    found[target.kind, target.name].append(f"HorizontalPodAutoscaler {namespace}/{claim.metadata.name}")
            # Of a paused ScaledObject there is no autoscaler; it claims its workload all the same.
            for scaled in self._scaled_objects(namespace):
                reference = scaled["spec"]["scaleTargetRef"]
                place = reference.get("kind", "Deployment"), reference["name"]
                found[place].append(f"ScaledObject {namespace}/{scaled['metadata']['name']}")
        except (ApiException, HTTPError) as error:
            raise _told(error, f"list the autoscalers of namespace {namespace}") from error
        return {place: tuple(names) for place, names in found.items()}

    def apply(self, act: Act) -> int:
        """Send the patch of `act`; the count that the workload then has.

        Errors: ScaleConflictError if the workload has changed since, else ScaleError.
        """
        move = act.move
        try:
            made = self._call(
                "patch", move.target, namespace=move.namespace, body=act.patch, _content_type=_MERGE_PATCH
            )
        except (ApiException, HTTPError) as error:
            raise _told(error, f"set the scale of {_name(move.namespace, move.target)}") from error
        return int(made.spec.replicas or 0)

    def tell(self, act: Act, *, now: datetime) -> None:
        """An Event at the workload: from how many to how many, on whose advice. Errors: ScaleError."""
        move, scale = act.move, act.scale
        event = client.CoreV1Event(
            metadata=client.V1ObjectMeta(generate_name=f"{move.target.name}.lagcast-", namespace=move.namespace),
            involved_object=client.V1ObjectReference(
                api_version=move.target.api_version,
                kind=move.target.kind,
                name=move.target.name,
                namespace=move.namespace,
                uid=scale.uid,
            ),
            type="Normal",
            reason="ScaledOnAdvice",
            message=f"{scale.replicas} -> {move.desired_replicas} replicas by lagcast's {move.recommendation_id}",
            source=client.V1EventSource(component="lagcast-executor"),
            first_timestamp=now,
            last_timestamp=now,
            count=1,
        )
        try:
            self._core.create_namespaced_event(move.namespace, event, _request_timeout=TIMEOUT_SECONDS)
        except (ApiException, HTTPError) as error:
            raise _told(error, f"leave an Event at {_name(move.namespace, move.target)}") from error

    def _scaled_objects(self, namespace: str) -> list[dict[str, Any]]:
        try:
            answer: Any = self._others.list_namespaced_custom_object(
                "keda.sh", "v1alpha1", namespace, "scaledobjects", _request_timeout=TIMEOUT_SECONDS
            )
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return []
            raise
        items: list[dict[str, Any]] = answer["items"]
        return items

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
    remedy = "; apply deploy/manifests/executor/target-role.yaml in its namespace" if error.status == _FORBIDDEN else ""
    return ScaleError(f"could not {asked}: the API server answered {error.status} {error.reason}{remedy}")
