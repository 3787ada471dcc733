"""Prometheus among Services, with the labels that public charts give them."""

from typing import Any

import pytest

from recommender.cluster.prometheus_services import FoundServer, servers_among

Document = dict[str, Any]


def service(name: str, *ports: tuple[str, int], namespace: str = "monitoring", **labels: str) -> Document:
    """A Service; of its labels `name` and `component` are the recommended ones of Kubernetes."""
    recommended = {"name_": "app.kubernetes.io/name", "component_": "app.kubernetes.io/component"}
    found = {recommended.get(label, label).replace("_", "-"): value for label, value in labels.items()}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": found},
        "spec": {"ports": [{"name": port_name, "port": port} for port_name, port in ports or (("web", 9090),)]},
    }


WEB, HTTP_WEB, RELOADER = ("web", 9090), ("http-web", 9090), ("reloader-web", 8080)
KUBE_PROMETHEUS = service("prometheus-k8s", WEB, RELOADER, name_="prometheus", component_="prometheus")
COMMUNITY = service("prometheus-server", ("http", 80), name_="prometheus", component_="server")
STACK = service("stack-prometheus", HTTP_WEB, RELOADER, app="kube-prometheus-stack-prometheus", release="stack")
OPERATED = service("prometheus-operated", HTTP_WEB, ("grpc", 10901), operated_prometheus="true")


@pytest.mark.parametrize(
    ("document", "url"),
    [
        (KUBE_PROMETHEUS, "http://prometheus-k8s.monitoring.svc:9090"),
        (COMMUNITY, "http://prometheus-server.monitoring.svc:80"),
        (STACK, "http://stack-prometheus.monitoring.svc:9090"),
        (OPERATED, "http://prometheus-operated.monitoring.svc:9090"),
        (service("p", app="prometheus", component="server", namespace="ops"), "http://p.ops.svc:9090"),
        (service("p", ("reloader", 1), ("https-web", 443), operated_prometheus="true"), "https://p.monitoring.svc:443"),
        (service("vm", ("http", 8428), name_="vmsingle"), "http://vm.monitoring.svc:8428"),
        (service("thanos", ("grpc", 10901), ("http", 9090), name_="thanos-query"), "http://thanos.monitoring.svc:9090"),
    ],
    ids=["kube-prometheus", "community", "stack", "operated", "earlier", "https", "VictoriaMetrics", "Thanos"],
)
def test_a_server_is_found_by_the_labels_of_its_chart(document: Document, url: str) -> None:
    """The port is that of the web interface, not of the reloader nor of gRPC."""
    (found,) = servers_among([document])
    assert found.url == url
    assert found.service == f"{document['metadata']['namespace']}/{document['metadata']['name']}"


@pytest.mark.parametrize(
    "document",
    [
        service("alertmanager", name_="alertmanager"),
        service("node-exporter", name_="prometheus-node-exporter"),
        service("pushgateway", name_="prometheus-pushgateway"),
        service("agent", name_="prometheus-agent", component_="prometheus"),
        service("blackbox", name_="prometheus", component_="blackbox"),
        service("grpc", ("grpc", 10901), operated_prometheus="true"),
        {"metadata": {"name": "plain", "namespace": "monitoring"}, "spec": {}},
    ],
    ids=["alertmanager", "node exporter", "pushgateway", "agent", "other part", "gRPC alone", "no labels"],
)
def test_other_services_are_left_alone(document: Document) -> None:
    """What belongs to a Prometheus and answers no queries is no server."""
    assert servers_among([document]) == ()


def test_of_two_services_of_one_server_that_of_the_chart_is_taken() -> None:
    """The operator makes a second one for its pods; servers of the same API give way to a Prometheus."""
    thanos = service("thanos", name_="thanos-query")
    assert servers_among([OPERATED, thanos, STACK]) == (
        FoundServer(
            "http://stack-prometheus.monitoring.svc:9090", "monitoring/stack-prometheus", "kube-prometheus-stack"
        ),
    )


def test_two_of_the_same_kind_are_both_named() -> None:
    """Which of them scrapes the exporter cannot be told from here."""
    urls = [found.url for found in servers_among([COMMUNITY, service("b", name_="prometheus", component_="server")])]
    assert urls == ["http://b.monitoring.svc:9090", "http://prometheus-server.monitoring.svc:80"]
