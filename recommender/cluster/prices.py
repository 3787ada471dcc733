"""The price of a replica-hour: what the pods of a workload request, at the prices of the nodes that they run on.

As OpenCost allocates by requests: cores at the price of a core and memory at that of a GiB. Where a node has a price
as a whole only, the larger of the two shares that a pod requests of what is allocatable there, times that price.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Protocol

Document = Mapping[str, Any]

GIBIBYTE = 2**30
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
_SUFFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{suffix: 2.0 ** (10 * power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
}


class NodePrice(Protocol):
    """What an hour of one node costs, by core and GiB of memory or as a whole; None: not known."""

    @property
    def per_core(self) -> float | None:
        """Price of one core."""
        ...

    @property
    def per_gibibyte(self) -> float | None:
        """Price of one GiB of memory."""
        ...

    @property
    def whole(self) -> float | None:
        """Price of the node."""
        ...

    @property
    def allocatable_cores(self) -> float | None:
        """Cores that pods may request."""
        ...

    @property
    def allocatable_bytes(self) -> float | None:
        """Bytes of memory that pods may request."""
        ...

    @property
    def contradiction(self) -> str | None:
        """How the figures of the node differ among themselves; None: they do not."""
        ...


class NodePrices(Protocol):
    """The prices of nodes by name, as they were at `seen_at` on the server at `where`."""

    @property
    def seen_at(self) -> datetime:
        """When they were read."""
        ...

    @property
    def where(self) -> str:
        """Address of the server."""
        ...

    @property
    def nodes(self) -> Mapping[str, NodePrice]:
        """The price of each node."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequests:
    """What a pod requests of its node. `others` are resources with a price that is not known here, as GPUs."""

    cores: float
    memory_bytes: float
    others: tuple[str, ...] = ()


class UnknownPriceError(ValueError):
    """A price of a replica-hour that cannot be told; the sentence names what is missing or odd."""


def requests_of(spec: Document) -> PodRequests:
    """The requests of a pod: those of its containers together, or of an init container where these are larger.

    A sidecar (an init container that is restarted) counts beside the containers, the overhead of a runtime on top.
    Those of the pod as a whole, where it has them, are in place of its containers'.
    """
    everything = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    resources = {name for each in everything for name in _requested(each)}
    return PodRequests(
        cores=_effective(spec, "cpu"),
        memory_bytes=_effective(spec, "memory"),
        others=tuple(sorted(name for name in resources if "/" in name)),
    )


def _effective(spec: Document, resource: str) -> float:
    overhead = _amount(spec.get("overhead", {}), resource)
    whole = _requested(spec)
    if resource in whole:
        return _amount(whole, resource) + overhead
    sidecars, largest = 0.0, 0.0
    for each in spec.get("initContainers", ()):
        amount = _amount(_requested(each), resource)
        if each.get("restartPolicy") == "Always":
            sidecars += amount
        largest = max(largest, sidecars + (0.0 if each.get("restartPolicy") == "Always" else amount))
    running = sidecars + sum(_amount(_requested(each), resource) for each in spec.get("containers", ()))
    return max(running, largest) + overhead


def _requested(holder: Document) -> Document:
    requests: Document = (holder.get("resources") or {}).get("requests") or {}
    return requests


def _amount(amounts: Document, resource: str) -> float:
    return quantity(str(amounts.get(resource, "0")))


def quantity(text: str) -> float:
    """A quantity as Kubernetes writes it.

    >>> quantity("250m"), quantity("1536Mi"), quantity("2e3"), quantity("1E")
    (0.25, 1610612736.0, 2000.0, 1e+18)
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        message = f"{text!r} is no quantity of Kubernetes"
        raise ValueError(message)
    return float(found[1]) * _SUFFIXES[found[2] or ""]


def price_of(requests: PodRequests, on_nodes: Sequence[str], prices: NodePrices) -> float:
    """The price of an hour of a pod with these requests: the mean over the nodes, one for each pod that runs.

    Errors: UnknownPriceError where any of them has no plausible price.
    """
    if requests.others:
        message = f"the pods request {', '.join(requests.others)}, whose price is not read"
        raise UnknownPriceError(message)
    if not requests.cores or not requests.memory_bytes:
        missing = [name for name, amount in (("cpu", requests.cores), ("memory", requests.memory_bytes)) if not amount]
        message = f"the pods request no {' and no '.join(missing)}"
        raise UnknownPriceError(message)
    each = [_price_on(node, requests, prices) for node in on_nodes]
    return sum(each) / len(each)


def _price_on(name: str, requests: PodRequests, prices: NodePrices) -> float:
    node = prices.nodes.get(name)
    if node is None:
        message = f"node {name} has no price on {prices.where}"
        raise UnknownPriceError(message)
    if node.contradiction is not None:
        message = f"node {name} has several prices on {prices.where}: {node.contradiction}"
        raise UnknownPriceError(message)
    gibibytes = requests.memory_bytes / GIBIBYTE
    if node.per_core is not None and node.per_gibibyte is not None:
        _plausible(name, (node.per_core, node.per_gibibyte))
        return requests.cores * node.per_core + gibibytes * node.per_gibibyte
    if node.whole is None or node.allocatable_cores is None or node.allocatable_bytes is None:
        message = f"node {name} has no price of cores and memory on {prices.where}, and none by what is allocatable"
        raise UnknownPriceError(message)
    _plausible(name, (node.whole, node.allocatable_cores, node.allocatable_bytes))
    share = max(requests.cores / node.allocatable_cores, requests.memory_bytes / node.allocatable_bytes)
    if share > 1.0:
        message = f"the pods request more than is allocatable on their node {name}"
        raise UnknownPriceError(message)
    return share * node.whole


def _plausible(name: str, figures: Iterable[float]) -> None:
    for figure in figures:
        if not (isfinite(figure) and figure > 0.0):
            message = f"node {name} has a figure of {figure:g}, where a price is above 0"
            raise UnknownPriceError(message)
