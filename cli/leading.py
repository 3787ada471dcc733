# ruff: noqa: PLC0415 - the Kubernetes client is imported when a lease is requested, so that `--help` answers in 0.2 s
"""A lease of a Kubernetes cluster, for commands that publish: held, or waited for."""

import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError
from cli.instants import read_clock
from cli.wiring import cluster_client

if TYPE_CHECKING:
    from recommender.cluster.leadership import Elector
    from recommender.shards import Shard

Lease = Annotated[
    str | None,
    typer.Option(metavar="NAMESPACE/NAME", help="Publish only while holding this Kubernetes Lease; else stand by."),
]
_NAME = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


class Lead:
    """The right of this process to publish, as an `Elector` gives it; `began` is set when it first leads."""

    def __init__(self, elector: "Elector") -> None:
        from recommender.cluster.leadership import Fence

        self.elector, self.fence, self.began = elector, Fence(elector), Event()

    def leads(self) -> bool:
        """True if this process leads now, for certain."""
        return self.elector.term() is not None


def lead_of(lease: str | None, kubeconfig: Path | None, shard: "Shard") -> Lead | None:
    """The lead for `--lease`; None without it. Each of several shards has a Lease of its own. No cluster is called yet.

    Errors: InputError for an invalid name of a Lease, and if there is no cluster.
    """
    if lease is None:
        return None
    if re.fullmatch(f"{_NAME}/{_NAME}", lease) is None:
        message = f"--lease is {lease!r}; give namespace and name of a Lease, such as lagcast/lagcast-recommender"
        raise InputError(message)
    api = cluster_client(kubeconfig, option="--lease")
    from recommender.adapters.kubernetes_lease import KubernetesLease
    from recommender.cluster.leadership import Elector

    namespace, _, name = lease.partition("/")
    # A process that is restarted under the same host name has another identity.
    identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    return Lead(
        Elector(
            KubernetesLease(api, namespace, shard.named(name), clock=read_clock),
            identity=identity,
            clock=time.monotonic,
        )
    )


@contextmanager
def leading(lead: Lead | None) -> Iterator[None]:
    """Hold the lease, or wait for it, during the block; it is released at the end."""
    if lead is None:
        yield
        return
    from recommender.cluster.leading import kept

    with kept(lead.elector, began=lead.began):
        yield
