# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast doctor`: problems of a cluster that prevent advice or its execution, with their remedies. Reads only."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.instants import read_clock
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer

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
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
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
    table = Table(fields=FIELDS, records=records)
    # Sentences are too long for the columns of a terminal.
    lines = tuple(_line(finding) for finding in findings)
    answer = Answer(title="Findings", document=records, records=table, shown=(lines,))
    if output in {OutputFormat.WIDE, OutputFormat.MD, OutputFormat.HTML}:
        answer = Answer.of("Findings", table)
    write_answer(answer, output, output_file)
    failing = any(finding.state == "problem" for finding in findings)
    return ExitCode.STRICT if strict and failing else ExitCode.OK


def _line(finding: "Diagnosis") -> str:
    """A finding as text: state, check and place, finding and remedy."""
    place = "" if finding.where == "-" else f" {finding.where}"
    remedy = "" if finding.remedy is None else f" -> {finding.remedy}"
    return f"{finding.state:8} {finding.check}{place}: {finding.sentence}{remedy}"
