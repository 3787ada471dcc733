"""The real Helm, built from its Go module, and the chart as it renders."""

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.live.harness.fetching import ran

CHART = Path(__file__).parents[3] / "deploy" / "chart"
_BUILD = Path(__file__).parent / "kubernetes" / "helm.sh"

Document = dict[str, Any]


class HelmError(RuntimeError):
    """Helm could not be built, or refused; the message is its output."""


class Helm:
    """Helm with folders of its own below `folder`, as the user of `kubeconfig` where one is given."""

    def __init__(self, binary: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._binary, self._folder, self._kubeconfig = binary, folder, kubeconfig

    def __call__(self, *words: str) -> str:
        """The output of Helm. Errors: HelmError."""
        homes = {f"HELM_{name}_HOME": str(self._folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        environment = os.environ | homes | {"KUBECONFIG": str(self._kubeconfig or os.devnull)}
        done = subprocess.run(
            [self._binary, *words], check=False, capture_output=True, text=True, timeout=120, env=environment
        )
        if done.returncode:
            raise HelmError(done.stderr.strip())
        return done.stdout

    def using(self, kubeconfig: Path) -> "Helm":
        """The same Helm for a cluster."""
        return Helm(self._binary, self._folder, kubeconfig)

    def rendered(self, *words: str) -> list[Document]:
        """The objects of a release `lagcast` in the namespace `lagcast`, its brokers named. Errors: HelmError."""
        text = self("template", "lagcast", str(CHART), "--namespace=lagcast", *named(), *words)
        return [document for document in yaml.safe_load_all(text) if document]


def named() -> list[str]:
    """The one value without a default."""
    return ["--set=kafka.bootstrap=kafka-bootstrap.kafka.svc:9092"]


def built_helm() -> Path:
    """The binary, built the first time. Errors: HelmError."""
    built = ran(_BUILD)
    if built.returncode:
        message = f"Helm did not come from its Go module: {built.stderr.strip()[-2000:]}"
        raise HelmError(message)
    return Path(built.stdout.strip())
