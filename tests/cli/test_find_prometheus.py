"""`auto` in place of an address: what is looked for where, what is said, and what is refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli import find_prometheus
from cli.errors import InputError
from cli.find_prometheus import Search
from cli.progress import Talk
from recommender.adapters import kubernetes_services
from recommender.ports import RejectedError, UnavailableError
from tests.recommender.cluster.test_prometheus_services import COMMUNITY, KUBE_PROMETHEUS

Services = Mapping[str, list[dict[str, Any]]]
Searched = Callable[..., Search]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Searched:
    """A search in a cluster with these Services; other namespaces may not be listed."""

    def search(services: Services, *, inside: tuple[str, ...] = (), kubeconfig: Path | None = None) -> Search:
        def listed(_api: object, namespace: str) -> list[dict[str, Any]]:
            if namespace not in services:
                message = f"could not list the services of namespace {namespace}: 403; grant list on services"
                raise RejectedError(message)
            return services[namespace]

        monkeypatch.setattr(find_prometheus, "cluster_client", lambda *_, **__: object())
        monkeypatch.setattr(kubernetes_services, "services_in", listed)
        return Search(inside=inside, followed=("shop",), kubeconfig=kubeconfig, talk=Talk())

    return search


def test_an_address_is_taken_as_it_is_without_asking_the_cluster(
    searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only `auto` is looked for."""
    search = searched({})
    assert search.address_of("http://prometheus:9090", option="--prometheus") == "http://prometheus:9090"
    assert search.address_of("", option="--node-prices") == ""
    assert capsys.readouterr().err == ""


def test_auto_is_the_server_that_is_found_and_a_line_says_which(
    searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    """A namespace whose Services may not be listed does not matter, where another one has the server."""
    search = searched({"monitoring": [KUBE_PROMETHEUS]})
    assert search.address_of("auto", option="--node-prices") == "http://prometheus-k8s.monitoring.svc:9090"
    assert capsys.readouterr().err == (
        "    --node-prices auto is http://prometheus-k8s.monitoring.svc:9090, by the labels of kube-prometheus\n"
    )


@pytest.mark.parametrize(
    ("services", "inside", "kubeconfig", "sentence"),
    [
        (
            {"monitoring": [], "shop": []},
            (),
            None,
            "no Service in monitoring, shop has the labels of a Prometheus; give",
        ),
        ({"ops": []}, ("ops",), None, "no Service in ops has the labels"),
        (
            {"monitoring": [COMMUNITY, COMMUNITY], "shop": []},
            (),
            None,
            r"there are http://prometheus-server.monitoring.svc:80 \(the chart prometheus\) and http://.* one of them",
        ),
        (
            {"monitoring": [COMMUNITY]},
            (),
            Path("kubeconfig"),
            "run kubectl -n monitoring port-forward service/prometheus-server 9090:80, and give --prometheus http://127",
        ),
    ],
    ids=["none", "none in that one", "two", "outside"],
)
def test_what_auto_cannot_mean_is_a_sentence_with_the_next_step(
    searched: Searched, services: Services, inside: tuple[str, ...], kubeconfig: Path | None, sentence: str
) -> None:
    """Nothing is guessed: no server, several, and one that only pods can reach."""
    search = searched(services, inside=inside, kubeconfig=kubeconfig)
    with pytest.raises(InputError, match=sentence):
        search.address_of("auto", option="--prometheus")


def test_a_right_that_is_missing_is_named_where_nothing_is_found(searched: Searched) -> None:
    """The sentence is the adapter's."""
    with pytest.raises(RejectedError, match="namespace monitoring: 403; grant list on services"):
        searched({}).address_of("auto", option="--prometheus")


def test_a_cluster_that_does_not_answer_is_asked_once(
    searched: Searched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start waits for one time limit, not for one each namespace; the hint is left out."""
    asked = []

    def unavailable(_api: object, namespace: str) -> list[dict[str, Any]]:
        asked.append(namespace)
        message = "could not list the services: timed out"
        raise UnavailableError(message)

    search = searched({})
    monkeypatch.setattr(kubernetes_services, "services_in", unavailable)
    search.say_what_is_found(options="set it")
    assert asked == ["monitoring"]
    assert capsys.readouterr().err == ""


def test_a_server_that_nobody_asked_for_is_named_and_not_used(
    searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line with what would use it; where none is found or may be seen, no line."""
    searched({}).say_what_is_found(options="--node-prices auto")
    assert capsys.readouterr().err == ""
    searched({"monitoring": [COMMUNITY]}).say_what_is_found(options="set it")
    assert capsys.readouterr().err == (
        "    found http://prometheus-server.monitoring.svc:80 (the chart prometheus); it is not contacted: set it\n"
    )


def test_no_password_is_sent_to_a_server_that_was_found(
    lagcast: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Whoever may create a Service could read it."""
    settings = tmp_path / "client.properties"
    settings.write_text("bearer.token=secret\n")
    code, _, err = lagcast("up", "--prometheus", "auto", "--client-config", str(settings))
    assert code == 2
    assert "--prometheus auto sends no password to a server that was found; give its address" in err
    assert "secret" not in err


def test_prices_of_nodes_need_pods(lagcast: Callable[..., tuple[int, str, str]], feature_table: Path) -> None:
    """Without a namespace there is no pod to price."""
    code, _, err = lagcast("serve", "--features", str(feature_table), "--node-prices", "http://127.0.0.1:1")
    assert code == 2
    assert "--node-prices is about the nodes of pods that are not followed; add --kubernetes NAMESPACE" in err
