"""Prometheus among the Services of a cluster, by the labels that its usual charts and operators give it.

Pure: documents of the API server in, addresses out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Document = Mapping[str, Any]

# Where the usual charts are installed, in their own instructions.
USUAL_NAMESPACE = "monitoring"
# The first that a Service has decides how soon it is taken; servers of the same API only where there is no Prometheus.
LABELS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("kube-prometheus", {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "prometheus"}),
    ("the chart prometheus", {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "server"}),
    ("kube-prometheus-stack", {"app": "kube-prometheus-stack-prometheus"}),
    ("the chart prometheus-operator", {"app": "prometheus-operator-prometheus"}),
    ("rancher-monitoring", {"app": "rancher-monitoring-prometheus"}),
    ("an earlier chart prometheus", {"app": "prometheus", "component": "server"}),
    ("the Prometheus operator", {"operated-prometheus": "true"}),
    ("VictoriaMetrics", {"app.kubernetes.io/name": "vmsingle"}),
    ("VictoriaMetrics", {"app.kubernetes.io/name": "victoria-metrics-single"}),
    ("Thanos", {"app.kubernetes.io/name": "thanos-query"}),
)
_NO_API = ("grpc", "reloader")


class FoundServer(NamedTuple):
    """A server by its address within the cluster, its Service as namespace and name, and what installs it so."""

    url: str
    service: str
    installed_by: str


def servers_among(services: Iterable[Document]) -> tuple[FoundServer, ...]:
    """The servers that are the likeliest: those with the first of the known labels that any Service has.

    Several are alternatives between which nothing here decides.
    """
    ranked = sorted((rank, server) for each in services for rank, server in _ranked(each))
    return tuple(server for rank, server in ranked if rank == ranked[0][0])


def _ranked(service: Document) -> Iterable[tuple[int, FoundServer]]:
    """The server behind a Service, and the place of its labels; none where it has other labels, or no port of HTTP."""
    metadata = service["metadata"]
    labels = metadata.get("labels") or {}
    place = next((place for place, (_, wanted) in enumerate(LABELS) if wanted.items() <= labels.items()), None)
    ports = [port for port in service["spec"].get("ports", ()) if not port.get("name", "").startswith(_NO_API)]
    if place is not None and ports:
        # Prometheus' own port, where there are several.
        port = next((each for each in ports if each["port"] == 9090), ports[0])
        scheme = "https" if port.get("name", "").startswith("https") else "http"
        url = f"{scheme}://{metadata['name']}.{metadata['namespace']}.svc:{port['port']}"
        yield place, FoundServer(url, f"{metadata['namespace']}/{metadata['name']}", LABELS[place][0])
