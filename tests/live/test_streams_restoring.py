"""How fast a Kafka Streams application restores, as it reports that itself to a real Prometheus.

A process that has lost its state reads all of it again, at a quota of the broker's that lagcast is not told.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from collector.kafka_admin import KafkaAdminCollector
from collector.prometheus_live import PrometheusCollector
from collector.sample import OffsetSample
from cost_model.physics.detected import observed_in
from recommender.configuring.settings_group import GroupSettings, StreamsSettings
from tests.live.harness.broker import compiled, free_ports, limit_reads, running_brokers
from tests.live.harness.clients import NOON, create_topic, produced_steadily, read_until, wait_until
from tests.live.harness.executors import read_clock
from tests.live.harness.exporters import KlagExporter, jmx_option, running_prometheus
from tests.live.harness.exporters import wait_until as wait_until_page
from tests.live.harness.streams import (
    KEY_BYTES,
    BatchLog,
    StreamsOrder,
    StreamsProcess,
    produce_keyed,
    restorer_of,
)
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

APPLICATION, TOPIC = "shop", "orders"
FIRST, SECOND = f"{APPLICATION}-0", f"{APPLICATION}-1"
TASKS = 4
RECORDS, VALUE_BYTES = 8_000, 10_000
STATE_BYTES = RECORDS * (KEY_BYTES + VALUE_BYTES)
# The state takes 80 s, in which there are whole minutes of restores.
RESTORE_BYTES_PER_SECOND = 1_000_000
SETTINGS = {
    "session.timeout.ms": "6000",
    # An application is told of once it has committed.
    "commit.interval.ms": "1000",
    # With larger pieces, the first one would use up the quota of many seconds.
    "restore.consumer.max.partition.fetch.bytes": "100000",
}
RESTORE_LIMIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What Prometheus told while the application worked and while it restored; bytes and time as seen from outside."""

    working: list[OffsetSample]
    restoring: list[OffsetSample]
    changelog_bytes: float
    restore_seconds: float


class Stage:
    """A broker with the application, and a Prometheus that scrapes its processes and an exporter of offsets."""

    def __init__(self, jars: Path, program: Callable[[str], Path], folder: Path, ends: ExitStack) -> None:
        self._jars, self._folder, self._ends = jars, folder, ends
        self._agent, self._log = program("jmx-agent"), BatchLog(folder)
        self._classes = compiled(jars, folder / "classes")
        klag_port, *ports = free_ports(3)
        self._ports = dict(zip((FIRST, SECOND), ports, strict=True))
        # Rates are taken over a second, not over eleven.
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka", properties={"quota.window.num": "2"}))
        self.bootstrap = broker.address
        limit_reads(jars, self.bootstrap, {restorer_of(SECOND): RESTORE_BYTES_PER_SECOND})
        create_topic(self.bootstrap, TOPIC, partitions=TASKS)
        ends.enter_context(produced_steadily(self.bootstrap, [TOPIC], partitions=TASKS))
        klag = KlagExporter(program("klag-exporter"), folder, bootstrap=self.bootstrap, cluster="live", port=klag_port)
        ends.callback(klag.stop)
        klag.start()
        jobs = {"klag": [klag_port], "applications": ports}
        self._url = ends.enter_context(running_prometheus(program("prometheus"), folder / "prometheus", jobs=jobs))
        self._collector = ends.enter_context(PrometheusCollector(self._url, cluster="live", settings={}))

    def start(self, name: str) -> StreamsProcess:
        """Start a process, without any state."""
        order = StreamsOrder(
            name=name,
            application=APPLICATION,
            topic=TOPIC,
            settings={**SETTINGS, "client.id": name},
            java_options=[jmx_option(self._agent, self._folder, of="application", port=self._ports[name])],
        )
        process = StreamsProcess(
            order, bootstrap=self.bootstrap, folder=self._folder, jars=self._jars, classes=self._classes
        )
        self._ends.callback(process.kill)
        return process

    def began_at(self, name: str) -> dict[int, float]:
        """When a process wrote down its first record of each task."""
        found: dict[int, float] = {}
        for batch in self._log.of(APPLICATION):
            if batch.member == name:
                found.setdefault(batch.partition, batch.begin_at)
        return found

    def wait_until_scraped(self) -> None:
        """Wait until Prometheus has the offsets of the application."""
        page = f"{self._url}/api/v1/label/__name__/values"
        wait_until_page(
            page, holds='"kafka_consumergroup_group_offset"', log=self._folder / "prometheus" / "prometheus.log"
        )

    def samples_until(self, is_over: Callable[[], bool]) -> list[OffsetSample]:
        """What is read from Prometheus, round after round."""
        found: list[OffsetSample] = []

        def look() -> bool:
            found.extend(self._collector.collect([APPLICATION], now=read_clock()).samples)
            return bool(found) and is_over()

        wait_until(look, seconds=RESTORE_LIMIT_SECONDS)
        return found


@pytest.fixture(scope="module")
def scene(jars: Path, program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """An application that has its state, and goes on in a process that has none."""
    with ExitStack() as ends:
        stage = Stage(jars, program, tmp_path_factory.mktemp("restoring"), ends)
        first = stage.start(FIRST)
        produce_keyed(stage.bootstrap, TOPIC, RECORDS, partitions=TASKS, value_bytes=VALUE_BYTES)
        from_kafka = KafkaAdminCollector(stage.bootstrap, cluster="live")
        written = sum(row.end_offset for row in read_until(from_kafka, APPLICATION, bool)[-1])
        wait_until(lambda: reached(from_kafka) >= written)
        stage.wait_until_scraped()
        working = stage.samples_until(lambda: True)
        told = KafkaAdminCollector(stage.bootstrap, cluster="live").collect([APPLICATION], now=NOON).samples[0].streams
        first.kill()
        second = stage.start(SECOND)
        restoring = stage.samples_until(lambda: len(stage.began_at(SECOND)) == TASKS)
        yield Scene(
            working=working,
            restoring=restoring,
            changelog_bytes=json.loads(told or "{}")["restore_bytes"],
            restore_seconds=max(stage.began_at(SECOND).values()) - second.stores_created_at()[0],
        )


def reached(collector: KafkaAdminCollector) -> int:
    """The sum of the offsets that the application has committed."""
    return sum(row.committed_offset or 0 for row in collector.collect([APPLICATION], now=NOON).samples)


def rate_seen(samples: list[OffsetSample], *, is_set: float | None = None) -> tuple[float, str] | None:
    """The restore rate of the profile that lagcast makes of these samples, and its source; None without Streams."""
    observed = observed_in([interval_of([row]) for row in samples])
    owners = None if is_set is None else StreamsSettings(restore_bytes_per_second=is_set)
    streams = GroupSettings(streams=owners).profile("live", APPLICATION, observed).streams
    return (
        None if streams is None else (streams.restore_bytes_per_second, streams.source_of("restore_bytes_per_second"))
    )


def test_an_application_that_restores_shows_how_fast_a_replica_does(scene: Scene) -> None:
    """The rate is that of its changelog's bytes over the time that they took, with nothing configured."""
    assert scene.changelog_bytes == pytest.approx(STATE_BYTES, rel=0.1)
    found = rate_seen(scene.restoring)
    assert found is not None
    rate, source = found
    assert source == "measured"
    assert rate == pytest.approx(scene.changelog_bytes / scene.restore_seconds, rel=0.35)


def test_a_rate_that_is_set_wins_over_the_one_that_is_measured(scene: Scene) -> None:
    """An owner may know better."""
    assert rate_seen(scene.restoring, is_set=3e7) == (3e7, "configured")


def test_an_application_that_does_not_restore_shows_no_rate(scene: Scene) -> None:
    """Nor does Prometheus tell that it is one of Kafka Streams."""
    assert {row.streams for row in scene.working} == {None}
    assert rate_seen(scene.working) is None
