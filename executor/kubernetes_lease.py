"""Reads one Lease of a cluster, and nothing else."""

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from executor.advice import proven_skew
from executor.errors import ScaleError
from executor.lease import Sighting

# Less than a third of a lease: after one missing answer there is time for another request.
_TIMEOUT_SECONDS = 4
# Used if the Lease has no duration: Kubernetes' own default.
_LEASE_SECONDS = 15.0


class KubernetesLease:
    """The Lease `namespace/name`; the API server's `Date` is compared with `clock`."""

    def __init__(self, api: client.ApiClient, namespace: str, name: str, *, clock: Callable[[], datetime]) -> None:
        self.name = f"{namespace}/{name}"
        # Without retries of the client: the next look is the retry.
        settings = copy.copy(api.configuration)
        settings.retries = False
        self._custom = client.CustomObjectsApi(client.ApiClient(settings))
        self._place = ("coordination.k8s.io", "v1", namespace, "leases", name)
        self._clock = clock

    def read(self) -> Sighting:
        """The Lease as it stands. Errors: ScaleError."""
        asked_at = self._clock()
        try:
            answer: Any = self._custom.get_namespaced_custom_object_with_http_info(
                *self._place, _request_timeout=_TIMEOUT_SECONDS
            )
        except HTTPError as error:
            message = f"{error}; is the cluster reachable?"
            raise ScaleError(message) from error
        except ApiException as error:
            message = f"the API server answered {error.status} {error.reason}; does it exist, and is get on it granted?"
            raise ScaleError(message) from error
        document, _, headers = answer
        spec = document.get("spec") or {}
        return Sighting(
            holder=str(spec.get("holderIdentity") or ""),
            renewed=str(spec.get("renewTime") or ""),
            lease_seconds=float(spec.get("leaseDurationSeconds") or _LEASE_SECONDS),
            clock_skew=proven_skew(headers.get("Date"), between=(asked_at, self._clock())),
        )
