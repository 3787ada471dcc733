"""Pods of Spark on a real control plane, whose containers run here: deploy/entrypoint.sh with a pod's arguments.

There is no kubelet. Its part is played as far as Spark sees it: arguments and variables are those of the pod as the API
server has it, and what is mounted lies in a folder. Different are addresses, all of which are this machine's, the
driver's ports, which are free ones, and the place of the token of its account.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark

from spark_features.java import find_java
from tests.live.harness.clients import wait_until
from tests.live.harness.contained import mapped
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.spark_cluster import same_options

NAMESPACE = "lagcast"
_ACCOUNT = "lagcast-spark"
_ROOT = Path(__file__).parents[3]
_PACKAGES = "local:///opt/lagcast/site-packages"
_ADDRESS = "127.0.0.1"
# Each look is a process of kubectl.
_LOOK_SECONDS = 1.0
# Spark waits 10 s for an answer of the API server by default: beside other tests that is too short.
_PATIENT = tuple(
    f"--conf=spark.kubernetes.{who}.{what}Timeout=300000"
    for who in ("submission", "driver")
    for what in ("connection", "request")
)

Pod = dict[str, Any]


def pods(cluster: ControlPlane, role: str) -> list[Pod]:
    """The pods of drivers or of executors that are there, the oldest first."""
    words = ("get", "pods", f"--selector=spark-role={role}", "--sort-by=.metadata.creationTimestamp", "-o", "json")
    return list(json.loads(cluster.kubectl("-n", NAMESPACE, *words))["items"])


@contextmanager
def submitted(cluster: ControlPlane, words: list[str], *, log: Path) -> Iterator[Pod]:
    """The pod of the driver that spark-submit makes by these arguments; command and pod go when the block ends."""
    command = [str(Path(sys.executable).with_name("spark-submit")), *_PATIENT, *words]
    environment = os.environ | _spark() | {"KUBECONFIG": str(cluster.kubeconfig)}
    assert pods(cluster, "driver") == []
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            wait_until(
                lambda: process.poll() is not None or pods(cluster, "driver"),
                seconds=600.0,
                every_seconds=_LOOK_SECONDS,
            )
            assert pods(cluster, "driver"), log.read_text(encoding="utf-8")[-4000:]
            (pod,) = pods(cluster, "driver")
            yield pod
        finally:
            process.kill()
            cluster.kubectl("-n", NAMESPACE, "delete", "pods", "--selector=spark-role=driver", "--now")


class Application:
    """The containers of one application: its driver, and one for each pod of an executor that the driver makes.

    The first of these pods fails before its container starts, as one that is evicted. `data` is the folder in place of
    the shared volume.
    """

    def __init__(self, cluster: ControlPlane, folder: Path, *, data: Path) -> None:
        self._cluster, self._folder, self._data = cluster, folder, data
        self.executors: dict[str, Pod] = {}
        self._is_over = threading.Event()
        self._token = folder / "token"
        self._token.write_text(cluster.kubectl("-n", NAMESPACE, "create", "token", _ACCOUNT), encoding="utf-8")

    def run_driver(self, driver: Pod) -> "subprocess.CompletedProcess[str]":
        """Its exit code and output; the executors that it asks for run beside it."""
        beside = threading.Thread(target=self._play_executors)
        beside.start()
        try:
            command, environment = self._process_of(driver)
            return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        finally:
            self._is_over.set()
            beside.join()

    def _play_executors(self) -> None:
        with ExitStack() as running:
            while not self._is_over.wait(_LOOK_SECONDS):
                for pod in pods(self._cluster, "executor"):
                    name = pod["metadata"]["name"]
                    if name in self.executors:
                        continue
                    if not self.executors:
                        self._fail(name)
                    else:
                        running.callback(_end, self._started(pod))
                    self.executors[name] = pod

    def _fail(self, name: str) -> None:
        words = ("patch", "pod", name, "--subresource=status", "--type=merge")
        self._cluster.kubectl("-n", NAMESPACE, *words, "-p", json.dumps({"status": {"phase": "Failed"}}))

    def _started(self, pod: Pod) -> "subprocess.Popen[bytes]":
        command, environment = self._process_of(pod)
        with (self._folder / f"{pod['metadata']['name']}.log").open("wb") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def _process_of(self, pod: Pod) -> tuple[list[str], Mapping[str, str]]:
        """The command and environment of the pod's only container."""
        (container,) = pod["spec"]["containers"]
        volumes = {each["name"]: self._volume(each, pod) for each in pod["spec"]["volumes"]}
        places = {each["mountPath"]: str(volumes[each["name"]]) for each in container["volumeMounts"]}
        if conf := volumes.get("spark-conf-volume-driver"):
            self._settle(conf / "spark.properties", places)
        words = [mapped(word, places).replace(_PACKAGES, str(_ROOT)) for word in container["args"]]
        variables = {each["name"]: mapped(_value(each, pod), places) for each in container["env"]}
        environment = os.environ | _spark() | {"PYTHONPATH": str(_ROOT)} | variables
        # The image's own, which is no path of a volume even where this checkout is below one's.
        environment["PYSPARK_PYTHON"] = sys.executable
        return ["bash", str(_ROOT / "deploy" / "entrypoint.sh"), *words], environment

    def _volume(self, volume: dict[str, Any], pod: Pod) -> Path:
        """The folder in place of a volume: the claim's is shared, the others are the pod's own."""
        if "persistentVolumeClaim" in volume:
            return self._data
        folder = self._folder / str(pod["metadata"]["name"]) / str(volume["name"])
        folder.mkdir(parents=True)
        for item in volume.get("configMap", {}).get("items", ()):
            name = volume["configMap"]["name"]
            text = self._cluster.kubectl("-n", NAMESPACE, "get", "configmap", name, "-o", "json")
            (folder / item["path"]).write_text(json.loads(text)["data"][item["key"]], encoding="utf-8")
        return folder

    def _settle(self, properties: Path, places: dict[str, str]) -> None:
        """Of the driver's configuration, replace what only a cluster has; of two lines the last one holds."""
        mounted = "spark.kubernetes.authenticate.driver.mounted"
        here = {
            "spark.driver.host": _ADDRESS,
            "spark.driver.port": "0",
            "spark.driver.blockManager.port": "0",
            "spark.blockManager.port": "0",
            "spark.ui.port": "0",
            "spark.kubernetes.driver.master": self._cluster.url,
            f"{mounted}.oauthTokenFile": str(self._token),
            f"{mounted}.caCertFile": str(self._cluster.certificate),
            "spark.kubernetes.executor.podTemplateFile": mapped(
                "/opt/spark/pod-template/pod-spec-template.yml", places
            ),
        }
        with properties.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in here.items())


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _spark() -> dict[str, str]:
    homes = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "JAVA_HOME": str(find_java(os.environ).home)}
    return homes | same_options()


def _value(variable: dict[str, Any], pod: Pod) -> str:
    field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
    known = {"status.podIP": _ADDRESS, "metadata.name": pod["metadata"]["name"]}
    return str(variable["value"] if field is None else known[field])
