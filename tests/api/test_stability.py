"""P24: fields of version 1 never vanish and never change their type; what is pinned only grows.

`fields_v1.txt` has a line for each field of REST, `fields_v1alpha1.txt` one for each field of the resource, as they
were when the field was first there. `REWRITE=1 pytest tests/api/test_stability.py` adds lines for new fields, and
removes none: to take a line away by hand is to break what readers were promised.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
OPENAPI: dict[str, Any] = json.loads((HERE / "openapi.json").read_text(encoding="utf-8"))
CRD: dict[str, Any] = yaml.safe_load(
    (HERE.parents[1] / "deploy" / "manifests" / "scalers" / "crd.yaml").read_text(encoding="utf-8")
)
METHODS = ("get", "put", "post", "delete", "patch")


def kind_of(schema: Mapping[str, Any]) -> str:
    """The type of a field in one word, or in several for a choice; of a constant, and of a set of them, the members."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return "|".join(sorted(kind_of(each) for each in schema[choice]))
    if schema.get("type") == "array":
        items = schema.get("items") or next(iter(schema.get("prefixItems", [{}])))
        return f"[{kind_of(items)}]"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{{{kind_of(schema['additionalProperties'])}}}"
    words = (schema.get("type"), schema.get("format"))
    return "/".join(str(word) for word in words if word) or "any"


def fields_of(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A line for each field below a schema, nested ones with their path, and one for each value that it may have."""
    required = set(schema.get("required", ()))
    for field, inner in schema.get("properties", {}).items():
        path = f"{name}.{field}"
        yield f"{path}: {kind_of(inner)}{' always' if field in required else ''}"
        yield from values_of(path, inner)
        yield from fields_of(path, inner)
        yield from fields_of(f"{path}[]", inner.get("items", {}) if isinstance(inner.get("items"), dict) else {})


def values_of(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A line for each value of an enumeration."""
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    for choice in schema.get("anyOf", ()):
        values += [*choice.get("enum", ()), *([choice["const"]] if "const" in choice else ())]
    yield from (f"{path} = {value}" for value in values)


def of_rest() -> set[str]:
    """All routes, their parameters and answers, and all fields of their messages."""
    lines: set[str] = set()
    for path, route in OPENAPI["paths"].items():
        for method in METHODS:
            if method not in route:
                continue
            asked = route[method]
            lines.update(f"{method} {path} answers {code}" for code in asked["responses"])
            lines.update(
                f"{method} {path} takes {each['in']} {each['name']}: {kind_of(each['schema'])}"
                for each in asked.get("parameters", ())
            )
    for name, schema in OPENAPI["components"]["schemas"].items():
        lines.update(fields_of(name, schema))
    return lines


def of_the_resource() -> set[str]:
    """All fields of every version that is served."""
    lines: set[str] = set()
    for version in CRD["spec"]["versions"]:
        lines.add(f"{version['name']} is served {version['served']} and stored {version['storage']}")
        lines.update(fields_of(version["name"], version["schema"]["openAPIV3Schema"]))
    return lines


def kept(file: Path, lines: set[str]) -> set[str]:
    """The pinned lines, with new ones added where that is asked for."""
    pinned = set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()
    if os.environ.get("REWRITE"):
        pinned |= lines
        file.write_text("".join(f"{line}\n" for line in sorted(pinned)), encoding="utf-8")
    return pinned


@pytest.mark.parametrize(
    ("name", "lines"), [("fields_v1.txt", of_rest()), ("fields_v1alpha1.txt", of_the_resource())], ids=["REST", "CRD"]
)
def test_p24_pinned_fields_are_there_with_their_type(name: str, lines: set[str]) -> None:
    """Every field, value, parameter and answer that was ever published is there as it was, and new ones are pinned."""
    pinned = kept(HERE / name, lines)
    assert sorted(pinned - lines) == []
    assert sorted(lines - pinned) == []


def test_p24_no_parameter_is_required_but_those_in_the_path() -> None:
    """A request that was valid stays valid: no query or header has to be given."""
    needed = [
        (path, each["name"])
        for path, route in OPENAPI["paths"].items()
        for method in METHODS
        for each in route.get(method, {}).get("parameters", ())
        if each.get("required") and each["in"] != "path"
    ]
    assert needed == []


@pytest.mark.parametrize("change", ["gone", "another type", "no longer always", "a value gone"])
def test_p24_a_change_of_a_field_is_seen(change: str) -> None:
    """A field that vanishes, has another type or may be absent, or a value that is no longer sent, breaks a line."""
    before = {
        "properties": {"replicas": {"type": "integer"}, "action": {"type": "string", "enum": ["hold", "scale_in"]}},
        "required": ["replicas"],
    }
    after = json.loads(json.dumps(before))
    if change == "gone":
        del after["properties"]["replicas"]
    elif change == "another type":
        after["properties"]["replicas"]["type"] = "number"
    elif change == "no longer always":
        after["required"] = []
    else:
        after["properties"]["action"]["enum"].remove("hold")
    assert set(fields_of("M", before)) - set(fields_of("M", after))
