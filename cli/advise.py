# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast recommend` and `lagcast serve`: the decision once, and the loop with its REST service."""

import logging
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import ClientConfig, client_settings
from cli.errors import ExitCode, InputError
from cli.explain import wire_document, write_decision
from cli.instants import parse_instant, read_clock
from cli.leading import Lease, lead_of, leading
from cli.logs import log_to_stderr
from cli.output import OutputFormat, write_json
from cli.progress import Talk
from cli.publishing import TOPICS, Publish, publishing

if TYPE_CHECKING:
    from recommender.adapters.feature_table import FeatureTable

Features = Annotated[Path, typer.Option(metavar="DIR", help="The feature table that `lagcast features` writes.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")]
StateDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for decisions.")]


def recommend(
    *,
    features: Features,
    config: Config = None,
    state_dir: StateDir = None,
    now: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Decide as of this instant; `latest`: as of the newest row.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 if any group is refused.")] = False,
    output: Annotated[OutputFormat, typer.Option("-o", "--output", help="Format of the answer.")] = (
        OutputFormat.TABLE
    ),
) -> int:
    """Recommend a replica count and its time for each group, with the price of every alternative.

    Without --now it decides as of the present: rows older than the freshness limit (10 min) are refused as stale.
    """
    from cli.wiring import open_store, recommender, settings_of
    from forecasting.refusal import Refusal
    from recommender.adapters.feature_table import FeatureTable

    log_to_stderr(logging.WARNING)
    settings = settings_of(config, state_dir=state_dir)
    table = FeatureTable(features)
    as_of = instant_of(now, table)
    decisions = recommender(table, settings, open_store(settings)).run_once(now=as_of)
    if output is OutputFormat.JSON:
        write_json([wire_document(decision, settings=settings, now=as_of) for decision in decisions])
    else:
        for decision in decisions:
            write_decision(decision, output, settings=settings, now=as_of)
    refused = any(isinstance(decision, Refusal) for decision in decisions)
    return ExitCode.STRICT if strict and refused else ExitCode.OK


def instant_of(text: str | None, table: "FeatureTable", *, option: str = "--now") -> datetime:
    """The instant of `option`: the present if it is not given, the end of the data for `latest`, else as written.

    Errors: InputError for a text that is no instant, and for `latest` of a table without rows.
    """
    if text is None:
        return read_clock()
    if text != "latest":
        return parse_instant(text, option=option)
    latest = table.newest_interval_end_at()
    if latest is None:
        message = (
            f"{option} latest: the feature table {table.path} has no rows; give an instant or run `lagcast features`"
        )
        raise InputError(message)
    return latest


def serve(
    *,
    features: Features,
    forecasts: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Long forecasts to serve, as `lagcast forecast` writes them.")
    ] = None,
    config: Config = None,
    state_dir: StateDir = None,
    bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Kafka brokers to publish on, separated by commas.")
    ] = None,
    client_config: ClientConfig = None,
    publish: Publish = TOPICS,
    host: Annotated[str | None, typer.Option(help="Address to serve on; 127.0.0.1 unless set.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port; 8686 unless set.")] = None,
    keda_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="TCP port for KEDA's external triggers, over gRPC.")
    ] = None,
    kubernetes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE", help="Namespace of ConsumerGroupScalers to follow; may be given several times."
        ),
    ] = None,
    lease: Lease = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Cluster of --kubernetes and --lease. [default: the one it runs in]"),
    ] = None,
) -> int:
    """Decide repeatedly and serve the advice over REST, until Ctrl-C or SIGTERM.

    With --bootstrap each decision is published on two Kafka topics as well. With --kubernetes, what a group's
    ConsumerGroupScaler requests wins over the settings, and its status has the decision. With --lease several
    may run on one store: one of them decides, and another takes over when it stops.
    """
    from api.app import create_app
    from cli.server import listen, serving, url_of
    from cli.stopping import stopped_by_signals
    from cli.wiring import answering_keda, open_store, recommender, scalers_in, settings_of, version, workloads_in
    from recommender.adapters.feature_table import FeatureTable
    from recommender.adapters.long_forecasts import LongForecastsFolder
    from recommender.adapters.metrics import Metrics
    from recommender.cluster.leadership import FencedPublisher
    from recommender.instants import each_cycle
    from recommender.latest_inputs import LatestInputs
    from recommender.run import run_forever

    if kubeconfig is not None and not kubernetes and lease is None:
        message = "--kubeconfig is about a cluster that is not followed; add --kubernetes NAMESPACE"
        raise InputError(message)
    if bootstrap is None and (client_config is not None or publish not in ("", TOPICS)):
        message = "--publish and --client-config are about Kafka brokers that are not named; add --bootstrap HOST:PORT"
        raise InputError(message)
    log_to_stderr()
    settings = settings_of(config, state_dir=state_dir)
    connection = client_settings(client_config)
    lead = lead_of(lease, kubeconfig)
    fence = None if lead is None else lead.fence
    leads = None if lead is None else lead.leads
    store = open_store(settings) if fence is None else open_store(settings, may_write=fence.check)
    metrics = Metrics(store, clock=read_clock, version=version(), leads=leads)
    table = FeatureTable(features)
    weeks = LongForecastsFolder(forecasts) if forecasts is not None else None
    latest_inputs = LatestInputs()
    cycle_seconds = settings.decision.cycle_seconds
    talk = Talk()
    # The lease is released last, when nothing publishes any more.
    with (
        leading(lead),
        scalers_in(kubernetes or (), kubeconfig, settings, fence=fence) as scalers,
        workloads_in(kubernetes or (), kubeconfig) as workloads,
    ):
        in_force = scalers or settings
        app = create_app(
            store,
            clock=read_clock,
            version=version(),
            metrics=metrics,
            settings=in_force,
            long_forecasts=weeks,
            latest_inputs=latest_inputs,
        )
        bound = listen(host or settings.host, settings.port if port is None else port, search=False)
        within_seconds = None if lead is None else lead.elector.terms.margin_seconds
        with (
            stopped_by_signals() as stop,
            serving(app, bound),
            answering_keda(
                store, host=bound.getsockname()[0], port=keda_port, talk=talk, leads=leads or (lambda: True)
            ),
            publishing(
                publish if bootstrap else "",
                bootstrap or "",
                connection,
                in_force,
                talk=talk,
                within_seconds=within_seconds,
            ) as publishers,
        ):
            talk.line(f"lagcast {version()} serves {url_of(bound)} and decides every {cycle_seconds} s; Ctrl-C stops")
            all_publishers = [metrics, *publishers]
            loop = recommender(
                table,
                in_force,
                store,
                publishers=all_publishers
                if fence is None
                else [FencedPublisher(each, fence) for each in all_publishers],
                obstacles=dict if scalers is None else lambda: scalers.look(table.groups(), now=read_clock()),
                workloads=workloads,
                observe_steps=metrics.observe_steps,
                latest_inputs=latest_inputs,
            )
            early = None if lead is None else lead.began
            instants = each_cycle(cycle_seconds, clock=read_clock, stop=stop, early=early)
            report = None if scalers is None else scalers.report
            run_forever(loop, instants=instants, report=report, fence=fence)
    return ExitCode.OK
