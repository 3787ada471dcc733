"""A real prometheus-adapter on loopback, from which a control plane of these tests requests external metrics."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.harness.aggregated import api_service_of
from tests.live.harness.broker import free_ports
from tests.live.harness.control_plane import ControlPlane

EXTERNAL = "external.metrics.k8s.io"


@contextmanager
def running_adapter(
    program: Path, cluster: ControlPlane, folder: Path, *, values: Mapping[str, Any], prometheus: str
) -> Iterator[None]:
    """An adapter with the rules of these values of its Helm chart, which reads this Prometheus, until the block ends.

    The chart writes `rules.external` under `externalRules` of the adapter's own configuration.
    """
    folder.mkdir()
    (port,) = free_ports(1)
    config = folder / "adapter.yaml"
    config.write_text(json.dumps({"externalRules": values["rules"]["external"]}), encoding="utf-8")
    kubeconfigs = [f"--{use}-kubeconfig={cluster.kubeconfig}" for use in ("lister", "authentication", "authorization")]
    command = [
        str(program),
        *(f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={folder}", f"--config={config}"),
        *(f"--prometheus-url={prometheus}", "--metrics-relist-interval=1s", "--metrics-max-age=10s", *kubeconfigs),
    ]
    with (folder / "adapter.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
    manifest = api_service_of([EXTERNAL], port=port)
    try:
        cluster.apply(manifest)
        cluster.kubectl("wait", "--for=condition=Available", f"apiservice/v1beta1.{EXTERNAL}", "--timeout=60s")
        yield
        cluster.kubectl("delete", "-f", "-", given=manifest)
    finally:
        process.kill()
        process.wait()


def served(cluster: ControlPlane, metric: str) -> bool:
    """True if the adapter has found the metric in Prometheus."""
    listed = json.loads(cluster.kubectl("get", "--raw", f"/apis/{EXTERNAL}/v1beta1"))
    return any(resource["name"] == metric for resource in listed["resources"])
