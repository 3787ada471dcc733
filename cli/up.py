# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast up`: everything for one Kafka cluster: collector, features, decisions, REST; one command, one JVM.

The cluster is read by its own protocol, or by what Prometheus has of it.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.access import (
    AccessOptions,
    AllowedHost,
    KedaClientCa,
    Open,
    TlsCertFile,
    TlsKeyFile,
    TokenFile,
    TokenReview,
)
from cli.collect import (
    WHOLE,
    Bootstrap,
    ClientConfig,
    Cluster,
    Groups,
    ReadCommitted,
    ShardGiven,
    client_settings,
    shard_of_option,
)
from cli.discover import missing_objects, see_members
from cli.errors import ExitCode, InputError
from cli.find_prometheus import AUTO, PrometheusNamespace, Search
from cli.history import DAYS, Prometheus, backfill, backfill_from_prometheus, require_one_source
from cli.instants import read_clock
from cli.keeping import KEPT_DAYS, KeepDays, KeepRows, keeping
from cli.leading import Lease
from cli.logs import log_to_stderr
from cli.progress import Talk
from cli.publishing import TOPICS, Publish
from cli.service import (
    Config,
    Forecasts,
    Host,
    KedaPort,
    Kubeconfig,
    Kubernetes,
    NodePrices,
    Port,
    ServiceOptions,
    running_service,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.parts import Parts
    from cli.spark_process import SparkProcess
    from collector.errors import AdapterError
    from collector.live import LiveSource
    from collector.meter import Interruption
    from forecasting.refusal import RefusalReason
    from recommender.adapters.feature_table import FeatureTable
    from recommender.adapters.metrics import Metrics
    from recommender.borders import Borders
    from recommender.ports import Group, Obstacle
    from recommender.stops import MeasuredStops

# Interval between two looks for the first sample.
LOOK_SECONDS = 0.25


def up(
    *,
    bootstrap: Bootstrap = "",
    prometheus: Prometheus = "",
    cluster: Cluster = "default",
    group: Groups = None,
    shard: ShardGiven = WHOLE,
    read_committed: ReadCommitted = None,
    client_config: ClientConfig = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days of past produce rates to read, at most.")] = DAYS,
    keep_days: KeepDays = KEPT_DAYS,
    keep_rows: KeepRows = None,
    publish: Publish = TOPICS,
    config: Config = None,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for decisions, and for data unless --data-dir is given.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for samples and the feature table; up/CLUSTER of the state folder unless set."
        ),
    ] = None,
    forecasts: Forecasts = None,
    host: Host = None,
    port: Port = None,
    keda_port: KedaPort = None,
    token_file: TokenFile = None,
    token_review: TokenReview = False,
    tls_cert_file: TlsCertFile = None,
    tls_key_file: TlsKeyFile = None,
    keda_client_ca: KedaClientCa = None,
    allowed_host: AllowedHost = None,
    open_to_all: Open = False,
    kubernetes: Kubernetes = None,
    node_prices: NodePrices = "",
    prometheus_namespace: PrometheusNamespace = None,
    lease: Lease = None,
    kubeconfig: Kubeconfig = None,
    discover: Annotated[
        bool,
        typer.Option(
            "--discover", help="Create an object, for advice only, for each group without one in --kubernetes."
        ),
    ] = False,
) -> int:
    """Watch a Kafka cluster: read past produce rates, then samples every 15 s, and advise after each, until Ctrl-C.

    It reads Kafka itself, or with --prometheus what an exporter has told a server (`auto`: the one whose Service in the
    cluster has the usual labels); then it needs no access to Kafka.
    Advice only: it never changes replicas. After a restart it resumes from its stored files. With --kubernetes, what a
    group's ConsumerGroupScaler requests wins over the settings, and its status has the decision. With --lease several
    may run on one store, each with its own data: one of them publishes, and another takes over when it stops. With
    --shard several share the groups, each with a Lease of its own. With --discover, the workloads of groups that have
    no ConsumerGroupScaler are looked for once a minute.
    """
    from cli.parts import parts_until
    from cli.spark_process import spark_process
    from cli.wiring import cluster_client, settings_of, version
    from collector.live import LiveCluster, LivePrometheus
    from recommender.cluster.creating import create_forever
    from recommender.stops import MeasuredStops

    require_one_source("up", bootstrap, prometheus)
    _require_kafka_for(prometheus, read_committed=bool(read_committed), discover=discover)
    if keep_days <= days:
        message = (
            f"--keep-days is {keep_days} and --days {days}: the oldest history would be removed and read again at each "
            f"start; give --keep-days {days + 1} or more"
        )
        raise InputError(message)
    if discover and not kubernetes:
        message = "--discover looks for workloads in no namespace; add --kubernetes NAMESPACE"
        raise InputError(message)
    log_to_stderr()
    talk, own = Talk(), shard_of_option(shard)
    search = Search(inside=prometheus_namespace or (), followed=kubernetes or (), kubeconfig=kubeconfig, talk=talk)
    settings = settings_of(config, state_dir=state_dir)
    connection = client_settings(client_config)
    prometheus, node_prices = _addresses(search, prometheus, node_prices, connection=connection)
    folder = data_dir or settings.state_dir / "up" / cluster
    live: LiveSource = (
        LivePrometheus(
            url=prometheus,
            cluster=cluster,
            groups=group,
            owns=own.owns,
            client_config=connection,
            samples=folder / "samples",
            clock=read_clock,
        )
        if prometheus
        else LiveCluster(
            bootstrap=bootstrap,
            cluster=cluster,
            groups=group,
            owns=own.owns,
            read_committed=tuple(read_committed or ()),
            client_config=connection,
            samples=folder / "samples",
            clock=read_clock,
        )
    )
    options = ServiceOptions(
        settings=settings,
        shard=own,
        config=config,
        connection=connection,
        bootstrap=bootstrap or None,
        publish=publish,
        forecasts=forecasts,
        host=host,
        port=port,
        keda_port=keda_port,
        kubernetes=kubernetes or (),
        lease=lease,
        kubeconfig=kubeconfig,
        node_prices=node_prices,
        prometheus=prometheus,
        samples=live.samples,
        access=AccessOptions(
            token_files=token_file or (),
            token_review=token_review,
            tls_cert_file=tls_cert_file,
            tls_key_file=tls_key_file,
            keda_client_ca=keda_client_ca,
            allowed_hosts=allowed_host or (),
            open_to_all=open_to_all,
        ),
    )
    features, stops = folder / "features", MeasuredStops()
    with (
        running_service(options, talk=talk) as service,
        spark_process(live.samples, features, log_path=settings.state_dir / "spark.log", keep_rows=keep_rows) as spark,
        parts_until(service.stop, service.borders) as parts,
        keeping(live.samples, kept_days=keep_days, stop=service.stop),
    ):
        stop = service.stop
        live.on_request = partial(service.metrics.requested, "prometheus" if prometheus else "kafka")
        talk.line(
            f"lagcast {version()} reads {bootstrap or prometheus} and serves {service.url}; advice only; Ctrl-C stops"
        )
        if prometheus:
            talk.line("    Kafka is not reached: nothing is published there, and pauses of rebalances are not measured")
        with talk.running():
            read_past = partial(backfill, bootstrap) if bootstrap else partial(backfill_from_prometheus, prometheus)
            past_rows = read_past(
                live.samples,
                cluster=cluster,
                groups=group,
                owns=own.owns,
                days=days,
                settings=connection,
                talk=talk,
                stop=stop,
            )
            collecting = parts.start("collector", live.collect, is_settled=live.arrived.is_set)
            table = first_table(
                live, features, spark, collecting, anew=past_rows > 0, borders=service.borders, talk=talk, stop=stop
            )
        if table is None:
            return ExitCode.OK
        first_version = table.version
        parts.start("features", spark.follow, is_settled=lambda: table.version != first_version)
        if isinstance(live, LiveCluster):
            parts.start(
                "watch", partial(live.watch, lambda found: note(found, service.metrics, stops, leads=service.leads()))
            )
        if discover and service.scalers is not None:
            missing = partial(
                missing_objects,
                bootstrap,
                connection,
                cluster_client(kubeconfig),
                kubernetes or (),
                service.scalers,
                cluster=cluster,
                groups=group,
            )
            objects = service.scalers.objects
            parts.start("discover", lambda stop: create_forever(missing, objects, wait=stop.wait))
        # With one namespace alone there is one tenant, whose claims take no proof.
        if bootstrap and service.scalers is not None and len(service.scalers.tenants.followed) > 1:
            seeing = partial(
                see_members,
                bootstrap,
                connection,
                cluster_client(kubeconfig),
                service.scalers.tenants,
                cluster=cluster,
                groups=group,
            )
            look_at_members(seeing, parts, stop)
        service.decide(table, obstacles=lambda: obstacles_of(cluster, live.unread), stops=stops.taken)
        parts.raise_failure()
    return ExitCode.OK


def _require_kafka_for(prometheus: str, *, read_committed: bool, discover: bool) -> None:
    """Errors: InputError for an option that needs Kafka itself where only Prometheus is read."""
    if prometheus and read_committed:
        message = (
            "--read-committed needs --bootstrap: the ends that exporters publish count messages of open transactions"
        )
        raise InputError(message)
    if prometheus and discover:
        message = "--discover needs --bootstrap: workloads are found by the addresses of members, which only Kafka has"
        raise InputError(message)


def _addresses(
    search: Search, prometheus: str, node_prices: str, *, connection: "Mapping[str, str]"
) -> tuple[str, str]:
    """The addresses of samples and of prices, found for `auto`; where neither is asked for, a line on what is found.

    Errors: those of the search; InputError for a password that whoever may create a Service could read;
    ClientConfigError for an address or settings of no Prometheus, before anything is started.
    """
    if search.followed and not (prometheus or node_prices):
        search.say_what_is_found(
            options="--node-prices auto prices replicas by what it has of OpenCost, and --prometheus auto in place of "
            "--bootstrap reads samples there too"
        )
    if prometheus == AUTO and connection:
        message = (
            "--prometheus auto sends no password to a server that was found; give its address with --client-config"
        )
        raise InputError(message)
    found = search.address_of(prometheus, option="--prometheus")
    if found:
        from collector.prometheus_http import require_usable

        require_usable(found, connection, option="--prometheus")
    return found, search.address_of(node_prices, option="--node-prices")


def first_table(
    live: "LiveSource",
    features: Path,
    spark: "SparkProcess",
    collecting: "Future[None]",
    *,
    anew: bool,
    borders: "Borders",
    talk: Talk,
    stop: Event,
) -> "FeatureTable | None":
    """The feature table as soon as a live sample has arrived; None if `stop` comes first.

    The stream resumes from an existing table. If the past has just been read, the table is made `anew`.
    """
    from recommender.adapters.feature_table import MANIFEST, FeatureTable

    with talk.stage("samples", "the first reading of a consumer group: every 15 s, as soon as there is one"):
        while not live.arrived.wait(LOOK_SECONDS):
            if stop.is_set():
                return None
            raise_of((collecting,))
    if anew or not (features / MANIFEST).exists():
        spark.make(stop)
        if stop.is_set():
            return None
    return FeatureTable(features, borders=borders)


def note(found: "Interruption", metrics: "Metrics", stops: "MeasuredStops", *, leads: bool) -> None:
    """Count an interruption in `metrics`, and keep a rebalance in `stops` for the move that it belongs to.

    Of several processes that measure the same one, the one that leads counts it.
    """
    from recommender.following.grading import MeasuredPause

    if leads:
        metrics.interrupted(
            found.cluster,
            found.group,
            kind=found.kind,
            rebalance_pause_seconds=found.rebalance_pause_seconds if found.stops else None,
            repeated_least=found.repeated_messages_least,
            repeated_most=found.repeated_messages_most,
        )
    if found.kind == "rebalance" and found.stops:
        stops.add(
            (found.cluster, found.group),
            MeasuredPause(
                began_at=found.began_at,
                ended_at=found.ended_at,
                lost_seconds=found.lost_seconds,
                resolution_seconds=found.resolution_seconds,
            ),
        )


def obstacles_of(cluster: str, unread: "Mapping[str, AdapterError]") -> "dict[Group, Obstacle]":
    """The collector's errors, by group, as obstacles of the recommender."""
    from collector.errors import UnsupportedError
    from recommender.ports import Obstacle

    reasons: dict[bool, RefusalReason] = {True: "unsupported", False: "source_unreachable"}
    return {
        (cluster, group): Obstacle(reasons[isinstance(error, UnsupportedError)], str(error), error.remedy)
        for group, error in unread.items()
    }


def look_at_members(see: "Callable[[], object]", parts: "Parts", stop: Event) -> None:
    """See where members run, once before this returns and from then on once a minute, until `stop` is set.

    Without the first look the first cycle would refuse every claim; one that fails keeps nobody waiting.
    """
    from recommender.cluster.creating import look_forever

    looked = Event()

    def look() -> None:
        try:
            see()
        finally:
            looked.set()

    parts.start("members", lambda stop: look_forever(look, what="membership", wait=stop.wait))
    while not looked.wait(LOOK_SECONDS) and not stop.is_set():
        pass


def raise_of(threads: "Iterable[Future[Any]]") -> None:
    """Raise the error of a thread that failed, if there is one."""
    for thread in threads:
        if thread.done():
            thread.result()
