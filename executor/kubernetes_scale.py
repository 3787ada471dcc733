"""Reads workloads and patches their `/scale`, and nothing else of them, through the official Kubernetes client."""

import socket
from collections import defaultdict
from datetime import datetime
from threading import Lock
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from api.schemas import Target
from executor.carry_out import Writers
from executor.errors import ScaleConflictError, ScaleError
from executor.kubernetes_client import NOT_FOUND, TIMEOUT_SECONDS, translate_error
from executor.owners import FIELD_MANAGER, git_owner, owners_of
from executor.plan import Act, Held, Scale

_MERGE_PATCH = "application/merge-patch+json"
# Kinds of this API group have their count at spec.replicas; for other kinds only /scale shows the count.
_OWN_GROUP = "apps"
_NOTE_LIMIT = 1000  # an Event's message may have 1,024 bytes


class KubernetesScales:
    """Workloads of any kind with a `/scale`, in one cluster. These kinds are read once."""

    def __init__(self, api: client.ApiClient) -> None:
        self._autoscaling = client.AutoscalingV2Api(api)
        self._others = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self._plurals: dict[tuple[str, str], str] = {}
        self._lock = Lock()

    def read(self, namespace: str, target: Target) -> Scale:
        """The workload's count, the version that it belongs to, and its writers. Errors: ScaleError."""
        where = self._address(namespace, target)
        try:
            workload: Any = self._others.get_namespaced_custom_object(*where, _request_timeout=TIMEOUT_SECONDS)
            counted = workload
            if where[0] != _OWN_GROUP:
                counted = self._others.get_namespaced_custom_object_scale(*where, _request_timeout=TIMEOUT_SECONDS)
        except (ApiException, HTTPError) as error:
            raise translate_error(error, f"read {_name(namespace, target)}") from error
        metadata = workload["metadata"]
        if counted["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            message = f"could not read {_name(namespace, target)}: another client changed it at the same time"
            raise ScaleConflictError(message)
        return Scale(
            replicas=int(counted["spec"].get("replicas") or 0),  # /scale omits a zero
            resource_version=str(metadata["resourceVersion"]),
            uid=metadata.get("uid"),
            owners=owners_of(metadata),
            git_owner=git_owner(metadata),
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
            # A paused ScaledObject has no autoscaler, but it still claims its workload.
            for scaled in self._scaled_objects(namespace):
                reference = scaled["spec"]["scaleTargetRef"]
                place = reference.get("kind", "Deployment"), reference["name"]
                found[place].append(f"ScaledObject {namespace}/{scaled['metadata']['name']}")
        except (ApiException, HTTPError) as error:
            raise translate_error(error, f"list the autoscalers of namespace {namespace}") from error
        return {place: tuple(names) for place, names in found.items()}

    def apply(self, act: Act) -> int:
        """Send the patch of `act`; returns the new replica count.

        Errors: ScaleConflictError if the workload has changed since, else ScaleError.
        """
        move = act.move
        where = self._address(move.namespace, move.target)
        try:
            made: Any = self._others.patch_namespaced_custom_object_scale(
                *where,
                act.patch,
                field_manager=FIELD_MANAGER,
                _content_type=_MERGE_PATCH,
                _request_timeout=TIMEOUT_SECONDS,
            )
        except (ApiException, HTTPError) as error:
            raise translate_error(error, f"set the scale of {_name(move.namespace, move.target)}") from error
        return int(made["spec"].get("replicas") or 0)

    def record_event(self, act: Act, *, now: datetime) -> None:
        """Create an Event on the workload: counts before and after, the advice, and who acted. Errors: ScaleError."""
        move = act.move
        note = f"{act.scale.replicas} -> {move.desired_replicas} replicas by lagcast's {move.recommendation_id}"
        self._leave_event(move.namespace, move.target, act.scale, note, reason="ScaledOnAdvice", now=now)

    def warn(self, namespace: str, target: Target, scale: Scale, held: Held, *, now: datetime) -> None:
        """Create an Event on a workload that another owner scales. Errors: ScaleError."""
        self._leave_event(namespace, target, scale, held.sentence[:_NOTE_LIMIT], reason="ScaleWithheld", now=now)

    def _leave_event(
        self, namespace: str, target: Target, scale: Scale, note: str, *, reason: str, now: datetime
    ) -> None:
        event = client.CoreV1Event(
            metadata=client.V1ObjectMeta(generate_name=f"{target.name}.lagcast-", namespace=namespace),
            involved_object=client.V1ObjectReference(
                api_version=target.api_version,
                kind=target.kind,
                name=target.name,
                namespace=namespace,
                uid=scale.uid,
            ),
            type="Normal" if reason == "ScaledOnAdvice" else "Warning",
            reason=reason,
            message=note,
            source=client.V1EventSource(component=FIELD_MANAGER),
            reporting_component=FIELD_MANAGER,
            reporting_instance=socket.gethostname(),  # in a cluster that of the pod
            first_timestamp=now,
            last_timestamp=now,
            count=1,
        )
        try:
            self._core.create_namespaced_event(namespace, event, _request_timeout=TIMEOUT_SECONDS)
        except (ApiException, HTTPError) as error:
            raise translate_error(error, f"leave an Event at {_name(namespace, target)}") from error

    def _scaled_objects(self, namespace: str) -> list[dict[str, Any]]:
        try:
            answer: Any = self._others.list_namespaced_custom_object(
                "keda.sh", "v1alpha1", namespace, "scaledobjects", _request_timeout=TIMEOUT_SECONDS
            )
        except ApiException as error:
            if error.status == NOT_FOUND:
                return []
            raise
        items: list[dict[str, Any]] = answer["items"]
        return items

    def _address(self, namespace: str, target: Target) -> tuple[str, str, str, str, str]:
        """Group, version, namespace, plural and name of a workload. Errors: ScaleError if it has no `/scale`."""
        group, _, version = target.api_version.rpartition("/")
        with self._lock:
            plural = self._plurals.get((target.api_version, target.kind))
            if plural is None:
                plural = self._plurals[target.api_version, target.kind] = self._plural(group, version, target.kind)
        return group, version, namespace, plural, target.name

    def _plural(self, group: str, version: str, kind: str) -> str:
        """Name of the kind in paths, from the cluster. Errors: ScaleError if it has no `/scale`."""
        what = f"{kind} of {group}/{version}"
        if not group:
            message = f"{kind} of {version} cannot be scaled; name a target whose apiVersion has a group, like apps/v1"
            raise ScaleError(message)
        try:
            known = self._others.get_api_resources(group, version, _request_timeout=TIMEOUT_SECONDS).resources
        except (ApiException, HTTPError) as error:
            if isinstance(error, ApiException) and error.status == NOT_FOUND:
                message = f"{what} is not known to the cluster; correct the target, or install what defines {kind}"
                raise ScaleError(message) from error
            raise translate_error(error, f"read the resources of {group}/{version}") from error
        names = {resource.name for resource in known}
        plural = next((each.name for each in known if each.kind == kind and "/" not in each.name), None)
        if plural is None:
            message = f"{what} is not known to the cluster; correct the target's kind and apiVersion"
            raise ScaleError(message)
        if f"{plural}/scale" not in names:
            message = f"{what} has no /scale, so nothing can set its replicas; name the workload that has one"
            raise ScaleError(message)
        return plural


def _name(namespace: str, target: Target) -> str:
    return f"{target.kind} {namespace}/{target.name}"
