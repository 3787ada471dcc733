"""A connection to a Kubernetes cluster, and its errors as the executor's errors.

The recommender's adapters have a `connect` of their own, with their own error: recommender and executor share the
wire and no other code.
"""

from pathlib import Path

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from executor.errors import ScaleConflictError, ScaleError

TIMEOUT_SECONDS = 10
FORBIDDEN, NOT_FOUND, CONFLICT = 403, 404, 409


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


def translate_error(error: ApiException | HTTPError, action: str) -> ScaleError:
    """The client's error on the action `action`, as a sentence with the next step."""
    if not isinstance(error, ApiException):
        return ScaleError(f"could not {action}: {error}; is the cluster reachable?")
    if error.status == CONFLICT:
        return ScaleConflictError(f"could not {action}: another client changed it at the same time")
    remedy = ""
    if error.status == FORBIDDEN:
        remedy = "; apply deploy/manifests/executor/target-role.yaml in its namespace"
    elif error.status == NOT_FOUND:
        remedy = "; does it exist?"
    return ScaleError(f"could not {action}: the API server answered {error.status} {error.reason}{remedy}")
