"""docs/glossary.md explains every name that a user sees, and no other."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from api import parts, schemas
from executor.metrics import ExecutorMetrics
from recommender.adapters.metrics import Metrics
from recommender.configuring.holidays import HolidaySettings
from recommender.configuring.settings import Settings
from recommender.configuring.settings_group import GroupSettings, ScaleToZeroSettings, StreamsSettings, TargetSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.windows import Window

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CRD = ROOT / "deploy" / "manifests" / "scalers" / "crd.yaml"

OLD_WORDS = (
    *("head_room", "min_interval", "stop_seconds", "rung", "flips_if"),
    *("guard", "switch", "silent", "waking", "stair"),
)
KAFKA = {
    *("group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy"),
    *("heartbeat.interval.ms", "session.timeout.ms", "max.poll.records", "max.poll.interval.ms"),
    *("enable.auto.commit", "auto.commit.interval.ms", "commit.interval.ms", "processing.guarantee"),
    *("num.standby.replicas", "max.warmup.replicas", "probing.rebalance.interval.ms"),
    *("MessagesInPerSec", "records-consumed-rate", "records-lag", "rebalance-latency-avg", "restore-rate"),
}
KUBERNETES = {
    *("currentReplicas", "desiredReplicas", "spec.replicas", "minReplicas", "maxReplicas", "averageUtilization"),
    *("behavior", "scaleDown.stabilizationWindowSeconds", "scaleDown.policies", "scaleUp.policies", "selectPolicy"),
    *("scaleTargetRef", "lastScaleTime", "observedGeneration", "terminationGracePeriodSeconds", "timeZone"),
    *("ScalingLimited", "ScalingActive", "AmbiguousSelector"),
}
KEDA = {
    *("consumerGroup", "topic", "lagThreshold", "activationLagThreshold", "allowIdleConsumers"),
    *("ensureEvenDistributionOfPartitions", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod"),
    *("fallback", "fallback.replicas", "Fallback", "advanced", "start", "end", "timezone"),
    "autoscaling.keda.sh/paused-replicas",
}
FLINK = {
    *("utilization.target", "vertex.min-parallelism", "vertex.max-parallelism", "scaling.enabled"),
    *("restart.time", "restart.time-tracking.enabled", "scale-down.interval", "stabilization.interval"),
    *("excluded.periods", "metrics.window", "scaling.effectiveness.detection.enabled"),
    *("numRecordsInPerSecond", "pendingRecords"),
}
WORDS_OF_OTHERS = KAFKA | KUBERNETES | KEDA | FLINK


class _EmptyStore:
    def newest_ids(self) -> dict[tuple[str, str], str]:
        return {}


def _settings() -> set[str]:
    models = (Settings, GroupSettings, HolidaySettings, ScaleToZeroSettings, StreamsSettings, TargetSettings)
    records = (DecisionSettings, Window)
    return {name for model in models for name in model.model_fields} | {
        field.name for record in records for field in fields(record)
    }


def _schema_fields() -> set[str]:
    models = [found for module in (parts, schemas) for _, found in inspect.getmembers(module, inspect.isclass)]
    return {
        field.alias or name
        for model in models
        if issubclass(model, parts.Wire)
        for name, field in model.model_fields.items()
    }


def _metrics() -> set[str]:
    """The metrics of a recommender without groups and of an executor; the parser takes off `_total` and `_info`."""
    metrics = Metrics(
        _EmptyStore(),  # type: ignore[arg-type]  # the page calls no other method
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        version="1",
        leads=lambda: True,
    )
    families = (*text_string_to_metric_families(metrics.page().decode()), *ExecutorMetrics().registry.collect())
    return {family.name.removeprefix("lagcast_").removesuffix("_info") for family in families}


def _crd_fields() -> set[str]:
    (version,) = yaml.safe_load(CRD.read_text(encoding="utf-8"))["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    return {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        for part in ("spec", "status")
        for name in _properties(properties[part])
    }


def _properties(schema: dict[str, Any]) -> Iterator[str]:
    for name, value in schema.get("properties", {}).items():
        yield name
        yield from _properties(value)
    if "items" in schema:
        yield from _properties(schema["items"])


SOURCES = {
    "settings": _settings(),
    "schema fields": _schema_fields(),
    "metrics": _metrics(),
    "CRD fields": _crd_fields(),
}
NAMES: set[str] = set().union(*SOURCES.values())


def _rows() -> list[list[str]]:
    """The cells of every row of the page's tables, without their headings."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")
    ]
    return [row for row in rows if row[0] not in {"Term", "Name"}]


def _terms() -> list[str]:
    return [name for row in _rows() for name in re.findall(r"`([^`]+)`", row[0])]


@pytest.mark.parametrize("source", SOURCES)
def test_every_name_is_explained(source: str) -> None:
    """Each setting, each field of the wire, each metric and each field of the resource is in a first column."""
    assert len(SOURCES[source]) > 10
    assert sorted(SOURCES[source] - set(_terms())) == []


def test_every_name_is_explained_once() -> None:
    """One quantity has one row, and a name has one meaning."""
    terms = _terms()
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


def test_no_explained_name_is_unknown() -> None:
    """Each term is a name of lagcast, and the rest in backticks is one too or a listed word of others."""
    assert sorted(set(_terms()) - NAMES) == []
    assert sorted(set(re.findall(r"`([^`]+)`", PAGE)) - NAMES - WORDS_OF_OTHERS) == []


def test_no_listed_word_of_others_is_left_over() -> None:
    """Each listed word is on the page."""
    assert sorted(word for word in WORDS_OF_OTHERS if f"`{word}`" not in PAGE) == []


def test_each_meaning_is_one_sentence() -> None:
    """Each row has all of its cells, and a meaning that ends with its only full stop."""
    rows = _rows()
    assert {len(row) for row in rows} == {2, 7}
    assert [row[1] for row in rows if not re.fullmatch(r"[A-Z][^.;]*\.", row[1])] == []
    assert [row[0] for row in rows if not all(row)] == []


def test_replaced_words_are_in_no_name() -> None:
    """No name of lagcast contains a word that was replaced."""
    assert [(old, name) for old in OLD_WORDS for name in sorted(NAMES) if f"_{old}_" in f"_{name}_"] == []
