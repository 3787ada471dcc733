"""An API server's answers as the errors of the port; tests/live tries the rest on a real one."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from recommender.adapters import kubernetes_scalers
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.ports import AdapterError, RejectedError, UnavailableError


def answered(status: int, message: str = "") -> ApiException:
    """The exception that the client raises."""
    error = ApiException(status=status, reason="Reason")
    error.body = f'{{"message": "{message}"}}'
    return error


@pytest.mark.parametrize(
    ("raised", "kind", "sentence"),
    [
        (answered(403), RejectedError, "grant list and watch on consumergroupscalers.lagcast.io"),
        (answered(404), RejectedError, "is the resource installed (deploy/manifests/scalers/crd.yaml)?"),
        (answered(422, "too bad"), RejectedError, "the API server answered 422 Reason: too bad"),
        (answered(429, "slow down"), UnavailableError, "answered 429 Reason: slow down"),
        (answered(503), UnavailableError, "answered 503 Reason"),
        (ProtocolError("Connection aborted."), UnavailableError, "is the cluster reachable?"),
    ],
)
def test_an_answer_is_a_sentence_with_the_next_step(
    raised: Exception, kind: type[AdapterError], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rejection differs from a cluster that may answer later, which is left alone for the rest of the cycle."""

    def fail(*_words: Any, **_named: Any) -> None:  # noqa: ANN401  # the client's own signature
        raise raised

    monkeypatch.setattr(client.CustomObjectsApi, "list_namespaced_custom_object", fail)
    objects = KubernetesScalers(client.ApiClient(client.Configuration()), ["shop"])
    with pytest.raises(kind) as caught, objects.following():
        pass
    assert type(caught.value) is kind
    assert "could not list the consumergroupscalers of namespace shop" in str(caught.value)
    assert sentence in str(caught.value)


def test_without_a_cluster_there_is_a_sentence(tmp_path: Path) -> None:
    """The error is the same for a missing kubeconfig and for a process outside a cluster."""
    for kubeconfig in (tmp_path / "missing", None):
        with pytest.raises(RejectedError, match=r"no cluster to connect to: .*give --kubeconfig FILE"):
            connect(kubeconfig)


class Silent:
    """A watch that reports nothing until it is stopped."""

    resource_version = "7"

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def stream(self, *_words: Any, **_named: Any) -> Iterator[Any]:  # noqa: ANN401  # the client's own signature
        """Yield nothing."""
        self._stopped.wait()
        return iter(())

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()


@pytest.mark.parametrize(("version", "kept"), [("6", "7"), ("8", "8")])
def test_the_answer_to_a_write_replaces_older_states_only(
    monkeypatch: pytest.MonkeyPatch, version: str, kept: str
) -> None:
    """The watch may have reported a later state meanwhile, or the end of the object."""

    def state(number: str, uid: str = "one") -> dict[str, Any]:
        return {"metadata": {"namespace": "shop", "name": "orders", "uid": uid, "resourceVersion": number}}

    written = [state(version), state("9", uid="its predecessor")]
    listed = {"metadata": {"resourceVersion": "7"}, "items": [state("7")]}
    monkeypatch.setattr(kubernetes_scalers, "Watch", Silent)
    monkeypatch.setattr(client.CustomObjectsApi, "list_namespaced_custom_object", lambda *_, **__: listed)
    monkeypatch.setattr(
        client.CustomObjectsApi, "patch_namespaced_custom_object_status", lambda *_, **__: written.pop(0)
    )
    objects = KubernetesScalers(client.ApiClient(client.Configuration()), ["shop"])
    with objects.following():
        for _ in range(2):
            objects.write_status(state("7"), {})
            assert [each["metadata"]["resourceVersion"] for each in objects.documents()] == [kept]


class CutOnce(Silent):
    """A watch whose first stream ends within a line, for which the client yields None."""

    cut = threading.Event()

    def stream(self, *words: Any, **named: Any) -> Iterator[Any]:  # noqa: ANN401  # the client's own signature
        """Yield half a line, and nothing after that."""
        if not self.cut.is_set():
            self.cut.set()
            return iter((None,))
        return super().stream(*words, **named)


def test_half_a_line_of_a_watch_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not end the following, and the change in it is in the list after it."""
    CutOnce.cut.clear()
    changed = threading.Event()

    def listed(*_words: Any, **_named: Any) -> dict[str, Any]:  # noqa: ANN401  # the client's own signature
        version = "8" if CutOnce.cut.is_set() else "7"
        if version == "8":
            changed.set()
        found = {"metadata": {"namespace": "shop", "name": "orders", "uid": "one", "resourceVersion": version}}
        return {"metadata": {"resourceVersion": version}, "items": [found]}

    monkeypatch.setattr(kubernetes_scalers, "Watch", CutOnce)
    monkeypatch.setattr(kubernetes_scalers, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(client.CustomObjectsApi, "list_namespaced_custom_object", listed)
    objects = KubernetesScalers(client.ApiClient(client.Configuration()), ["shop"])
    with objects.following():
        assert changed.wait(timeout=30)
    (found,) = objects.documents()
    assert found["metadata"]["resourceVersion"] == "8"
