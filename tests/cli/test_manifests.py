"""`lagcast import` and `lagcast export`: YAML on stdout, every remark on stderr, nothing applied."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Lagcast = Callable[..., tuple[int, str, str]]

SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {name: order-consumer}
  triggers:
    - {type: kafka, metadata: {consumerGroup: orders, topic: orders, lagThreshold: "50"}}
"""
CONFIG = """
groups:
  orders:
    max_replicas: 24
    target: {namespace: shop, name: order-consumer}
  clicks: {max_replicas: 8}
  refunds:
    target: {namespace: shop, name: refund-consumer}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings of a group that can be followed and of two that cannot."""
    path = tmp_path / "lagcast.yaml"
    path.write_text(CONFIG)
    return path


def test_imported_objects_are_yaml_and_remarks_are_lines(lagcast: Lagcast, tmp_path: Path) -> None:
    """The YAML on stdout can be piped into kubectl."""
    path = tmp_path / "scaledobject.yaml"
    path.write_text(SCALED_OBJECT)
    code, out, err = lagcast("import", "-f", path, "--cluster", "prod")
    (document,) = yaml.safe_load_all(out)
    assert code == 0
    assert document["spec"]["cluster"] == "prod"
    assert all(line.startswith("ScaledObject shop/orders: ") for line in err.splitlines())


def test_a_file_that_cannot_be_imported_is_one_sentence(lagcast: Lagcast, tmp_path: Path) -> None:
    """For a missing file and one of other objects the command exits 2."""
    other = tmp_path / "service.yaml"
    other.write_text("{apiVersion: v1, kind: Service, metadata: {name: web}}")
    for path, message in ((tmp_path / "none.yaml", "cannot read"), (other, "no object here is an AlamedaScaler")):
        code, out, err = lagcast("import", "-f", path)
        assert (code, out) == (2, "")
        assert message in err


def test_exports_name_the_workload_of_the_settings(lagcast: Lagcast, config: Path) -> None:
    """Both kinds of object have the target and the bounds of the settings."""
    for arguments in (
        ["hpa", "orders"],
        ["keda", "orders", "--prometheus", "http://prometheus:9090"],
        ["keda", "orders", "--scaler", "lagcast:9095"],
    ):
        code, out, _ = lagcast("export", *arguments, "--config", config)
        document = yaml.safe_load(out)
        assert code == 0
        assert document["metadata"] == {"name": "order-consumer", "namespace": "shop"}
        assert document["spec"]["scaleTargetRef"]["name"] == "order-consumer"
        assert "&id" not in out


def test_a_trigger_over_tls_names_its_certificates(lagcast: Lagcast, config: Path) -> None:
    """KEDA keeps them in a TriggerAuthentication; one for Prometheus is none of ours."""
    arguments = ("export", "keda", "orders", "--config", config, "--authentication", "lagcast")
    (trigger,) = yaml.safe_load(lagcast(*arguments, "--scaler", "lagcast:9095")[1])["spec"]["triggers"]
    assert trigger["authenticationRef"] == {"name": "lagcast"}
    code, out, err = lagcast(*arguments, "--prometheus", "http://prometheus:9090")
    assert (code, out) == (2, "")
    assert "--authentication is for --scaler" in " ".join(err.split())


def test_rules_for_prometheus_are_the_same_for_all_groups(lagcast: Lagcast) -> None:
    """The adapter's rule and the alerts are printed without any settings."""
    assert "external" in yaml.safe_load(lagcast("export", "prometheus-adapter")[1])["rules"]
    assert yaml.safe_load(lagcast("export", "prometheus-rule")[1])["kind"] == "PrometheusRule"


def test_each_dashboard_is_printed_by_its_name(lagcast: Lagcast) -> None:
    """The fleet unless another is named; a third one there is not."""
    printed = [lagcast("export", "dashboard", *words) for words in ((), ("fleet",), ("group",))]
    assert [json.loads(out)["uid"] for _, out, _ in printed] == ["lagcast-fleet", "lagcast-fleet", "lagcast-group"]
    assert lagcast("export", "dashboard", "topics")[0] == 2


@pytest.mark.parametrize(
    ("group", "message"), [("clicks", "groups.clicks.target is not set"), ("refunds", "groups.refunds.max_replicas")]
)
def test_a_group_without_target_or_max_replicas_is_refused(
    lagcast: Lagcast, config: Path, group: str, message: str
) -> None:
    """The sentence names the setting and the file."""
    code, out, err = lagcast("export", "hpa", group, "--config", config)
    assert (code, out) == (2, "")
    assert message in err
    assert str(config.name) in "".join(err.split())


@pytest.mark.parametrize("arguments", [(), ("--prometheus", "http://p", "--scaler", "s:1")])
def test_keda_needs_exactly_one_address(lagcast: Lagcast, config: Path, arguments: tuple[str, ...]) -> None:
    """Neither and both of --prometheus and --scaler are refused."""
    code, _, err = lagcast("export", "keda", "orders", "--config", config, *arguments)
    assert code == 2
    assert "either --prometheus URL or --scaler HOST:PORT" in " ".join(err.split())
