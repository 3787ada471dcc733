# ruff: noqa: PLC0415 - heavy parts are imported when a command needs them, so that `--help` answers in 0.2 s
"""Settings, state folder, store and recommender, as several commands use them."""

import importlib.metadata
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from cli.errors import InputError
from cli.instants import read_clock

if TYPE_CHECKING:
    from api.access.certificates import Certificate
    from api.pages.replays import Replays
    from cli.progress import Talk
    from cost_model.physics.detected import ObservedGroup, ObservedWorkload
    from cost_model.physics.profile import GroupProfile
    from recommender.adapters.kubernetes_client import Connection
    from recommender.adapters.store_sql import SqlDecisionStore
    from recommender.borders import Borders
    from recommender.cluster.leadership import Fence
    from recommender.cluster.prices import NodePrices
    from recommender.cluster.scalers import Scalers
    from recommender.cluster.workloads import Workloads
    from recommender.configuring.settings import InForce, Settings
    from recommender.deciding.decision import DecisionSettings
    from recommender.following.grading import MeasuredPause
    from recommender.known_groups import KnownGroups
    from recommender.ports import Group, Histories, LoopStore, Obstacle, Publisher
    from recommender.run import Recommender
    from recommender.steps import Step
    from recommender.watched_groups import Pooling


class PricesAt(NamedTuple):
    """Where prices of nodes are read: a server with Prometheus' API, its settings, and the option that named it."""

    url: str
    connection: Mapping[str, str]
    option: str


def version() -> str:
    """The installed version of lagcast."""
    return importlib.metadata.version("lagcast")


def settings_of(config: Path | None = None, *, state_dir: Path | None = None) -> "Settings":
    """The settings from file and environment; `--state-dir` overrides both."""
    from recommender.configuring.settings import load_settings

    environment = dict(os.environ)
    if state_dir is not None:
        environment["LAGCAST_STATE_DIR"] = str(state_dir)
    return load_settings(config, environment)


def open_store(
    settings: "Settings", *, may_write: Callable[[], None] = lambda: None, borders: "Borders | None" = None
) -> "SqlDecisionStore":
    """The store of decisions of the settings, with its schema migrated; `may_write` is called before each commit."""
    from recommender.adapters.store_sql import SqlDecisionStore

    return SqlDecisionStore(settings.store_url, may_write=may_write, borders=borders)


def replays_of(settings: "Settings") -> "Replays":
    """The replays that are kept beside the state of these settings."""
    from api.pages.replays import Replays

    return Replays(settings.state_dir / "replays")


def recommender(
    table: "Histories",
    settings: "InForce",
    store: "LoopStore",
    *,
    publishers: "Sequence[Publisher]" = (),
    obstacles: "Callable[[], Mapping[Group, Obstacle]]" = dict,
    stops: "Callable[[Group], Sequence[MeasuredPause]]" = lambda _: (),
    workloads: "Workloads | None" = None,
    observe_steps: "Callable[[Mapping[Step, float]], object]" = lambda _: None,
    known_groups: "KnownGroups | None" = None,
    borders: "Borders | None" = None,
    deciding: Event | None = None,
    early: Event | None = None,
    owns: Callable[[str, str], bool] = lambda *_: True,
    is_stopped: Callable[[], bool] = lambda: False,
    pooling: "Pooling | None" = None,
) -> "Recommender":
    """The loop over the groups of `table`, which decides by `settings` and keeps its decisions in `store`.

    `workloads` tell of the pods that run the groups, where a cluster is followed. `owns` is true for the groups of the
    table that are decided. A cycle ends early once `is_stopped`. `known_groups` are those that the REST service of the
    same process reads, if there is one. `early` is set where the next cycle should begin at once: with it, groups that
    are new are opened over several cycles. `pooling`: another way to share lessons than among these groups.
    """
    from cost_model.physics.pooling import pooled_by_kind
    from recommender.adapters.time_limit import TimeLimit
    from recommender.borders import Borders
    from recommender.deciding.decision import priced
    from recommender.known_groups import KnownGroups
    from recommender.run import Recommender
    from recommender.watched_groups import OPENING_SECONDS, WatchedGroups

    def workload_of(cluster: str, group: str) -> "ObservedWorkload | None":
        return None if workloads is None else workloads.of(settings.of(cluster, group).target)

    def profile_of(cluster: str, group: str, observed: "ObservedGroup") -> "GroupProfile | None":
        known = settings.of(cluster, group)
        return None if known.mode == "off" else known.profile(cluster, group, observed, workload_of(cluster, group))

    def decision_of(cluster: str, group: str) -> "DecisionSettings":
        workload = workload_of(cluster, group)
        return priced(settings.decision_of(cluster, group), None if workload is None else workload.price)

    return Recommender(
        watched=WatchedGroups(
            histories=table,
            profile_of=profile_of,
            settings=settings.decision,
            settings_of=decision_of,
            is_stopped=is_stopped,
            store=store,
            stops=stops,
            workload_of=workload_of,
            caller=TimeLimit(),
            pooling=pooled_by_kind if pooling is None else pooling,
            timer=time.perf_counter,
            borders=Borders() if borders is None else borders,
            opening_seconds_per_cycle=inf if early is None else OPENING_SECONDS,
        ),
        namespace_of=settings.namespace_of,
        owns=owns,
        publishers=publishers,
        obstacles=obstacles,
        observe_steps=observe_steps,
        known_groups=KnownGroups() if known_groups is None else known_groups,
        deciding=Event() if deciding is None else deciding,
        early=Event() if early is None else early,
    )


def cluster_client(kubeconfig: Path | None, *, option: str = "--kubernetes") -> "Connection":
    """A client for the cluster of a kubeconfig, or for the one around this process; errors name `option`.

    Errors: InputError if there is no cluster, or if the client's package is not installed: it is an extra of 75 MB.
    """
    from recommender.ports import RejectedError

    try:
        from recommender.adapters.kubernetes_client import connect

        return connect(kubeconfig)
    except ModuleNotFoundError as error:
        message = f"{option} needs the package {error.name}: pip install 'lagcast[k8s]'"
        raise InputError(message) from error
    except RejectedError as error:
        raise InputError(str(error)) from error


@contextmanager
def scalers_in(
    namespaces: Sequence[str],
    kubeconfig: Path | None,
    settings: "Settings",
    *,
    fence: "Fence | None",
    owns: Callable[[str, str], bool],
    borders: "Borders",
) -> "Iterator[Scalers | None]":
    """The ConsumerGroupScalers of those namespaces over `settings`, followed inside the block; None without namespaces.

    With a `fence`, each write is checked by it; `owns` are the groups whose objects are written. Errors: those of
    `cluster_client`; AdapterError if the cluster does not answer.
    """
    if not namespaces:
        yield None
        return
    api = cluster_client(kubeconfig)
    from recommender.adapters.kubernetes_scalers import KubernetesScalers
    from recommender.cluster.scalers import FencedObjects, Scalers
    from recommender.cluster.tenants import Tenants

    objects = KubernetesScalers(api, namespaces)
    with objects.following():
        yield Scalers(
            objects=objects if fence is None else FencedObjects(objects, fence),
            settings=settings,
            tenants=Tenants(followed=frozenset(namespaces)),
            owns=owns,
            borders=borders,
        )


@contextmanager
def workloads_in(
    namespaces: Sequence[str],
    kubeconfig: Path | None,
    *,
    node_prices: PricesAt | None,
    on_request: Callable[[str], object],
) -> "Iterator[Workloads | None]":
    """The workloads of those namespaces, followed inside the block; None without namespaces.

    What may not be read there stays unknown, as do prices without `node_prices`; `on_request` gets the outcome of each
    reading of prices. Errors: those of `cluster_client`;
    ClientConfigError for an address of prices that is none.
    """
    if not namespaces:
        yield None
        return
    api = cluster_client(kubeconfig)
    from recommender.adapters.kubernetes_pods import KubernetesPods
    from recommender.cluster.workloads import Workloads

    pods = KubernetesPods(api, namespaces, clock=read_clock)
    with pods.following(), _prices_at(node_prices, on_request) as prices:
        yield Workloads(pods, prices)


@contextmanager
def _prices_at(at: PricesAt | None, on_request: Callable[[str], object]) -> "Iterator[Callable[[], NodePrices | None]]":
    """What gives the newest prices of nodes that a server has, followed inside the block."""
    if at is None:
        yield lambda: None
        return
    from collector.node_prices import TIMEOUT_SECONDS, NodePriceReader
    from collector.prometheus_http import PrometheusRequests

    with PrometheusRequests(
        at.url, settings=at.connection, timeout_seconds=TIMEOUT_SECONDS, option=at.option
    ) as requests:
        reader = NodePriceReader(requests, clock=read_clock, on_request=on_request)
        with reader.following():
            yield reader.newest


@contextmanager
def answering_keda(
    store: "SqlDecisionStore",
    *,
    host: str,
    port: int | None,
    certificate: "Certificate | None",
    talk: "Talk",
    leads: Callable[[], bool],
    borders: "Borders",
) -> Iterator[None]:
    """Serve KEDA's external triggers on that port during the block, while this process leads; nothing without a port.

    With a `certificate` over TLS.

    Errors: InputError if the package for it is missing; UnavailableError if the port is taken.
    """
    if port is None:
        yield
        return
    try:
        from api.keda.server import serving_keda
    except ModuleNotFoundError as error:
        message = f"--keda-port needs the package {error.name}: pip install 'lagcast[keda]'"
        raise InputError(message) from error
    with serving_keda(
        store, clock=read_clock, host=host, port=port, certificate=certificate, leads=leads, borders=borders
    ) as bound:
        talk.line(f"answers KEDA's external triggers on {host}:{bound}")
        yield
