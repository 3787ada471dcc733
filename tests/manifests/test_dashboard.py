"""Dashboards for Grafana: metrics that exist, panels beside each other, and a way from the fleet to a group."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

from manifests.dashboard import EXPORTERS, Name, dashboard, marks, queries

# A test holds the page to the code.
PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
METRICS = set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE))


@pytest.mark.parametrize("name", get_args(Name))
def test_queries_name_metrics_that_exist(name: Name) -> None:
    """Each of lagcast's, a histogram by its sum and its count; the lag of exporters is theirs."""
    asked = {metric for query in (*queries(name), *marks()) for metric in re.findall(r"\blagcast_\w+", query)}
    assert len(asked) > 10
    assert {re.sub(r"_seconds_(sum|count)$", "_seconds", metric) for metric in asked} <= METRICS


@pytest.mark.parametrize("name", get_args(Name))
def test_panels_lie_beside_each_other(name: Name) -> None:
    """No two share a place of the grid or an id, and none is wider than it."""
    panels = dashboard(name)["panels"]
    places = [{(x, y) for x in _span(at, "x", "w") for y in _span(at, "y", "h")} for at in _grids(panels)]
    assert len({panel["id"] for panel in panels}) == len(panels) > 8
    assert [pair for pair in combinations(places, 2) if not pair[0].isdisjoint(pair[1])] == []
    assert max(x for place in places for x, _ in place) == 23


def test_a_row_of_the_fleet_leads_to_the_dashboard_of_its_group() -> None:
    """By the uid and the variables of that one."""
    table, *_ = dashboard("fleet")["panels"]
    (override,) = table["fieldConfig"]["overrides"]
    (link,) = override["properties"][0]["value"]
    path, _, words = link["url"].partition("?")
    group = dashboard("group")
    assert path == f"/d/{group['uid']}"
    assert re.findall(r"var-(\w+)=", words) == [variable["name"] for variable in group["templating"]["list"]]


def test_decisions_are_annotations_of_a_group_alone() -> None:
    """A fleet has too many of them for one graph."""
    assert [mark["name"] for mark in dashboard("group")["annotations"]["list"]] == ["Advice", "Moves", "Refusals"]
    assert dashboard("fleet")["annotations"]["list"] == []


def test_no_exporter_has_to_be_chosen() -> None:
    """The lag by each has a line of its own, which is empty where the exporter is not there."""
    (panel,) = [each for each in dashboard("group")["panels"] if each["title"] == "Lag by exporters"]
    assert [target["legendFormat"] for target in panel["targets"]] == [name for name, _, _ in EXPORTERS]


def _grids(panels: list[dict[str, Any]]) -> list[dict[str, int]]:
    return [panel["gridPos"] for panel in panels]


def _span(at: dict[str, int], begin: str, length: str) -> range:
    return range(at[begin], at[begin] + at[length])
