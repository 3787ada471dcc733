"""Pods of a real control plane with real consumers: kwok simulates the pods, and a process runs for each ready one."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kubernetes import client

from benchmarks.lab.group import Processes
from benchmarks.lab.stage import LabTopic, clock
from benchmarks.rebalances.members import Host
from recommender.adapters.kubernetes_client import connect
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.scalers import shop_in

DEPLOYMENT = "orders"
# From a pod's creation to Ready; its process takes about a second more to join: `start_up_seconds` of the world is 5.
START_DELAY_SECONDS = 4
LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The Deployment at one instant, in seconds since 1970: its `spec.replicas`, and its ready pods."""

    at: float
    replicas: int
    ready: frozenset[str]
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSetup:
    """The setup of an autoscaler: the Deployment `orders` of a namespace, whose pods are the members of a group."""

    cluster: ControlPlane
    namespace: str
    stage: LabTopic


# Entered before the load, when the autoscaler starts; the function that it yields is called when the load begins.
Autoscaler = Callable[[ClusterSetup], AbstractContextManager[Callable[[], object]]]


class Pods:
    """The group of a policy: the processes of the ready pods of a Deployment, which an autoscaler scales.

    They are read five times a second; `looks` has each reading that differs from the one before.
    """

    def __init__(
        self, stage: LabTopic, ends: ExitStack, *, cluster: ControlPlane, replicas: int, autoscaler: Autoscaler
    ) -> None:
        self._stage, self._ends, self._replicas, self._autoscaler = stage, ends, replicas, autoscaler
        namespace = shop_in(cluster, replicas=replicas, start_delay_seconds=START_DELAY_SECONDS)
        self._ground = ClusterSetup(cluster=cluster, namespace=namespace, stage=stage)
        self._processes = Processes(stage.member, Host.terminate)
        self._stop, self._trouble = threading.Event(), list[Exception]()
        self._thread = threading.Thread(target=self._watch)
        self.looks: list[Look] = []

    def ready(self) -> None:
        """Start the first pods, and their processes in the group; then prepare the autoscaler."""
        self._ends.callback(self.end)
        self._thread.start()
        self._stage.wait_for_members(self._replicas)
        self._begin = self._ends.enter_context(self._autoscaler(self._ground))

    def follow(self, over: threading.Event) -> list[float]:
        """Let the autoscaler act until the load is over; returns the times of its moves, in seconds since 1970."""
        began_at = clock().timestamp()
        self._begin()
        over.wait()
        moved = [now.at for before, now in pairwise(self.looks) if now.replicas != before.replicas]
        return [at for at in moved if at >= began_at]

    def end(self) -> float:
        """End all processes; returns the pod-seconds used. Errors: the error that ended the reading of the pods."""
        self._stop.set()
        self._thread.join()
        spent = self._processes.end()
        if self._trouble:
            raise self._trouble[0]
        return spent

    def _watch(self) -> None:
        connection = connect(self._ground.cluster.kubeconfig)
        try:
            while not self._stop.wait(LOOK_EVERY_SECONDS):
                self._look(client.AppsV1Api(connection), client.CoreV1Api(connection))
        except Exception as error:  # noqa: BLE001  # of the client or of a process: raised when the run ends
            self._trouble.append(error)

    def _look(self, apps: client.AppsV1Api, core: client.CoreV1Api) -> None:
        namespace = self._ground.namespace
        # The client's types call every field optional; the API server gives those that are read here.
        deployment: Any = apps.read_namespaced_deployment(DEPLOYMENT, namespace)
        listed: Any = core.list_namespaced_pod(namespace)
        pods = {pod.metadata.name: is_ready(pod) for pod in listed.items if pod.metadata.deletion_timestamp is None}
        self._processes.follow(pods)
        ready = frozenset(name for name, ready in pods.items() if ready)
        replicas = deployment.spec.replicas
        look = Look(at=clock().timestamp(), replicas=replicas, ready=ready, processes=len(self._processes))
        if not self.looks or (look.replicas, look.ready) != (self.looks[-1].replicas, self.looks[-1].ready):
            self.looks.append(look)


def is_ready(pod: Any) -> bool:  # noqa: ANN401  # of a client without types
    """True where its condition `Ready` is true."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())
