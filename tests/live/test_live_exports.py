"""What is exported and imported does what it says on a real control plane, with its own HPA controller."""

import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from cli.main import main
from tests.live.clients import wait_until
from tests.live.control_plane import ControlPlane
from tests.live.scalers import shop_in

pytestmark = pytest.mark.kubernetes

# The HPA controller of these tests looks every second.
SOME_LOOKS_SECONDS = 5.0
METRICS_API = "/apis/external.metrics.k8s.io/v1beta1"
API_SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: adapter, namespace: default}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT, protocol: TCP}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: adapter, namespace: default, port: PORT}
"""
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: NAMESPACE, name: orders}}}\n"


class Adapter:
    """Stands in for prometheus-adapter: `due` replicas of group orders of cluster prod, or no sample at all."""

    def __init__(self) -> None:
        self.due: int | None = None

    def answer(self, path: str) -> dict[str, object]:
        """What the adapter says at `path`, as prometheus-adapter would."""
        url = urlparse(path)
        if not url.path.endswith("/lagcast_due_replicas"):
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": METRICS_API[6:], "resources": []}
        asked = parse_qs(url.query).get("labelSelector", [""])[0]
        item = {"metricName": "lagcast_due_replicas", "timestamp": "2026-01-05T12:00:00Z", "value": str(self.due)}
        known = self.due is not None and set(asked.split(",")) == {"cluster=prod", "group=orders"}
        items = [item] if known else []
        return {"kind": "ExternalMetricValueList", "apiVersion": METRICS_API[6:], "metadata": {}, "items": items}


@pytest.fixture
def adapter(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Adapter]:
    """An adapter that the API server asks for external metrics."""
    standing_in = Adapter()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(standing_in.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        manifest = API_SERVICE.replace("PORT", str(server.server_address[1]))
        control_plane.apply(manifest)
        yield standing_in
        control_plane.kubectl("delete", "-f", "-", given=manifest)
        server.shutdown()
        thread.join()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    return shop_in(control_plane)


def test_an_exported_hpa_has_as_many_replicas_as_are_due_and_keeps_them_while_nothing_is(
    control_plane: ControlPlane,
    adapter: Adapter,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Up, up by less than a tenth, no sample at all, down: each at one look of the real controller."""
    config = tmp_path / "lagcast.yaml"
    config.write_text(CONFIG.replace("NAMESPACE", namespace))
    assert main(["export", "hpa", "orders", "--config", str(config), "--cluster", "prod"]) == 0
    control_plane.apply(capsys.readouterr().out)

    def replicas() -> int:
        field = "jsonpath={.spec.replicas}"
        return int(control_plane.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field))

    for due in (12, 13):
        adapter.due = due
        wait_until(lambda: replicas() == due)  # noqa: B023  # asked before the next one
    adapter.due = None
    reason = "jsonpath={.status.conditions[?(@.type=='ScalingActive')].reason}"
    wait_until(
        lambda: (
            control_plane.kubectl("-n", namespace, "get", "hpa", "orders", "-o", reason) == "FailedGetExternalMetric"
        )
    )
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 13
    adapter.due = 2
    wait_until(lambda: replicas() == 2)
