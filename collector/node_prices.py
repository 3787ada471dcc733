"""Prices of a cluster's nodes, as OpenCost exports them and Prometheus has them, read once a minute.

OpenCost names no currency: USD, unless its own pricing is set to another one.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog

from collector.errors import ANSWERED, AdapterError, outcome_of
from collector.prometheus_http import PrometheusRequests

READ_EVERY_SECONDS = 60.0
TIMEOUT_SECONDS = 10.0
# The price of an hour of one core, of one GiB of memory, and of the whole node; all have the label `node`.
PER_CORE, PER_GIBIBYTE, WHOLE = "node_cpu_hourly_cost", "node_ram_hourly_cost", "node_total_hourly_cost"
# From kube-state-metrics, or from OpenCost in its place: cores and bytes, by the label `resource`.
ALLOCATABLE = 'kube_node_status_allocatable{resource=~"cpu|memory"}'
# Two exporters of one cluster are a scrape apart; clusters with nodes of the same names have other prices.
_SAME_PRICE = 0.01

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """What an hour of one node costs, by core and GiB of memory or as a whole; None: no series says so.

    Of the node, pods may request `allocatable_cores` and `allocatable_bytes`. `contradiction` says how series of the
    node differ: then their mean is in the field.
    """

    per_core: float | None = None
    per_gibibyte: float | None = None
    whole: float | None = None
    allocatable_cores: float | None = None
    allocatable_bytes: float | None = None
    contradiction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrices:
    """The prices of all nodes by their names, as they were at `seen_at` on the server at `where`."""

    seen_at: datetime
    where: str
    nodes: Mapping[str, NodePrice]


class NodePriceReader:
    """The newest prices that a server has. While it does not answer, which is logged once, the last ones hold."""

    def __init__(
        self,
        requests: PrometheusRequests,
        *,
        clock: Callable[[], datetime],
        on_request: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`on_request` gets the outcome of each reading."""
        self._requests, self._clock, self._on_request = requests, clock, on_request
        self._newest: NodePrices | None = None
        self._failing = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Keep the prices up to date until the block ends; they have been asked for once when it begins."""
        stop = threading.Event()
        self.read()
        thread = threading.Thread(target=self._follow, args=(stop,), name="node-prices", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(timeout=TIMEOUT_SECONDS)

    def newest(self) -> NodePrices | None:
        """The newest prices; None before the first answer. A call costs nothing."""
        return self._newest

    def read(self) -> None:
        """Read the prices anew: three small queries, and one more where a node has a price as a whole only."""
        at = self._clock()
        try:
            found = {"per_core": PER_CORE, "per_gibibyte": PER_GIBIBYTE, "whole": WHOLE}
            values = {field: self._by_node(expression, at) for field, expression in found.items()}
            if values["whole"].keys() - (values["per_core"].keys() & values["per_gibibyte"].keys()):
                values |= self._allocatable(at)
        except AdapterError as error:
            self._on_request(outcome_of(error))
            if not self._failing:
                _log.warning("node_prices_unread", error=str(error))
            self._failing = True
            return
        self._on_request(ANSWERED)
        if self._failing or self._newest is None:
            _log.info("node_prices_read", where=self._requests.where, nodes=len(_nodes(values)))
        self._failing = False
        self._newest = NodePrices(seen_at=at, where=self._requests.where, nodes=_nodes(values))

    def _follow(self, stop: threading.Event) -> None:
        while not stop.wait(READ_EVERY_SECONDS):
            self.read()

    def _by_node(self, expression: str, at: datetime) -> dict[str, list[float]]:
        """The values of every node; series without a node are no prices of nodes."""
        values: dict[str, list[float]] = defaultdict(list)
        for series in self._requests.instant(expression, at=at):
            if node := series.labels.get("node"):
                values[node].append(float(series.values[-1]))
        return values

    def _allocatable(self, at: datetime) -> dict[str, dict[str, list[float]]]:
        fields = {"cpu": "allocatable_cores", "memory": "allocatable_bytes"}
        values: dict[str, dict[str, list[float]]] = {field: defaultdict(list) for field in fields.values()}
        for series in self._requests.instant(ALLOCATABLE, at=at):
            if node := series.labels.get("node"):
                values[fields[series.labels["resource"]]][node].append(float(series.values[-1]))
        return values


def _nodes(values: Mapping[str, Mapping[str, list[float]]]) -> dict[str, NodePrice]:
    """The prices by node, from the values of each field by node."""
    names = {node for by_node in values.values() for node in by_node}
    return {
        node: _node({field: by_node[node] for field, by_node in values.items() if node in by_node}) for node in names
    }


def _node(values: Mapping[str, list[float]]) -> NodePrice:
    odd = [f"{min(each):g} to {max(each):g} {field}" for field, each in values.items() if not _alike(each)]
    means = {field: sum(each) / len(each) for field, each in values.items()}
    return NodePrice(**means, contradiction=", ".join(odd) or None)


def _alike(values: list[float]) -> bool:
    return max(values) - min(values) <= _SAME_PRICE * abs(max(values, key=abs))
