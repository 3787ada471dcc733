# ruff: noqa: PLC0415 - heavy parts are imported when a command needs them, so that `--help` answers in 0.2 s
"""The Prometheus of a cluster, found by the labels of its Service: named in a line, used where `auto` asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError
from cli.progress import Talk
from cli.wiring import cluster_client

if TYPE_CHECKING:
    from recommender.cluster.prometheus_services import FoundServer
    from recommender.ports import AdapterError

# In place of an address: the server that is found.
AUTO = "auto"
PrometheusNamespace = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMESPACE",
        help="Where a Prometheus is looked for; may be given several times. [default: monitoring and --kubernetes]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for a Prometheus in the namespaces `inside` or, without any, in the usual one and those `followed`."""

    inside: Sequence[str]
    followed: Sequence[str]
    kubeconfig: Path | None
    talk: Talk

    def address_of(self, given: str, *, option: str) -> str:
        """The address that `option` was given; for `auto` that of the server which is found, named in a line.

        Errors: InputError where none is found, several are, or a Service's name is not known outside its cluster; those
        of `cluster_client`; AdapterError where Services may not be listed.
        """
        if given != AUTO:
            return given
        found, errors = self._found(option=f"{option} {AUTO}")
        if not found and errors:
            raise errors[0]
        if not found:
            message = (
                f"{option} {AUTO}: no Service in {', '.join(self._namespaces)} has the labels of a Prometheus; give "
                "its address, or its namespace with --prometheus-namespace"
            )
            raise InputError(message)
        if len(found) > 1:
            message = f"{option} {AUTO}: there are {_named(found)}; give the address of one of them"
            raise InputError(message)
        (server,) = found
        if self.kubeconfig is not None:
            namespace, name = server.service.split("/")
            forward = f"kubectl -n {namespace} port-forward service/{name} 9090:{server.url.rpartition(':')[2]}"
            message = (
                f"{option} {AUTO}: {server.url} is an address within the cluster, and --kubeconfig is for processes "
                f"outside it; run {forward}, and give {option} http://127.0.0.1:9090"
            )
            raise InputError(message)
        self.talk.line(f"    {option} {AUTO} is {server.url}, by the labels of {server.installed_by}")
        return server.url

    def say_what_is_found(self, *, options: str) -> None:
        """A line on the servers that are found and not used; none where there is none, or none may be seen.

        It is a hint: rights that are missing for it are not missed. `options` says what would use a server.
        """
        found, _ = self._found(option="--kubernetes")
        if found:
            self.talk.line(f"    found {_named(found)}; it is not contacted: {options}")

    @property
    def _namespaces(self) -> Sequence[str]:
        from recommender.cluster.prometheus_services import USUAL_NAMESPACE

        return tuple(self.inside or dict.fromkeys((USUAL_NAMESPACE, *self.followed)))

    def _found(self, *, option: str) -> "tuple[tuple[FoundServer, ...], list[AdapterError]]":
        """The likeliest servers, and the errors of namespaces whose Services cannot be listed."""
        api = cluster_client(self.kubeconfig, option=option)
        from recommender.adapters.kubernetes_services import services_in
        from recommender.cluster.prometheus_services import servers_among
        from recommender.ports import AdapterError, UnavailableError

        services, errors = [], []
        for namespace in self._namespaces:
            try:
                services += services_in(api, namespace)
            except AdapterError as error:
                errors.append(error)
                if isinstance(error, UnavailableError):  # the next namespace would wait for the same server
                    break
        return servers_among(services), errors


def _named(servers: "Sequence[FoundServer]") -> str:
    return " and ".join(f"{server.url} ({server.installed_by})" for server in servers)
