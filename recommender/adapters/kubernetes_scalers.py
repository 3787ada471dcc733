"""ConsumerGroupScalers in a Kubernetes cluster: listed once, watched from then on, written by server-side apply.

Nothing else is read from the cluster, and only `status` and Events are written, and objects created.
"""

import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import structlog
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.watch import Watch
from urllib3.exceptions import HTTPError

from recommender.adapters.kubernetes_client import TIMEOUT_SECONDS, translate_error, without_retries
from recommender.cluster.scaler import API_GROUP, API_VERSION, KIND, PLURAL, Document, place_of
from recommender.cluster.scaler_status import Status, Transition
from recommender.ports import AdapterError

FIELD_MANAGER = "lagcast"
# A watch is restarted this often: a dead connection is noticed then at the latest.
_WATCH_SECONDS = 240
_RETRY_SECONDS = 5.0
# Less than the 5 s within which the work that a holder of the lease has begun must end.
_WRITE_SECONDS = 4
_APPLY = "application/apply-patch+yaml"
_NOT_INSTALLED = "is the resource installed (deploy/manifests/scalers/crd.yaml)?"

_log = structlog.get_logger()


class KubernetesScalers:
    """The objects of some namespaces, as the last list and the watch returned them; a `ScalerObjects`.

    `following` begins with a list, so that every object is known inside its block.
    """

    def __init__(self, api: client.ApiClient, namespaces: Sequence[str]) -> None:
        self._custom = client.CustomObjectsApi(api)
        self._writing = client.CustomObjectsApi(without_retries(api))
        self._namespaces = namespaces
        self._known: dict[tuple[str, str], Document] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._watches: dict[str, Watch] = {}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Keep up with the cluster until the block ends. Errors: AdapterError where the first list fails."""
        versions = {namespace: self._list(namespace) for namespace in self._namespaces}
        threads = [
            threading.Thread(target=self._follow, args=(namespace, version), name=f"watch {namespace}", daemon=True)
            for namespace, version in versions.items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for watch in list(self._watches.values()):
                watch.stop()  # type: ignore[no-untyped-call]  # untyped there
            for thread in threads:
                thread.join(timeout=TIMEOUT_SECONDS)

    def documents(self) -> tuple[Document, ...]:
        """Every object that is known, by namespace and name."""
        with self._lock:
            return tuple(self._known[place] for place in sorted(self._known))

    def write_status(self, document: Document, status: Status) -> None:
        """Set the status of `document` by server-side apply: fields of other managers stay as they are."""
        namespace, name = place_of(document)
        # With the uid, an object that was deleted and made again meanwhile does not get the status of its namesake.
        metadata = {"namespace": namespace, "name": name, "uid": document["metadata"]["uid"]}
        body = {"apiVersion": f"{API_GROUP}/{API_VERSION}", "kind": KIND, "metadata": metadata, "status": status}
        with translate_error(f"write the status of {namespace}/{name}", grant=f"patch on {PLURAL}/status.{API_GROUP}"):
            written: Any = self._writing.patch_namespaced_custom_object_status(
                API_GROUP,
                API_VERSION,
                namespace,
                PLURAL,
                name,
                body,
                field_manager=FIELD_MANAGER,
                force=True,
                _content_type=_APPLY,
                _request_timeout=_WRITE_SECONDS,
            )
        self._keep(written, known_alone=True)

    def record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        """Write an Event about `document`."""
        namespace, name = place_of(document)
        regarding = {"apiVersion": f"{API_GROUP}/{API_VERSION}", "kind": KIND, "namespace": namespace, "name": name}
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": f"{name}.{secrets.token_hex(8)}"},
            # Microseconds are written even where they are 0: the API server rejects a shorter form.
            "eventTime": now.astimezone(UTC).isoformat(timespec="microseconds"),
            "reportingController": f"{API_GROUP}/{FIELD_MANAGER}",
            "reportingInstance": socket.gethostname()[:128],
            "action": "Recommend",
            "reason": event.reason,
            "type": event.kind,
            "note": event.note,
            "regarding": {**regarding, "uid": document["metadata"]["uid"]},
        }
        with translate_error(f"make an Event about {namespace}/{name}", grant="create on events.events.k8s.io"):
            self._writing.create_namespaced_custom_object(
                "events.k8s.io", "v1", namespace, "events", body, _request_timeout=_WRITE_SECONDS
            )

    def create(self, document: Document) -> bool:
        """Create an object; False if its name is taken."""
        namespace, name = place_of(document)
        with translate_error(f"create {namespace}/{name}", grant=f"create on {PLURAL}.{API_GROUP}"):
            try:
                created: Any = self._writing.create_namespaced_custom_object(
                    API_GROUP,
                    API_VERSION,
                    namespace,
                    PLURAL,
                    dict(document),
                    field_manager=FIELD_MANAGER,
                    _request_timeout=_WRITE_SECONDS,
                )
            except ApiException as error:
                if error.status == HTTPStatus.CONFLICT:
                    return False
                raise
        self._keep(created)
        return True

    def _list(self, namespace: str) -> str:
        """Read all objects of a namespace; returns the version from which to watch it."""
        with translate_error(
            f"list the {PLURAL} of namespace {namespace}",
            grant=f"list and watch on {PLURAL}.{API_GROUP}",
            missing=_NOT_INSTALLED,
        ):
            found: Any = self._custom.list_namespaced_custom_object(
                API_GROUP, API_VERSION, namespace, PLURAL, _request_timeout=TIMEOUT_SECONDS
            )
        objects = {place_of(each): each for each in found["items"]}
        with self._lock:
            others = {place: each for place, each in self._known.items() if place[0] != namespace}
            self._known = others | objects
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, namespace: str, first_version: str) -> None:
        """Apply every change after `first_version`, until `_stop`.

        A watch that ends is resumed where it was. A watch that fails begins again with a list, which shows that the
        cluster responds again and which changes were missed; so does a watch whose version the cluster no longer has
        (410).
        """
        version: str | None = first_version
        failing = False
        while not self._stop.is_set():
            try:
                if version is None:
                    version = self._list(namespace)
                if failing:
                    _log.info("watching_resumed", namespace=namespace)
                failing = False
                version = self._watch(namespace, version)
            except (AdapterError, ApiException, HTTPError, OSError) as error:
                version = None
                expired = isinstance(error, ApiException) and error.status == HTTPStatus.GONE
                if expired or self._stop.is_set():
                    continue
                if not failing:
                    _log.warning("watching_failed", namespace=namespace, error=str(error))
                failing = True
                self._stop.wait(_RETRY_SECONDS)

    def _watch(self, namespace: str, version: str) -> str:
        """Apply changes for as long as one watch lasts; returns the last version."""
        watch = Watch()  # type: ignore[no-untyped-call]  # untyped there
        self._watches[namespace] = watch
        changes = watch.stream(  # type: ignore[no-untyped-call]  # untyped there
            self._custom.list_namespaced_custom_object,
            *(API_GROUP, API_VERSION, namespace, PLURAL),
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=_WATCH_SECONDS,
            _request_timeout=(TIMEOUT_SECONDS, _WATCH_SECONDS + TIMEOUT_SECONDS),
        )
        for change in changes:
            if change is None:  # the client's word for half a line: the connection was cut within it
                message = f"the watch of namespace {namespace} was cut within a line"
                raise ConnectionResetError(message)
            if change["type"] == "DELETED":
                with self._lock:
                    self._known.pop(place_of(change["object"]), None)
            elif change["type"] != "BOOKMARK":
                self._keep(change["object"])
        return str(watch.resource_version)

    def _keep(self, document: Document, *, known_alone: bool = False) -> None:
        """Keep an object, unless a newer version of it is known; `known_alone`: only if the object is still known.

        A written object comes both in the response and through the watch: either may come last, after a deletion too.
        """
        place = place_of(document)
        with self._lock:
            known = self._known.get(place)
            if known is None or known["metadata"]["uid"] != document["metadata"]["uid"]:
                if not known_alone:
                    self._known[place] = document
            elif _version(document) >= _version(known):
                self._known[place] = document


def _version(document: Document) -> int:
    """Version of an object as a number: versions of one object grow."""
    return int(document["metadata"]["resourceVersion"])
