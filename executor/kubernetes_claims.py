"""Claims of owners: the ConsumerGroupScalers of a cluster, read anew whenever a workload is to be touched."""

from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from executor.claim import KIND, Claim, Claims, Document, claims_of, read_claim
from executor.errors import ScaleError
from executor.kubernetes_client import NOT_FOUND, TIMEOUT_SECONDS, translate_error

RESOURCE_GROUP, RESOURCE_VERSION, RESOURCE_PLURAL = "lagcast.io", "v1alpha1", "consumergroupscalers"


class KubernetesClaims:
    """The claims in a cluster; where the resource is not installed there are none."""

    def __init__(self, api: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api)

    def read(self, namespace: str) -> Claims:
        """The claims of a namespace by cluster and group, or the error of one. Errors: ScaleError."""
        return claims_of(scaler_objects(self._custom, namespace))

    def is_current(self, claim: Claim) -> bool:
        """True if the object of `claim` is as it was read, its spec unchanged. Errors: ScaleError."""
        try:
            document: Any = self._custom.get_namespaced_custom_object(
                RESOURCE_GROUP,
                RESOURCE_VERSION,
                claim.namespace,
                RESOURCE_PLURAL,
                claim.name,
                _request_timeout=TIMEOUT_SECONDS,
            )
        except (ApiException, HTTPError) as error:
            if isinstance(error, ApiException) and error.status == NOT_FOUND:
                return False
            raise translate_error(error, f"read {KIND} {claim.place}") from error
        return read_claim(document) == claim


def scaler_objects(custom: client.CustomObjectsApi, namespace: str) -> list[Document]:
    """The ConsumerGroupScalers of a namespace; none where the resource is not installed. Errors: ScaleError."""
    try:
        found: Any = custom.list_namespaced_custom_object(
            RESOURCE_GROUP,
            RESOURCE_VERSION,
            namespace,
            RESOURCE_PLURAL,
            _request_timeout=TIMEOUT_SECONDS,
        )
    except (ApiException, HTTPError) as error:
        if isinstance(error, ApiException) and error.status == NOT_FOUND:
            return []
        raise translate_error(error, f"list the ConsumerGroupScalers of namespace {namespace}") from error
    items: list[Document] = found["items"]
    if any(each["metadata"]["namespace"] != namespace for each in items):
        message = f"asked for the {KIND}s of namespace {namespace!r}, the cluster answered with those of another"
        raise ScaleError(message)
    return items
