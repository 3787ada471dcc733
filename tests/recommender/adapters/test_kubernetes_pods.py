"""Lists of the API server as views of namespaces; tests/live reads a real one with the recommender's own role."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from recommender.adapters import kubernetes_pods
from recommender.adapters.kubernetes_pods import KubernetesPods
from recommender.cluster.workloads import Owner
from tests.recommender.cluster.test_workloads import hpa, pod, scaled_object

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ORDERS = Owner("Deployment", "orders")


@dataclass
class Lists:
    """The lists of an API server by resource: what a test puts there is answered or raised."""

    pods: Any = field(default_factory=lambda: [pod()])
    horizontalpodautoscalers: Any = field(default_factory=lambda: [hpa(minReplicas=3)])
    scaledobjects: Any = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def of(self, resource: str) -> Callable[..., Any]:
        """The client's method that lists a resource, page by page of one entry."""

        def page_of(*_words: Any, _continue: str = "0", **_named: Any) -> Any:  # noqa: ANN401  # the client's own
            self.requests.append(resource)
            found = getattr(self, resource)
            if isinstance(found, Exception):
                raise found
            place = int(_continue)
            further = {"continue": str(place + 1)} if place + 1 < len(found) else {}
            return Answer(json.dumps({"items": found[place : place + 1], "metadata": further}))

        return page_of


@dataclass
class Answer:
    """An HTTP answer."""

    data: str
    status: int = 200


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Lists:
    found = Lists()
    monkeypatch.setattr(client.CoreV1Api, "list_namespaced_pod", found.of("pods"))
    monkeypatch.setattr(
        client.AutoscalingV2Api, "list_namespaced_horizontal_pod_autoscaler", found.of("horizontalpodautoscalers")
    )
    monkeypatch.setattr(client.CustomObjectsApi, "list_namespaced_custom_object", found.of("scaledobjects"))
    return found


@pytest.fixture
def reader(lists: Lists) -> KubernetesPods:
    del lists
    return KubernetesPods(client.ApiClient(client.Configuration()), ["shop"], clock=lambda: NOON)


def test_every_page_of_every_list_is_in_the_view(lists: Lists, reader: KubernetesPods) -> None:
    """Two pods on two pages, the bounds of the ScaledObject, and the instant of the reading."""
    lists.pods, lists.scaledobjects = [pod("a"), pod("b")], [scaled_object(maxReplicaCount=9)]
    reader.read()
    view = reader.views()["shop"]
    assert (view.seen_at, len(view.pods[ORDERS]), view.bounds[ORDERS].max_replicas) == (NOON, 2, 9)


@pytest.mark.parametrize(
    ("resource", "right"),
    [
        ("pods", "grant list on pods"),
        ("horizontalpodautoscalers", "grant list on horizontalpodautoscalers.autoscaling"),
        ("scaledobjects", "grant list on scaledobjects.keda.sh"),
    ],
)
def test_what_may_not_be_listed_is_logged_once_with_the_right_and_the_rest_is_read(
    lists: Lists, reader: KubernetesPods, capsys: pytest.CaptureFixture[str], resource: str, right: str
) -> None:
    """After the right is granted and taken away again, it is logged again."""
    answers = getattr(lists, resource)
    for answer in (ApiException(status=403, reason="Forbidden"), answers, ApiException(status=403, reason="Forbidden")):
        setattr(lists, resource, answer)
        reader.read()
        reader.read()
    assert capsys.readouterr().out.count(right) == 2
    view = reader.views()["shop"]
    assert bool(view.pods) == (resource != "pods")
    assert bool(view.bounds) == (resource != "horizontalpodautoscalers")


def test_a_cluster_without_keda_has_no_scaled_objects_and_nothing_is_logged(
    lists: Lists, reader: KubernetesPods, capsys: pytest.CaptureFixture[str]
) -> None:
    """404 on KEDA's kind is the usual answer."""
    lists.scaledobjects = ApiException(status=404, reason="Not Found")
    reader.read()
    assert reader.views()["shop"].bounds[ORDERS].min_replicas == 3
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("failure", [ProtocolError("Connection aborted."), ApiException(status=503, reason="Away")])
def test_while_the_api_server_is_away_the_last_view_holds(
    lists: Lists, reader: KubernetesPods, capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    """The bounds of a group do not change because one list failed; the failure is logged once."""
    reader.read()
    before = reader.views()["shop"]
    lists.pods, lists.horizontalpodautoscalers = [], failure
    reader.read()
    reader.read()
    assert reader.views()["shop"] is before
    assert capsys.readouterr().out.count("workloads_unknown") == 1


def test_views_are_kept_up_to_date_inside_the_block(
    lists: Lists, reader: KubernetesPods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is there when it begins; later ones come, though one document cannot be read; at the end it stops."""
    monkeypatch.setattr(kubernetes_pods, "READ_EVERY_SECONDS", 0.001)
    again = threading.Event()
    with reader.following():
        assert reader.views()["shop"].bounds[ORDERS].min_replicas == 3
        lists.pods = [{"odd": True}]
        monkeypatch.setattr(kubernetes_pods._log, "exception", lambda *_words: again.set())
        assert again.wait(10)
        again.clear()
        lists.pods, lists.horizontalpodautoscalers = [pod()], [hpa(minReplicas=7)]
        seen = threading.Event()
        while not seen.wait(0.001):
            if reader.views()["shop"].bounds[ORDERS].min_replicas == 7:
                seen.set()
    assert [thread.name for thread in threading.enumerate() if thread.name == "pods"] == []
