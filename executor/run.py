"""The process `lagcast-executor`. Off by default: without `--mode apply` it only reports what it would do."""

import json
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import structlog
import typer

from executor.advice import AdviceClient
from executor.carry_out import Executor, Outcome
from executor.connection import AddressError, Credentials
from executor.errors import AdviceError, OutsideError, PortError, ScaleError
from executor.lease import LeaseWatch, held_by_shard
from executor.metrics import ExecutorMetrics
from executor.plan import Act, Bounds, Held

if TYPE_CHECKING:
    from executor.kubernetes_claims import KubernetesClaims
    from executor.kubernetes_records import KubernetesRecords
    from executor.kubernetes_scale import KubernetesScales

EXIT_USAGE, EXIT_UNREACHABLE = 2, 4
# Between two looks the executor notices a request to stop within this time.
HEARS_SECONDS = 0.5

_log = structlog.get_logger()
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def execute(
    *,
    api: Annotated[str, typer.Option(metavar="URL", help="Root of the API, such as https://lagcast:8686.")],
    advice_ca_file: Annotated[
        Path | None, typer.Option(help="Certificates to trust in the API's, in PEM. [default: the system's]")
    ] = None,
    advice_token_file: Annotated[
        Path | None,
        typer.Option(help="Token for the API, read anew for each request; sent by https, or on this machine."),
    ] = None,
    advice_cert_file: Annotated[
        Path | None, typer.Option(help="Client certificate for the API, in PEM; with --advice-key-file.")
    ] = None,
    advice_key_file: Annotated[Path | None, typer.Option(help="Key of that certificate, in PEM.")] = None,
    group_key: Annotated[
        list[str] | None, typer.Option(help="Key of a group to handle; may be given several times.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Handle all groups.")] = False,
    mode: Annotated[
        Literal["recommend", "apply"], typer.Option(help="apply: act, where the group's own mode is apply too.")
    ] = "recommend",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the patches instead of sending them.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Check once and exit.")] = False,
    min_replicas: Annotated[
        int, typer.Option(min=0, help="Least count to set; 0 is set only for groups whose scale_to_zero is enabled.")
    ] = 0,
    max_replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Greatest count to set. [default: maxReplicas of the ConsumerGroupScaler]"),
    ] = None,
    interval_seconds: Annotated[float, typer.Option(min=1.0, help="Longest time between two checks.")] = 15.0,
    lease: Annotated[
        str | None,
        typer.Option(metavar="NAMESPACE/NAME", help="Act only while a recommender renews this Lease."),
    ] = None,
    shards: Annotated[
        int,
        typer.Option(min=1, help="Shards of the recommenders: each has its own Lease, NAME-1 to NAME-N for several."),
    ] = 1,
    kubeconfig: Annotated[Path | None, typer.Option(help="Cluster to act in. [default: the one it runs in]")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="TCP port for Prometheus. [default: none]")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="Address of that port.")] = "127.0.0.1",
) -> None:
    """Carry out lagcast's published advice by patching /scale, if advice, clock, owner and cluster all allow it."""
    if bool(group_key) == every:
        raise typer.BadParameter("give either --group-key KEY or --all")  # noqa: EM101, TRY003  # typer's own way
    if max_replicas is not None and min_replicas > max_replicas:
        raise typer.BadParameter(f"--min-replicas {min_replicas} is above --max-replicas {max_replicas}")  # noqa: EM102, TRY003
    if lease is not None and len([part for part in lease.split("/") if part]) != 2:
        raise typer.BadParameter(f"--lease is {lease!r}; give NAMESPACE/NAME, such as lagcast/lagcast-recommender")  # noqa: EM102, TRY003
    _log_to_stderr()
    credentials = Credentials(
        ca=advice_ca_file, token=advice_token_file, certificate=advice_cert_file, key=advice_key_file
    )
    try:
        advice = AdviceClient(api, credentials)
    except AddressError as error:
        raise typer.BadParameter(str(error)) from error
    scales, owners, records = _cluster(kubeconfig)
    metrics = ExecutorMetrics()
    executor = Executor(
        advice=advice,
        scales=scales,
        owners=owners,
        records=records,
        clock=_read_clock,
        mode=mode,
        bounds=Bounds(lowest=min_replicas, highest=max_replicas),
        dry_run=dry_run,
        show_patch=_print_patch,
        on_conflict=metrics.conflicted,
    )
    keys = None if every else group_key
    with _metrics_page(metrics, metrics_host, metrics_port), _watching(lease, shards, kubeconfig, executor):
        if once:
            code = _look_once(executor, keys, metrics)
        else:
            code = _look_until_stopped(executor, keys, metrics, interval_seconds)
    raise typer.Exit(code)


def main() -> None:
    """The entry point. Exit codes: 0 answered, holds included; 1 our failure; 2 usage; 4 API or cluster unreachable."""
    app()


@contextmanager
def _metrics_page(metrics: ExecutorMetrics, host: str, port: int | None) -> Iterator[None]:
    """Serve the page during the block, where a port is given."""
    if port is None:
        yield
        return
    try:
        with metrics.serving(host, port) as bound:
            _log.info("serves_metrics", host=host, port=bound)
            yield
    except PortError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_UNREACHABLE) from error


def _look_once(executor: Executor, keys: list[str] | None, metrics: ExecutorMetrics) -> int:
    outcomes = _outcomes(executor, keys, metrics)
    return EXIT_UNREACHABLE if any(isinstance(outcome, OutsideError) for outcome in outcomes) else 0


def _look_until_stopped(
    executor: Executor, keys: list[str] | None, metrics: ExecutorMetrics, interval_seconds: float
) -> int:
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    while not signals:
        outcomes = _outcomes(executor, keys, metrics)
        until = time.monotonic() + seconds_to_wait(outcomes, now=_read_clock(), longest=interval_seconds)
        # A signal that the system delivers to another thread does not wake this one.
        while not signals and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, HEARS_SECONDS))
    return 0


def _outcomes(executor: Executor, keys: list[str] | None, metrics: ExecutorMetrics) -> tuple[Outcome, ...]:
    outcomes: tuple[Outcome, ...]
    try:
        outcomes = executor.run_once(keys)
    except AdviceError as error:
        _log.error("failed", error=str(error))
        outcomes = (error,)
    metrics.looked(outcomes, dry_run=executor.dry_run)
    return outcomes


def seconds_to_wait(outcomes: Iterable[Outcome], *, now: datetime, longest: float) -> float:
    """Until the first move is due, so that it is made within its second, but `longest` seconds at most.

    >>> from datetime import timedelta
    >>> noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    >>> soon = Held(reason="not_due", sentence="in 4 s", retry_at=noon + timedelta(seconds=4))
    >>> seconds_to_wait([soon], now=noon, longest=15.0)
    4.0
    """
    instants = [held.retry_at for held in outcomes if isinstance(held, Held) and held.reason == "not_due"]
    waits = [(instant - now).total_seconds() for instant in instants if instant is not None]
    return max(0.0, min([longest, *waits]))


def _cluster(kubeconfig: Path | None) -> "tuple[KubernetesScales, KubernetesClaims, KubernetesRecords]":
    try:
        # The client is an extra of 75 MB that nothing else here needs; if it is missing, an error names it.
        from executor.kubernetes_claims import KubernetesClaims  # noqa: PLC0415
        from executor.kubernetes_client import connect  # noqa: PLC0415
        from executor.kubernetes_records import KubernetesRecords  # noqa: PLC0415
        from executor.kubernetes_scale import KubernetesScales  # noqa: PLC0415
    except ModuleNotFoundError as error:
        typer.echo(f"the executor needs the package {error.name}: pip install 'lagcast[k8s]'", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    try:
        client = connect(kubeconfig)
    except ScaleError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_USAGE) from error
    return KubernetesScales(client), KubernetesClaims(client), KubernetesRecords(client)


@contextmanager
def _watching(lease: str | None, shards: int, kubeconfig: Path | None, executor: Executor) -> Iterator[None]:
    """Let `executor` act only while the Lease of the group's shard is renewed; without a Lease, always."""
    if lease is None:
        yield
        return
    # As above: the client is needed only with a cluster to act in.
    from executor.kubernetes_client import connect  # noqa: PLC0415
    from executor.kubernetes_lease import KubernetesLease  # noqa: PLC0415

    namespace, _, name = lease.partition("/")
    client = connect(kubeconfig)
    names = [name] if shards == 1 else [f"{name}-{number}" for number in range(1, shards + 1)]
    leases = [KubernetesLease(client, namespace, each, clock=_read_clock) for each in names]
    watches = [LeaseWatch(each, clock=time.monotonic) for each in leases]
    executor.leaderless = held_by_shard(watches)
    with ExitStack() as watched:
        for watch in watches:
            watched.enter_context(watch.watching())
        yield


def _print_patch(act: Act) -> None:
    target = act.move.target
    document = {
        "target": {"namespace": act.move.namespace, **target.model_dump()},
        "recommendation_id": act.move.recommendation_id,
        "patch": act.patch,
    }
    typer.echo(json.dumps(document))


def _read_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # a process entry point


def _log_to_stderr() -> None:
    """Log JSON lines for machines, and aligned text on a terminal; each names the host, in a cluster the pod."""
    host = socket.gethostname()
    structlog.configure(
        processors=[
            lambda _logger, _method, line: {**line, "executor": host},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Without it the JSON has `true` in place of a traceback, and a terminal gets the values of all variables, a
            # token's among them.
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(repr_native_str=True)
            if sys.stderr.isatty()
            else structlog.processors.JSONRenderer(),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
