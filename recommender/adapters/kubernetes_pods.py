"""Pods and autoscalers of some namespaces, listed once a minute; nothing else is read, and nothing is written."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from recommender.adapters.kubernetes_client import TIMEOUT_SECONDS, entries_of, translate_error
from recommender.cluster.workloads import NamespaceView, namespace_view
from recommender.ports import AdapterError, RejectedError, UnavailableError

READ_EVERY_SECONDS = 60.0
HPAS = "horizontalpodautoscalers.autoscaling"
SCALED_OBJECTS = "scaledobjects.keda.sh"
_ALL = "*"

_log = structlog.get_logger()


class KubernetesPods:
    """The newest view of each namespace; a `NamespaceViews`.

    What may not be read is logged once, with the right that is missing, and stays unknown. While the API server does
    not answer, the last views hold.
    """

    def __init__(self, api: client.ApiClient, namespaces: Sequence[str], *, clock: Callable[[], datetime]) -> None:
        self._lists: dict[str, Callable[..., Any]] = {
            "pods": client.CoreV1Api(api).list_namespaced_pod,
            HPAS: client.AutoscalingV2Api(api).list_namespaced_horizontal_pod_autoscaler,
            SCALED_OBJECTS: partial(_scaled_objects, client.CustomObjectsApi(api)),
        }
        self._namespaces, self._clock = namespaces, clock
        self._views: dict[str, NamespaceView] = {}
        self._unread: set[tuple[str, str]] = set()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Keep the views up to date until the block ends; what can be read has been read once when it begins."""
        stop = threading.Event()
        self.read()
        thread = threading.Thread(target=self._follow, args=(stop,), name="pods", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(timeout=TIMEOUT_SECONDS)

    def views(self) -> Mapping[str, NamespaceView]:
        """The newest view of each namespace that could be read."""
        return self._views

    def read(self) -> None:
        """Read every namespace anew."""
        for namespace in self._namespaces:
            seen_at = self._clock()
            try:
                pods, autoscalers, scaled_objects = (self._list(namespace, resource) for resource in self._lists)
            except UnavailableError as error:
                self._report(namespace, _ALL, error)
                continue
            self._unread.discard((namespace, _ALL))
            view = namespace_view(pods, autoscalers, scaled_objects, seen_at=seen_at)
            self._views = self._views | {namespace: view}

    def _follow(self, stop: threading.Event) -> None:
        while not stop.wait(READ_EVERY_SECONDS):
            try:
                self.read()
            except Exception:  # noqa: BLE001  # one odd document must not end what runs for months
                _log.exception("workloads_not_read")

    def _list(self, namespace: str, resource: str) -> list[dict[str, Any]]:
        """Every object of that kind, none where they may not be listed. Errors: UnavailableError."""
        try:
            with translate_error(f"list the {resource} of namespace {namespace}", grant=f"list on {resource}"):
                found = _found(self._lists[resource], namespace)
        except RejectedError as error:
            self._report(namespace, resource, error)
            return []
        self._unread.discard((namespace, resource))
        return found

    def _report(self, namespace: str, resource: str, error: AdapterError) -> None:
        """Log a failure once, until that can be read again."""
        if (namespace, resource) not in self._unread:
            _log.warning("workloads_unknown", namespace=namespace, error=str(error))
        self._unread.add((namespace, resource))


def _scaled_objects(custom: client.CustomObjectsApi, namespace: str, **words: Any) -> Any:  # noqa: ANN401  # an HTTP answer
    return custom.list_namespaced_custom_object("keda.sh", "v1alpha1", namespace, "scaledobjects", **words)


def _found(page_of: Callable[..., Any], namespace: str) -> list[dict[str, Any]]:
    """Every entry of a list; none where the cluster does not know the kind, as KEDA's where KEDA is not installed."""
    try:
        return entries_of(page_of, namespace)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return []
