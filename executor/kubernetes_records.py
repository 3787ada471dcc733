"""Records of the executor in ConsumerGroupScalers: its own two fields of `status`, by server-side apply."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from executor.claim import KIND, eldest_first, group_of
from executor.errors import ScaleError
from executor.kubernetes_claims import RESOURCE_GROUP, RESOURCE_PLURAL, RESOURCE_VERSION, scaler_objects
from executor.kubernetes_client import TIMEOUT_SECONDS, translate_error
from executor.owners import FIELD_MANAGER
from executor.standing import Applied, Conflict, Record

_APPLY = "application/apply-patch+yaml"


class KubernetesRecords:
    """The ConsumerGroupScalers of a cluster; a `Records`. If the resource is not installed, it is empty."""

    def __init__(self, api: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api)

    def read(self, namespace: str) -> Mapping[tuple[str, str], Record | ScaleError]:
        """The records by cluster and group; of two objects for one group the older counts.

        The record of an object that cannot be read is its error. Errors: ScaleError.
        """
        records: dict[tuple[str, str], Record | ScaleError] = {}
        for each in eldest_first(scaler_objects(self._custom, namespace)):
            group = group_of(each)
            if group is not None:
                records.setdefault(group, _record_or_error(each))
        return records

    def write(self, namespace: str, record: Record) -> None:
        """Set both fields; a field that is None is removed, other managers' fields stay. Errors: ScaleError."""
        status: dict[str, Any] = {}
        if record.applied is not None:
            status["lastApplied"] = {
                "workload": record.workload,
                "recommendationId": record.applied.recommendation_id,
                "replicas": record.applied.replicas,
                "at": _instant(record.applied.at),
            }
        if record.conflict is not None:
            status["conflict"] = {
                "workload": record.workload,
                "reason": record.conflict.reason,
                "message": record.conflict.message,
                "since": _instant(record.conflict.since),
            }
        # With the uid, an object that was deleted and created again does not get the record of the old one.
        metadata = {"namespace": namespace, "name": record.name, "uid": record.uid}
        body = {
            "apiVersion": f"{RESOURCE_GROUP}/{RESOURCE_VERSION}",
            "kind": KIND,
            "metadata": metadata,
            "status": status,
        }
        try:
            self._custom.patch_namespaced_custom_object_status(
                RESOURCE_GROUP,
                RESOURCE_VERSION,
                namespace,
                RESOURCE_PLURAL,
                record.name,
                body,
                field_manager=FIELD_MANAGER,
                force=True,
                _content_type=_APPLY,
                _request_timeout=TIMEOUT_SECONDS,
            )
        except (ApiException, HTTPError) as error:
            raise translate_error(error, f"write the status of {KIND} {namespace}/{record.name}") from error


def _record_or_error(document: Mapping[str, Any]) -> Record | ScaleError:
    """The record of an object, whatever its status holds: others may write to it."""
    try:
        return _record(document)
    except Exception as error:  # noqa: BLE001  # one object must not end the looks at all others
        place = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
        return ScaleError(
            f"the status of {KIND} {place} cannot be read ({type(error).__name__}: {error}); remove lastApplied and "
            "conflict from it"
        )


def _record(document: Mapping[str, Any]) -> Record:
    status = document.get("status") or {}
    applied, conflict = status.get("lastApplied"), status.get("conflict")
    return Record(
        name=document["metadata"]["name"],
        uid=document["metadata"]["uid"],
        workload=(applied or conflict or {}).get("workload"),
        applied=None
        if applied is None
        else Applied(
            recommendation_id=applied["recommendationId"],
            replicas=applied["replicas"],
            at=datetime.fromisoformat(applied["at"]),
        ),
        conflict=None
        if conflict is None
        else Conflict(
            reason=conflict["reason"], message=conflict["message"], since=datetime.fromisoformat(conflict["since"])
        ),
    )


def _instant(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
