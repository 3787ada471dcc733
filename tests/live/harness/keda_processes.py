"""A real KEDA on loopback: its operator and its metrics adapter, beside a control plane of these tests."""

import base64
import http.client
import json
import os
import ssl
import subprocess
from pathlib import Path

from tests.live.harness.broker import free_ports
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.fetching import ran
from tests.live.harness.running_parts import PartError, RunningParts, answers

_HERE = Path(__file__).parent / "keda"
_START_LIMIT_SECONDS = 60.0
_API_SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: keda-metrics, namespace: keda}
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
  caBundle: AUTHORITY
  service: {name: keda-metrics, namespace: keda, port: PORT}
"""


def built_keda() -> Path:
    """The folder of operator, adapter and resource definitions, built from KEDA's Go module the first time.

    Errors: PartError.
    """
    built = ran(_HERE / "build.sh")
    if built.returncode:
        message = f"KEDA did not come from its Go module: {built.stderr.strip()[-2000:]}"
        raise PartError(message)
    return Path(built.stdout.strip())


class Keda:
    """KEDA beside `cluster`; all its files are in `folder`."""

    def __init__(self, binaries: Path, cluster: ControlPlane, folder: Path) -> None:
        self._binaries, self._cluster, self._folder = binaries, cluster, folder
        self._parts = RunningParts("KEDA", folder)
        (self._adapter_port,) = free_ports(1)

    def start(self) -> None:
        """Install the definitions, start both parts, and wait until the metrics API is served. Errors: PartError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cluster.kubectl("create", "namespace", "keda")
        definitions = self._binaries / "crds"
        self._cluster.kubectl("create", "-f", str(definitions))
        self._cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(definitions))
        self._make_certificates()
        metrics, health, service = free_ports(3)
        port = self._adapter_port
        certificates = str(self._folder)
        kubeconfig = str(self._cluster.kubeconfig)
        self._spawn(
            "operator",
            *("--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{health}"),
            *(f"--metrics-service-bind-address=127.0.0.1:{service}", "--cert-dir", certificates),
            *("--enable-cert-rotation=false", "--enable-prometheus-metrics=false"),
            # A test may have thirty objects that are looked at each second.
            *("--kube-api-qps=200", "--kube-api-burst=400"),
        )
        ready = f"http://127.0.0.1:{health}/readyz"
        self._parts.wait_until("operator", lambda: answers(ready), seconds=_START_LIMIT_SECONDS)
        given = {"cert": f"{certificates}/tls.crt", "private-key": f"{certificates}/tls.key"}
        certificate = [f"--tls-{use}-file={path}" for use, path in given.items()]
        configs = [f"--{use}-kubeconfig={kubeconfig}" for use in ("lister", "authentication", "authorization")]
        self._spawn(
            "adapter",
            *("--secure-port", str(port), "--bind-address=127.0.0.1", "--cert-dir", certificates, *certificate),
            *(*configs, "--metrics-service-address", f"127.0.0.1:{service}", "--port", str(metrics)),
        )
        authority = base64.b64encode((self._folder / "ca.crt").read_bytes()).decode()
        self._cluster.apply(_API_SERVICE.replace("PORT", str(port)).replace("AUTHORITY", authority))
        available = ["wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io"]
        self._cluster.kubectl(*available, "--timeout=50s")

    def read(self, path: str) -> tuple[int, object]:
        """Status and document with which the adapter answers the cluster's administrator at `path`."""
        context = ssl.create_default_context(cafile=self._folder / "ca.crt")
        (user,) = json.loads(self._cluster.kubeconfig.read_text(encoding="utf-8"))["users"]
        connection = http.client.HTTPSConnection("127.0.0.1", self._adapter_port, context=context, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {user['user']['token']}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def stop(self) -> None:
        """End both parts."""
        self._parts.stop()

    def _make_certificates(self) -> None:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self._openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=keda", "-keyout", "ca.key", "-out", "ca.crt")
        self._openssl("req", *key, "-subj", "/CN=keda", "-keyout", "tls.key", "-out", "tls.csr")
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:keda-metrics.keda.svc"
        (self._folder / "names").write_text(f"{names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        self._openssl("x509", "-req", "-in", "tls.csr", *signed, "-out", "tls.crt")

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self._folder)

    def _spawn(self, part: str, *words: str) -> None:
        environment = os.environ | {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "POD_NAMESPACE": "keda",
            "WATCH_NAMESPACE": "",
            "KEDA_CLUSTER_OBJECT_NAMESPACE": "keda",
            "HOME": str(self._folder),
        }
        self._parts.start(part, [self._binaries / part, *words], environment)
