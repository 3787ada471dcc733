"""The chart, as far as it can be checked without Helm: no copy in it may differ, and every value has a schema."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from manifests.dashboard import Name, dashboard
from manifests.outgoing import alerts

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))


def read(name: str) -> str:
    return (CHART / name).read_text(encoding="utf-8")


def test_the_schema_is_made_of_the_settings() -> None:
    """values.schema.json is exactly what the script makes of the settings; `make docs` rewrites it."""
    script = [sys.executable, "scripts/chart_schema.py"]
    made = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    assert read("values.schema.json") == made.stdout


def test_the_definition_is_that_of_the_manifests() -> None:
    """The chart's definition equals that of the manifests byte for byte; `make docs` copies it."""
    assert read("files/consumergroupscalers.yaml") == (
        ROOT / "deploy" / "manifests" / "scalers" / "crd.yaml"
    ).read_text(encoding="utf-8")


def test_the_alerts_are_those_that_are_exported() -> None:
    """The chart's alerts are the output of `lagcast export prometheus-rule`; `make docs` writes the file."""
    assert yaml.safe_load(read("files/prometheus-rule.yaml")) == alerts()


@pytest.mark.parametrize("name", get_args(Name))
def test_the_dashboards_are_those_that_are_exported(name: Name) -> None:
    """The chart's dashboards are the output of `lagcast export dashboard`; `make docs` writes the files."""
    assert json.loads(read(f"files/dashboard-{name}.json")) == dashboard(name)


def unnamed(values: Mapping[str, Any], schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Paths that only one of the two has."""
    known = schema["properties"]
    for name in values.keys() ^ known.keys():
        yield f"{where}{name}"
    for name in values.keys() & known.keys():
        if "properties" in known[name]:
            yield from unnamed(values[name], known[name], f"{where}{name}.")


def test_values_and_schema_have_the_same_names() -> None:
    """Every value in the schema has a default in values.yaml, and every default is in the schema."""
    # `global` is Helm's own.
    assert list(unnamed(VALUES, SCHEMA)) == ["global"]


def test_templates_use_existing_values() -> None:
    """A misspelt value in a template, which Helm would render as empty, fails."""
    texts = [path.read_text(encoding="utf-8") for path in (CHART / "templates").rglob("*.*")]
    used = {tuple(path.split(".")) for text in texts for path in re.findall(r"\.Values\.([A-Za-z.]+)", text)}
    assert len(used) > 20
    for path in used:
        value: Any = VALUES
        for name in path:
            assert name in value, ".".join(path)
            value = value[name]
    assert {path[0] for path in used} == VALUES.keys()


@pytest.mark.parametrize("name", ["executor", "serviceMonitor", "prometheusRule", "dashboard"])
def test_options_that_act_or_need_an_operator_are_off(name: str) -> None:
    """By default the chart advises only, and needs no operator."""
    assert VALUES[name]["enabled"] is False


def test_nothing_may_be_scaled_by_default() -> None:
    """Neither the executor nor a group has the mode apply."""
    assert VALUES["executor"]["mode"] == "recommend"
    assert [group["mode"] for group in VALUES["settings"]["groups"].values()] == ["recommend"]


def test_the_version_is_the_projects() -> None:
    """The chart has the version of the project, so that the image is that of the same release."""
    chart = yaml.safe_load(read("Chart.yaml"))
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert chart["version"] == chart["appVersion"] == version
