"""What an API server answers, as the errors of the port; the rest is tried on a real one in tests/live."""

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.ports import AdapterError, RejectedError, UnavailableError


def answered(status: int, message: str = "") -> ApiException:
    """What the client raises."""
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
    """A clear no is told from a cluster that may answer later, which is left alone for the rest of the cycle."""

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
    """A kubeconfig that is not there, and no cluster around the process."""
    for kubeconfig in (tmp_path / "missing", None):
        with pytest.raises(RejectedError, match=r"no cluster to connect to: .*give --kubeconfig FILE"):
            connect(kubeconfig)
