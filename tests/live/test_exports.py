"""C31: exported and imported objects work on a real control plane, with its own HPA controller."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from cli.main import main
from tests.live.harness.adapter_process import running_adapter, served
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.exporters import running_prometheus, serving_text
from tests.live.harness.libraries import built_prometheus_adapter
from tests.live.harness.scalers import shop_in

pytestmark = pytest.mark.kubernetes

# The HPA controller of these tests looks every second.
SOME_LOOKS_SECONDS = 5.0
METRIC = "lagcast_due_replicas"
CONFIG = "groups: {orders: {max_replicas: 24, target: {namespace: NAMESPACE, name: orders}}}\n"


class Due:
    """What lagcast's page of metrics says: `replicas` of group orders of cluster prod, or no sample while None.

    Of another group nine are due all the time.
    """

    def __init__(self) -> None:
        self.replicas: int | None = 12

    def page(self) -> str:
        """The page as Prometheus scrapes it."""
        lines = [f'{METRIC}{{cluster="prod",group="payments"}} 9']
        if self.replicas is not None:
            lines.append(f'{METRIC}{{cluster="prod",group="orders"}} {self.replicas}')
        return "\n".join([f"# TYPE {METRIC} gauge", *lines, ""])


@pytest.fixture
def due(
    control_plane: ControlPlane, program: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Due]:
    """The exported rules in a real prometheus-adapter, which reads a real Prometheus."""
    assert main(["export", "prometheus-adapter"]) == 0
    values = yaml.safe_load(capsys.readouterr().out)
    saying = Due()
    with (
        serving_text(saying.page) as port,
        running_prometheus(program("prometheus"), tmp_path / "prometheus", jobs={"lagcast": [port]}) as url,
        running_adapter(built_prometheus_adapter(), control_plane, tmp_path / "adapter", values=values, prometheus=url),
    ):
        wait_until(partial(served, control_plane, METRIC))
        yield saying


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with a Deployment `orders` of three replicas."""
    return shop_in(control_plane)


def test_an_exported_hpa_has_as_many_replicas_as_are_due_and_keeps_them_while_nothing_is(
    control_plane: ControlPlane,
    due: Due,
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

    for wanted in (12, 13):
        due.replicas = wanted
        wait_until(lambda: replicas() == wanted)  # noqa: B023  # called before the next one
    due.replicas = None
    reason = "jsonpath={.status.conditions[?(@.type=='ScalingActive')].reason}"
    wait_until(
        lambda: (
            control_plane.kubectl("-n", namespace, "get", "hpa", "orders", "-o", reason) == "FailedGetExternalMetric"
        )
    )
    time.sleep(SOME_LOOKS_SECONDS)
    assert replicas() == 13
    due.replicas = 2
    wait_until(lambda: replicas() == 2)
