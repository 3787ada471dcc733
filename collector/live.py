"""A live Kafka cluster: stores its rounds, reports its interruptions, and keeps the errors of the last round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event

from collector.errors import AdapterError
from collector.isolated import IsolatedCollector
from collector.kafka_admin import Collected, KafkaAdminCollector
from collector.meter import Interruption
from collector.run import collect_forever
from collector.sample import OffsetSample
from collector.sinks import write_samples
from collector.watch import Attention, watch_forever
from forecasting.columns import BASE_INTERVAL_SECONDS


@dataclass(slots=True, kw_only=True)
class LiveCluster:
    """One cluster, read and watched by a thread each.

    `samples` is the folder that rounds are written to; `arrived` is set after the first write. `unread` holds the
    errors of the last round, by group.
    """

    bootstrap: str
    cluster: str
    groups: Sequence[str] | None
    read_committed: Sequence[str]
    client_config: Mapping[str, str]
    samples: Path
    clock: Callable[[], datetime]
    arrived: Event = field(default_factory=Event)
    unread: Mapping[str, AdapterError] = field(default_factory=dict)
    _attention: Attention = field(default_factory=Attention)

    def collect(self, stop: Event) -> None:
        """Write a round every 15 s, each a file of its own, until `stop`. Errors: those of `collect_forever`."""
        with IsolatedCollector(self._make()) as collector:
            collect_forever(
                collector,
                self._keep,
                groups=self.groups,
                file_seconds=BASE_INTERVAL_SECONDS,
                clock=self.clock,
                wait=stop.wait,
                on_collected=self._note_round,
            )

    def watch(self, on_interruption: Callable[[Interruption], object], stop: Event) -> None:
        """Call `on_interruption` with each interruption of the groups that deserve attention, until `stop`."""
        # The rounds describe applications; twice a second nothing of it would be new.
        with IsolatedCollector(partial(self._make(), describe_streams=False)) as collector:
            watch_forever(collector, lambda: self._attention.groups, on_interruption, clock=self.clock, wait=stop.wait)

    def _make(self) -> "partial[KafkaAdminCollector]":
        """The constructor of a collector of this cluster, for a child process."""
        return partial(
            KafkaAdminCollector,
            self.bootstrap,
            cluster=self.cluster,
            client_config=self.client_config,
            read_committed=self.read_committed,
        )

    def _keep(self, samples: Sequence[OffsetSample]) -> None:
        if write_samples(samples, self.samples):
            self.arrived.set()

    def _note_round(self, collected: Collected) -> None:
        self._attention.note_round(collected)
        self.unread = collected.unread
