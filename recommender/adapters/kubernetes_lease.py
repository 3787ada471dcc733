"""A Lease of a Kubernetes cluster (coordination.k8s.io/v1): it is only read and replaced.

It is created with the installation, like the role that names it, so that no recommender needs the right to create one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from recommender.adapters.kubernetes_client import translate_error, without_retries
from recommender.cluster.leadership import Lease, LeaseFailedError, LeaseTakenError, LeaseTerms
from recommender.ports import AdapterError

_API = ("coordination.k8s.io", "v1")
# For a Lease without a duration.
_DEFAULT_SECONDS = LeaseTerms().lease_seconds
# Half a renew deadline: a renewal that is not answered leaves time for another.
_TIMEOUT_SECONDS = LeaseTerms().renew_deadline_seconds / 2
_MISSING = "make it: kubectl apply -f deploy/manifests/replicas/lease.yaml"


class KubernetesLease:
    """A `Leases` over the Lease `namespace/name`. `clock` gives the `renewTime` that is written, for people to read."""

    def __init__(self, api: client.ApiClient, namespace: str, name: str, *, clock: Callable[[], datetime]) -> None:
        self._custom = client.CustomObjectsApi(without_retries(api))
        self._place = (*_API, namespace, "leases", name)
        self._name, self._clock = f"{namespace}/{name}", clock
        # Fields beside the holder, such as labels and the time of acquisition, are written back unchanged.
        self._document: dict[str, Any] = {}

    def read(self) -> Lease:
        """The lease as it stands."""
        with _failing(f"read the Lease {self._name}", grant="get"):
            found: Any = self._custom.get_namespaced_custom_object(*self._place, _request_timeout=_TIMEOUT_SECONDS)
        return self._known(found)

    def write(self, before: Lease, *, holder: str, lease_seconds: float) -> Lease:
        """Make `holder` its holder, unless the version of `before` has changed. Errors: LeaseTakenError."""
        now = self._clock().astimezone(UTC).isoformat(timespec="microseconds")
        spec: dict[str, Any] = dict(self._document.get("spec") or {})
        if holder not in ("", spec.get("holderIdentity")):
            spec |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        spec |= {"holderIdentity": holder, "leaseDurationSeconds": round(lease_seconds), "renewTime": now}
        metadata = self._document["metadata"] | {"resourceVersion": before.version}
        body = self._document | {"metadata": metadata, "spec": spec}
        with _failing(f"write the Lease {self._name}", grant="update"):
            try:
                written: Any = self._custom.replace_namespaced_custom_object(
                    *self._place, body, _request_timeout=_TIMEOUT_SECONDS
                )
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                message = f"another client wrote the Lease {self._name} since it was read"
                raise LeaseTakenError(message) from error
        return self._known(written)

    def _known(self, document: dict[str, Any]) -> Lease:
        self._document = document
        spec: dict[str, Any] = document.get("spec") or {}
        # A Lease with a renewal time has had a holder; without a holder it was released.
        holder = spec.get("holderIdentity") or ("" if spec.get("renewTime") else None)
        return Lease(
            holder=holder,
            lease_seconds=float(spec.get("leaseDurationSeconds") or _DEFAULT_SECONDS),
            version=str(document["metadata"]["resourceVersion"]),
        )


@contextmanager
def _failing(action: str, *, grant: str) -> Iterator[None]:
    try:
        with translate_error(action, grant=f"{grant} on leases.coordination.k8s.io", missing=_MISSING):
            yield
    except AdapterError as error:
        raise LeaseFailedError(str(error)) from error
