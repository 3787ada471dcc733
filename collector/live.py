"""A live cluster: stores its rounds and keeps the errors of the last one; Kafka itself also tells interruptions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event

from collector.errors import ANSWERED, AdapterError, outcome_of
from collector.isolated import IsolatedCollector
from collector.kafka_admin import Collected, KafkaAdminCollector
from collector.meter import Interruption
from collector.prometheus_live import PrometheusCollector
from collector.run import NO_GROUP, Collector, collect_forever
from collector.sample import OffsetSample, Owns, every_group
from collector.sinks import last_samples, write_samples
from collector.watch import Attention, watch_forever
from forecasting.columns import BASE_INTERVAL_SECONDS

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class LiveSource(ABC):
    """The groups of one cluster, read by a thread.

    `samples` is the folder that rounds are written to; `arrived` is set after the first write. `unread` holds the
    errors of the last round, by group. `owns` chooses among the groups. `on_request` gets the outcome of each round,
    and of each group of it that could not be read.
    """

    cluster: str
    groups: Sequence[str] | None
    client_config: Mapping[str, str]
    samples: Path
    clock: Callable[[], datetime]
    owns: Owns = every_group
    on_request: Callable[[str], object] = lambda _: None
    arrived: Event = field(default_factory=Event)
    unread: Mapping[str, AdapterError] = field(default_factory=dict)
    _attention: Attention = field(default_factory=Attention)

    @abstractmethod
    def _collector(self, stop: Event) -> AbstractContextManager[Collector]:
        """The collector of the rounds, which does not wait for an answer once `stop` is set."""

    @property
    def _silence(self) -> AdapterError | None:
        """The error of a round without samples and errors."""
        return NO_GROUP

    def collect(self, stop: Event) -> None:
        """Write a round every 15 s, each a file of its own, until `stop`. Errors: those of `collect_forever`."""
        with self._collector(stop) as collector:
            collect_forever(
                _Counted(collector, self.on_request),
                self._keep,
                groups=self.groups,
                file_seconds=BASE_INTERVAL_SECONDS,
                silence=self._silence,
                clock=self.clock,
                wait=stop.wait,
                on_collected=self._note_round,
            )

    def _keep(self, samples: Sequence[OffsetSample]) -> None:
        if write_samples(self._attention.with_commit_intervals(samples), self.samples):
            self.arrived.set()

    def _note_round(self, collected: Collected) -> None:
        self._attention.note_round(collected)
        self.unread = collected.unread


@dataclass(frozen=True, slots=True)
class _Counted:
    """A collector whose outcomes are told."""

    collector: Collector
    tell: Callable[[str], object]

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """What the collector returns. Errors: its own."""
        try:
            collected = self.collector.collect(groups, now=now)
        except AdapterError as error:
            self.tell(outcome_of(error))
            raise
        self.tell(ANSWERED)
        for failed in collected.errors:
            self.tell(outcome_of(failed))
        return collected


@dataclass(slots=True, kw_only=True)
class LivePrometheus(LiveSource):
    """Groups that a server of Prometheus' API knows through an exporter; `client_config` is for its requests.

    A scrape that is in the folder already, with the past or from the process before, is not written again.
    """

    url: str
    _written: dict[str, datetime] = field(default_factory=dict)

    def _collector(self, stop: Event) -> AbstractContextManager[Collector]:  # noqa: ARG002  # 10 s at most
        return PrometheusCollector(self.url, cluster=self.cluster, settings=self.client_config, owns=self.owns)

    @property
    def _silence(self) -> None:
        """A round between two scrapes has no samples."""
        return

    def _keep(self, samples: Sequence[OffsetSample]) -> None:
        new = frozenset(sample.group for sample in samples) - self._written.keys()
        if new:
            before = last_samples(self.samples, cluster=self.cluster, groups=new)
            self._written |= {group: before.get(group, _NEVER) for group in new}
        write_samples([each for each in samples if each.sampled_at > self._written[each.group]], self.samples)
        if samples:
            self.arrived.set()


@dataclass(slots=True, kw_only=True)
class LiveCluster(LiveSource):
    """A Kafka cluster, read and watched by a thread each; `client_config` is that of its client."""

    bootstrap: str
    read_committed: Sequence[str]

    def _collector(self, stop: Event) -> AbstractContextManager[Collector]:
        return IsolatedCollector(self._make(), is_stopped=stop.is_set)

    def watch(self, on_interruption: Callable[[Interruption], object], stop: Event) -> None:
        """Call `on_interruption` with each interruption of the groups that deserve attention, until `stop`."""
        # The rounds describe groups; twice a second nothing of it would be new.
        with IsolatedCollector(partial(self._make(), describe=False), is_stopped=stop.is_set) as collector:
            watch_forever(
                collector,
                lambda: self._attention.groups,
                on_interruption,
                on_commit_interval=self._attention.note_commit_interval,
                clock=self.clock,
                wait=stop.wait,
            )

    def _make(self) -> "partial[KafkaAdminCollector]":
        """The constructor of a collector of this cluster, for a child process."""
        return partial(
            KafkaAdminCollector,
            self.bootstrap,
            cluster=self.cluster,
            client_config=self.client_config,
            read_committed=self.read_committed,
            owns=self.owns,
        )
