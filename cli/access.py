# ruff: noqa: PLC0415 - heavy parts are imported when a command runs, so that `--help` answers in 0.2 s
"""Options of `lagcast up` and `lagcast serve` on who may ask, and what they make of the service."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError

if TYPE_CHECKING:
    from api.access.certificates import Certificate
    from api.access.guard import Access

TokenFile = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH", help="File of bearer tokens, one a line, or folder of such files; may be given several times."
    ),
]
TokenReview = Annotated[
    bool,
    typer.Option(
        "--token-review",
        help="Let in whose bearer token the cluster knows, and who may get the path as non-resource URL.",
    ),
]
TlsCertFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS certificate (PEM) for REST and KEDA's port, with --tls-key-file."),
]
TlsKeyFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Key (PEM) of --tls-cert-file.")]
KedaClientCa = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CA (PEM) whose certificates callers of --keda-port have to show."),
]
AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Further name by which REST is called, such as lagcast.lagcast.svc; several times."
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Serve other machines also where no caller is asked who it is.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """The options, as the user gave them."""

    token_files: Sequence[Path] = ()
    token_review: bool = False
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    keda_client_ca: Path | None = None
    allowed_hosts: Sequence[str] = ()
    open_to_all: bool = False


def certificate_of(options: AccessOptions, *, keda_port: int | None) -> "Certificate | None":
    """The certificate of both ports; None without TLS.

    Errors: InputError for options that lack another one; AccessError for files that cannot be used.
    """
    if (options.tls_cert_file is None) != (options.tls_key_file is None):
        message = "--tls-cert-file and --tls-key-file go together; give both, or neither"
        raise InputError(message)
    if options.keda_client_ca is not None and (options.tls_cert_file is None or keda_port is None):
        message = "--keda-client-ca is about TLS on KEDA's port; add --keda-port, --tls-cert-file and --tls-key-file"
        raise InputError(message)
    if options.tls_cert_file is None or options.tls_key_file is None:
        return None
    from api.access.certificates import Certificate

    return Certificate(options.tls_cert_file, options.tls_key_file, options.keda_client_ca)


def access_of(options: AccessOptions, *, host: str, kubeconfig: Path | None) -> "Access":
    """Who is let in to REST, which listens on `host`.

    Errors: AccessError for files of tokens that cannot be used; those of `cluster_client`.
    """
    from api.access.guard import Access
    from api.access.reviews import Reviews
    from api.access.tokens import Tokens
    from cli.wiring import cluster_client

    reviews = None
    if options.token_review:
        api = cluster_client(kubeconfig, option="--token-review")
        from recommender.adapters.kubernetes_reviews import KubernetesReviews

        reviews = Reviews(KubernetesReviews(api), clock=time.monotonic)
    return Access(
        hosts=(host, *options.allowed_hosts),
        tokens=Tokens(options.token_files) if options.token_files else None,
        reviews=reviews,
    )


def require_protection(options: AccessOptions, *, host: str, keda_port: int | None) -> None:
    """Errors: InputError if other machines reach `host`, nobody is asked who they are, and that was not said."""
    from cli.server import is_loopback

    if options.open_to_all or is_loopback(host):
        return
    if not options.token_files and not options.token_review:
        message = (
            f"other machines reach --host {host}, and no caller would be asked who it is; give --token-file or "
            "--token-review, or --open where a proxy or the network's rules decide who may read"
        )
        raise InputError(message)
    if keda_port is not None and options.keda_client_ca is None:
        message = (
            f"other machines reach --keda-port {keda_port} on {host}, and no caller would be asked who it is; give "
            "--keda-client-ca, or --open where the network's rules decide who may read"
        )
        raise InputError(message)
