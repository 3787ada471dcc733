"""A container of the chart as a process: arguments and variables as the API server has them, its volumes as folders.

There is no kubelet here. Its part is played as far as the process sees it: references are resolved, `$(NAME)` in
arguments is replaced, and what is mounted lies in a folder. Different are ports, which are free ones on loopback, and
the account, whose token comes in a kubeconfig instead of at the place where Kubernetes' client looks for it.
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.replicas import kubeconfig_of

_IMAGE = (Path(__file__).parents[3] / "deploy" / "Dockerfile").read_text(encoding="utf-8")
# Of the image's own variables the one that names a volume.
IMAGE_ENVIRONMENT = dict(re.findall(r"(LAGCAST_STATE_DIR)=(\S+)", _IMAGE))
PORTS = {"--host": "127.0.0.1", "--port": "0", "--keda-port": "0"}


class Contained:
    """A pod's only container, running."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self._lines.extend(iter(self.process.stderr.readline, ""))

    @property
    def logged(self) -> str:
        """All that it has printed on stderr."""
        return "".join(self._lines)

    def printed(self, pattern: str, *, seconds: float = 300.0) -> str:
        """The first group of `pattern` in what was printed, as soon as it is there."""
        wait_until(lambda: self.process.poll() is not None or re.search(pattern, self.logged), seconds=seconds)
        found = re.search(pattern, self.logged)
        assert found is not None, f"exit code {self.process.poll()}: {self.logged[-6000:]}"
        return found[1]

    @property
    def url(self) -> str:
        """Address of its REST service."""
        return self.printed(r"serves (http://\S+);")

    @property
    def keda(self) -> str:
        """Address for KEDA's external triggers."""
        return self.printed(r"external triggers on (\S+)")

    def stop(self, number: signal.Signals) -> int:
        """Its exit code after this signal."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=5)
        return code


@contextmanager
def contained(
    cluster: ControlPlane, namespace: str, workload: str, *, replica: int, folder: Path
) -> Iterator[Contained]:
    """The container of that replica of a StatefulSet, until the block ends; its volumes are kept below `folder`."""
    objects = _Objects(cluster, namespace)
    pod = objects.get("statefulset", workload)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {each["name"]: objects.value(each, pod_name=f"{workload}-{replica}") for each in container["env"]}
    volumes = {each["name"]: objects.volume(each, folder / each["name"], replica=replica) for each in pod["volumes"]}
    places = {each["mountPath"]: str(volumes[each["name"]]) for each in container["volumeMounts"]}
    words = [mapped(_expanded(word, variables), places) for word in container["args"]]
    program, *options = [
        f"{name}={PORTS.get(name, value)}" if sign else name for name, sign, value in map(_parted, words)
    ]
    assert program == "lagcast"
    kubeconfig = kubeconfig_of(cluster, namespace, pod["serviceAccountName"])
    command = [sys.executable, "-m", "cli.main", *options, f"--kubeconfig={kubeconfig}"]
    environment = {name: mapped(value, places) for name, value in (IMAGE_ENVIRONMENT | variables).items()}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ | environment
    ) as process:
        running = Contained(process)
        try:
            yield running
        except BaseException:
            print(running.logged)  # noqa: T201  # shown by pytest beside what failed
            raise
        finally:
            process.kill()
            process.wait()


class _Objects:
    """The objects of a namespace."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """An object."""
        found = self._cluster.kubectl("-n", self._namespace, "get", kind, name, "-o", "json")
        return dict(json.loads(found))

    def value(self, variable: dict[str, Any], *, pod_name: str) -> str:
        """The value of a variable of the container."""
        source = variable.get("valueFrom", {})
        if "configMapKeyRef" in source:
            reference = source["configMapKeyRef"]
            return str(self.get("configmap", reference["name"])["data"][reference["key"]])
        if "secretKeyRef" in source:
            reference = source["secretKeyRef"]
            return base64.b64decode(self.get("secret", reference["name"])["data"][reference["key"]]).decode()
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "metadata.name"
            return pod_name
        return str(variable["value"])

    def volume(self, volume: dict[str, Any], folder: Path, *, replica: int) -> Path:
        """The folder of a volume: a claim's is the same for every replica, an emptyDir belongs to one."""
        if "emptyDir" in volume:
            folder = folder.with_name(f"{folder.name}-{replica}")
        folder.mkdir(parents=True, exist_ok=True)
        if "configMap" in volume:
            data = self.get("configmap", volume["configMap"]["name"])["data"]
            for item in volume["configMap"]["items"]:
                (folder / item["path"]).write_text(data[item["key"]], encoding="utf-8")
        if "secret" in volume:
            for name, value in self.get("secret", volume["secret"]["secretName"]).get("data", {}).items():
                (folder / name).write_bytes(base64.b64decode(value))
        return folder


def _expanded(word: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word)


def mapped(word: str, places: dict[str, str]) -> str:
    """The word with the folder of the volume in place of where it is mounted, at its begin or as an option's value."""
    for place in sorted(places, key=len, reverse=True):
        mapped = re.sub(rf"(^|=){re.escape(place)}(?=/|$)", lambda found: found[1] + places[place], word)  # noqa: B023  # called at once
        if mapped != word:
            return mapped
    return word


def _parted(word: str) -> tuple[str, str, str]:
    return word.partition("=")
