"""Measures the cost of writing decisions to ConsumerGroupScalers, on a real Kubernetes control plane.

    python -m benchmarks.speed.scalers --objects 1000          or: make bench-scalers

A control plane on loopback with so many objects in one namespace. The first cycle writes the status of each of them,
with an Event; in the next ones the decisions are the same, and nothing is written. Then a real
`lagcast serve --kubernetes` decides on the same groups, of which it has an hour of rows, and its memory is read. Exit
code 1 where anything was written.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from kubernetes import client

from forecasting.refusal import Refusal
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.cluster.scaler import API_GROUP, API_VERSION, KIND, PLURAL
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, built_control_plane

NAMESPACE = "default"
# The cluster of the rows of `steady_hour`.
CLUSTER = "c"
CYCLES = 4
LIMIT_SECONDS = 600.0
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
DEFINITION = Path(__file__).parents[2] / "deploy" / "manifests" / "scalers" / "crd.yaml"


def main() -> int:
    """Start a control plane, fill it, and print what each cycle took and wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="ConsumerGroupScalers")
    arguments = parser.parse_args()
    groups = [f"group-{number}" for number in range(arguments.objects)]
    with tempfile.TemporaryDirectory() as folder:
        cluster = ControlPlane(built_control_plane(), Path(folder))
        try:
            cluster.start()
            cluster.kubectl("apply", "-f", str(DEFINITION))
            cluster.kubectl("wait", "--for=condition=Established", f"crd/{PLURAL}.{API_GROUP}", "--timeout=30s")
            written = measure(cluster, groups)
            print(f"lagcast serve --kubernetes: {memory(cluster, groups, Path(folder)):,.0f} MB at most")
        finally:
            cluster.stop()
    return 0 if written == [len(groups), *[0] * (CYCLES - 1)] else 1


def measure(cluster: ControlPlane, groups: list[str]) -> list[int]:
    """The number of statuses that each cycle wrote; prints the duration of each."""
    api = connect(cluster.kubeconfig)
    fill(client.CustomObjectsApi(api), groups)
    objects = KubernetesScalers(api, [NAMESPACE])
    settings = Settings(state_dir=Path("nowhere"))
    scalers = Scalers(objects=objects, settings=settings, tenants=Tenants(followed=(NAMESPACE,)))
    written: list[int] = []
    print("| cycle | objects | statuses written | look, ms | report, ms |")
    print("|---|---|---|---|---|")
    with objects.following():
        for cycle in range(CYCLES):
            now = START + timedelta(minutes=cycle)
            decisions = [refusal(group, now) for group in groups]
            began = time.perf_counter()
            scalers.look([(CLUSTER, group) for group in groups], now=now)
            looked = time.perf_counter()
            written.append(scalers.report(decisions, now=now))
            reported = time.perf_counter()
            seconds = (looked - began, reported - looked)
            print(
                f"| {cycle + 1} | {len(groups)} | {written[-1]} | "
                + " | ".join(f"{1000 * s:,.0f}" for s in seconds)
                + " |"
            )
    return written


def memory(cluster: ControlPlane, groups: list[str], folder: Path) -> float:
    """Most megabytes that a recommender has used after it decided on every group in as many cycles."""
    now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251  # rows have to be fresh
    table = steady_hour(folder / "features", groups, end_at=now - timedelta(seconds=now.second % 15))
    log = folder / "serve.log"
    words = ["serve", "--features", str(table), "--port", "0", "--kubernetes", NAMESPACE]
    environment = os.environ | {
        "LAGCAST_STATE_DIR": str(folder / "state"),
        "LAGCAST_DECISION__CYCLE_SECONDS": "10",
        "LAGCAST_DECISION__FRESHNESS_LIMIT_SECONDS": "7200",
    }
    command = [sys.executable, "-m", "cli.main", *words, "--kubeconfig", str(cluster.kubeconfig)]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stderr=output, env=environment) as process,  # noqa: S603  # our own command
    ):
        try:
            wait_until(lambda: "http://" in log.read_text(), seconds=60)
            address = "http://" + log.read_text().partition("http://")[2].split()[0]
            wait_until(lambda: decided(address) >= CYCLES * len(groups), seconds=LIMIT_SECONDS)
            status = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.kill()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def decided(address: str) -> float:
    """The number of decisions that a service has made."""
    page = httpx2.get(f"{address}/metrics", timeout=60).text
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith("lagcast_decisions_total"))


def fill(custom: client.CustomObjectsApi, groups: list[str]) -> None:
    """Make the objects."""

    def make(group: str) -> None:
        document = {
            "apiVersion": f"{API_GROUP}/{API_VERSION}",
            "kind": KIND,
            "metadata": {"name": group},
            "spec": {"cluster": CLUSTER, "groupId": group, "maxReplicas": 24, "objective": {"maxLagSeconds": 5}},
        }
        custom.create_namespaced_custom_object(API_GROUP, API_VERSION, NAMESPACE, PLURAL, document)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, groups))


def refusal(group: str, now: datetime) -> Refusal:
    """The decision on a group in every cycle."""
    return Refusal(
        cluster=CLUSTER,
        group=group,
        reason="history_stale",
        sentence=f"The newest row ended before {now:%H:%M}.",
        evidence=(),
        remedy="Check that samples are collected.",
        refused_at=now,
    )


if __name__ == "__main__":
    sys.exit(main())
