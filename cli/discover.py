# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast discover`: the workload of each consumer group, found by its members' addresses. Reads only.

`lagcast up --discover` makes objects of what is found.
"""

import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import Bootstrap, ClientConfig, Cluster, Groups, client_settings
from cli.errors import ExitCode
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer, write_documents
from cli.progress import Talk

if TYPE_CHECKING:
    from collector.errors import AdapterError
    from manifests.objects import Document
    from recommender.adapters.kubernetes_client import Connection
    from recommender.cluster.discovery import Found, NotFound
    from recommender.cluster.scalers import Scalers
    from recommender.cluster.tenants import Tenants

FIELDS = [
    Field(key="group", heading="Group", left=True),
    Field(key="members", heading="Members"),
    Field(key="pods", heading="Pods"),
    Field(key="replicas", heading="Replicas"),
    Field(key="namespace", heading="Namespace", left=True),
    Field(key="kind", heading="Kind", left=True),
    Field(key="name", heading="Name", left=True),
    Field(key="reason", heading="Reason", left=True),
    Field(key="note", heading="Note", left=True),
]


def discover(
    *,
    bootstrap: Bootstrap,
    kubernetes: Annotated[
        list[str], typer.Option(metavar="NAMESPACE", help="Namespace of the pods; may be given several times.")
    ],
    cluster: Cluster = "default",
    group: Groups = None,
    client_config: ClientConfig = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cluster to read. [default: the one it runs in]")
    ] = None,
    objects: Annotated[
        bool, typer.Option("--objects", help="Print a ConsumerGroupScaler for each group that was found, to apply.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """Show which workload runs each consumer group, by the addresses that its members connect from.

    Needs Describe on the groups, and list on pods and replicasets of the namespaces. Nothing is written.
    """
    from cli.wiring import cluster_client
    from manifests.discovered import scalers_of
    from recommender.adapters.kubernetes_workloads import pods_in
    from recommender.cluster.discovery import discover as discovered

    api = cluster_client(kubeconfig)
    talk = Talk()
    hosts, errors = hosts_of(bootstrap, client_settings(client_config), cluster=cluster, groups=group)
    for error in errors:
        talk.line(str(error))
    answers = discovered(hosts, pods_in(api, kubernetes))
    if objects:
        made = scalers_of(answers, cluster=cluster)
        for warning in made.warnings:
            talk.line(warning)
        write_documents(made.documents)
        return ExitCode.OK
    records = [_record(name, answers[name]) for name in sorted(answers)]
    write_answer(Answer.of("Workloads of consumer groups", Table(fields=FIELDS, records=records)), output, output_file)
    return ExitCode.OK


def hosts_of(
    bootstrap: str, connection: Mapping[str, str], *, cluster: str, groups: Sequence[str] | None
) -> "tuple[dict[str, tuple[str, ...]], tuple[AdapterError, ...]]":
    """The addresses of the members of each group (of all groups without `groups`), and the errors of the others.

    Errors: AdapterError if Kafka does not answer.
    """
    from collector.kafka_requests import KafkaRequests

    kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=connection)
    names, errors = (tuple(groups), ()) if groups else kafka.group_names()
    if errors and not names:
        raise errors[0]
    described = kafka.descriptions(names)
    return {name: known.hosts for name, known in described.got.items()}, (*errors, *described.failed.values())


def missing_objects(
    bootstrap: str,
    connection: Mapping[str, str],
    api: "Connection",
    namespaces: Sequence[str],
    scalers: "Scalers",
    *,
    cluster: str,
    groups: Sequence[str] | None,
) -> "tuple[Document, ...]":
    """A ConsumerGroupScaler for each own group that has none, nor a target or the mode off in the settings.

    The members of all groups are read: a workload that runs groups of several shards is scaled for none of them.

    Errors: those of `recommender.ports`, if Kafka or the cluster does not answer.
    """
    from manifests.discovered import missing_scalers
    from recommender.adapters.kubernetes_workloads import pods_in
    from recommender.cluster.discovery import discover as discovered

    hosts = _hosts_apart(bootstrap, connection, cluster=cluster, groups=groups)
    answers = discovered(hosts, pods_in(api, namespaces))
    settings = {group: scalers.settings.of(cluster, group) for group in answers}
    wanted = {name for name, known in settings.items() if known.target is None and known.mode != "off"}
    missing = missing_scalers(
        {name: answer for name, answer in answers.items() if name in wanted},
        scalers.rightful(),
        cluster=cluster,
    )
    return tuple(each for each in missing if scalers.owns(cluster, each["spec"]["groupId"]))


def see_members(
    bootstrap: str,
    connection: Mapping[str, str],
    api: "Connection",
    tenants: "Tenants",
    *,
    cluster: str,
    groups: Sequence[str] | None,
) -> None:
    """Note in which of the followed namespaces the members of groups run now.

    Errors: those of `recommender.ports`, if Kafka or the cluster does not answer.
    """
    from recommender.adapters.kubernetes_workloads import namespaces_at

    hosts = _hosts_apart(bootstrap, connection, cluster=cluster, groups=groups)
    tenants.see(cluster, hosts, namespaces_at(api, sorted(tenants.followed)))


def _hosts_apart(
    bootstrap: str, connection: Mapping[str, str], *, cluster: str, groups: Sequence[str] | None
) -> dict[str, tuple[str, ...]]:
    """The addresses of members, in a process of its own. Errors: UnavailableError."""
    from collector.errors import AdapterError
    from recommender.ports import UnavailableError

    # Kafka's client may end its process while it describes groups, as in collector/isolated.py.
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    ) as child:
        try:
            hosts, _ = child.submit(hosts_of, bootstrap, connection, cluster=cluster, groups=groups).result()
        except AdapterError as error:
            raise UnavailableError(str(error)) from error
        except BrokenProcessPool as error:
            message = "Kafka's client died while it described the groups"
            raise UnavailableError(message) from error
    return hosts


def _record(group: str, answer: "Found | NotFound") -> dict[str, object]:
    from recommender.cluster.discovery import Found
    from recommender.ports import wire_code

    record: dict[str, object] = {field.key: None for field in FIELDS}
    record |= {"group": group, "members": answer.members}
    if not isinstance(answer, Found):
        return record | {"reason": wire_code(answer.reason), "note": answer.sentence}
    workload = answer.workload
    shared = f"runs {', '.join(answer.shared_with)} too; or are these proxies?" if answer.shared_with else None
    return record | {
        "pods": answer.pods,
        "replicas": answer.replicas,
        "namespace": workload.namespace,
        "kind": workload.kind,
        "name": workload.name,
        "note": shared,
    }
