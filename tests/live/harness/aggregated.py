"""A server of these tests from which the API server requests further APIs, such as those of metrics."""

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, ControlPlaneError

_SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: adapter, namespace: default}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT, protocol: TCP}]}
"""
_API_SERVICE = """
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.GROUP}
spec:
  group: GROUP
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: adapter, namespace: default, port: PORT}
"""
Answer = Callable[[str], tuple[int, object]]


def api_service_of(groups: Sequence[str], *, port: int) -> str:
    """The manifest by which the API server requests version v1beta1 of these groups from a port of this machine."""
    manifest = _SERVICE + "".join(_API_SERVICE.replace("GROUP", group) for group in groups)
    return manifest.replace("PORT", str(port))


@contextmanager
def serving_apis(cluster: ControlPlane, folder: Path, groups: Sequence[str], answer: Answer) -> Iterator[None]:
    """Serve version v1beta1 of `groups` until the block ends: `answer` has a status and a document for each path.

    Paths of the groups themselves, which list resources, are answered here: with an empty list.
    """
    here = f"here-{uuid4().hex}"

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            resource = self.path.partition("/v1beta1/")[2]
            nothing = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": []}
            status, document = answer(self.path) if resource not in {"", here} else (200, nothing)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        manifest = api_service_of(groups, port=server.server_address[1])
        try:
            cluster.apply(manifest)
            for group in groups:
                wait_until(partial(_is_reached, cluster, f"/apis/{group}/v1beta1/{here}"))
            yield
            cluster.kubectl("delete", "-f", "-", given=manifest)
        finally:
            server.shutdown()
            thread.join()


def _is_reached(cluster: ControlPlane, path: str) -> bool:
    """True if the API server's requests now reach this server, and no other that it used before."""
    try:
        cluster.kubectl("get", "--raw", path)
    except ControlPlaneError:
        return False
    return True
