# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast doctor`: what prevents advice or its execution, with the remedies. Reads only.

It looks at this machine, at the source of samples, and at a cluster of Kubernetes; each where it is asked about.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import Cluster, Groups, client_settings
from cli.doctor_machine import java_finding, price_finding, scaling_finding, spark_finding
from cli.doctor_source import kafka_findings, prometheus_findings
from cli.errors import ExitCode, InputError
from cli.history import DAYS, Prometheus
from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer
from cli.progress import Talk
from cli.publishing import TOPICS, Publish

if TYPE_CHECKING:
    from recommender.cluster.doctor import Actor, Diagnosis
    from recommender.configuring.settings import Settings

FIELDS = [
    Field(key="state", heading="State", left=True),
    Field(key="check", heading="Check", left=True),
    Field(key="where", heading="Where", left=True),
    Field(key="sentence", heading="Diagnosis", left=True),
    Field(key="remedy", heading="Remedy", left=True),
]


def doctor(
    *,
    bootstrap: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Kafka brokers, separated by commas, that `lagcast up` is to read.")
    ] = "",
    prometheus: Prometheus = "",
    cluster: Cluster = "default",
    group: Groups = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days of the past to look at, at most.")] = DAYS,
    client_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As that of `lagcast history`, for TLS and passwords.")
    ] = None,
    publish: Publish = TOPICS,
    kubernetes: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMESPACE", help="Namespace of ConsumerGroupScalers; may be given several times."),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cluster to read. [default: the one it runs in]")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings, in YAML.")] = None,
    recommender: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Service account of the recommender.")
    ] = "lagcast/lagcast-recommender",
    executor: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Service account of the executor.")
    ] = "lagcast-executor/lagcast-executor",
    lease: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Lease of the recommenders, if there are several.")
    ] = "lagcast/lagcast-recommender",
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 3 if any finding is `problem`.")] = False,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """Find what prevents advice or its execution: one line per finding, with its remedy. Nothing is written.

    Without an option it looks at this machine: Java, Spark, prices. With --bootstrap or --prometheus also at the source
    of samples, with --kubernetes at a cluster, as an administrator: permissions of service accounts need rights.
    """
    from cli.wiring import settings_of

    if bootstrap and prometheus:
        message = "doctor looks at one source at a time: give --bootstrap HOST:PORT or --prometheus URL, not both"
        raise InputError(message)
    for option, value in (("--recommender", recommender), ("--executor", executor), ("--lease", lease)):
        if len([part for part in value.split("/") if part]) != 2:
            message = f"{option} is {value!r}; write it as NAMESPACE/NAME"
            raise InputError(message)
    settings, connection = settings_of(config), client_settings(client_config)
    findings: list[Diagnosis] = []
    # Whoever asks about a cluster alone runs lagcast there, not on this machine.
    if bootstrap or prometheus or not kubernetes:
        log_to_stderr(logging.ERROR)
        source: Iterator[Diagnosis] = iter(())
        if prometheus:
            source = prometheus_findings(prometheus, cluster=cluster, groups=group, days=days, settings=connection)
        elif bootstrap:
            source = kafka_findings(
                bootstrap, cluster=cluster, groups=group, days=days, settings=connection, publish=publish
            )
        findings += _beside_spark(source, settings)
        findings.append(price_finding(settings))
        if not kubernetes:
            findings.append(scaling_finding())
    if kubernetes:
        accounts: Mapping[Actor, str] = {"recommender": recommender, "executor": executor}
        findings += _in_cluster(kubernetes, kubeconfig, settings, accounts=accounts, lease=lease)
    records = [{field.key: asdict(finding)[field.key] for field in FIELDS} for finding in findings]
    table = Table(fields=FIELDS, records=records)
    # Sentences are too long for the columns of a terminal.
    lines = tuple(_line(finding) for finding in findings)
    answer = Answer(title="Findings", document=records, records=table, shown=(lines,))
    if output in {OutputFormat.WIDE, OutputFormat.MD, OutputFormat.HTML}:
        answer = Answer.of("Findings", table)
    write_answer(answer, output, output_file)
    failing = any(finding.state == "problem" for finding in findings)
    return ExitCode.STRICT if strict and failing else ExitCode.OK


def _beside_spark(source: "Iterator[Diagnosis]", settings: "Settings") -> "list[Diagnosis]":
    """The findings on this machine, and those of the source, which is read while Spark starts."""
    from cli.spark_process import spark_trial

    talk, log_path, java = Talk(), settings.state_dir / "spark.log", java_finding()
    if java.state != "ok":
        return [java, *source]
    waiting_for = f"Spark starts beside them, usually in 5-12 s; its log: {log_path}"
    with talk.running(), spark_trial(log_path) as trial, talk.stage("checks", waiting_for) as stage:
        found = list(source)
        findings = [java, spark_finding(trial, log_path), *found]
        stage.note = f"{len(findings)} findings on this machine and its source"
    return findings


def _in_cluster(
    namespaces: Sequence[str],
    kubeconfig: Path | None,
    settings: "Settings",
    *,
    accounts: "Mapping[Actor, str]",
    lease: str,
) -> "Sequence[Diagnosis]":
    """The findings on a cluster of Kubernetes. Errors: those of its client where it does not answer."""
    from cli.wiring import cluster_client
    from recommender.cluster.doctor import examine

    api = cluster_client(kubeconfig)
    from recommender.adapters.kubernetes_doctor import KubernetesDoctor

    view = KubernetesDoctor(api, accounts=accounts, lease=lease)
    return examine(view, settings, namespaces, now=read_clock())


def _line(finding: "Diagnosis") -> str:
    """A finding as text: state, check and place, finding and remedy."""
    place = "" if finding.where == "-" else f" {finding.where}"
    remedy = "" if finding.remedy is None else f" -> {finding.remedy}"
    return f"{finding.state:8} {finding.check}{place}: {finding.sentence}{remedy}"
