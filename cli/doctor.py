# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast doctor`: problems of a cluster that prevent advice or its execution, with their remedies. Reads only."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.instants import read_clock
from cli.output import Field, OutputFormat, Table, write_csv, write_json
from cli.printable import printable

if TYPE_CHECKING:
    from recommender.cluster.doctor import Diagnosis

FIELDS = [
    Field(key="state", heading="State", left=True),
    Field(key="check", heading="Check", left=True),
    Field(key="where", heading="Where", left=True),
    Field(key="sentence", heading="Diagnosis", left=True),
    Field(key="remedy", heading="Remedy", left=True),
]


def doctor(
    *,
    kubernetes: Annotated[
        list[str],
        typer.Option(metavar="NAMESPACE", help="Namespace of ConsumerGroupScalers; may be given several times."),
    ],
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
    output: Annotated[OutputFormat, typer.Option("-o", "--output", help="Format of the answer.")] = (
        OutputFormat.TABLE
    ),
) -> int:
    """Find what in a cluster prevents advice or its execution: one line per finding, with its remedy.

    Run it as an administrator: reading the permissions of service accounts needs rights. Nothing is written.
    """
    from cli.wiring import cluster_client, settings_of
    from recommender.cluster.doctor import examine

    for option, value in (("--recommender", recommender), ("--executor", executor), ("--lease", lease)):
        if len([part for part in value.split("/") if part]) != 2:
            message = f"{option} is {value!r}; write it as NAMESPACE/NAME"
            raise InputError(message)
    settings = settings_of(config)
    api = cluster_client(kubeconfig)
    from recommender.adapters.kubernetes_doctor import KubernetesDoctor

    view = KubernetesDoctor(api, accounts={"recommender": recommender, "executor": executor}, lease=lease)
    findings = examine(view, settings, kubernetes, now=read_clock())
    records = [{field.key: asdict(finding)[field.key] for field in FIELDS} for finding in findings]
    if output is OutputFormat.JSON:
        write_json(records)
    elif output is OutputFormat.CSV:
        write_csv(Table(fields=FIELDS, records=records))
    else:
        for finding in findings:
            typer.echo(printable(_line(finding)))
    failing = any(finding.state == "problem" for finding in findings)
    return ExitCode.STRICT if strict and failing else ExitCode.OK


def _line(finding: "Diagnosis") -> str:
    """A finding as text, because sentences are too long for columns: state, check and place, finding and remedy."""
    place = "" if finding.where == "-" else f" {finding.where}"
    remedy = "" if finding.remedy is None else f" -> {finding.remedy}"
    return f"{finding.state:8} {finding.check}{place}: {finding.sentence}{remedy}"
