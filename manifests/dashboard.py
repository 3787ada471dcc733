"""A dashboard for Grafana over lagcast's metrics: produce rate, lag, replicas, advice and repeated messages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

Document = dict[str, Any]

UID = "lagcast-groups"
# Grafana lays panels on a grid of 24 columns: three panels per row.
_WIDTH, _HEIGHT, _ABREAST = 8, 8, 3
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_OF_GROUPS = 'cluster=~"$cluster",group=~"$group"'


class Line(NamedTuple):
    """One query; `legend` may name labels. In `query`, GROUPS stands for the selected groups."""

    query: str
    legend: str


class Panel(NamedTuple):
    """One graph: its title, Grafana's name of its unit, its description, and its lines."""

    title: str
    unit: str
    meaning: str
    lines: tuple[Line, ...]


PANELS = (
    Panel(
        "Messages",
        "cps",
        "What is produced into the group's topics, and what the group commits.",
        (
            Line("max by (cluster, group) (lagcast_produce_messages_per_second{GROUPS})", "{{group}} produced"),
            Line("max by (cluster, group) (lagcast_consume_messages_per_second{GROUPS})", "{{group}} consumed"),
        ),
    ),
    Panel(
        "Lag",
        "short",
        "Messages that wait.",
        (Line("max by (cluster, group) (lagcast_lag_messages{GROUPS})", "{{group}}"),),
    ),
    Panel(
        "Lag in seconds",
        "s",
        "How old the oldest of them is.",
        (Line("max by (cluster, group) (lagcast_lag_seconds{GROUPS})", "{{group}}"),),
    ),
    Panel(
        "Replicas",
        "short",
        "What the group has, what is due now, and what it should have from the advised instant on.",
        (
            Line("max by (cluster, group) (lagcast_current_replicas{GROUPS})", "{{group}} current"),
            Line("max by (cluster, group) (lagcast_due_replicas{GROUPS})", "{{group}} due"),
            Line("max by (cluster, group) (lagcast_desired_replicas{GROUPS})", "{{group}} desired"),
            Line("max by (cluster, group) (lagcast_useful_maximum_replicas{GROUPS})", "{{group}} useful maximum"),
        ),
    ),
    Panel(
        "What one replica consumes",
        "cps",
        "The most that it is believed to do: its 20, 50 and 90 % quantiles.",
        (
            Line(
                "max by (cluster, group, quantile) (lagcast_capacity_messages_per_second_per_replica{GROUPS})",
                "{{group}} p{{quantile}}",
            ),
        ),
    ),
    Panel(
        "Load",
        "percentunit",
        "What is produced, over what the replicas that are there can do.",
        (
            Line(
                "max by (cluster, group) (lagcast_produce_messages_per_second{GROUPS}) / on (cluster, group) "
                '(max by (cluster, group) (lagcast_capacity_messages_per_second_per_replica{GROUPS,quantile="0.5"}) '
                "* on (cluster, group) max by (cluster, group) (lagcast_current_replicas{GROUPS}))",
                "{{group}}",
            ),
        ),
    ),
    Panel(
        "Decisions in an hour",
        "short",
        "Over all groups: moves, holds and refusals.",
        (Line("sum by (action, reason) (increase(lagcast_decisions_total[1h]))", "{{action}} {{reason}}"),),
    ),
    Panel(
        "No advice",
        "short",
        "Groups that are refused, by the reason.",
        (Line("max by (cluster, group, reason) (lagcast_refusal{GROUPS}) == 1", "{{group}} {{reason}}"),),
    ),
    Panel(
        "Age of the data",
        "s",
        "Of the newest row that the advice was made from.",
        (Line("min by (cluster, group) (lagcast_data_age_seconds{GROUPS})", "{{group}}"),),
    ),
    Panel(
        "Rebalances in an hour",
        "short",
        "Rebalances, restarts and stalls that were seen.",
        (Line("sum by (group, kind) (increase(lagcast_interruptions_total{GROUPS}[1h]))", "{{group}} {{kind}}"),),
    ),
    Panel(
        "How long they stop",
        "s",
        "The mean pause of the partitions that stopped.",
        (
            Line(
                "sum by (group) (rate(lagcast_rebalance_pause_seconds_sum{GROUPS}[1h])) "
                "/ sum by (group) (rate(lagcast_rebalance_pause_seconds_count{GROUPS}[1h]))",
                "{{group}}",
            ),
        ),
    ),
    Panel(
        "Messages done again in an hour",
        "short",
        "What was seen to be repeated (least), and what may have been (most).",
        (
            Line(
                "sum by (group, bound) (increase(lagcast_duplicate_messages_total{GROUPS}[1h]))", "{{group}} {{bound}}"
            ),
        ),
    ),
    Panel(
        "Error of the forecast",
        "percentunit",
        "Of its median against what came, over what came, by how far ahead it was made.",
        (
            Line(
                "max by (cluster, group, horizon_seconds) (lagcast_forecast_error_ratio{GROUPS})",
                "{{group}} {{horizon_seconds}} s ahead",
            ),
        ),
    ),
    Panel(
        "Coverage of the forecast",
        "percentunit",
        "The share of minutes between its p05 and p95: 90 % where the bands are right.",
        (Line("max by (cluster, group) (lagcast_forecast_coverage_ratio{GROUPS})", "{{group}}"),),
    ),
    Panel(
        "Requests that failed in an hour",
        "short",
        "Rounds of a source that brought nothing, and groups that could not be read in one.",
        (
            Line(
                'sum by (source, outcome) (increase(lagcast_source_requests_total{outcome!="answered"}[1h]))',
                "{{source}} {{outcome}}",
            ),
        ),
    ),
)


def queries() -> Iterator[str]:
    """The queries to Prometheus. Several recommenders publish the same metrics of a group, hence the aggregates."""
    for panel in PANELS:
        for line in panel.lines:
            yield line.query.replace("GROUPS", _OF_GROUPS)


def dashboard() -> Document:
    """The dashboard as Grafana imports it; cluster and groups are selected at its top."""
    chosen = "lagcast_data_age_seconds"
    return {
        "uid": UID,
        "title": "lagcast: consumer groups",
        "tags": ["kafka", "lagcast"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                _variable("cluster", f"label_values({chosen}, cluster)"),
                _variable("group", f'label_values({chosen}{{cluster=~"$cluster"}}, group)'),
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _variable(name: str, query: str) -> Document:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # at each change of the time range: groups come and go
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "sort": 1,
    }


def _panel(number: int, panel: Panel) -> Document:
    row, column = divmod(number, _ABREAST)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": line.query.replace("GROUPS", _OF_GROUPS),
                "legendFormat": line.legend,
            }
            for place, line in enumerate(panel.lines)
        ],
    }
