"""The resource ConsumerGroupScaler: made from the settings, with the names of the wire."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from api import parts, schemas
from recommender.cluster.scaler import DECISION_BLOCKS, GROUP_BLOCKS, camel_case, snake_case
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.configuring.settings_group import ScaleToZeroSettings, StreamsSettings
from recommender.deciding.decision import DecisionSettings

ROOT = Path(__file__).parents[2]
SCALERS = ROOT / "deploy" / "manifests" / "scalers"
DEFINITION: dict[str, Any] = yaml.safe_load((SCALERS / "crd.yaml").read_text(encoding="utf-8"))
(VERSION,) = DEFINITION["spec"]["versions"]
PARTS: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]["properties"]
SPEC: dict[str, Any] = PARTS["spec"]["properties"]
STATUS: dict[str, Any] = PARTS["status"]["properties"]
# Fields of an object that the settings lack or have in one name: its group, zero and a hold.
OF_THE_OBJECT = {"cluster", "groupId", "scaleToZero", "hold"}
# Fields that only an executor writes.
OF_THE_EXECUTOR = {"lastApplied", "conflict"}
DECISION_NAMES = {field.name for field in fields(DecisionSettings)}


def leaves(properties: Mapping[str, Any]) -> Iterator[str]:
    """Names of the fields that hold a value, however deep."""
    for name, schema in properties.items():
        if "properties" in schema:
            yield from leaves(schema["properties"])
        elif schema.get("type") != "array":
            yield name


def test_it_is_made_of_the_settings() -> None:
    """crd.yaml is exactly what the settings describe; `make docs` rewrites it."""
    script = [sys.executable, "scripts/resource_definition.py"]
    made = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (SCALERS / "crd.yaml").read_text(encoding="utf-8") == made.stdout


def test_every_field_of_the_spec_is_a_setting() -> None:
    """Each field of the spec has the name of a setting, in camelCase."""
    settings = DECISION_NAMES | {
        name for kind in (GroupSettings, TargetSettings, StreamsSettings) for name in kind.model_fields
    }
    settable = {name: schema for name, schema in SPEC.items() if name not in OF_THE_OBJECT}
    assert [name for name in leaves(settable) if snake_case(name) not in settings] == []


def test_every_setting_of_a_group_is_in_the_spec() -> None:
    """Each setting is a field, except holidays, which only the daily job reads, and the namespace, the object's own."""
    blocks = ("", "group")
    found = {snake_case(name) for block in blocks for name in (SPEC[block]["properties"] if block else SPEC)}
    assert GroupSettings.model_fields.keys() - found == {"holidays"}
    assert {snake_case(name) for name in SPEC["scaleToZero"]["properties"]} == set(ScaleToZeroSettings.model_fields)
    assert TargetSettings.model_fields.keys() - set(map(snake_case, SPEC["target"]["properties"])) == {"namespace"}
    assert {snake_case(name) for name in SPEC["group"]["properties"]["streams"]["properties"]} == set(
        StreamsSettings.model_fields
    )


@pytest.mark.parametrize("blocks", [DECISION_BLOCKS, GROUP_BLOCKS], ids=["decision", "group"])
def test_fields_that_are_read_are_defined(blocks: dict[str, tuple[str, ...]]) -> None:
    """Each block that is read from a spec is in the definition, with these fields and no others."""
    for block, names in blocks.items():
        defined = SPEC[block]["properties"] if block else SPEC
        assert set(map(camel_case, names)) <= defined.keys()
        assert not block or set(map(camel_case, names)) == defined.keys()


def test_every_field_of_the_status_is_on_the_wire() -> None:
    """Advice has the same names in `kubectl get` as over REST."""
    models: list[type[BaseModel]] = [
        schemas.RecommendationV1,
        parts.Observed,
        parts.DataQuality,
        parts.ExecuteWindow,
        parts.CostComparison,
    ]
    wire = {name for model in models for name in model.model_fields}
    advised = {name: schema for name, schema in STATUS.items() if name not in OF_THE_EXECUTOR}
    assert [name for name in leaves(advised) if snake_case(name) not in wire] == ["observedGeneration"]


def test_statuses_are_separate_and_conditions_are_standard() -> None:
    """A writer of the spec cannot write the status; conditions are a map by type, so that each writer has its own."""
    assert VERSION["subresources"] == {"status": {}}
    conditions = STATUS["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert set(conditions["items"]["required"]) == {"type", "status", "lastTransitionTime", "reason", "message"}
