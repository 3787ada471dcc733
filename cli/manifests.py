# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast import` and `lagcast export`: ConsumerGroupScalers from other autoscalers, and objects to follow advice."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.errors import ExitCode, InputError
from cli.output import write_documents
from cli.printable import printable

if TYPE_CHECKING:
    from manifests.outgoing import FollowedGroup

export = typer.Typer(no_args_is_help=True, help="Print objects for HPA or KEDA to use the advice. Nothing is applied.")

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group in Kafka.")]
Config = Annotated[Path, typer.Option(metavar="FILE", help="Settings file (YAML): the group's target and bounds.")]
Cluster = Annotated[str, typer.Option(help="Name of the Kafka cluster.")]
Kubernetes = Annotated[
    str, typer.Option(metavar="VERSION", help="Kubernetes version; before 1.33 an HPA has no `tolerance`.")
]


def import_objects(
    *,
    file: Annotated[Path, typer.Option("-f", "--file", metavar="FILE", help="Manifests (YAML); - is stdin.")],
    cluster: Annotated[str | None, typer.Option(help="Name of the Kafka cluster, where the files have none.")] = (None),
    group: Annotated[str | None, typer.Option(help="Consumer group of an HPA that names none.")] = None,
) -> int:
    """Print ConsumerGroupScalers for AlamedaScalers, ScaledObjects and HPAs; what has no equivalent goes to stderr."""
    from manifests.incoming import imported

    made = imported(text_of(file), cluster=cluster, group=group)
    for warning in made.warnings:
        typer.echo(printable(warning), err=True)
    write_documents(made.documents)
    return ExitCode.OK


@export.command()
def keda(
    group: GroupName,
    *,
    config: Config,
    prometheus: Annotated[str | None, typer.Option(metavar="URL", help="Prometheus, as KEDA reaches it.")] = None,
    scaler: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="`lagcast serve --keda-port`, as KEDA reaches it.")
    ] = None,
    authentication: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="TriggerAuthentication for --scaler; without it there is no TLS."),
    ] = None,
    cluster: Cluster = "default",
    kubernetes: Kubernetes = "1.33",
) -> int:
    """A ScaledObject of KEDA that reads from Prometheus or lagcast itself."""
    from manifests.outgoing import external_trigger, kubernetes_version, prometheus_trigger, scaled_object

    followed = _followed(config, cluster, group)
    match prometheus, scaler:
        case str(), None if authentication is not None:
            message = "--authentication is for --scaler; Prometheus has credentials of its own, which KEDA's docs name"
            raise InputError(message)
        case str(), None:
            trigger = prometheus_trigger(followed, prometheus)
        case None, str():
            trigger = external_trigger(followed, scaler, authentication=authentication)
        case _:
            message = "KEDA reads from one of them: give either --prometheus URL or --scaler HOST:PORT"
            raise InputError(message)
    write_documents([scaled_object(followed, trigger, kubernetes=kubernetes_version(kubernetes))])
    return ExitCode.OK


@export.command()
def hpa(group: GroupName, *, config: Config, cluster: Cluster = "default", kubernetes: Kubernetes = "1.33") -> int:
    """A HorizontalPodAutoscaler on an external metric; `prometheus-adapter` has what serves it."""
    from manifests.outgoing import horizontal_pod_autoscaler, kubernetes_version

    followed = _followed(config, cluster, group)
    write_documents([horizontal_pod_autoscaler(followed, kubernetes=kubernetes_version(kubernetes))])
    return ExitCode.OK


@export.command()
def prometheus_adapter() -> int:
    """Values for the Helm chart of prometheus-adapter, for the HPAs of all groups."""
    from manifests.outgoing import adapter_values

    write_documents([adapter_values()])
    return ExitCode.OK


@export.command()
def prometheus_rule() -> int:
    """Alerts for a missing lagcast, stale data, missing advice, and advice that is not followed."""
    from manifests.outgoing import alerts

    write_documents([alerts()])
    return ExitCode.OK


@export.command()
def dashboard(
    name: Annotated[
        Literal["fleet", "group"],
        typer.Argument(metavar="NAME", help="fleet: all groups; group: one of them, with its decisions."),
    ] = "fleet",
) -> int:
    """A dashboard for Grafana, as JSON to import."""
    from cli.output import json_text
    from manifests.dashboard import dashboard as made

    sys.stdout.write(json_text(made(name)))
    return ExitCode.OK


def _followed(config: Path, cluster: str, group: str) -> "FollowedGroup":
    from cli.wiring import settings_of
    from manifests.outgoing import FollowedGroup

    settings = settings_of(config).group(group)
    if settings.target is None:
        message = f"groups.{group}.target is not set in {config}; name there the workload that is to follow the advice"
        raise InputError(message)
    most = settings.max_replicas or settings.partitions
    if most is None:
        message = (
            f"groups.{group}.max_replicas is not set in {config}, and partitions neither; HPA and KEDA need a maximum: "
            "set one of them"
        )
        raise InputError(message)
    return FollowedGroup(
        cluster=cluster,
        group=group,
        least=settings.min_replicas,
        most=most,
        to_zero=settings.scale_to_zero.enabled,
        **settings.target.model_dump(),
    )


def text_of(file: Path) -> str:
    """The text of a file, or of stdin if the name is -. Errors: InputError."""
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read {file}: {error}; name a file of manifests, or - for stdin"
        raise InputError(message) from error
