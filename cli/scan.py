# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast scan`: the fleet at a look, from Kafka or Prometheus alone. Reads only."""

import logging
import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.advise import decide_once, instant_of
from cli.bounds import FailIf, parse_bound
from cli.collect import Cluster, Groups, client_settings
from cli.errors import ExitCode, InputError
from cli.fleet_table import FIGURES, Scanned, figures, fleet_table, hourly
from cli.history import DAYS, Prometheus, backfill, backfill_from_prometheus
from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.output import Answer, Output, OutputFile, OutputFormat, write_answer
from cli.progress import Talk
from cli.service import Config

if TYPE_CHECKING:
    from recommender.adapters.feature_table import FeatureTable
    from recommender.configuring.settings import Settings


def scan(
    *,
    bootstrap: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Kafka brokers, separated by commas: no message is read.")
    ] = "",
    prometheus: Prometheus = "",
    features: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A feature table that `lagcast features` has written.")
    ] = None,
    cluster: Cluster = "default",
    group: Groups = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days of the past to read, at most.")] = DAYS,
    client_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As that of `lagcast history`, for TLS and passwords.")
    ] = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="With --features, decide as of this instant, or `latest` row."),
    ] = None,
    config: Config = None,
    state_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for what was read.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print the planned requests, and stop.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also groups without a message in 24 hours.")] = False,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Plain letters in place of blocks.")] = False,
    fail_if: FailIf = None,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """Show what each group of a Kafka has and should have, with the saving and how sure that is. Nothing is changed.

    It reads the past and the present of all groups from one source, runs the Spark job, and decides once on each. What
    was read is kept: a second run requests what came since. From Kafka it needs Describe on groups and topics.
    """
    bound = parse_bound(fail_if, FIGURES)
    _require_one(bootstrap, prometheus, features, now=now, estimate=estimate)
    log_to_stderr(logging.WARNING)
    from cli.wiring import settings_of
    from recommender.adapters.feature_table import FeatureTable

    talk, settings = Talk(), settings_of(config, state_dir=state_dir)
    if features is not None:
        table = FeatureTable(features)
        as_of = instant_of(now, table)
    else:
        folder = settings.state_dir / "scan" / cluster
        read = partial(backfill, bootstrap, to_now=True) if bootstrap else partial(backfill_from_prometheus, prometheus)
        with talk.running():
            read(
                folder / "samples",
                cluster=cluster,
                groups=group,
                days=days,
                settings=client_settings(client_config),
                talk=talk,
                only_estimate=estimate,
            )
            if estimate:
                return ExitCode.OK
            as_of = _end_of_interval(read_clock())
            table = _features(folder, settings, talk=talk)
    scanned = _scanned(table, settings, as_of, groups=group, talk=talk)
    shown = [each for each in scanned if every or not each.is_idle]
    if len(shown) < len(scanned):
        talk.line(f"{len(scanned) - len(shown):,} groups without a message in 24 hours are not shown; --all shows them")
    fleet = fleet_table(shown, ascii_only=ascii_only or "utf" not in (sys.stdout.encoding or "").lower())
    write_answer(Answer.of("Consumer groups", fleet), output, output_file)
    if shown:
        talk.line("next: `lagcast explain GROUP` has the reasons, and the price of every plan; nothing was changed")
    return ExitCode.OK if bound is None else bound.code(figures(fleet.records), talk=talk)


def _require_one(bootstrap: str, prometheus: str, features: Path | None, *, now: str | None, estimate: bool) -> None:
    """Errors: InputError unless one source is named, with options of its own alone."""
    if [bool(bootstrap), bool(prometheus), features is not None].count(True) != 1:
        message = (
            "scan needs one source: give either --bootstrap HOST:PORT for Kafka, --prometheus URL, or --features DIR"
        )
        raise InputError(message)
    if features is None and now is not None:
        message = "--now is for --features; Kafka and Prometheus are read as of the present"
        raise InputError(message)
    if features is not None and estimate:
        message = "--estimate is for --bootstrap and --prometheus: nothing is requested for --features"
        raise InputError(message)


def _end_of_interval(at: datetime) -> datetime:
    """The end of the row that a reading at this instant is in: what it tells is known then."""
    from forecasting.columns import BASE_INTERVAL_SECONDS

    return at + timedelta(seconds=BASE_INTERVAL_SECONDS - at.timestamp() % BASE_INTERVAL_SECONDS)


def _features(folder: Path, settings: "Settings", *, talk: Talk) -> "FeatureTable":
    """The feature table of the samples of the folder, made by the Spark job."""
    from cli.features import make_features
    from cli.spark import spark_beside
    from recommender.adapters.feature_table import FeatureTable

    with spark_beside(talk, log_path=settings.state_dir / "spark.log") as starting:
        make_features(starting, folder / "samples", folder / "features", talk=talk)
    return FeatureTable(folder / "features")


def _scanned(
    table: "FeatureTable", settings: "Settings", as_of: datetime, *, groups: Groups, talk: Talk
) -> list[Scanned]:
    """A decision on each group, of these names where some are given."""
    since = as_of - timedelta(days=1)
    # The table of a scan has none of them: those of a hundred groups are for `lagcast explain`.
    decisions = decide_once(table, settings, now=as_of, talk=talk, searches=100)
    return [
        Scanned(
            decision=decision,
            hourly_messages_per_second=hourly(
                table.intervals(decision.cluster, decision.group, since=since, until=as_of), until=as_of
            ),
        )
        for decision in decisions
        if not groups or decision.group in groups
    ]
