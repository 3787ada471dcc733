# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast serve`: the service on a feature table that others write."""

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
from cli.advise import Features, StateDir
from cli.collect import WHOLE, ClientConfig, ShardGiven, client_settings, shard_of_option
from cli.errors import ExitCode, InputError
from cli.find_prometheus import PrometheusNamespace, Search
from cli.leading import Lease
from cli.logs import log_to_stderr
from cli.progress import Talk
from cli.publishing import TOPICS, OptionalBootstrap, Publish
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


def serve(
    *,
    features: Features,
    shard: ShardGiven = WHOLE,
    forecasts: Forecasts = None,
    config: Config = None,
    state_dir: StateDir = None,
    bootstrap: OptionalBootstrap = None,
    client_config: ClientConfig = None,
    publish: Publish = TOPICS,
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
) -> int:
    """Decide as rows come into a feature table and serve the advice over REST, until Ctrl-C or SIGTERM.

    With --bootstrap each decision is published on two Kafka topics as well. With --kubernetes, what a group's
    ConsumerGroupScaler requests wins over the settings, and its status has the decision. With --lease several
    may run on one store: one of them decides, and another takes over when it stops. With --shard several share the
    groups, each with a Lease of its own.
    """
    from cli.wiring import settings_of, version
    from recommender.adapters.feature_table import FeatureTable

    if bootstrap is None and (client_config is not None or publish not in ("", TOPICS)):
        message = "--publish and --client-config are about Kafka brokers that are not named; add --bootstrap HOST:PORT"
        raise InputError(message)
    own = shard_of_option(shard)
    log_to_stderr()
    talk = Talk()
    search = Search(inside=prometheus_namespace or (), followed=kubernetes or (), kubeconfig=kubeconfig, talk=talk)
    if kubernetes and not node_prices:
        search.say_what_is_found(options="--node-prices auto prices replicas by what it has of OpenCost")
    settings = settings_of(config, state_dir=state_dir)
    options = ServiceOptions(
        settings=settings,
        shard=own,
        config=config,
        connection=client_settings(client_config),
        bootstrap=bootstrap,
        publish=publish,
        forecasts=forecasts,
        host=host,
        port=port,
        keda_port=keda_port,
        kubernetes=kubernetes or (),
        lease=lease,
        kubeconfig=kubeconfig,
        node_prices=search.address_of(node_prices, option="--node-prices"),
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
    FeatureTable(features)  # a folder that is none is told before the service begins
    with running_service(options, talk=talk) as service:
        cycle = f"at least every {settings.decision.cycle_seconds} s"
        talk.line(f"lagcast {version()} serves {service.url} and decides as rows come, {cycle}; Ctrl-C stops")
        service.decide(FeatureTable(features, borders=service.borders))
    return ExitCode.OK
