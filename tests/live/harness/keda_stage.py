"""Plays scripted series to a real KEDA and the HPAs that it makes, all side by side, and records what each read.

KEDA's own loop and the HPA read the same trigger. A read of the HPA passes this process twice, on its way to
KEDA's adapter and as KEDA requests the number; a read of the loop once.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from confluent_kafka import Consumer, TopicPartition

from tests.live.harness.aggregated import serving_apis
from tests.live.harness.clients import create_topic, produce, wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.hpa_stage import EXTERNAL, now_seconds, rescales
from tests.live.harness.keda_processes import Keda
from tests.live.harness.keda_shadow import KedaSeries, Reading
from tests.live.harness.workload import Workload, documents

NAMESPACE = "scaled"
PLAY_LIMIT_SECONDS = 120.0
# So long after a series its last commands have been seen.
AFTER_SECONDS = 3.0


class Lag:
    """The lag of a trigger that reads a number by HTTP: it has the value that was set."""

    def __init__(self, url: str) -> None:
        self.kind, self.target = "metrics-api", ("targetValue", "activationTargetValue")
        self.metadata = {"url": url, "valueLocation": "value", "format": "json"}


class KafkaLag:
    """The lag of a group without members on a topic of its own: it is set by committing."""

    def __init__(self, bootstrap: str, name: str, series: KedaSeries) -> None:
        assert series.partitions is not None
        self._topic, self._partitions = name, series.partitions
        most = max(spell.lag or 0 for spell in series.spells)
        self._each = -(-most // series.partitions)
        create_topic(bootstrap, name, partitions=series.partitions)
        produce(bootstrap, name, dict.fromkeys(range(series.partitions), self._each))
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
        kinds = {"even": {"ensureEvenDistributionOfPartitions": "true"}, "whole": {"allowIdleConsumers": "true"}}
        address = {"bootstrapServers": bootstrap, "consumerGroup": name, "topic": name, "version": "2.8.0"}
        self.kind, self.target = "kafka", ("lagThreshold", "activationLagThreshold")
        self.metadata = address | kinds.get(series.metric, {})

    def become(self, lag: int) -> None:
        """Commit so that as much is left, in the first partitions first."""
        left = [min(self._each, max(0, lag - self._each * number)) for number in range(self._partitions)]
        offsets = [TopicPartition(self._topic, number, self._each - part) for number, part in enumerate(left)]
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def close(self) -> None:
        """Leave the broker alone."""
        self._consumer.close()


class KedaPlay:
    """One series on the stage: the present value of its trigger, and the reads so far."""

    def __init__(self, series: KedaSeries, name: str, cluster: ControlPlane, lag: Lag | KafkaLag) -> None:
        self.series, self.workload, self._lag = series, Workload(name, NAMESPACE, cluster, gated=True), lag
        self.readings: list[Reading] = []
        self._begun_seconds: float | None = None
        self._committed: int | None = None
        self._hpa_lag: int | None = None
        self._hpa_reads = False
        self._is_retry = False
        self._lock = threading.RLock()
        if isinstance(lag, KafkaLag):
            self._commit(lag, series.spells[0].lag)

    @property
    def scaled_object(self) -> dict[str, Any]:
        """The ScaledObject that KEDA reads."""
        series, (target, activation) = self.series, self._lag.target
        values = {target: str(series.threshold), activation: str(series.activation)}
        trigger = {"type": self._lag.kind, "metadata": self._lag.metadata | values}
        spec: dict[str, Any] = {
            "scaleTargetRef": {"name": self.workload.name},
            "pollingInterval": series.polling,
            "cooldownPeriod": series.cooldown,
            "minReplicaCount": series.least,
            "maxReplicaCount": series.most,
            "triggers": [trigger],
        }
        if series.idle is not None:
            spec["idleReplicaCount"] = series.idle
        if series.fallback is not None:
            spec["fallback"] = series.fallback
        if series.behavior is not None:
            spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": series.behavior}}
        return self.workload.document("keda.sh/v1alpha1", "ScaledObject", spec)

    @property
    def is_over(self) -> bool:
        """True if the script is at its end, and its last commands have been seen."""
        begun = self._begun_seconds
        return begun is not None and now_seconds() > begun + self.series.seconds + AFTER_SECONDS

    def answer(self) -> int | None:
        """The number that KEDA reads at its request. It retries a failed request at once: that is one reading."""
        with self._lock:
            lag = self._lag_now()
            again, self._is_retry = self._is_retry, lag is None and not self._is_retry
            if again and lag is None:
                return None
            if self._hpa_reads:
                self._hpa_reads, self._hpa_lag = False, lag
            else:
                replicas, _ = self.workload.counts()
                self.readings.append(Reading(at_seconds=now_seconds(), by="loop", replicas=replicas, lag=lag))
            return lag

    def look(self, forward: Callable[[], tuple[int, object]]) -> tuple[int, object]:
        """The HPA reads, and `forward` has what KEDA's adapter answers."""
        with self._lock:
            lag, self._hpa_lag = self._lag_now(), None
            self._hpa_reads = isinstance(self._lag, Lag)
            if isinstance(self._lag, KafkaLag):
                self._commit(self._lag, lag)
                self._hpa_lag = lag
            replicas, _ = self.workload.counts()
        answered = forward()
        with self._lock:
            self._hpa_reads = False
            self.readings.append(Reading(at_seconds=now_seconds(), by="hpa", replicas=replicas, lag=self._hpa_lag))
        return answered

    def _lag_now(self) -> int | None:
        if self._begun_seconds is None:
            self._begun_seconds = now_seconds()
        return self.series.lag_at(now_seconds() - self._begun_seconds)

    def _commit(self, kafka: KafkaLag, lag: int | None) -> None:
        if lag is not None and lag != self._committed:
            kafka.become(lag)
        self._committed = lag


def played_by_keda(
    series: Sequence[KedaSeries], cluster: ControlPlane, keda: Keda, folder: Path, *, bootstrap: str
) -> dict[str, list[Reading]]:
    """The readings of each series, by its name, once all of them are over."""
    plays: dict[str, KedaPlay] = {}
    with _serving_numbers(plays) as address, ExitStack() as committing:
        for number, one in enumerate(series):
            name = f"k{number:02d}"
            lag: Lag | KafkaLag = Lag(f"{address}/{name}")
            if one.partitions is not None:
                lag = committing.enter_context(closing(KafkaLag(bootstrap, name, one)))
            plays[name] = KedaPlay(one, name, cluster, lag)
        cluster.kubectl("create", "namespace", NAMESPACE)
        made = [play.workload.manifest(replicas=play.series.replicas) for play in plays.values()]
        cluster.kubectl("create", "-f", "-", given=documents(made))
        wait_until(lambda: all(play.workload.counts()[1] == play.series.replicas for play in plays.values()))

        def answer(path: str) -> tuple[int, object]:
            (selector,) = parse_qs(urlparse(path).query)["labelSelector"]
            return plays[selector.rpartition("=")[2]].look(lambda: keda.read(path))

        with serving_apis(cluster, folder, [EXTERNAL], answer):
            cluster.kubectl("create", "-f", "-", given=documents(play.scaled_object for play in plays.values()))
            wait_until(lambda: all(play.is_over for play in plays.values()), seconds=PLAY_LIMIT_SECONDS)
            cluster.kubectl("-n", NAMESPACE, "delete", "scaledobjects", "--all", "--wait=false")
        for rescale in rescales(cluster):
            if rescale.to_bounds and rescale.name.startswith("keda-hpa-"):
                unread = Reading(at_seconds=rescale.at_seconds, by="none", replicas=rescale.found)
                plays[rescale.name.removeprefix("keda-hpa-")].readings.append(unread)
    return {play.series.name: sorted(play.readings, key=lambda one: one.at_seconds) for play in plays.values()}


@contextmanager
def _serving_numbers(plays: Mapping[str, KedaPlay]) -> Iterator[str]:
    """An address below which each series returns its lag, or fails while there is none."""

    class Numbers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            lag = plays[self.path.removeprefix("/")].answer()
            body = b"" if lag is None else json.dumps({"value": lag}).encode()
            self.send_response(500 if lag is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # KEDA hangs up where its object is deleted meanwhile
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Numbers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
