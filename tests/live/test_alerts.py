"""C44: alerts and dashboards in Prometheus itself: rules by its promtool, panels on a real lagcast's page."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import get_args

import httpx2
import pytest
import yaml

from api.app import create_app
from cli.instants import read_clock
from cli.server import listen, serving
from forecasting.refusal import Refusal
from manifests.dashboard import EXPORTERS, Name, marks, queries
from manifests.outgoing import alerts
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import LedgerStanding, Recommendation
from tests.live.harness.clients import NOON, wait_until
from tests.live.harness.exporters import running_prometheus, serving_text

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
    promtool_agrees(program, tmp_path, {"input_series": case.series, "alert_rule_test": looks})


# In order, or put in order when the minutes of its alert were just not over; and no count without advice is wrong.
QUIET = {
    "LagcastAbsent": [{"series": "lagcast_build_info", "values": "1x9 stale _x9 1x60"}],
    "LagcastNobodyLeads": [
        RUNNING,
        {"series": 'lagcast_leader{pod="a"}', "values": "1x9 0x70"},
        {"series": 'lagcast_leader{pod="b"}', "values": "0x11 1x70"},
    ],
    "LagcastDataStale": [
        RUNNING,
        {"series": f"lagcast_data_age_seconds{{{GROUP}}}", "values": "600x9 900x4 15x9 660x4 600x50"},
    ],
    "LagcastRefuses": [
        RUNNING,
        {"series": f'lagcast_refusal{{{GROUP},reason="DataStale"}}', "values": "0x4 1x29 0x9 1x10"},
        {"series": f'lagcast_refusal{{{GROUP},reason="Paused"}}', "values": "0x70"},
    ],
    "LagcastAdviceNotFollowed": [
        RUNNING,
        {"series": f"lagcast_due_replicas{{{GROUP}}}", "values": "3x9 5x19 stale"},
        {"series": f"lagcast_current_replicas{{{GROUP}}}", "values": "3x24 5x4 7x40"},
    ],
}


@pytest.mark.parametrize("alert", [case.alert for case in CASES])
def test_an_alert_is_silent_while_all_is_well_or_soon_is_again(
    alert: str, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """For an hour, minute by minute: values at the limit, and faults that end a minute before they would be told."""
    looks = [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in range(61)]
    promtool_agrees(program, tmp_path, {"input_series": QUIET[alert], "alert_rule_test": looks})


def test_decisions_are_annotations_in_the_minute_of_their_change(
    program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Advice changes in minute 3, the group follows in minute 5, and is refused from minute 7 on: once each."""
    series = [
        {"series": f'lagcast_desired_replicas{{{GROUP},pod="a"}}', "values": "6x2 8x3"},
        {"series": f'lagcast_current_replicas{{{GROUP},pod="a"}}', "values": "6x4 8x5"},
        {"series": f'lagcast_refusal{{{GROUP},reason="NoData",pod="a"}}', "values": "0x6 1x3"},
    ]
    happened = dict(zip(marks(), (("replicas", "8", 3), ("replicas", "8", 5), ("reason", "NoData", 7)), strict=True))
    looks = [
        {
            "expr": selecting(query, "prod", "orders"),
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{{label}="{value}"}}', "value": 1}] if minute == at else [],
        }
        for query, (label, value, at) in happened.items()
        for minute in range(1, 11)
    ]
    promtool_agrees(program, tmp_path, {"input_series": series, "promql_expr_test": looks})


def promtool_agrees(program: Callable[[str], Path], folder: Path, test: dict[str, object]) -> None:
    """Let Prometheus' own tool run one test of the alerts, over series with a value a minute."""
    tried = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [{"interval": "1m", **test}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(alerts()["spec"]))
    (folder / "tests.yaml").write_text(yaml.safe_dump(tried))
    promtool = program("prometheus").with_name("promtool")
    done = subprocess.run([promtool, "test", "rules", folder / "tests.yaml"], check=False, capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_line_of_the_dashboards_has_something_to_show(
    program: Callable[[str], Path],
    tmp_path: Path,
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
    ledger: LedgerStanding,
) -> None:
    """A real Prometheus that scrapes a group with advice and one without returns a series for each of its queries."""
    now = read_clock()
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    metrics = Metrics(store, clock=read_clock, version="live")
    stayed = replace(ledger.accounts[0], scaler="stay")
    paid = replace(ledger, since_at=now - timedelta(days=1), accounts=(*ledger.accounts, stayed))
    valid_until = now + timedelta(minutes=10)
    given = advice(issued_at=now, execute_at=now, latest_safe=now, valid_until=valid_until, ledger=paid)
    decided = given, refusal(group="billing", refused_at=now)

    def publish() -> None:
        for decision in decided:
            metrics.publish(decision)
        group = given.cluster, given.group
        metrics.requested("kafka", "unavailable")
        metrics.failed("group")
        metrics.observe_steps({"decide": 0.2})
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
    exported = "".join(f'{metric}{{{label}="{given.group}"}} 7\n' for _, metric, label in EXPORTERS)
    with (
        serving_text(lambda: exported) as exporter,
        serving(create_app(store, clock=read_clock, version="live", metrics=metrics), bound),
        running_prometheus(
            program("prometheus"),
            tmp_path / "prometheus",
            jobs={"lagcast": [bound.getsockname()[1]], "exporter": [exporter]},
        ) as url,
    ):

        def has_answer(query: str) -> bool:
            return any(answer(url, selecting(query, given.cluster, each.group)) for each in decided)

        def silent() -> list[str]:
            publish()
            return [query for name in get_args(Name) for query in queries(name) if not has_answer(query)]

        wait_until(lambda: not silent(), seconds=30)
    store.close()


def selecting(query: str, cluster: str, group: str) -> str:
    """The query as Grafana sends it: a value alone, and one in quotes that is to be escaped."""
    query = query.replace("${cluster:doublequote}", json.dumps(cluster)).replace("$cluster", cluster)
    return query.replace("${group:doublequote}", json.dumps(group))


def answer(url: str, query: str) -> list[object]:
    """The series that a query returns; fails if it is no PromQL."""
    response = httpx2.get(f"{url}/api/v1/query", params={"query": query}, timeout=10).json()
    assert response["status"] == "success", response
    found: list[object] = response["data"]["result"]
    return found
