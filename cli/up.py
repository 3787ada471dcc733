# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast up`: all of it beside a Kafka cluster: collector, features, decisions, REST; one command, one JVM."""

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import Bootstrap, ClientConfig, Cluster, Groups, ReadCommitted, client_settings
from cli.errors import ExitCode, InputError
from cli.features import make_features
from cli.history import DAYS, backfill
from cli.instants import read_clock
from cli.keeping import KEPT_DAYS, KeepDays, keeping
from cli.logs import log_to_stderr
from cli.progress import Talk
from cli.publishing import TOPICS, Publish, publishing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from collector.kafka_admin import Collected, KafkaAdminCollector
    from collector.meter import Interruption
    from collector.sample import OffsetSample
    from collector.watch import Attention
    from forecasting.refusal import RefusalReason
    from recommender.adapters.feature_table import FeatureTable
    from recommender.adapters.metrics import Metrics
    from recommender.grade import MeasuredPause
    from recommender.run import Group, Obstacle

# How often the loop looks for new rows: reading the manifest takes 0.1 ms.
LOOK_SECONDS = 0.25


def up(
    *,
    bootstrap: Bootstrap,
    cluster: Cluster = "default",
    group: Groups = None,
    read_committed: ReadCommitted = None,
    client_config: ClientConfig = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="How far back to read past produce rates at most.")] = DAYS,
    keep_days: KeepDays = KEPT_DAYS,
    publish: Publish = TOPICS,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")] = None,
    state_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where samples and decisions are kept.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to serve on; 127.0.0.1 unless set.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port; 8686 unless set.")] = None,
) -> int:
    """Watch a Kafka cluster: read past produce rates, then samples every 15 s, and advise after each, until Ctrl-C.

    Advice only: replicas are never touched. Started again, it goes on from what it kept.
    """
    from api.app import create_app
    from cli.server import listen, serving, url_of
    from cli.spark import spark_beside
    from cli.stopping import stopped_by_signals
    from cli.wiring import open_store, recommender, settings_of, version
    from collector.watch import Attention
    from recommender.adapters.metrics import Metrics
    from recommender.run import run_forever

    if keep_days <= days:
        message = (
            f"--keep-days is {keep_days} and --days {days}: the oldest history would be removed and read again at each "
            f"start; give --keep-days {days + 1} or more"
        )
        raise InputError(message)
    log_to_stderr()
    talk = Talk()
    settings = settings_of(config, state_dir=state_dir)
    source = Source(
        bootstrap=bootstrap,
        cluster=cluster,
        groups=group,
        read_committed=tuple(read_committed or ()),
        connection=client_settings(client_config),
        folder=settings.state_dir / "up" / cluster,
        attention=Attention(),
    )
    store = open_store(settings)
    metrics = Metrics(store, clock=read_clock, version=version())
    app = create_app(store, clock=read_clock, version=version(), metrics=metrics, settings=settings)
    bound = listen(host or settings.host, settings.port if port is None else port, search=False)
    with (
        serving(app, bound),
        stopped_by_signals() as stop,
        spark_beside(talk, log_path=settings.state_dir / "spark.log") as starting,
        threads_until(stop) as threads,
        keeping(source.samples, kept_days=keep_days, stop=stop),
    ):
        talk.line(f"lagcast {version()} reads {bootstrap} and serves {url_of(bound)}; advice only; Ctrl-C stops")
        with talk.running():
            past_rows = source.read_past(days=days, talk=talk, stop=stop)
            collecting = threads.submit(source.collect, stop)
            table = source.first_features(starting, collecting, anew=past_rows > 0, talk=talk, stop=stop)
        if table is None:
            return ExitCode.OK
        following = threads.submit(source.follow, starting.result(), stop)
        watching = threads.submit(source.watch, metrics, stop)
        with publishing(publish, bootstrap, source.connection, settings, talk=talk) as publishers:
            loop = recommender(
                table,
                settings,
                store,
                publishers=[metrics, *publishers],
                obstacles=lambda: source.obstacles,
                stops=source.drained_stops,
                observe_steps=metrics.observe_steps,
            )
            instants = news(
                table, settings.decision.cycle_seconds, threads=(collecting, following, watching), stop=stop
            )
            run_forever(loop, instants=instants)
    return ExitCode.OK


@dataclass(slots=True, kw_only=True)
class Source:
    """A Kafka cluster, and the folder in which what it said is kept."""

    bootstrap: str
    cluster: str
    groups: "Sequence[str] | None"
    read_committed: "Sequence[str]"
    connection: "Mapping[str, str]"
    folder: Path
    attention: "Attention"
    arrived: Event = field(default_factory=Event)
    obstacles: "dict[Group, Obstacle]" = field(default_factory=dict)
    stops: "defaultdict[Group, deque[MeasuredPause]]" = field(default_factory=lambda: defaultdict(deque))

    @property
    def samples(self) -> Path:
        """Where samples are written."""
        return self.folder / "samples"

    @property
    def features(self) -> Path:
        """Where the feature table is."""
        return self.folder / "features"

    def read_past(self, *, days: int, talk: Talk, stop: Event) -> int:
        """Past arrivals, where there are none of them yet: so many rows.

        Errors: AdapterError where Kafka does not answer.
        """
        return backfill(
            self.bootstrap,
            self.samples,
            cluster=self.cluster,
            groups=self.groups,
            days=days,
            settings=self.connection,
            talk=talk,
            stop=stop,
        )

    def collect(self, stop: Event) -> None:
        """A round every 15 s, each a file of its own, until `stop`."""
        from collector.isolated import IsolatedCollector
        from collector.run import collect_forever
        from collector.sinks import write_samples
        from forecasting.columns import BASE_INTERVAL_SECONDS

        def keep(samples: "Sequence[OffsetSample]") -> None:
            if write_samples(samples, self.samples):
                self.arrived.set()

        with IsolatedCollector(self._collector()) as collector:
            collect_forever(
                collector,
                keep,
                groups=self.groups,
                file_seconds=BASE_INTERVAL_SECONDS,
                clock=read_clock,
                wait=stop.wait,
                on_collected=self._hear,
            )

    def watch(self, metrics: "Metrics", stop: Event) -> None:
        """Measure what interrupts the groups that deserve attention, until `stop`; `metrics` tells of it."""
        from collector.isolated import IsolatedCollector
        from collector.watch import watch_forever

        def tell(found: "Interruption") -> None:
            self.note(found, metrics)

        with IsolatedCollector(self._collector()) as collector:
            watch_forever(collector, lambda: self.attention.groups, tell, clock=read_clock, wait=stop.wait)

    def note(self, found: "Interruption", metrics: "Metrics") -> None:
        """Have `metrics` count an interruption, and keep a rebalance for the move that it belongs to."""
        from recommender.grade import MeasuredPause

        metrics.interrupted(
            found.cluster,
            found.group,
            kind=found.kind,
            rebalance_pause_seconds=found.rebalance_pause_seconds if found.stops else None,
            repeated_least=found.repeated_messages_least,
            repeated_most=found.repeated_messages_most,
        )
        if found.kind == "rebalance" and found.stops:
            self.stops[found.cluster, found.group].append(
                MeasuredPause(
                    began_at=found.began_at,
                    ended_at=found.ended_at,
                    lost_seconds=found.lost_partition_seconds / found.partitions,
                    resolution_seconds=found.resolution_seconds,
                )
            )

    def drained_stops(self, group: "Group") -> "tuple[MeasuredPause, ...]":
        """What was measured of the group's rebalances since this was last asked."""
        kept = self.stops[group]
        return tuple(kept.popleft() for _ in range(len(kept)))

    def _collector(self) -> "partial[KafkaAdminCollector]":
        """What makes a collector of this cluster, in a process of its own."""
        from collector.kafka_admin import KafkaAdminCollector

        return partial(
            KafkaAdminCollector,
            self.bootstrap,
            cluster=self.cluster,
            client_config=self.connection,
            read_committed=self.read_committed,
        )

    def _hear(self, collected: "Collected") -> None:
        """Remember which groups brought an error and not one sample, and which were unsettled."""
        from collector.errors import UnsupportedError
        from recommender.run import Obstacle

        self.attention.hear(collected)
        sampled = {sample.group for sample in collected.samples}
        obstacles = {}
        for error in collected.errors:
            if error.group is not None and error.group not in sampled:
                unsupported = isinstance(error, UnsupportedError)
                remedy = (
                    "Leave it out, or scale it by another signal."
                    if unsupported
                    else "Mend what the sentence names; it is asked again every 15 s."
                )
                reason: RefusalReason = "unsupported" if unsupported else "source_unreachable"
                obstacles[self.cluster, error.group] = Obstacle(reason, str(error), remedy)
        self.obstacles = obstacles

    def first_features(
        self, starting: "Future[SparkSession]", collecting: "Future[None]", *, anew: bool, talk: Talk, stop: Event
    ) -> "FeatureTable | None":
        """The table of all that is there once a live sample is; None where `stop` comes first.

        One that is there is gone on with by the stream, unless the past has just been read: it is made `anew` then.
        """
        from recommender.adapters.feature_table import MANIFEST, FeatureTable

        with talk.stage("samples", "the first reading of a consumer group: every 15 s, as soon as there is one"):
            while not self.arrived.wait(LOOK_SECONDS):
                if collecting.done():
                    collecting.result()
                if stop.is_set():
                    return None
        if anew or not (self.features / MANIFEST).exists():
            make_features(starting, self.samples, self.features, talk=talk)
        return FeatureTable(self.features)

    def follow(self, spark: "SparkSession", stop: Event) -> None:
        """Let Spark turn each new sample file into rows, until `stop`."""
        from spark_features.stream import follow_features

        follow_features(spark, self.samples, self.features, stop=stop)


@contextmanager
def threads_until(stop: Event) -> Iterator[ThreadPoolExecutor]:
    """Three threads that are told to stop when the block ends, however it ends."""
    with ThreadPoolExecutor(3, thread_name_prefix="up") as threads:
        try:
            yield threads
        finally:
            stop.set()


def news(
    table: "FeatureTable", cycle_seconds: float, *, threads: "Sequence[Future[None]]", stop: Event
) -> Iterator[datetime]:
    """The present, whenever the table has new rows and they may be used, at least once a cycle, until `stop`.

    Errors: whatever one of `threads` failed with.
    """
    seen, yielded = None, time.monotonic()
    while not stop.is_set():
        for thread in threads:
            if thread.done():
                thread.result()
        version = table.version
        if version != seen or time.monotonic() - yielded >= cycle_seconds:
            seen, yielded = version, time.monotonic()
            # Rows are read a second before their interval ends.
            newest = table.newest_interval_end_at() or read_clock()
            if stop.wait(max(0.0, (newest - read_clock()).total_seconds())):
                return
            yield read_clock()
        stop.wait(LOOK_SECONDS)
