"""C31: exported and imported objects work on a real control plane, with its own HPA controller."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from cli.main import main
from tests.live.harness.aggregated import serving_apis
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.scalers import shop_in

pytestmark = pytest.mark.kubernetes

# The HPA controller of these tests looks every second.
SOME_LOOKS_SECONDS = 5.0
GROUP = "external.metrics.k8s.io"
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: NAMESPACE, name: orders}}}\n"


class Adapter:
    """Stands in for prometheus-adapter: `due` replicas of group orders of cluster prod, or no sample at all."""

    def __init__(self) -> None:
        self.due: int | None = None

    def answer(self, path: str) -> tuple[int, object]:
        """The answer at `path`, as prometheus-adapter would give it."""
        url = urlparse(path)
        selector = parse_qs(url.query).get("labelSelector", [""])[0]
        item = {"metricName": "lagcast_due_replicas", "timestamp": "2026-01-05T12:00:00Z", "value": str(self.due)}
        known = self.due is not None and set(selector.split(",")) == {"cluster=prod", "group=orders"}
        items = [item] if known and url.path.endswith("/lagcast_due_replicas") else []
        return 200, {
            "kind": "ExternalMetricValueList",
            "apiVersion": f"{GROUP}/v1beta1",
            "metadata": {},
            "items": items,
        }


@pytest.fixture
def adapter(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Adapter]:
    """An adapter from which the API server requests external metrics."""
    standing_in = Adapter()
    with serving_apis(control_plane, tmp_path, [GROUP], standing_in.answer):
        yield standing_in


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    return shop_in(control_plane)


def test_an_exported_hpa_has_as_many_replicas_as_are_due_and_keeps_them_while_nothing_is(
    control_plane: ControlPlane,
    adapter: Adapter,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Up, up by less than a tenth, no sample at all, and down are each followed at one look of the real controller."""
    config = tmp_path / "lagcast.yaml"
    config.write_text(CONFIG.replace("NAMESPACE", namespace))
    assert main(["export", "hpa", "orders", "--config", str(config), "--cluster", "prod"]) == 0
    control_plane.apply(capsys.readouterr().out)

    def replicas() -> int:
        field = "jsonpath={.spec.replicas}"
        return int(control_plane.kubectl("-n", namespace, "get", "deployment", "orders", "-o", field))

    for due in (12, 13):
        adapter.due = due
        wait_until(lambda: replicas() == due)  # noqa: B023  # called before the next one
    adapter.due = None
    reason = "jsonpath={.status.conditions[?(@.type=='ScalingActive')].reason}"
    wait_until(
        lambda: (
            control_plane.kubectl("-n", namespace, "get", "hpa", "orders", "-o", reason) == "FailedGetExternalMetric"
        )
    )
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 13
    adapter.due = 2
    wait_until(lambda: replicas() == 2)
