"""A connection to a Kubernetes cluster, and the translation of its errors into those of the ports."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from recommender.ports import MalformedError, RejectedError, UnavailableError

# Type of the client that adapters hold, for modules that do not import the client library.
Connection = client.ApiClient
TIMEOUT_SECONDS = 10
# Lists are read in pages, so that a namespace of thousands of pods is not one response.
_PAGE = 500
# Of 500 entries each: a namespace with more objects of a kind is none.
MOST_PAGES = 1_000


def connect(kubeconfig: Path | None) -> Connection:
    """A client for the cluster of `kubeconfig`, or, without one, for the cluster that this process runs in.

    Errors: RejectedError.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is not None:
            config.load_kube_config(config_file=str(kubeconfig), client_configuration=settings)  # type: ignore[no-untyped-call]  # untyped there
        else:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]  # untyped there
    except (ConfigException, OSError) as error:
        message = f"no cluster to connect to: {error}; run inside one, or give --kubeconfig FILE"
        raise RejectedError(message) from error
    return Connection(settings)


def without_retries(api: Connection) -> Connection:
    """The same cluster over separate connections, on which a failed request is not sent again by the client library.

    A repeated request may arrive when it is no longer valid.
    """
    settings = copy.copy(api.configuration)
    settings.retries = False
    return Connection(settings)


def entries_of(page_of: Callable[..., Any], namespace: str) -> list[dict[str, Any]]:
    """Every entry of a list, as plain JSON: field names of the client's own types differ between its versions.

    Errors: MalformedError for a list that does not end.
    """
    entries: list[dict[str, Any]] = []
    words: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        answer = page_of(namespace, limit=_PAGE, **words, _preload_content=False, _request_timeout=TIMEOUT_SECONDS)
        if answer.status != HTTPStatus.OK:
            raise ApiException(status=answer.status, reason=answer.reason)
        page = json.loads(answer.data)
        entries += page["items"]
        if not page["metadata"].get("continue"):
            return entries
        words = {"_continue": page["metadata"]["continue"]}
    message = f"a list has more than {MOST_PAGES} pages of {_PAGE}: it does not end; is the API server what it seems?"
    raise MalformedError(message)


@contextmanager
def translate_error(action: str, *, grant: str, missing: str = "does it exist?") -> Iterator[None]:
    """Translate the client's exceptions into the ports' errors, each a sentence with the next step.

    `grant` names the permission to add where access is denied, `missing` the check where the object does not exist.
    """
    try:
        yield
    except HTTPError as error:
        message = f"could not {action}: {error}; is the cluster reachable?"
        raise UnavailableError(message) from error
    except ApiException as error:
        answered = f"could not {action}: the API server answered {error.status} {error.reason}"
        if error.status == HTTPStatus.FORBIDDEN:
            message = f"{answered}; grant {grant}"
        elif error.status == HTTPStatus.NOT_FOUND:
            message = f"{answered}; {missing}"
        else:
            message = f"{answered}: {_complaint(error)}"
        passing = error.status is None or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        kind = UnavailableError if passing or error.status == HTTPStatus.TOO_MANY_REQUESTS else RejectedError
        raise kind(message) from error


def _complaint(error: ApiException) -> str:
    """The API server's own message, where there is one."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"
