"""The price of a replica-hour, from what its pods request and the prices of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import nan
from typing import Any

import pytest

from recommender.cluster.prices import GIBIBYTE, PodRequests, UnknownPriceError, price_of, quantity, requests_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HALF_A_CORE = PodRequests(cores=0.5, memory_bytes=2.0 * GIBIBYTE)


@dataclass(frozen=True)
class Node:
    """A node of OpenCost's prices, m5.large in eu-west-1."""

    per_core: float | None = 0.032
    per_gibibyte: float | None = 0.004
    whole: float | None = 0.096
    allocatable_cores: float | None = None
    allocatable_bytes: float | None = None
    contradiction: str | None = None


@dataclass(frozen=True)
class Prices:
    """The prices of some nodes."""

    nodes: Mapping[str, Node]
    seen_at: datetime = NOON
    where: str = "http://prometheus:9090"


WHOLE = Node(None, None, 0.1, allocatable_cores=4.0, allocatable_bytes=8.0 * GIBIBYTE)
PRICES = Prices({"a": Node(), "dear": Node(per_core=0.064, per_gibibyte=0.008), "whole": WHOLE})


def container(**requests: str) -> dict[str, Any]:
    """A container that requests these."""
    return {"resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "cores", "memory_bytes"),
    [
        ({"containers": [container(cpu="250m", memory="1Gi"), container(cpu="1", memory="512M")]}, 1.25, 2**30 + 512e6),
        ({"containers": [container(cpu="1"), {}, {"resources": None}]}, 1.0, 0.0),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]}, 3.0, 0.0),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="500m")]}, 1.0, 0.0),
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [
                    container(cpu="1") | {"restartPolicy": "Always"},
                    container(cpu="1500m"),
                ],
            },
            2.5,
            0.0,
        ),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "120Mi"}}, 1.25, 120 * 2.0**20),
        ({"containers": [container(cpu="1", memory="1Gi")], "resources": {"requests": {"cpu": "3"}}}, 3.0, 2.0**30),
    ],
    ids=["containers", "no requests", "init", "small init", "sidecar", "overhead", "pod level"],
)
def test_a_pod_requests_what_the_scheduler_counts(spec: dict[str, Any], cores: float, memory_bytes: float) -> None:
    """Containers together, or an init container where it is larger; sidecars beside both."""
    assert requests_of(spec) == PodRequests(cores=cores, memory_bytes=memory_bytes)


def test_other_resources_are_named() -> None:
    """A GPU has a price that is not read."""
    spec = {"containers": [container(cpu="1", memory="1Gi") | {"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    assert requests_of(spec).others == ("nvidia.com/gpu",)


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", 0.1), ("0.5", 0.5), ("64Mi", 67108864.0), ("1e9", 1e9), ("12E", 12e18), ("500000000n", 0.5), ("2k", 2e3)],
)
def test_quantities_are_those_of_kubernetes(text: str, value: float) -> None:
    """Decimal and binary suffixes, and exponents."""
    assert quantity(text) == pytest.approx(value)


def test_cores_and_memory_have_their_prices() -> None:
    """Half a core of 0.032 and two GiB of 0.004."""
    assert price_of(HALF_A_CORE, ["a"], PRICES) == pytest.approx(0.5 * 0.032 + 2.0 * 0.004)


def test_the_price_is_the_mean_over_the_nodes_of_the_pods() -> None:
    """Two of three pods on a node of twice the price: five thirds."""
    assert price_of(HALF_A_CORE, ["a", "dear", "dear"], PRICES) == pytest.approx(0.024 * 5 / 3)


def test_of_a_node_with_one_price_the_larger_share_counts() -> None:
    """An eighth of the cores and a quarter of the memory: a quarter of 0.1."""
    assert price_of(HALF_A_CORE, ["whole"], PRICES) == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("requests", "node", "sentence"),
    [
        (replace(HALF_A_CORE, cores=0.0), Node(), "the pods request no cpu"),
        (PodRequests(cores=0.0, memory_bytes=0.0), Node(), "the pods request no cpu and no memory"),
        (replace(HALF_A_CORE, others=("nvidia.com/gpu",)), Node(), "nvidia.com/gpu, whose price is not read"),
        (HALF_A_CORE, Node(per_core=0.0), "node n has a figure of 0, where a price is above 0"),
        (HALF_A_CORE, Node(per_gibibyte=-0.004), "node n has a figure of -0.004"),
        (HALF_A_CORE, Node(per_core=nan), "node n has a figure of nan"),
        (HALF_A_CORE, replace(WHOLE, whole=0.0), "node n has a figure of 0"),
        (HALF_A_CORE, replace(WHOLE, allocatable_cores=None), "no price of cores and memory on http://prometheus:9090"),
        (HALF_A_CORE, replace(WHOLE, allocatable_cores=0.25), "request more than is allocatable on their node n"),
        (HALF_A_CORE, Node(contradiction="0.03 to 0.06 per_core"), "node n has several prices on http://prometheus"),
    ],
    ids=["no cpu", "nothing", "GPU", "zero", "negative", "NaN", "whole zero", "no share", "too much", "contradiction"],
)
def test_a_price_that_is_not_plausible_is_not_used(requests: PodRequests, node: Node, sentence: str) -> None:
    """The sentence names what is odd, and where."""
    with pytest.raises(UnknownPriceError, match=sentence.replace(".", r"\.")):
        price_of(requests, ["a", "n"], Prices({"a": Node(), "n": node}))


def test_a_node_without_a_price_leaves_all_without_one() -> None:
    """A mean over some of the nodes would be one of others."""
    with pytest.raises(UnknownPriceError, match="node b has no price on http://prometheus:9090"):
        price_of(HALF_A_CORE, ["a", "b"], PRICES)
