"""Two dashboards for Grafana over lagcast's metrics: the fleet, and one group with its decisions as annotations."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

Document = dict[str, Any]
Name = Literal["fleet", "group"]

# Grafana lays panels on a grid of 24 columns: three graphs per row, and a table over all of it.
_WIDTH, _HEIGHT, _ABREAST = 8, 8, 3
_SOURCE = {"type": "prometheus", "uid": "${source}"}
# One value, in quotes and with those within it escaped: names of groups may hold any character, and by itself Grafana
# leaves double quotes as they are.
_CLUSTER, _GROUP = "${cluster:doublequote}", "${group:doublequote}"
# In a query GROUPS stands for one of these.
_SELECTED: dict[Name, str] = {"fleet": 'cluster=~"$cluster"', "group": f"cluster={_CLUSTER},group={_GROUP}"}


class Line(NamedTuple):
    """One query; `legend` may name labels. In `query`, GROUPS stands for the selected groups."""

    query: str
    legend: str


class Panel(NamedTuple):
    """One graph: its title, Grafana's name of its unit, its description, its lines, and where its axis begins."""

    title: str
    unit: str
    meaning: str
    lines: tuple[Line, ...]
    least: int | None = 0


class Mark(NamedTuple):
    """Annotations: a name, a colour, and a query that has a series in the minute in which something happened."""

    name: str
    colour: str
    line: Line


# Columns of the table of groups.
COLUMNS = (
    Line("max by (cluster, group) (lagcast_current_replicas{GROUPS})", "Replicas"),
    Line("max by (cluster, group) (lagcast_due_replicas{GROUPS})", "Due"),
    Line("max by (cluster, group) (lagcast_lag_seconds{GROUPS})", "Lag in seconds"),
    Line('max by (cluster, group) (lagcast_saving_per_hour{GROUPS,against="stay"})', "Saving per hour"),
    Line("max by (cluster, group) (lagcast_regret_per_hour{GROUPS})", "Regret per hour"),
    Line("min by (cluster, group) (lagcast_data_age_seconds{GROUPS})", "Age of the data"),
)

FLEET = (
    Panel(
        "Replicas",
        "short",
        "Of all groups: what they have, what is due now, and what they should have from the advised instants on.",
        (
            Line("sum(max by (cluster, group) (lagcast_current_replicas{GROUPS}))", "current"),
            Line("sum(max by (cluster, group) (lagcast_due_replicas{GROUPS}))", "due"),
            Line("sum(max by (cluster, group) (lagcast_desired_replicas{GROUPS}))", "desired"),
        ),
    ),
    Panel(
        "Saving per hour",
        "short",
        "What each scaler would have cost beyond what was paid in the last 24 hours; below 0 where it costs less.",
        (
            Line(
                "sum by (against, currency) "
                "(max by (cluster, group, against, currency) (lagcast_saving_per_hour{GROUPS}))",
                "{{against}}, {{currency}}",
            ),
        ),
        least=None,
    ),
    Panel(
        "Groups without advice",
        "short",
        "By the reason.",
        (
            Line(
                "count by (reason) (max by (cluster, group, reason) (lagcast_refusal{GROUPS}) == 1)",
                "{{reason}}",
            ),
        ),
    ),
    Panel(
        "Longest lags",
        "s",
        "The ten groups whose oldest waiting message is oldest.",
        (Line("topk(10, max by (cluster, group) (lagcast_lag_seconds{GROUPS}))", "{{group}}"),),
    ),
    Panel(
        "Furthest from advice",
        "short",
        "The ten groups that have most replicas more or fewer than are due.",
        (
            Line(
                "topk(10, abs(max by (cluster, group) (lagcast_due_replicas{GROUPS}) "
                "- max by (cluster, group) (lagcast_current_replicas{GROUPS})))",
                "{{group}}",
            ),
        ),
    ),
    Panel(
        "Most rebalances in an hour",
        "short",
        "The ten groups with most rebalances, restarts and stalls that were seen.",
        (
            Line(
                "topk(10, sum by (cluster, group) (increase(lagcast_interruptions_total{GROUPS}[1h])))",
                "{{group}}",
            ),
        ),
    ),
    Panel(
        "Decisions in an hour",
        "short",
        "Moves, holds and refusals, of all clusters.",
        (Line("sum by (action, reason) (increase(lagcast_decisions_total[1h]))", "{{action}} {{reason}}"),),
    ),
    Panel(
        "Seconds of a cycle",
        "s",
        "What each step of a cycle takes, all groups together.",
        (
            Line(
                "sum by (step) (rate(lagcast_step_duration_seconds_sum[10m])) "
                "/ sum by (step) (rate(lagcast_step_duration_seconds_count[10m]))",
                "{{step}}",
            ),
        ),
    ),
    Panel(
        "Failures in an hour",
        "short",
        "Rounds of a source that brought nothing, groups that were not read in one, and errors that ended at a border.",
        (
            Line(
                'sum by (source, outcome) (increase(lagcast_source_requests_total{outcome!="answered"}[1h]))',
                "{{source}} {{outcome}}",
            ),
            Line("sum by (unit) (increase(lagcast_failures_total[1h]))", "error of a {{unit}}"),
        ),
    ),
)

# The lag of groups by the metric of each exporter, and the label that names the group: where the server has several,
# each is a line. None has to be chosen. -1 is a partition without a commit.
EXPORTERS = (
    ("kafka_exporter", "kafka_consumergroup_lag", "consumergroup"),
    ("kminion", "kminion_kafka_consumer_group_topic_lag", "group_id"),
    ("kafka-lag-exporter", "kafka_consumergroup_group_lag", "group"),
    ("opentelemetry", "kafka_consumer_group_lag", "group"),
    ("redpanda", "redpanda_kafka_consumer_group_lag_sum", "redpanda_group"),
    ("burrow", "burrow_kafka_consumer_lag_total", "consumer_group"),
    ("confluent-cloud", "confluent_kafka_server_consumer_lag_offsets", "consumer_group_id"),
)

GROUP = (
    Panel(
        "Messages",
        "cps",
        "What is produced into the group's topics, and what the group commits.",
        (
            Line("max(lagcast_produce_messages_per_second{GROUPS})", "produced"),
            Line("max(lagcast_consume_messages_per_second{GROUPS})", "consumed"),
        ),
    ),
    Panel(
        "Lag",
        "short",
        "Messages that wait.",
        (Line("max(lagcast_lag_messages{GROUPS})", "lag"),),
    ),
    Panel(
        "Lag in seconds",
        "s",
        "How old the oldest of them is.",
        (Line("max(lagcast_lag_seconds{GROUPS})", "lag"),),
    ),
    Panel(
        "Replicas",
        "short",
        "What the group has, what is due now, and what it should have from the advised instant on.",
        (
            Line("max(lagcast_current_replicas{GROUPS})", "current"),
            Line("max(lagcast_due_replicas{GROUPS})", "due"),
            Line("max(lagcast_desired_replicas{GROUPS})", "desired"),
            Line("max(lagcast_useful_maximum_replicas{GROUPS})", "useful maximum"),
        ),
    ),
    Panel(
        "What one replica consumes",
        "cps",
        "The most that it is believed to do: its 20, 50 and 90 % quantiles.",
        (
            Line(
                "max by (quantile) (lagcast_capacity_messages_per_second_per_replica{GROUPS})",
                "p{{quantile}}",
            ),
        ),
    ),
    Panel(
        "Load",
        "percentunit",
        "What is produced, over what the replicas that are there can do.",
        (
            Line(
                "max(lagcast_produce_messages_per_second{GROUPS}) "
                '/ (max(lagcast_capacity_messages_per_second_per_replica{GROUPS,quantile="0.5"}) '
                "* max(lagcast_current_replicas{GROUPS}))",
                "load",
            ),
        ),
    ),
    Panel(
        "Price of an hour",
        "short",
        "Of the advice and of staying, by item.",
        (
            Line(
                "max by (plan, component, currency) (lagcast_cost_per_hour{GROUPS})",
                "{{plan}}: {{component}}, {{currency}}",
            ),
        ),
    ),
    Panel(
        "No advice",
        "short",
        "1 for the reason why the group is refused.",
        (Line("max by (reason) (lagcast_refusal{GROUPS}) == 1", "{{reason}}"),),
    ),
    Panel(
        "Age of the data",
        "s",
        "Of the newest row that the advice was made from.",
        (Line("min(lagcast_data_age_seconds{GROUPS})", "age"),),
    ),
    Panel(
        "Rebalances in an hour",
        "short",
        "Rebalances, restarts and stalls that were seen.",
        (Line("sum by (kind) (increase(lagcast_interruptions_total{GROUPS}[1h]))", "{{kind}}"),),
    ),
    Panel(
        "How long they stop",
        "s",
        "The mean pause of the partitions that stopped.",
        (
            Line(
                "sum(rate(lagcast_rebalance_pause_seconds_sum{GROUPS}[1h])) "
                "/ sum(rate(lagcast_rebalance_pause_seconds_count{GROUPS}[1h]))",
                "pause",
            ),
        ),
    ),
    Panel(
        "Messages done again in an hour",
        "short",
        "What was seen to be repeated (least), and what may have been (most).",
        (Line("sum by (bound) (increase(lagcast_duplicate_messages_total{GROUPS}[1h]))", "{{bound}}"),),
    ),
    Panel(
        "Error of the forecast",
        "percentunit",
        "Of its median against what came, over what came, by how far ahead it was made.",
        (
            Line(
                "max by (horizon_seconds) (lagcast_forecast_error_ratio{GROUPS})",
                "{{horizon_seconds}} s ahead",
            ),
        ),
    ),
    Panel(
        "Coverage of the forecast",
        "percentunit",
        "The share of minutes between its p05 and p95: 90 % where the bands are right.",
        (Line("max(lagcast_forecast_coverage_ratio{GROUPS})", "inside"),),
    ),
    Panel(
        "Lag by exporters",
        "short",
        "Messages that wait, by the exporters of Kafka's offsets that this Prometheus scrapes: of all clusters.",
        tuple(Line(f"sum({metric}{{{label}={_GROUP}}} >= 0)", exporter) for exporter, metric, label in EXPORTERS),
    ),
)

MARKS = (
    Mark(
        "Advice",
        "blue",
        Line(
            'count_values("replicas", max(lagcast_desired_replicas{GROUPS}) '
            "!= max(lagcast_desired_replicas{GROUPS} offset 1m))",
            "Advice: {{replicas}} replicas",
        ),
    ),
    Mark(
        "Moves",
        "green",
        Line(
            'count_values("replicas", max(lagcast_current_replicas{GROUPS}) '
            "!= max(lagcast_current_replicas{GROUPS} offset 1m))",
            "The group has {{replicas}} replicas",
        ),
    ),
    Mark(
        "Refusals",
        "red",
        Line(
            "max by (reason) (lagcast_refusal{GROUPS}) == 1 "
            "unless on (reason) max by (reason) (lagcast_refusal{GROUPS} offset 1m) == 1",
            "No advice: {{reason}}",
        ),
    ),
)


def queries(name: Name) -> Iterator[str]:
    """The queries of a dashboard's panels. Several recommenders publish the same metrics, hence the aggregates."""
    lines = [line for panel in (FLEET if name == "fleet" else GROUP) for line in panel.lines]
    for line in [*COLUMNS, *lines] if name == "fleet" else lines:
        yield _query(name, line)


def marks() -> Iterator[str]:
    """The queries of the annotations of the dashboard of a group."""
    return (_query("group", mark.line) for mark in MARKS)


def dashboard(name: Name) -> Document:
    """The dashboard as Grafana imports it; clusters, or cluster and group, are selected at its top."""
    chosen = "lagcast_data_age_seconds"
    if name == "fleet":
        title, annotations = "lagcast: fleet", []
        panels = [_table(), *_graphs(name, FLEET, below=_HEIGHT)]
        variables = [_variable("cluster", f"label_values({chosen}, cluster)", several=True)]
    else:
        title, annotations = "lagcast: one group", [_annotation(mark) for mark in MARKS]
        panels = list(_graphs(name, GROUP, below=0))
        variables = [
            _variable("cluster", f"label_values({chosen}, cluster)", several=False),
            _variable("group", f"label_values({chosen}{{cluster={_CLUSTER}}}, group)", several=False),
        ]
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": _uid(name),
        "title": title,
        "tags": ["kafka", "lagcast"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [
            {"type": "dashboards", "title": "lagcast", "tags": ["lagcast"], "asDropdown": True, "keepTime": True}
        ],
        "annotations": {"list": annotations},
        "templating": {"list": [source, *variables]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }


def _uid(name: Name) -> str:
    return f"lagcast-{name}"


def _query(name: Name, line: Line) -> str:
    return line.query.replace("GROUPS", _SELECTED[name])


def _variable(name: str, query: str, *, several: bool) -> Document:
    variable = {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # at each change of the time range: groups come and go
        "multi": several,
        "includeAll": several,
        "sort": 1,
    }
    return variable | ({"current": {"text": ["All"], "value": ["$__all"]}} if several else {})


def _annotation(mark: Mark) -> Document:
    return {
        "name": mark.name,
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": mark.colour,
        "expr": _query("group", mark.line),
        "titleFormat": mark.line.legend,
        "step": "60s",  # the `offset` of the queries: what happened is in one step alone
    }


def _table() -> Document:
    """One row for each group, with a link to its own dashboard."""
    group = (
        f"/d/{_uid('group')}?var-source=${{source}}"
        "&var-cluster=${__data.fields.cluster:percentencode}&var-group=${__value.raw:percentencode}"
    )
    link = {"id": "links", "value": [{"title": "Its own dashboard", "url": group}]}
    targets = _targets("fleet", COLUMNS)
    names = {f"Value #{target['refId']}": column.legend for target, column in zip(targets, COLUMNS, strict=True)}
    return {
        "type": "table",
        "title": "Groups",
        "description": "What each has and should have; saving against staying at the count that it had a day ago.",
        "datasource": _SOURCE,
        "gridPos": {"x": 0, "y": 0, "w": _WIDTH * _ABREAST, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {"decimals": 2},
            "overrides": [{"matcher": {"id": "byName", "options": "group"}, "properties": [link]}],
        },
        "options": {"sortBy": [{"displayName": "Regret per hour", "desc": True}]},
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
        ],
        "targets": [target | {"format": "table", "instant": True} for target in targets],
    }


def _graphs(name: Name, panels: Iterable[Panel], *, below: int) -> Iterator[Document]:
    for place, panel in enumerate(panels):
        row, column = divmod(place, _ABREAST)
        yield {
            "type": "timeseries",
            "title": panel.title,
            "description": panel.meaning,
            "datasource": _SOURCE,
            "gridPos": {"x": column * _WIDTH, "y": below + row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": panel.least}, "overrides": []},
            "targets": _targets(name, panel.lines),
        }


def _targets(name: Name, lines: Sequence[Line]) -> list[Document]:
    return [
        {
            "refId": chr(ord("A") + place),
            "datasource": _SOURCE,
            "expr": _query(name, line),
            "legendFormat": line.legend,
        }
        for place, line in enumerate(lines)
    ]
