"""The autoscalers of the lab in Kubernetes, each of them the real program, with periods shortened as the load is.

A minute of the load passes in a second, so each period is a sixtieth of the default, where the program takes it.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from benchmarks.lab.pods import DEPLOYMENT, Autoscaler, ClusterSetup
from benchmarks.lab.policies import CAPACITY, LAG_OF_A_REPLICA_SECONDS, rows_before
from benchmarks.lab.stage import clock, next_grid
from collector.errors import AdapterError
from recommender.cluster.scaler import camel_case
from replay.policies.lagcast import profile_of
from replay.sampling import Rows
from tests.feature_folder import add_rows
from tests.live.harness.aggregated import serving_apis
from tests.live.harness.broker import free_ports
from tests.live.harness.clients import wait_until
from tests.live.harness.executors import executor_in
from tests.live.harness.keda_processes import Keda, built_keda
from tests.live.harness.scalers import install, recommender_in, scaler

# An HPA decides every 15 s, and scales in to the highest count that it wanted within 300 s.
LOOK_SECONDS = 0.25
WINDOW_SECONDS = 5
# KEDA polls every 30 s and takes whole seconds; the HPA that it makes queries it at each of its decisions.
POLL_SECONDS = 1
# The scale-in cooldown: 300 s.
MOVE_SECONDS = 5
# Decisions are made every 60 s, not every second: there is a row each 15 s, and the group runs on the same machine.
CYCLE_SECONDS = 5
LAG_OF_A_REPLICA = round(LAG_OF_A_REPLICA_SECONDS * CAPACITY)
API, METRIC = "external.metrics.k8s.io", "kafka_consumergroup_lag"
# The time until lagcast's first advice: it compiles its loops and fits its forecasters.
FIRST_ADVICE_SECONDS = 120.0
GRACE_SECONDS = 30.0


@contextmanager
def fixed(_: ClusterSetup) -> Iterator[Callable[[], object]]:
    """No autoscaler."""
    yield lambda: None


@contextmanager
def hpa(setup: ClusterSetup) -> Iterator[Callable[[], object]]:
    """The HPA controller, on the group's summed lag as Kafka has it, through an API of external metrics."""
    collector, lock = setup.stage.collector, threading.Lock()

    def lag(path: str) -> tuple[int, object]:
        with lock:
            try:
                rows = collector.collect([setup.stage.names.group], now=clock()).samples
            except AdapterError as error:
                return 503, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": str(error)}
        value = sum(row.end_offset - (row.committed_offset or 0) for row in rows)
        item = {"metricName": METRIC, "timestamp": f"{clock():%Y-%m-%dT%H:%M:%SZ}", "value": str(value)}
        items = [item] if path.partition("?")[0].endswith(f"/{METRIC}") else []
        return 200, {"kind": "ExternalMetricValueList", "apiVersion": f"{API}/v1beta1", "metadata": {}, "items": items}

    target = {"type": "AverageValue", "averageValue": str(LAG_OF_A_REPLICA)}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": DEPLOYMENT},
        "minReplicas": 1,
        "maxReplicas": setup.stage.setting.world.replica_ceiling,
        "metrics": [{"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}],
        "behavior": _behavior(),
    }
    given = _object("autoscaling/v2", "HorizontalPodAutoscaler", setup, spec)
    with serving_apis(setup.cluster, setup.stage.folder, [API], lag):
        yield lambda: setup.cluster.apply(given)


@contextmanager
def keda(setup: ClusterSetup) -> Iterator[Callable[[], object]]:
    """KEDA with its own Kafka scaler."""
    names = setup.stage.names
    metadata = {
        "bootstrapServers": setup.stage.bootstrap,
        "consumerGroup": names.group,
        "topic": names.group,
        "lagThreshold": str(LAG_OF_A_REPLICA),
        "offsetResetPolicy": "earliest",
    }
    spec = {
        "scaleTargetRef": {"name": DEPLOYMENT},
        "pollingInterval": POLL_SECONDS,
        "minReplicaCount": 1,
        "maxReplicaCount": setup.stage.setting.world.replica_ceiling,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
        "triggers": [{"type": "kafka", "metadata": metadata}],
    }
    with _running_keda(setup):
        yield lambda: setup.cluster.apply(_object("keda.sh/v1alpha1", "ScaledObject", setup, spec))


@contextmanager
def lagcast(setup: ClusterSetup) -> Iterator[Callable[[], object]]:
    """`lagcast serve --kubernetes`, and `lagcast-executor` with the role that the manifests give it."""
    (port,) = free_ports(1)
    command = [str(Path(sys.executable).with_name("lagcast-executor")), "--api", f"http://127.0.0.1:{port}", "--all"]
    command += ["--mode", "apply", "--interval-seconds", "1"]
    command += ["--kubeconfig", str(executor_in(setup.cluster, setup.namespace))]
    with _advising(setup, "Apply", "--port", str(port)), ExitStack() as ends:
        yield lambda: ends.enter_context(_running(command, setup.stage.folder / "executor.log"))


@contextmanager
def lagcast_by_keda(setup: ClusterSetup) -> Iterator[Callable[[], object]]:
    """`lagcast serve --keda-port`, and KEDA, which has the ScaledObject that `lagcast export keda` prints."""
    (port,) = free_ports(1)
    config = setup.stage.folder / "lagcast.yaml"
    target = {"namespace": setup.namespace, "name": DEPLOYMENT}
    most = setup.stage.setting.world.replica_ceiling
    config.write_text(json.dumps({"groups": {setup.stage.names.group: {"max_replicas": most, "target": target}}}))
    words = ["export", "keda", setup.stage.names.group, "--config", str(config), "--cluster", "lab"]
    command = [sys.executable, "-m", "cli.main", *words, "--scaler", f"127.0.0.1:{port}"]
    exported = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # our own
    document: dict[str, Any] = yaml.safe_load(exported)
    document["spec"]["pollingInterval"] = POLL_SECONDS
    with _running_keda(setup), _advising(setup, "Recommend", "--port", "0", "--keda-port", str(port)):
        yield lambda: setup.cluster.apply(json.dumps(document))


AUTOSCALERS: dict[str, Autoscaler] = {
    "fixed": fixed,
    "hpa": hpa,
    "keda": keda,
    "lagcast": lagcast,
    "lagcast-keda": lagcast_by_keda,
}


@contextmanager
def _running_keda(setup: ClusterSetup) -> Iterator[None]:
    running = Keda(built_keda(), setup.cluster, setup.stage.folder / "keda")
    try:
        running.start()
        yield
    finally:
        running.stop()


@contextmanager
def _advising(setup: ClusterSetup, mode: str, *words: str) -> Iterator[None]:
    """`lagcast serve` over the group's rows, which begin with an hour of history; it enters after the first advice."""
    folder, names = setup.stage.folder, setup.stage.names
    install(setup.cluster, folder)
    kubeconfig = recommender_in(setup.cluster, setup.namespace)
    with _writing_rows(setup, folder / "features"):
        setup.cluster.apply(json.dumps(_scaler_object(setup, mode)))
        command = [sys.executable, "-m", "cli.main", "serve", "--features", str(folder / "features"), *words]
        command += ["--kubernetes", setup.namespace, "--kubeconfig", str(kubeconfig)]
        settings = {"LAGCAST_STATE_DIR": str(folder), "LAGCAST_DECISION__CYCLE_SECONDS": str(CYCLE_SECONDS)}
        with _running(command, folder / "serve.log", **settings):
            path = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'
            ready = ["-n", setup.namespace, "get", "cgs", names.group, "-o", path]
            wait_until(lambda: setup.cluster.kubectl(*ready) == "Advised", seconds=FIRST_ADVICE_SECONDS)
            yield


def _scaler_object(setup: ClusterSetup, mode: str) -> dict[str, Any]:
    """A ConsumerGroupScaler with the settings that the owner of the group knows, and Kafka does not tell."""
    setting, names = setup.stage.setting, setup.stage.names
    known = profile_of(setting.world, names)
    said = ("start_up_seconds", "session_timeout_seconds", "heartbeat_interval_seconds", "commit_interval_seconds")
    group = {camel_case(name): str(getattr(known, name)) for name in said}
    group["capacityMessagesPerSecondPerReplica"] = str(CAPACITY)
    return scaler(
        setup.namespace,
        names.group,
        cluster=names.cluster,
        mode=mode,
        target={"name": DEPLOYMENT},
        maxReplicas=setting.world.replica_ceiling,
        limits={"scaleInCooldownSeconds": MOVE_SECONDS},
        group=group,
    )


@contextmanager
def _writing_rows(setup: ClusterSetup, table: Path) -> Iterator[None]:
    """A feature table: the hour before, and a row each 15 s from the collector's readings."""
    stage, stop = setup.stage, threading.Event()
    at = next_grid(clock())
    members = stage.setting.first_replicas
    add_rows(table, rows_before(stage.setting.before, stage.names, until=at, members=members))
    time.sleep(max(0.0, (at - clock()).total_seconds()))

    def write() -> None:
        collector, rows, due = stage.collector, Rows(stage.names), at
        while True:
            seen = stage.seen(collector, due, replicas=members)
            if seen is not None:
                add_rows(table, [rows.row(seen)])
            due = next_grid(clock())
            if stop.wait(max(0.0, (due - clock()).total_seconds())):
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _running(command: Sequence[str], log: Path, **environment: str) -> Iterator[None]:
    """A command that runs until the block ends; its output is in `log`."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | environment)  # noqa: S603  # our own
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _object(version: str, kind: str, setup: ClusterSetup, spec: dict[str, Any]) -> str:
    metadata = {"namespace": setup.namespace, "name": DEPLOYMENT}
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})


def _behavior() -> dict[str, Any]:
    """An HPA's default rules in the time of the load; for their 15 s it takes no less than a second."""
    double = {"type": "Percent", "value": 100, "periodSeconds": 1}
    up = {"selectPolicy": "Max", "policies": [double, {"type": "Pods", "value": 4, "periodSeconds": 1}]}
    return {
        "scaleUp": up | {"stabilizationWindowSeconds": 0},
        "scaleDown": {"stabilizationWindowSeconds": WINDOW_SECONDS, "policies": [double]},
    }
