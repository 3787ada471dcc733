# ruff: noqa: PLC0415 - heavy parts are imported when a command runs, so that `--help` answers in 0.2 s
"""The service of `lagcast up` and `lagcast serve`: REST, KEDA's port, objects, topics, and the loop that decides."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from cli.access import AccessOptions, access_of, certificate_of, require_protection
from cli.errors import InputError
from cli.instants import read_clock
from cli.leading import Lead, lead_of, leading
from cli.progress import Talk
from cli.publishing import publishing
from cli.wiring import PricesAt

if TYPE_CHECKING:
    from datetime import datetime

    from recommender.adapters.feature_table import FeatureTable
    from recommender.adapters.metrics import Metrics
    from recommender.adapters.store_sql import SqlDecisionStore
    from recommender.borders import Borders
    from recommender.cluster.scalers import Scalers
    from recommender.cluster.workloads import Workloads
    from recommender.configuring.settings import InForce, Settings
    from recommender.following.grading import MeasuredPause
    from recommender.instants import Pulse
    from recommender.known_groups import KnownGroups
    from recommender.ports import Group, Obstacle, Publisher
    from recommender.shards import Shard

# The options of both commands.
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")]
Forecasts = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Long forecasts to serve, as `lagcast forecast` writes them.")
]
Host = Annotated[str | None, typer.Option(help="Address to serve on; 127.0.0.1 unless set.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port; 8686 unless set.")]
KedaPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="TCP port for KEDA's external triggers, over gRPC.")
]
Kubernetes = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMESPACE", help="Namespace of ConsumerGroupScalers to follow; may be given several times."),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Cluster of --kubernetes and --lease. [default: the one it runs in]"),
]
NodePrices = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Prometheus with OpenCost's prices of nodes, for what a replica in --kubernetes costs; `auto` finds it.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """The options of both commands, as the user gave them; `connection` is the content of `--client-config`.

    `samples` is the folder that this process collects into, if it does.

    It is Kafka's, or that of the Prometheus at `prometheus` where samples are read from it; prices of nodes are then
    read there too, unless `node_prices` names another server.
    """

    settings: "Settings"
    shard: "Shard"
    connection: Mapping[str, str]
    bootstrap: str | None
    publish: str
    forecasts: Path | None
    host: str | None
    port: int | None
    keda_port: int | None
    kubernetes: Sequence[str]
    lease: str | None
    kubeconfig: Path | None
    node_prices: str = ""
    prometheus: str = ""
    access: AccessOptions = field(default_factory=AccessOptions)
    config: Path | None = None
    samples: Path | None = None

    @property
    def prices_at(self) -> PricesAt | None:
        """The server of the prices of nodes. The secrets of one server are not sent to another one."""
        if self.node_prices:
            return PricesAt(self.node_prices, {}, "--node-prices")
        return PricesAt(self.prometheus, self.connection, "--prometheus") if self.prometheus else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that answers on `url`, and decides in `decide`; `stop` is set by Ctrl-C and SIGTERM."""

    url: str
    stop: Event
    metrics: "Metrics"
    borders: "Borders"
    scalers: "Scalers | None"
    _options: ServiceOptions
    _workloads: "Workloads | None"
    _known_groups: "KnownGroups"
    _deciding: Event
    _pulse: "Pulse"
    _store: "SqlDecisionStore"
    _lead: Lead | None
    _talk: Talk

    def decide(
        self,
        table: "FeatureTable",
        *,
        obstacles: "Callable[[], Mapping[Group, Obstacle]]" = dict,
        stops: "Callable[[Group], Sequence[MeasuredPause]]" = lambda _: (),
    ) -> None:
        """Decide as rows come into the table and at least once a cycle, and publish, until `stop` is set.

        With a lease that is done only while it is held. `obstacles` are the groups that cannot be read now, `stops` the
        measured pauses of a group. No error ends it: what fails is told to `borders`.
        """
        from cli.wiring import recommender
        from recommender.cluster.leadership import FencedPublisher
        from recommender.instants import as_rows_come, row_count_of
        from recommender.obstacles import rows_ahead
        from recommender.run import run_forever

        scalers, settings, lead = self.scalers, self._settings, self._lead
        fence = None if lead is None else lead.fence
        early = Event() if lead is None else lead.began

        def all_obstacles() -> "Mapping[Group, Obstacle]":
            now = read_clock()
            unread = {**rows_ahead(table.ahead(now), now=now), **obstacles()}
            if scalers is None:
                return unread
            return {**unread, **scalers.look({*table.groups(now=now), *unread}, now=now)}

        # The lease is released last, when nothing publishes any more.
        with leading(lead), self._publishing() as topics:
            publishers: Sequence[Publisher] = [self.metrics, *topics]
            loop = recommender(
                table,
                settings,
                self._store,
                publishers=publishers if fence is None else [FencedPublisher(each, fence) for each in publishers],
                obstacles=all_obstacles,
                stops=stops,
                workloads=self._workloads,
                observe_steps=self.metrics.observe_steps,
                known_groups=self._known_groups,
                borders=self.borders,
                owns=self._options.shard.owns,
                is_stopped=self.stop.is_set,
                deciding=self._deciding,
                early=early,
            )
            loop.watched.row_count = partial(row_count_of, table)
            instants = as_rows_come(
                table,
                settings.decision.cycle_seconds,
                clock=read_clock,
                stop=self.stop,
                early=early,
                pulse=self._pulse,
            )
            report = None if scalers is None else scalers.report
            run_forever(loop, instants=_ready_for_fits(instants), report=report, fence=fence)

    def leads(self) -> bool:
        """True if this process publishes now: always without a lease."""
        return self._lead is None or self._lead.leads()

    @property
    def _settings(self) -> "InForce":
        return self.scalers or self._options.settings

    def _publishing(self) -> "AbstractContextManager[list[Publisher]]":
        options, lead = self._options, self._lead
        return publishing(
            options.publish if options.bootstrap else "",
            options.bootstrap or "",
            options.connection,
            self._settings,
            talk=self._talk,
            within_seconds=None if lead is None else lead.elector.terms.margin_seconds,
        )


def _ready_for_fits(instants: "Iterator[datetime]") -> "Iterator[datetime]":
    """The instants; after the first cycle all that the first fit of a forecaster would load is loaded.

    Otherwise a group that becomes two days old would delay a cycle by seconds, and add 140 MB to a process whose limit
    was set by what it took before.
    """
    yield from islice(instants, 1)
    for name in (
        "scipy.stats",
        "sklearn.metrics",
        "statsmodels.tsa.exponential_smoothing.ets",
        "statsmodels.tsa.statespace.exponential_smoothing",
    ):
        import_module(name)
    yield from instants


@contextmanager
def running_service(options: ServiceOptions, *, talk: Talk) -> Iterator[Service]:
    """A service during the block. Errors: InputError for options that contradict each other or name no cluster."""
    from api.access.connections import Limits
    from api.app import create_app
    from cli.logs import trace_crashes
    from cli.memory import keep_little_of_what_is_freed
    from cli.server import listen, serving, url_of
    from cli.stopping import stopped_by_signals
    from cli.wiring import answering_keda, open_store, replays_of, scalers_in, version, workloads_in
    from recommender.adapters.long_forecasts import LongForecastsFolder
    from recommender.adapters.metrics import Metrics
    from recommender.adapters.partition_samples import PartitionSamplesFolder
    from recommender.borders import Borders
    from recommender.configuring.effective import effective_settings
    from recommender.instants import Pulse
    from recommender.known_groups import KnownGroups

    trace_crashes()
    keep_little_of_what_is_freed(for_readers=True)
    asks_cluster = bool(options.kubernetes) or options.lease is not None or options.access.token_review
    if options.kubeconfig is not None and not asks_cluster:
        message = "--kubeconfig is about a cluster that is not followed; add --kubernetes NAMESPACE"
        raise InputError(message)
    if options.node_prices and not options.kubernetes:
        message = "--node-prices is about the nodes of pods that are not followed; add --kubernetes NAMESPACE"
        raise InputError(message)
    settings = options.settings
    host = options.host or settings.host
    require_protection(options.access, host=host, keda_port=options.keda_port)
    certificate = certificate_of(options.access, keda_port=options.keda_port)
    access = access_of(options.access, host=host, kubeconfig=options.kubeconfig)
    lead = lead_of(options.lease, options.kubeconfig, options.shard)
    fence = None if lead is None else lead.fence
    leads = None if lead is None else lead.leads
    may_write = (lambda: None) if fence is None else fence.check
    borders = Borders(lambda unit: metrics.failed(unit))  # noqa: PLW0108  # metrics read a store, and come after it
    store = open_store(settings, may_write=may_write, borders=borders)
    # Readers have connections of their own: they must not take those of the loop.
    readers_store = open_store(settings, may_write=may_write, borders=borders)
    metrics = Metrics(readers_store, clock=read_clock, version=version(), leads=leads, owns=options.shard.owns)
    weeks = None if options.forecasts is None else LongForecastsFolder(options.forecasts)
    known_groups, deciding, pulse = KnownGroups(), Event(), Pulse()
    with (
        scalers_in(
            options.kubernetes, options.kubeconfig, settings, fence=fence, owns=options.shard.owns, borders=borders
        ) as scalers,
        workloads_in(
            options.kubernetes,
            options.kubeconfig,
            node_prices=options.prices_at,
            on_request=partial(metrics.requested, "node_prices"),
        ) as workloads,
    ):
        app = create_app(
            readers_store,
            clock=read_clock,
            version=version(),
            metrics=metrics,
            settings=scalers or settings,
            long_forecasts=weeks,
            known_groups=known_groups,
            is_deciding=deciding.is_set,
            hangs=pulse.hangs,
            access=access,
            effective=effective_settings(options.config, os.environ),
            replays=replays_of(settings),
            partition_samples=None if options.samples is None else PartitionSamplesFolder(options.samples),
        )
        bound = listen(host, _port_of(options), search=False)
        limits = Limits(tls_context=None if certificate is None else certificate.context)
        with (
            stopped_by_signals() as stop,
            serving(app, bound, limits),
            answering_keda(
                readers_store,
                host=bound.getsockname()[0],
                port=options.keda_port,
                certificate=certificate,
                talk=talk,
                leads=leads or (lambda: True),
                borders=borders,
            ),
        ):
            yield Service(
                url=url_of(bound, tls=certificate is not None),
                stop=stop,
                metrics=metrics,
                borders=borders,
                scalers=scalers,
                _options=options,
                _workloads=workloads,
                _known_groups=known_groups,
                _deciding=deciding,
                _pulse=pulse,
                _store=store,
                _lead=lead,
                _talk=talk,
            )


def _port_of(options: ServiceOptions) -> int:
    return options.settings.port if options.port is None else options.port
