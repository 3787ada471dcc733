"""Plays scripted series to a real HPA controller, all side by side, and records its reads and commands at each look.

The API server requests the metrics of every look from this process. So the looks are known from the requests: their
time, and the count that the one before had commanded. A look that moves a count to its bounds requests none; it is in
the log.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.live.harness.aggregated import serving_apis
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.hpa_shadow import Book, Hand, Look, Series, Step
from tests.live.harness.workload import Workload, documents

NAMESPACE = "series"
EXTERNAL, RESOURCES = "external.metrics.k8s.io", "metrics.k8s.io"
# Older than any pod: one whose sample is from then counts as unready.
OLD = "2020-01-01T00:00:00Z"
PLAY_LIMIT_SECONDS = 120.0


def flags(book: Book) -> list[str]:
    """Flags of kube-controller-manager: the book's, and a rate limit for as many requests as fifty autoscalers send.

    Without the controller that marks pods unready as long as it has not seen their node ready, which takes it 5 s.
    """
    return [
        "--controllers=*,-node-lifecycle-controller",
        f"--horizontal-pod-autoscaler-sync-period={book.sync_seconds}s",
        f"--horizontal-pod-autoscaler-downscale-stabilization={book.stabilisation_seconds}s",
        "--concurrent-horizontal-pod-autoscaler-syncs=20",
        "--logging-format=json",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]


def played(book: Book, cluster: ControlPlane, folder: Path) -> dict[str, list[Look | Hand]]:
    """The events of each series, by its name, once all of them are over."""
    plays = {
        f"s{number:02d}": Play(series, f"s{number:02d}", cluster, book) for number, series in enumerate(book.series)
    }
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("create", "-f", "-", given=documents(play.deployment for play in plays.values()))
    with serving_apis(cluster, folder, [EXTERNAL, RESOURCES], Stage(plays).answer):
        wait_until(lambda: all(play.is_set for play in plays.values()), seconds=PLAY_LIMIT_SECONDS)
        cluster.kubectl("create", "-f", "-", given=documents(play.autoscaler for play in plays.values()))
        for play in plays.values():
            play.begin()
        wait_until(lambda: all(play.is_over for play in plays.values()), seconds=PLAY_LIMIT_SECONDS)
        cluster.kubectl("-n", NAMESPACE, "delete", "hpa", "--all")
    for rescale in rescales(cluster):
        if rescale.name in plays:
            plays[rescale.name].rescaled(rescale)
    return {play.series.name: play.events for play in plays.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """A command of the HPA called `name`, where there were `found`; one to its bounds queried no metric."""

    name: str
    at_seconds: float
    found: int
    to_bounds: bool


def rescales(cluster: ControlPlane) -> Iterator[Rescale]:
    """All that the controller has logged."""
    for line in cluster.log_lines("kube-controller-manager"):
        if '"Successfully rescaled"' in line:
            entry = json.loads(line)
            yield Rescale(
                name=entry["HPA"]["name"],
                at_seconds=entry["ts"] / 1000,
                found=entry["currentReplicas"],
                to_bounds=entry["reason"].startswith("Current number of replicas"),
            )


class Play:
    """One series on the stage: its next value, and the looks so far."""

    def __init__(self, series: Series, name: str, cluster: ControlPlane, book: Book) -> None:
        self.series = series
        self.workload = Workload(name, NAMESPACE, cluster, gated=series.target is not None)
        self.events: list[Look | Hand] = []
        self.samples: list[dict[str, Any]] = []
        self._sync_seconds = book.sync_seconds
        self._script = [step for step in series.steps for _ in range(max(1, step.looks))]
        self._next = 0
        self._lock = threading.Lock()

    @property
    def deployment(self) -> dict[str, Any]:
        """The Deployment that is scaled."""
        return self.workload.manifest(replicas=self.series.replicas, start_delay=self.series.start_delay)

    @property
    def autoscaler(self) -> dict[str, Any]:
        """Its HPA."""
        series, name = self.series, self.workload.name
        target: dict[str, Any] = {"type": "Value", "value": str(series.target_value)}
        if series.target is not None:
            target = {"type": "AverageValue", "averageValue": str(series.target)}
        metrics: list[dict[str, Any]] = [
            {"type": "External", "external": {"metric": {"name": f"{name}-{number}"}, "target": target}}
            for number in range(series.metrics)
        ]
        if series.target_cpu is not None:
            target = {"type": "Utilization", "averageUtilization": series.target_cpu}
            metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        spec: dict[str, Any] = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": series.least,
            "maxReplicas": series.most,
            "metrics": metrics,
        }
        behavior = {} if series.behavior is None else {"behavior": series.behavior}
        return self.workload.document("autoscaling/v2", "HorizontalPodAutoscaler", spec | behavior)

    @property
    def is_set(self) -> bool:
        """True if the workload is as at the beginning of the series."""
        return self.workload.counts()[1] == self.series.replicas and self._is_settled()

    @property
    def is_over(self) -> bool:
        """True if there was one look more than the script is long, so that the last command is known."""
        looks = sum(isinstance(event, Look) and event.read is not None for event in self.events)
        return looks > sum(step.looks for step in self.series.steps)

    def begin(self) -> None:
        """Make the changes by hand that come before the first look."""
        with self._lock:
            self._hands()

    def look(self) -> None:
        """The controller looks, and gets its answer next."""
        with self._lock:
            self.events.append(self._seen(self._script[min(self._next, len(self._script) - 1)]))
            self._next += 1
            self._hands()

    def rescaled(self, rescale: Rescale) -> None:
        """Record a command at the look that it came from; a look without a query is added."""
        before = [number for number, event in enumerate(self.events) if event.at_seconds <= rescale.at_seconds]
        if rescale.to_bounds:
            counts = {"replicas": rescale.found, "status_replicas": rescale.found}
            self.events.insert(len(before), Look(at_seconds=rescale.at_seconds, read=None, **counts))
            return
        look = self.events[before[-1]]
        assert isinstance(look, Look)
        self.events[before[-1]] = replace(look, rescaled_at_seconds=rescale.at_seconds)

    def values(self, number: int) -> list[int]:
        """The values that it reads of its metric of that number: one, or none."""
        read = next(event.read for event in reversed(self.events) if isinstance(event, Look) and event.read is not None)
        value = read.metric[number]
        return [] if value is None else [value]

    def _hands(self) -> None:
        """Make the change by hand that comes next in the script: half a period after a look, or at its time."""
        wait = self._sync_seconds / 2
        while self._next < len(self._script) and self._script[self._next].hand is not None:
            step = self._script[self._next]
            if step.seconds:
                self.events.append(self._seen(None))
            wait += step.seconds
            threading.Timer(wait, self._set, [step]).start()
            self._next += 1

    def _set(self, step: Step) -> None:
        assert step.hand is not None
        with self._lock:
            if step.seconds:
                self.events.append(self._seen(None))
            found, _ = self.workload.counts()
            self.workload.set(step.hand)
            self.events.append(Hand(at_seconds=now_seconds(), replicas=found, sets=step.hand))

    def _seen(self, read: Step | None) -> Look:
        if read is not None and not self._is_settled():
            # The controller is not answered before its pods are ready, and its own list of them has followed.
            wait_until(self._is_settled)
            time.sleep(0.3)
        replicas, status_replicas = self.workload.counts()
        look = Look(at_seconds=0.0, read=read, replicas=replicas, status_replicas=status_replicas)
        if read is not None and self.series.target is None:
            look = self._with_pods(look, read)
        # The controller's clock is read when it has its answer, and that leaves now.
        return replace(look, at_seconds=now_seconds())

    def _is_settled(self) -> bool:
        """True if each pod that there should be is ready, where pods get ready at all and their count matters."""
        if self.series.target is not None or self.series.start_delay != "0s":
            return True
        pods = self.workload.pods()
        return len(pods) == self.workload.counts()[0] and all(pods.values())

    def _with_pods(self, look: Look, read: Step) -> Look:
        """The look with the pods in their groups. The last are missing in the samples; those before them are old."""
        pods = self.workload.pods()
        sampled, is_ready = len(pods) - read.missing, list(pods.values())
        ready, missing = sum(is_ready[: sampled - read.unready]), sum(is_ready[sampled:])
        now = _now().strftime("%Y-%m-%dT%H:%M:%SZ")
        self.samples = [
            {
                "metadata": {"name": pod, "namespace": NAMESPACE},
                "timestamp": now if number < sampled - read.unready else OLD,
                "window": "0s",
                "containers": [{"name": "consumer", "usage": {"cpu": f"{read.cpu}m"}}],
            }
            for number, pod in enumerate(pods)
            if number < sampled
        ]
        return replace(look, ready=ready, missing=missing, unready=len(pods) - ready - missing)


class Stage:
    """Answers the controller for every series that is played, as prometheus-adapter and metrics-server would."""

    def __init__(self, plays: Mapping[str, Play]) -> None:
        self._plays = plays

    def answer(self, path: str) -> tuple[int, object]:
        """The answer that it reads at `path`."""
        url = urlparse(path)
        if url.path.startswith(f"/apis/{RESOURCES}/"):
            play = self._plays[parse_qs(url.query)["labelSelector"][0].removeprefix("app=")]
            play.look()
            return _list("PodMetricsList", RESOURCES, play.samples)
        metric = url.path.rpartition("/")[2]
        name, _, number = metric.partition("-")
        if number == "0":
            self._plays[name].look()
        values = self._plays[name].values(int(number))
        items = [{"metricName": metric, "timestamp": OLD, "value": str(value)} for value in values]
        return _list("ExternalMetricValueList", EXTERNAL, items)


def now_seconds() -> float:
    """The time of the cluster's clocks, which is the real one."""
    return _now().timestamp()


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # the cluster lives in the real time


def _list(kind: str, group: str, items: Sequence[object]) -> tuple[int, object]:
    return 200, {"kind": kind, "apiVersion": f"{group}/v1beta1", "metadata": {}, "items": items}
