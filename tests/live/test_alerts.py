"""C44: alerts and dashboard in Prometheus itself: alerts by its promtool, the dashboard on a real lagcast's page."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import yaml

from api.app import create_app
from cli.instants import read_clock
from cli.server import listen, serving
from forecasting.refusal import Refusal
from manifests.dashboard import queries
from manifests.outgoing import alerts
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import Recommendation
from tests.live.harness.clients import NOON, wait_until
from tests.live.harness.exporters import running_prometheus

pytestmark = pytest.mark.kafka

GROUP = 'cluster="prod",group="orders"'
LABELS = {"cluster": "prod", "group": "orders", "severity": "warning"}
RUNNING = {"series": "lagcast_build_info", "values": "1x70"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One alert over `series`, a value a minute: silent at minute `silent`, a minute later it has `description`."""

    alert: str
    series: list[dict[str, str]]
    silent: int
    labels: dict[str, str]
    description: str


CASES = (
    Case(
        alert="LagcastAbsent",
        series=[{"series": "lagcast_build_info", "values": "1x9 stale"}],
        silent=19,
        labels={"severity": "warning"},
        description="Prometheus sees no lagcast. HPA and KEDA that follow it leave replicas as they are.",
    ),
    Case(
        alert="LagcastNobodyLeads",
        series=[
            RUNNING,
            {"series": 'lagcast_leader{pod="a"}', "values": "1x4 0x70"},
            {"series": 'lagcast_leader{pod="b"}', "values": "0x3 1 0x70"},
        ],
        silent=6,
        labels={"severity": "warning"},
        description="All recommenders stand by, and none may publish: check their logs and their Lease.",
    ),
    Case(
        alert="LagcastDataStale",
        series=[RUNNING, {"series": f"lagcast_data_age_seconds{{{GROUP}}}", "values": "540+60x70"}],
        silent=6,
        labels=LABELS,
        description="The newest row of orders is 16m 0s old: collector or features job are behind.",
    ),
    Case(
        alert="LagcastRefuses",
        series=[RUNNING, {"series": f'lagcast_refusal{{{GROUP},reason="DataStale"}}', "values": "0x4 1x70"}],
        silent=34,
        labels=LABELS | {"reason": "DataStale"},
        description="No advice for orders: DataStale. See `lagcast explain`.",
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
        description="orders should have 5 replicas and has not: no executor is active, or another scaler sets it.",
    ),
)


def test_every_alert_has_a_case() -> None:
    """An alert without a case would be left untested."""
    (group,) = alerts()["spec"]["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [case.alert for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_after_its_minutes_and_not_before(
    case: Case, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """It is silent at one minute and fires at the next, with the group's name and the figure in its sentence."""
    fired = [{"exp_labels": case.labels, "exp_annotations": {"description": case.description}}]
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


def test_every_line_of_the_dashboard_has_something_to_show(
    program: Callable[[str], Path],
    tmp_path: Path,
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """A real Prometheus that scrapes a group with advice and one without returns a series for each of its queries."""
    now = read_clock()
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    metrics = Metrics(store, clock=read_clock, version="live")
    given = advice(issued_at=now, execute_at=now, latest_safe=now, valid_until=now + timedelta(minutes=10))
    decided = given, refusal(group="billing", refused_at=now)

    def publish() -> None:
        for decision in decided:
            metrics.publish(decision)
        group = given.cluster, given.group
        metrics.requested("kafka", "unavailable")
        metrics.interrupted(*group, kind="rebalance", rebalance_pause_seconds=3.0, repeated_least=0, repeated_most=20)

    for decision in decided:
        store.save(decision)
    # The forecast of the first of these is judged by the second, once the third has ended its minute.
    flat = (18400.0,) * 5
    for minutes in (0, 5, 6):
        observed = replace(given.observed, as_of=NOON + timedelta(minutes=minutes))
        forecast = replace(given.forecast, origin_at=observed.as_of, p05=flat, p50=flat, p95=flat)
        metrics.publish(replace(given, observed=observed, forecast=forecast))
    publish()
    bound = listen("127.0.0.1", 0, search=False)
    jobs = {"lagcast": [bound.getsockname()[1]]}
    with (
        serving(create_app(store, clock=read_clock, version="live", metrics=metrics), bound),
        running_prometheus(program("prometheus"), tmp_path / "prometheus", jobs=jobs) as url,
    ):

        def silent() -> list[str]:
            publish()
            all_queries = [query.replace("$cluster", ".*").replace("$group", ".*") for query in queries()]
            return [query for query in all_queries if not answer(url, query)]

        wait_until(lambda: silent() == [], seconds=30)
    store.close()


def answer(url: str, query: str) -> list[object]:
    """The series that a query returns; fails if it is no PromQL."""
    response = httpx2.get(f"{url}/api/v1/query", params={"query": query}, timeout=10).json()
    assert response["status"] == "success", response
    found: list[object] = response["data"]["result"]
    return found
