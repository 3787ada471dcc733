"""The alerts, evaluated by Prometheus' own promtool over minutes of series written down here."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from api.manifests.outgoing import alerts

pytestmark = pytest.mark.kafka

GROUP = 'cluster="prod",group="orders"'
LABELS = {"cluster": "prod", "group": "orders", "severity": "warning"}
RUNNING = {"series": "lagcast_build_info", "values": "1x70"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One alert over `series`, a value a minute: silent at minute `silent`, a minute later it says `says`."""

    alert: str
    series: list[dict[str, str]]
    silent: int
    labels: dict[str, str]
    says: str


CASES = (
    Case(
        alert="LagcastAbsent",
        series=[{"series": "lagcast_build_info", "values": "1x9 stale"}],
        silent=19,
        labels={"severity": "warning"},
        says="Prometheus sees no lagcast. HPA and KEDA that follow it leave replicas as they are.",
    ),
    Case(
        alert="LagcastDataStale",
        series=[RUNNING, {"series": f"lagcast_data_age_seconds{{{GROUP}}}", "values": "540+60x70"}],
        silent=6,
        labels=LABELS,
        says="The newest row of orders is 16m 0s old: collector or features job are behind.",
    ),
    Case(
        alert="LagcastRefuses",
        series=[RUNNING, {"series": f'lagcast_refusal{{{GROUP},reason="DataStale"}}', "values": "0x4 1x70"}],
        silent=34,
        labels=LABELS | {"reason": "DataStale"},
        says="No advice for orders: DataStale. `lagcast explain` says what to do.",
    ),
    Case(
        alert="LagcastAdviceNotFollowed",
        series=[
            RUNNING,
            {"series": f"lagcast_due_replicas{{{GROUP}}}", "values": "3x9 5x70"},
            {"series": f"lagcast_current_replicas{{{GROUP}}}", "values": "3x70"},
        ],
        silent=24,
        labels=LABELS,
        says="orders should have 5 replicas and has not: nobody follows, or somebody else scales it.",
    ),
)


def test_every_alert_has_a_case() -> None:
    """What is alerted on and not tried here would go unseen."""
    (group,) = alerts()["spec"]["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [case.alert for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_after_its_minutes_and_not_before(
    case: Case, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Silent at one minute, firing at the next, with the group's name and the figure in its sentence."""
    fired = [{"exp_labels": case.labels, "exp_annotations": {"description": case.says}}]
    looks = [
        {"eval_time": f"{case.silent}m", "alertname": case.alert, "exp_alerts": []},
        {"eval_time": f"{case.silent + 1}m", "alertname": case.alert, "exp_alerts": fired},
    ]
    tried = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": case.series, "alert_rule_test": looks}],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(alerts()["spec"]))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tried))
    promtool = program("prometheus").with_name("promtool")
    done = subprocess.run([promtool, "test", "rules", tmp_path / "tests.yaml"], check=False, capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
