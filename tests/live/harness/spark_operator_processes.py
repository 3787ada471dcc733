"""A real Kubeflow Spark operator on loopback: its controller and its webhook, beside a control plane of these tests."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pyspark

from spark_features.java import find_java
from tests.live.harness.broker import free_ports
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.fetching import ran
from tests.live.harness.running_parts import PartError, RunningParts, answers
from tests.live.harness.spark_cluster import same_options

_HERE = Path(__file__).parent / "spark_operator"
_START_LIMIT_SECONDS = 120.0
_NAME = "spark-operator-webhook"
# As the operator's chart has it. The API server reaches the webhook by a name that stands for this machine, and its own
# certificate is for the Service.
_WEBHOOK = """
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: spark-operator}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT, protocol: TCP}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
  - name: mutate--v1-pod.sparkoperator.k8s.io
    admissionReviewVersions: [v1]
    clientConfig: {service: {name: NAME, namespace: spark-operator, port: PORT, path: /mutate--v1-pod}}
    sideEffects: NoneOnDryRun
    objectSelector: {matchLabels: {sparkoperator.k8s.io/launched-by-spark-operator: "true"}}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  - name: mutate-sparkoperator-k8s-io-v1beta2-sparkapplication.sparkoperator.k8s.io
    admissionReviewVersions: [v1]
    clientConfig:
      service:
        name: NAME
        namespace: spark-operator
        port: PORT
        path: /mutate-sparkoperator-k8s-io-v1beta2-sparkapplication
    sideEffects: NoneOnDryRun
    rules:
      - apiGroups: [sparkoperator.k8s.io]
        apiVersions: [v1beta2]
        resources: [sparkapplications]
        operations: [CREATE, UPDATE]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
  - name: validate-sparkoperator-k8s-io-v1beta2-sparkapplication.sparkoperator.k8s.io
    admissionReviewVersions: [v1]
    clientConfig:
      service:
        name: NAME
        namespace: spark-operator
        port: PORT
        path: /validate-sparkoperator-k8s-io-v1beta2-sparkapplication
    sideEffects: NoneOnDryRun
    rules:
      - apiGroups: [sparkoperator.k8s.io]
        apiVersions: [v1beta2]
        resources: [sparkapplications]
        operations: [CREATE, UPDATE]
"""


def built_spark_operator() -> Path:
    """The folder of the operator and its resource definitions, built from its Go module the first time.

    Errors: PartError.
    """
    built = ran(_HERE / "build.sh")
    if built.returncode:
        message = f"the Spark operator did not come from its Go module: {built.stderr.strip()[-2000:]}"
        raise PartError(message)
    return Path(built.stdout.strip())


class SparkOperator:
    """The operator for the applications of one namespace of `cluster`; all its files are in `folder`."""

    def __init__(self, built: Path, cluster: ControlPlane, folder: Path, *, namespace: str) -> None:
        self._built, self._cluster, self._folder, self._namespace = built, cluster, folder, namespace
        self._parts = RunningParts("the Spark operator", folder)

    def start(self) -> None:
        """Install the definitions, start both parts, and wait until they are ready. Errors: PartError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cluster.kubectl("create", "namespace", "spark-operator")
        definitions = self._built / "crds"
        # Too large for the annotation of a plain `kubectl apply`.
        self._cluster.kubectl("create", "-f", str(definitions))
        self._cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(definitions))
        port, webhook_health, controller_health = free_ports(3)
        self._cluster.apply(_WEBHOOK.replace("NAME", _NAME).replace("PORT", str(port)))
        self._spawn(
            "webhook",
            *(f"--webhook-port={port}", f"--webhook-cert-dir={self._folder / 'certificates'}"),
            *(f"--webhook-secret-name={_NAME}", "--webhook-secret-namespace=spark-operator"),
            *(f"--webhook-svc-name={_NAME}", "--webhook-svc-namespace=spark-operator"),
            *(f"--mutating-webhook-name={_NAME}", f"--validating-webhook-name={_NAME}"),
            f"--health-probe-bind-address=127.0.0.1:{webhook_health}",
        )
        self._spawn(
            "controller", "--enable-ui-service=false", f"--health-probe-bind-address=127.0.0.1:{controller_health}"
        )
        self._wait_until("webhook", lambda: answers(f"http://127.0.0.1:{webhook_health}/readyz") and self._is_known())
        self._wait_until("controller", lambda: answers(f"http://127.0.0.1:{controller_health}/readyz"))

    def stop(self) -> None:
        """End both parts."""
        self._parts.stop()

    def log_end(self) -> str:
        """The last lines of the controller, such as those of a submission that failed."""
        return self._parts.log_end("controller")

    def _is_known(self) -> bool:
        """True once the API server has the authority of the webhook's certificate, for every call of it."""
        found = [
            self._cluster.kubectl("get", kind, _NAME, "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}").split()
            for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
        ]
        return [len(authorities) for authorities in found] == [2, 1]

    def _spawn(self, part: str, *words: str) -> None:
        command = [str(self._built / "operator"), part, "start", f"--namespaces={self._namespace}", *words]
        self._parts.start(part, command, self._environment())

    def _environment(self) -> Mapping[str, str]:
        """That of its pods, as far as it reads it; the Spark of the image is the one of these tests."""
        # Spark waits 10 s for an answer of the API server by default: beside other tests that is too short.
        (self._folder / "spark-defaults.conf").write_text(
            "spark.kubernetes.submission.connectionTimeout 300000\nspark.kubernetes.submission.requestTimeout 300000\n"
        )
        server = urlsplit(self._cluster.url)
        return (
            os.environ
            | same_options()
            | {
                "KUBECONFIG": str(self._cluster.kubeconfig),
                "KUBERNETES_SERVICE_HOST": str(server.hostname),
                "KUBERNETES_SERVICE_PORT": str(server.port),
                "SPARK_HOME": str(Path(pyspark.__file__).parent),
                "SPARK_CONF_DIR": str(self._folder),
                "JAVA_HOME": str(find_java(os.environ).home),
            }
        )

    def _wait_until(self, part: str, holds: Callable[[], bool]) -> None:
        self._parts.wait_until(part, holds, seconds=_START_LIMIT_SECONDS)
