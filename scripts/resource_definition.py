# ruff: noqa: INP001 - a script is run, never imported
"""Writes the definition of the resource ConsumerGroupScaler; its spec has the descriptions and limits of the settings.

python scripts/resource_definition.py > deploy/manifests/scalers/crd.yaml
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from recommender.cluster.scaler import (
    API_GROUP,
    API_VERSION,
    DECISION_BLOCKS,
    GROUP_BLOCKS,
    KIND,
    PLURAL,
    camel_case,
)
from recommender.configuring.settings import Settings
from recommender.ports import wire_code

Schema = dict[str, Any]

HEAD = "# Made by `make docs` from the settings; what each field means to lagcast is docs/kubernetes.md.\n"
# A number that need not be whole: 10 or "0.5". The API conventions of Kubernetes rule out floating point.
DECIMAL = r"^[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?$"
BLOCKS = {
    "objective": "The promise to keep.",
    "prices": "What things cost; decimal strings.",
    "limits": "What bounds moves.",
    "group": "What is known of the group; the rest is measured or assumed.",
}
TEXT = {"type": "string", "minLength": 1}
INSTANT = {"type": "string", "format": "date-time"}
COUNT = {"type": "integer", "minimum": 1}


def definition() -> Schema:
    """The whole CustomResourceDefinition."""
    schema = {
        "type": "object",
        "description": "Settings of one Kafka consumer group by its owner, and the advice of lagcast.",
        "required": ["spec"],
        "properties": {"spec": spec(), "status": status()},
    }
    version = {
        "name": API_VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": list(columns()),
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": KIND, "plural": PLURAL, "singular": KIND.lower(), "shortNames": ["cgs"], "categories": ["lagcast"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{API_GROUP}"},
        "spec": {"group": API_GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def spec() -> Schema:
    """The schema of the spec: the settings, and the fields that only an object has."""
    parts = Settings.model_json_schema()["$defs"]
    properties: Schema = {
        "cluster": {**TEXT, "description": "Name of the Kafka cluster, as the collector was given it."},
        "groupId": {**TEXT, "description": "Name of the consumer group in Kafka."},
        "target": target(),
        "scaleToZero": field(parts["GroupSettings"]["properties"]["scale_to_zero"], parts),
        "hold": hold(),
    }
    for settings, blocks in (("DecisionSettings", DECISION_BLOCKS), ("GroupSettings", GROUP_BLOCKS)):
        for block, names in blocks.items():
            fields = {camel_case(name): field(parts[settings]["properties"][name], parts) for name in names}
            if block:
                properties[block] = {"type": "object", "description": BLOCKS[block], "properties": fields}
            else:
                properties |= fields
    # 0 is allowed with scaleToZero only; without a lower limit the rule below returns the better error message.
    properties["minReplicas"]["minimum"] = 0
    return {
        "type": "object",
        "required": ["cluster", "groupId"],
        "properties": properties,
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                "message": "minReplicas is above maxReplicas; lower one or raise the other",
            },
            {
                "rule": "!has(self.minReplicas) || self.minReplicas > 0 || "
                "(has(self.scaleToZero) && has(self.scaleToZero.enabled) && self.scaleToZero.enabled)",
                "message": "minReplicas is 0 and scaleToZero.enabled is not true; set 1 or more",
            },
        ],
    }


def target() -> Schema:
    """The workload; its namespace is that of the object."""
    return {
        "type": "object",
        "description": "The workload that runs the group, in the namespace of this object. Without it: advice only.",
        "required": ["name"],
        "properties": {
            "apiVersion": {**TEXT, "description": "Default: apps/v1."},
            "kind": {**TEXT, "description": "Any kind with a /scale. Default: Deployment."},
            "name": {**TEXT, "description": "Name of the workload."},
        },
    }


def hold() -> Schema:
    """A time without advice."""
    return {
        "type": "object",
        "description": "No advice while it lasts: executors leave the group unchanged.",
        "properties": {
            "replicas": {**COUNT, "description": "Replicas that the group is to keep."},
            "until": {**INSTANT, "description": "When it ends. Default: when it is removed."},
        },
        "x-kubernetes-validations": [
            {"rule": "has(self.replicas)", "message": "hold names no replicas; give hold.replicas, or remove hold"}
        ],
    }


def field(setting: Mapping[str, Any], parts: Mapping[str, Schema]) -> Schema:
    """One setting as the schema of one field."""
    options = [option for option in setting.get("anyOf", [setting]) if option.get("type") != "null"]
    known = options[0]
    if "$ref" in known:
        return block_of(parts[known["$ref"].rpartition("/")[2]], parts) | described(setting)
    if "enum" in known:
        schema: Schema = {"type": "string", "enum": [wire_code(word) for word in known["enum"]]}
    elif known["type"] == "number":
        schema = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        schema["pattern"] = DECIMAL
    elif known["type"] == "string":
        schema = dict(TEXT)
    elif known["type"] == "array":
        schema = {"type": "array", "items": field(known["items"], parts)}
    else:
        schema = {"type": known["type"]} | ({"minimum": known["minimum"]} if "minimum" in known else {})
    return schema | described(setting)


def block_of(part: Schema, parts: Mapping[str, Schema]) -> Schema:
    """A setting that has fields of its own."""
    fields = {camel_case(name): field(setting, parts) for name, setting in part["properties"].items()}
    required = [camel_case(name) for name in part.get("required", ())]
    return {"type": "object", "properties": fields} | ({"required": required} if required else {})


def described(setting: Mapping[str, Any]) -> Schema:
    """The setting's own description."""
    return {"description": " ".join(setting["description"].split())} if "description" in setting else {}


def status() -> Schema:
    """The schema of the status; every name is one of the wire schema, and unknown values are absent."""
    text, decimal = {"type": "string"}, {"type": "string", "pattern": DECIMAL}
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {
                "type": "integer",
                "description": "The generation of spec that the status describes.",
            },
            "mode": {**text, "description": "The mode in force, by spec or settings."},
            "recommendation": record(
                "The newest advice; absent while there is none. Written when it changes, and before it expires.",
                recommendationId=text,
                action=text,
                reason=text,
                currentReplicas={"type": "integer"},
                desiredReplicas={"type": "integer"},
                desiredReplicasLower={"type": "integer"},
                desiredReplicasUpper={"type": "integer"},
                executeAt=INSTANT,
                validUntil=INSTANT,
                confidence=decimal,
                confidenceLevel=text,
            ),
            "observed": record(
                "The group as it stood when the advice was written here.",
                lagMessages={"type": "integer"},
                lagSeconds=decimal,
                produceMessagesPerSecond=decimal,
                capacityMessagesPerSecondPerReplica=decimal,
                asOf=INSTANT,
            ),
            "costPerHour": record(
                "Price of an hour of the advice, and of staying.", currency=text, chosen=decimal, stay=decimal
            ),
            "conditions": conditions(),
            "lastApplied": record(
                "The count that an executor set last. Written by the executor.",
                workload=text,
                recommendationId=text,
                replicas={"type": "integer"},
                at=INSTANT,
            ),
            "conflict": record(
                "Other scalers of the target, as the executor found and wrote them; the reason of Conflicted.",
                workload=text,
                reason=text,
                message=text,
                since=INSTANT,
            ),
        },
    }


def record(description: str, **properties: Schema) -> Schema:
    """An object of simple fields."""
    return {"type": "object", "description": description, "properties": properties}


def conditions() -> Schema:
    """The conditions, with the fields of metav1.Condition; one of each type."""
    fields = {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "minimum": 0},
        "lastTransitionTime": INSTANT,
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
        "message": {"type": "string", "maxLength": 32768},
    }
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": fields,
        },
    }


def columns() -> Iterable[Schema]:
    """The columns of `kubectl get cgs`; the last ones are shown with `-o wide`."""
    ready, advice = '.status.conditions[?(@.type=="Ready")]', ".status.recommendation"
    yield column("Target", ".spec.target.name")
    yield column("Mode", ".status.mode")
    yield column("Current", f"{advice}.currentReplicas", kind="integer")
    yield column("Desired", f"{advice}.desiredReplicas", kind="integer")
    yield column("At", f"{advice}.executeAt")
    yield column("Confidence", f"{advice}.confidenceLevel")
    yield column("Ready", f"{ready}.status")
    yield column("Age", ".metadata.creationTimestamp", kind="date")
    yield column("Reason", f"{ready}.reason", priority=1)
    yield column("Because", f"{advice}.reason", priority=1)
    yield column("Lower", f"{advice}.desiredReplicasLower", kind="integer", priority=1)
    yield column("Upper", f"{advice}.desiredReplicasUpper", kind="integer", priority=1)
    yield column("Lag-s", ".status.observed.lagSeconds", priority=1)


def column(name: str, path: str, *, kind: str = "string", priority: int = 0) -> Schema:
    """One column."""
    return {"name": name, "jsonPath": path, "type": kind, "priority": priority}


class _Plain(yaml.SafeDumper):
    """A dumper that writes every value in full, without aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


if __name__ == "__main__":
    sys.stdout.write(HEAD + yaml.dump(definition(), Dumper=_Plain, sort_keys=False, width=110))
